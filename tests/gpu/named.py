# SPDX-License-Identifier: MIT
"""tshare.create(device=): tensors in the GPU's own memory that another process opens by name."""

import errno
import json
import time

import driver
from checks import (
    Other,
    SkipError,
    address_of,
    check,
    equal,
    need,
    need_torch,
    nothing_left,
    refused,
    same,
    unused_name,
)

COUNT = 1 << 20  # words, 4 MiB
OPENS = 1000

# What another process begins with: driver and tshare, and a CUDA context.
BEGIN = f"""
import sys
sys.path.insert(0, {__file__.rpartition("/")[0]!r})
import driver, tshare
driver.enter()
name = sys.argv[1]
"""


def other(code, name):
    return Other(BEGIN + code, name)


def create(name, shape=COUNT):
    """Return new memory of a name; skip where CUDA shares none."""
    import tshare

    try:
        return tshare.create(name, shape, "uint32", device=0)
    except OSError as error:
        if error.errno != errno.EOPNOTSUPP:
            raise
        raise SkipError(f"no memory by name: {error}") from None


def words_of(g):
    import numpy as np

    found = np.empty(g.shape, g.dtype)
    driver.call("cuMemcpyDtoHAsync_v2", found.ctypes.data, address_of(g), found.nbytes, None)
    driver.synchronize()
    return found


def fill(g, value):
    """Store value, value + 1, ..."""
    driver.Kernels().fill(address_of(g), g.shape[0], value)
    driver.synchronize()


def numbers(first):
    import numpy as np

    return np.arange(first, first + COUNT, dtype="uint32")


@check
def another_process_reads_and_writes_it():
    import numpy as np

    driver.enter()
    name = unused_name("both")
    start = time.perf_counter()
    g = create(name)
    seconds = time.perf_counter() - start
    same(words_of(g), np.zeros(COUNT, "uint32"), "new words")
    fill(g, 3)
    process = other(
        "import time\n"
        "start = time.perf_counter()\n"
        "g = tshare.open(name)\n"
        "print(time.perf_counter() - start, flush=True)\n"
        "kernels = driver.Kernels()\n"
        "address = g.__cuda_array_interface__['data'][0]\n"
        "kernels.add(address, (1, g.shape[0]), (g.nbytes, 4), 4)\n"
        "driver.synchronize()\n",
        name,
    )
    opened = float(process.hear())
    process.end()
    same(words_of(g), numbers(7), "words that the other process has changed")
    return {"create_seconds": seconds, "open_seconds": opened}


@check
def a_killed_user_leaves_the_maker_s_memory():
    driver.enter()
    name = unused_name("user")
    g = create(name)
    fill(g, 3)
    process = other("g = tshare.open(name)\nprint(flush=True)\nsys.stdin.read()\n", name)
    process.hear()
    process.kill()
    same(words_of(g), numbers(3), "words after the user's death")


def maker_of(name):
    process = other(
        "g = tshare.create(name, 1 << 20, 'uint32', device=0)\n"
        "driver.Kernels().fill(g.__cuda_array_interface__['data'][0], g.shape[0], 3)\n"
        "driver.synchronize()\n"
        "print(flush=True)\nsys.stdin.read()\n",
        name,
    )
    process.hear()
    return process


@check
def a_killed_maker_is_noticed():
    import tshare

    driver.enter()
    name = unused_name("maker")
    create(unused_name("probe"), 1)
    process = maker_of(name)
    region = tshare.Region.open(name)
    g = tshare.open(name)
    process.kill()
    with refused(errno.EOWNERDEAD, "an export of the dead maker's memory"):
        g.__dlpack__()
    del g
    try:
        tshare.open(name)
    except FileNotFoundError:
        pass
    else:
        raise AssertionError("the dead maker's name can be opened")
    region.close()


@check(recorded=True)
def what_is_left_of_a_killed_maker_s_memory():
    """CUDA leaves this undefined: what a user that has it open reads, and what an open returns."""
    import tshare

    driver.enter()
    name = unused_name("after")
    create(unused_name("probe"), 1)
    process = maker_of(name)
    g = tshare.open(name)
    address = address_of(g)
    process.kill()
    time.sleep(1)
    found = driver.Host(8)
    result = driver.attempt("cuMemcpyDtoHAsync_v2", found.address, address, 8, None)
    ended = driver.attempt("cuCtxSynchronize")
    return {"copy": result, "synchronize": ended, "words": found.numbers(1)[0]}


@check
def a_thousand_opens_leave_nothing():
    driver.enter()
    name = unused_name("often")
    g = create(name)
    process = other(
        "import json\n"
        "from checks import nothing_left\n"
        "tshare.open(name)\n"
        "figures = {}\n"
        "with nothing_left(figures):\n"
        f"    for _ in range({OPENS}):\n"
        "        tshare.open(name)\n"
        "print(json.dumps(figures), flush=True)\n",
        name,
    )
    figures = json.loads(process.end())
    del g
    return figures


@check
def creating_leaves_nothing():
    driver.enter()
    name = unused_name("create")
    create(name)
    figures = {}
    with nothing_left(figures):
        for _ in range(50):
            create(name)
    return figures


@check
def the_maker_keeps_what_others_use():
    """Memory that its maker drops stays for a user, and is freed when the user has ended."""
    driver.enter()
    name = unused_name("kept")
    create(unused_name("probe"), 1)
    before = driver.free_memory()
    g = create(name, 64 << 20)
    fill(g, 3)
    process = other(
        "g = tshare.open(name)\nprint(flush=True)\nsys.stdin.readline()\n",
        name,
    )
    process.hear()
    del g
    taken = before - driver.free_memory()
    process.say()
    process.end()
    create(unused_name("sweep"), 1)
    assert taken >= 256 << 20, f"the memory went while another process had it: {taken}"
    left = before - driver.free_memory()
    assert left < 16 << 20, f"memory of the GPU left: {left}"


LIBRARIES = {
    "torch": (
        "import torch\nx = torch.from_dlpack(g)\nx += 1\ntorch.cuda.synchronize()\n"
        "total = int(x.sum())\n"
    ),
    "cupy": (
        "import cupy\nx = cupy.from_dlpack(g)\nx += 1\ncupy.cuda.Device().synchronize()\n"
        "total = int(x.sum())\n"
    ),
    "numba": (
        "from numba import cuda\nimport numpy as np\nx = cuda.as_cuda_array(g)\n"
        "h = x.copy_to_host()\nh += 1\nx.copy_to_device(h)\ncuda.synchronize()\n"
        "total = int(x.copy_to_host().sum())\n"
    ),
    "jax": "import jax\nx = jax.dlpack.from_dlpack(g)\ntotal = int(x.sum())\n",
}


def both_ends(library):
    """A library fills the memory in the maker, and the same one adds to it in a user."""
    name = unused_name(library)
    code = LIBRARIES[library]
    create(unused_name("probe"), 1)
    maker = Other(
        "import sys\nimport tshare\n"
        "g = tshare.create(sys.argv[1], 1000, 'int32', device=0)\n"
        + code
        + "print(total, flush=True)\n"
        "sys.stdin.readline()\n" + code + "print(total, flush=True)\n",
        name,
    )
    step = 0 if library == "jax" else 1000
    equal(int(maker.hear()), step, "the maker's sum")
    user = Other(
        "import sys\nimport tshare\ng = tshare.open(sys.argv[1])\n" + code + "print(total)\n", name
    )
    equal(int(user.end()), 2 * step, "the user's sum")
    maker.say()
    equal(int(maker.end()), 3 * step, "the maker's sum after the user's")


@check
def torch_on_both_ends():
    need_torch()
    both_ends("torch")


@check
def cupy_on_both_ends():
    need("cupy")
    both_ends("cupy")


@check
def numba_on_both_ends():
    need("numba.cuda")
    both_ends("numba")


@check
def jax_on_both_ends():
    need("jax")
    both_ends("jax")
