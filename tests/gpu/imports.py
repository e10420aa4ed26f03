# SPDX-License-Identifier: MIT
"""t.cuda(0): kernels that work on a region's own bytes."""

import errno
import itertools
from pathlib import Path

import driver
from checks import (
    Other,
    address_of,
    check,
    equal,
    host_address,
    mapped,
    nothing_left,
    refused,
    same,
    unused_name,
    words,
)

PATHS = ("dmabuf", "registered", "pageable")
COUNT = 1 << 20  # words, 4 MiB

# Seconds until a kernel ends that nobody stops.
PATIENCE = 30


def ready():
    """Return the kernels, on the default stream of a context that is current."""
    driver.enter()
    return driver.Kernels()


def add(kernels, g, value):
    """Add a value to all of a tensor that is contiguous, by a kernel."""
    kernels.add(address_of(g), (1, g.nbytes // 4), (0, 4), value)
    driver.synchronize()


def sum_of(kernels, g):
    """Return the sum of a tensor's words as a kernel finds it."""
    with driver.Device(64) as total:
        kernels.sum(address_of(g), g.nbytes, total.address)
        return total.number()


def try_path(kernels, path):
    """Import a region on a path, and have a kernel change it in place."""
    import numpy as np

    tensor = words(COUNT)
    wanted = np.arange(COUNT, dtype="uint32")
    try:
        g = tensor.cuda(0, path=path)
    except OSError as error:
        equal(error.errno, errno.EOPNOTSUPP, f"{path}: {error}: errno")
        return str(error)
    equal(g.path, path, "path")
    add(kernels, g, 5)
    same(tensor.numpy(), wanted + 5, f"{path}: words that the kernel wrote")
    tensor.numpy()[:] = wanted[::-1]
    equal(sum_of(kernels, g), int(wanted.sum(dtype="uint64")), f"{path}: the sum of new words")
    add(kernels, g, 7)
    same(tensor.numpy(), wanted[::-1] + 7, f"{path}: words that the kernel wrote then")
    return {"same_address": address_of(g) == host_address(tensor)}


@check
def paths():
    """Each path gives the region's own bytes, or is refused; one at least works."""
    kernels = ready()
    figures = {path: try_path(kernels, path) for path in PATHS}
    g = words(COUNT).cuda(0)
    figures["first"] = {
        "path": g.path,
        "failures": g.failures,
        "driver_version": g.driver_version,
    }
    assert isinstance(figures[g.path], dict), f"the path that was found doesn't work: {figures}"
    assert set(g.failures) == set(PATHS[: PATHS.index(g.path)]), f"failures: {figures}"
    return figures


@check
def context_is_created():
    """It also works where nobody has used CUDA before, and the caller's context stays none."""
    tensor = words(COUNT)
    g = tensor.cuda(0)
    assert g.context_created, "there was a context before"
    kernels = ready()
    add(kernels, g, 1)
    equal(tensor.numpy()[COUNT - 1], COUNT, "the last word")


@check
def pinned_region_stays_registered():
    kernels = ready()
    tensor = words(COUNT)
    pin = tensor.pin()
    g = tensor.cuda(0)
    equal(g.path, "registered", "path")
    pin.release()
    add(kernels, g, 1)
    equal(tensor.numpy()[COUNT - 1], COUNT, "the last word after the pin")


@check
def second_import_is_the_first():
    ready()
    tensor = words(COUNT)
    equal(address_of(tensor.cuda(0)), address_of(tensor.cuda("cuda:0")), "address")


@check
def subtensors():
    """A kernel changes what a view has, by the view's own address and strides, and no more."""
    import numpy as np

    import tshare

    kernels = ready()
    region = tshare.Region.create(None, {"a": (1000, "uint8"), "b": ((64, 96), "uint32")})
    tensor = region["b"]
    keys = [
        (slice(None), slice(None)),
        (slice(3, 40, 2), slice(5, None, 3)),
        (slice(None, None, -1), slice(None, None, -2)),
        (slice(63, 64), slice(95, 96)),
    ]
    for key, of in itertools.product(keys, ("view of g", "g of view")):
        wanted = np.arange(64 * 96, dtype="uint32").reshape(64, 96)
        tensor.numpy()[:] = wanted
        region["a"].numpy()[:] = 9
        g = tensor.cuda(0)[key] if of == "view of g" else tensor[key].cuda(0)
        equal(address_of(g) - address_of(tensor.cuda(0)),
              host_address(tensor[key]) - host_address(tensor), f"{of}: offset")  # fmt: skip
        wanted[key] += 1000
        kernels.add(address_of(g), g.shape, g.strides, 1000)
        driver.synchronize()
        same(tensor.numpy(), wanted, f"{of} {key}: words")
        same(region["a"].numpy(), np.full(1000, 9, "uint8"), "the other tensor's bytes")


@check
def two_processes_and_the_gpu():
    """Another process writes, the GPU reads and writes, the other process reads."""
    import numpy as np

    import tshare

    kernels = ready()
    name = unused_name("two")
    other = Other(
        """
        import sys
        import numpy as np
        import tshare
        tensor = tshare.create(sys.argv[1], int(sys.argv[2]), "uint32")
        array = tensor.numpy()
        array[:] = np.arange(len(array), dtype="uint32") * 3
        print("written", flush=True)
        for value in (1, 2):
            sys.stdin.readline()
            wanted = np.arange(len(array), dtype="uint32") * 3 + value
            different = int(np.count_nonzero(array != wanted))
            array[:] = wanted
            print(different, flush=True)
        """,
        name,
        COUNT,
    )
    equal(other.hear(), "written", "the other process")
    tensor = tshare.open(name)
    g = tensor.cuda(0)
    total = int(np.arange(COUNT, dtype="uint64").sum()) * 3
    equal(sum_of(kernels, g), total, "the sum of what the other process wrote")
    for _ in range(2):
        add(kernels, g, 1)
        other.say()
        equal(other.hear(), "0", "words that the other process finds different")
    equal(sum_of(kernels, g), total + 2 * COUNT, "the sum in the end")
    other.end()


def watch(kernels, g):
    """Start a kernel that reads a tensor until it is stopped, and wait until it runs."""
    flags = driver.Watch()
    kernels.watch(address_of(g), g.nbytes, flags, PATIENCE)
    while not flags.rounds and not flags.limit_reached:
        pass
    return flags


@check
def owner_is_killed_while_a_kernel_reads():
    import tshare

    driver.enter()
    stream = driver.Stream()
    kernels = driver.Kernels(stream.handle)
    name = unused_name("owner")
    owner = Other(
        """
        import sys
        import tshare
        tensor = tshare.create(sys.argv[1], int(sys.argv[2]), "uint32")
        tensor.numpy()[:] = 3
        print("written", flush=True)
        sys.stdin.readline()
        """,
        name,
        COUNT,
    )
    equal(owner.hear(), "written", "the owner")
    tensor = tshare.open(name)
    g = tensor.cuda(0)
    kernels.load()
    flags = watch(kernels, g)
    owner.kill()
    rounds = flags.rounds
    while flags.rounds < rounds + 10 and not flags.limit_reached:
        pass
    assert not stream.idle(), "the kernel has ended"
    flags.stop()
    stream.synchronize()
    assert not flags.limit_reached, "the kernel was not stopped"
    figures = {"rounds": flags.rounds}
    kernels.fill(address_of(g), COUNT, 11)
    stream.synchronize()
    equal(tensor.numpy()[COUNT - 1], COUNT + 10, "the last word that a kernel wrote afterwards")
    return figures


@check
def process_is_killed_while_its_kernel_reads():
    """The region and the GPU stay as they are for others."""
    kernels = ready()
    name = unused_name("reader")
    tensor = words(COUNT, name)
    g = tensor.cuda(0)
    reader = Other(
        """
        import sys
        sys.path.insert(0, sys.argv[2])
        import driver
        import imports
        import tshare
        kernels = imports.ready()
        tensor = tshare.open(sys.argv[1])
        imports.watch(kernels, tensor.cuda(0))
        print("reads", flush=True)
        sys.stdin.readline()
        """,
        name,
        Path(__file__).parent,
    )
    equal(reader.hear(), "reads", "the reader")
    reader.kill()
    add(kernels, g, 1)
    equal(tensor.numpy()[COUNT - 1], COUNT, "the last word")


@check
def thousand_imports_leave_nothing():
    kernels = ready()
    figures = {}

    def use(times):
        for _ in range(times):
            tensor = words(1 << 16)
            g = tensor.cuda(0)
            kernels.fill(address_of(g), 1 << 16, 1)
            driver.synchronize()
            equal(tensor.numpy()[-1], 1 << 16, "the last word")

    use(100)
    with nothing_left(figures):
        use(1000)
    return figures


@check
def close_orders():
    """What is left of a region's objects keeps it for kernels; the last one unmaps it."""
    kernels = ready()
    orders = list(itertools.permutations(("tensor", "region", "g", "pin")))
    for order in orders:
        tensor = words(COUNT)
        where = host_address(tensor)
        region = tensor.region
        things = {"tensor": tensor, "region": region, "pin": region.pin(), "g": tensor.cuda(0)}
        address = address_of(things["g"])
        del tensor, region
        for place, name in enumerate(order):
            kernels.fill(address, COUNT, place)
            driver.synchronize()
            assert mapped(where), f"{order}: unmapped before {name}"
            del things[name]
        assert not mapped(where), f"{order}: still mapped"
    return {"orders": len(orders)}


@check
def close_leaves_it_to_the_gpu():
    """close() of tensor and region, with the GPU's view still there."""
    kernels = ready()
    tensor = words(COUNT)
    region = tensor.region
    g = tensor.cuda(0)
    tensor.close()
    region.close()
    add(kernels, g, 1)
    equal(g.tensor.numpy()[COUNT - 1], COUNT, "the last word")


@check
def device_reset_by_others():
    """Takes the registration along; the next import makes a new one."""
    kernels = ready()
    tensor = words(COUNT)
    pin = tensor.pin()
    tensor.cuda(0)
    driver.call("cuDevicePrimaryCtxReset_v2", 0)
    kernels = ready()
    g = tensor.cuda(0)
    add(kernels, g, 1)
    equal(tensor.numpy()[COUNT - 1], COUNT, "the last word")
    pin.release()
    add(kernels, g, 1)
    equal(tensor.numpy()[COUNT - 1], COUNT + 1, "the last word after the pin")


@check
def demanded_path_that_is_absent_is_refused():
    """Shared memory has no dma-buf, the module's regions have."""
    import tshare

    ready()
    if tshare.limits().dmabuf:
        return
    with refused(errno.EOPNOTSUPP, "the path dmabuf of shared memory"):
        words(COUNT).cuda(0, path="dmabuf")
