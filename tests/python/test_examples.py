# SPDX-License-Identifier: MIT
"""The programs in examples/ work, leave nothing behind, and name what they lack."""

import importlib.util
import os
import re
import signal
import subprocess
import sys
import time
from multiprocessing import forkserver, resource_tracker
from pathlib import Path

import pytest

import tshare
import warm
from support import need, version
from support import run as run_python

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
BUILT = ROOT / "build/c/examples"

# In a virtual machine PyTorch alone takes half a minute to import.
TIMEOUT = 600


@pytest.fixture(scope="module", autouse=True)
def helpers():
    if warm.ASKED_FOR:
        # Processes that are started once, and use descriptors.
        resource_tracker.ensure_running()
        forkserver.ensure_running()


@pytest.fixture(autouse=True)
def no_example_runs_on():
    yield
    for example in set(Example.running):
        example.kill()


def script(name, *args):
    return [sys.executable, str(EXAMPLES / name), *map(str, args)]


def program(name, *args):
    path = BUILT / name
    assert path.exists(), f"{path} is missing; 'make lib' builds it"
    return [str(path), *map(str, args)]


def with_module(library, module, name, *args):
    """Return the script's command with a stand-in for a library."""
    code = f"import runpy, sys, types; sys.modules[{library!r}] = {module}; del sys.argv[0]; "
    code += "runpy.run_path(sys.argv[0], run_name='__main__')"
    return [sys.executable, "-c", code, str(EXAMPLES / name), *args]


def without(library, name):
    """Return the script's command without a library."""
    return with_module(library, "None", name)


def unused(library, name, *args):
    """Return the script's command with an empty stand-in for a library that it doesn't use."""
    return with_module(library, "types.ModuleType('unused')", name, *args)


def processes_of(session):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            stat = Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(stat[3]) == session and stat[0] != "Z":
            yield pid, Path("/proc", pid, "cmdline").read_text()


class Example:
    """A program that was started, in a session of its own to know its children by."""

    running = set()

    def __init__(self, command):
        if warm.ASKED_FOR and command[1:] and command[1].endswith(".py"):
            self.process = warm.Script(command[1:])
        else:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        self.running.add(self)

    def read_until(self, text):
        for line in self.process.stdout:
            if text in line:
                return
        raise AssertionError(self.process.communicate(timeout=TIMEOUT)[1])

    def kill(self):
        self.running.discard(self)
        self.process.kill()

    def end(self, status=0):
        """Wait for the end; return the rest of the output as lines, and the errors as text."""
        try:
            output, errors = self.process.communicate(timeout=TIMEOUT)
        finally:
            self.kill()
        assert self.process.returncode == status, output + errors
        # Helpers of multiprocessing end when they find that their parent has ended.
        deadline = time.monotonic() + 300
        while left := list(processes_of(self.process.pid)):
            assert time.monotonic() < deadline, left
            time.sleep(0.05)
        return output.splitlines(), errors


def run(command, status=0):
    lines, errors = Example(command).end(status)
    assert status or not errors
    return lines


def fails(command, status=1):
    lines, errors = Example(command).end(status)
    assert not lines
    return errors.splitlines()[-1]


@pytest.fixture
def name(name):
    yield name
    files = os.listdir("/dev/shm") if os.path.isdir("/dev/shm") else []
    assert not [info.name for info in tshare.list() if name in info.name]
    assert not [file for file in files if name in file]


def test_share(name):
    need("torch")
    c = Example(program("share", name))
    c.read_until("waiting for Enter")
    assert run(script("share.py", name)) == [
        f"Python: opened '{name}': int32, shape (3,)",
        "Python: NumPy sees     [1 2 3]",
        "Python: PyTorch sees   tensor([7, 2, 3], dtype=torch.int32)",
        "Python: NumPy sees now [7 8 9]",
        "Python: both at the same address: yes",
    ]
    c.process.stdin.write("\n")
    assert c.end()[0] == ["C: now it holds: 7 8 9"]


def test_share_reports_a_missing_array(name):
    need("numpy")
    assert f"no array '{name}' is shared" in fails(unused("torch", "share.py", name))


def test_numpy_pytorch(name):
    need("torch")
    assert run(script("numpy_pytorch.py", name)) == [
        "NumPy adds 1, PyTorch sees [1.0, 1.0, 1.0, 1.0, 1.0]",
        "PyTorch sets one to 7, NumPy sees [7.0, 1.0, 1.0, 1.0, 1.0]",
        "PyTorch adds 2, NumPy sees [2.0, 2.0, 2.0, 2.0, 2.0]",
        "NumPy sets one to 9, PyTorch sees [2.0, 2.0, 2.0, 2.0, 9.0]",
        f"child: opened '{name}', int64 of shape (3,), holding [1, 2, 3]",
        "parent: after the child's changes it holds [10, 200, 300]",
    ]


@pytest.mark.parametrize("way", ["plain", "helper", "manager"])
def test_ten_million(way, name):
    need("numpy")
    assert run(script("ten_million.py", way, "--name", name)) == [
        f"{way}: the child sees 10000000 numbers, sum 10000000",
        f"{way}: the parent sees the child's, sum 20000000",
    ]


def test_copies():
    need("torch")
    lines = run(script("copies.py"))
    found = dict(line.split(maxsplit=1)[::-1] for line in lines if line.startswith("    "))
    assert len(found) == 32
    copying = {expression for expression, word in found.items() if word == "copies"}
    assert copying == {
        "torch.tensor(array)",
        "np.array(array)",
        "tensor.clone()",
        "np.copy(array)",
        "tensor[[0, 2]]",
        "array[array < 1]",
        "tensor.T.contiguous()",
        "tensor + 1",
        "np.add(array, 1)",
        "array.astype('float32')",
        "tensor.to(torch.float64)",
        "tshare.asarray(array, copy=True)",
        "tshare.asarray(tensor.clone())",
    }
    assert "has to be copied" in lines[-1]


def test_elsewhere():
    torch = need("torch")
    lines = run(script("elsewhere.py"))
    assert "BufferError: x: is on device (2, 0)" in lines[1]
    assert "AttributeError: __array_interface__: x: is on device (2, 0)" in lines[2]
    assert all(".cpu()" in line for line in lines[1:4])
    assert lines[3].endswith(": [0. 1. 2.]")
    assert "BufferError: x: has no memory, on the device meta" in lines[5]
    assert "Error: " in lines[7]
    assert ".detach()" in lines[7]
    assert lines[8].endswith(": [1. 1. 1.]")
    if torch.cuda.is_available():
        assert ".cpu()" in lines[10]
    else:
        assert lines[9:] == ["There is no GPU that PyTorch can use: left out"]


def test_array_api():
    need("array_api_compat")
    need("jax")
    need("torch")
    assert run(script("array_api.py")) == [
        "standardised:",
        "[[-1.225 -0.926]",
        " [ 0.    -0.463]",
        " [ 1.225  1.389]]",
        "NumPy: the same, as a numpy.ndarray",
        "PyTorch: the same, as a torch.Tensor",
        "JAX: the same, as a jax.Array",
    ]


def test_laplacian():
    need("scipy")
    need("torch")
    assert run(script("laplacian.py", 8)) == [
        "SciPy: 64 x 64, 288 elements that are not 0",
        "tshare: the dense matrix takes 32768 bytes of shared memory",
        "PyTorch: eigenvalues from 0.241230 to 7.758770",
        "NumPy: all of them agree with the formula to ten digits",
    ]


def test_cupy_pytorch():
    example = Example(script("cupy_pytorch.py"))
    if example.process.wait(TIMEOUT) == 77:
        lines, errors = example.end(77)
        assert not lines
        pytest.skip(errors.strip())
    assert example.end()[0] == [
        "CuPy adds 1, PyTorch sees [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]",
        "PyTorch multiplies by 10, CuPy sees [[10.0, 20.0, 30.0], [40.0, 50.0, 60.0]]",
        "back in shared memory: [[10.0, 20.0, 30.0], [40.0, 50.0, 60.0]]",
    ]


def test_cupy_pytorch_names_what_it_needs():
    assert "needs a GPU and CuPy: " in fails(without("cupy", "cupy_pytorch.py"), 77)


def test_dlpack():
    assert run(program("dlpack")) == [
        "A tensor of a region, for a consumer:",
        "  a consumer sees 2 x 3, strides 3 and 1: 1 2 3 4 5 6",
        "  the region holds: 11 12 13 14 15 16",
        "  a consumer sees 2 x 3, strides 3 and 1: 11 12 13 14 15 16",
        "A producer's tensor, transposed, into a region:",
        "  the producer's deleter ran 1 time",
        "  the region holds: 1 4 2 5 3 6",
        "The same, which is in a region now, once more:",
        "  the same memory: nothing was copied",
    ]


def test_exchange():
    torch = need("torch")
    (library,) = program("exchange.so")
    sums = {
        "torch.Tensor over the same memory": 66,
        "its second column, strided": 15,
        "torch.Tensor of float64": 33,
    }
    # The table came into PyTorch under this name with DLPack 1.3.
    known = hasattr(torch.Tensor, "__dlpack_c_exchange_api__")
    assert known == (version(torch) >= (2, 10))
    assert run(script("exchange.py", library)) == [
        "tshare.Tensor: the elements add up to 66",
        *(
            f"{what}: the elements add up to {total}"
            if known
            else f"{what}: this torch has no exchange table"
            for what, total in sums.items()
        ),
        "numpy.ndarray: this numpy has no exchange table",
        "Tensor: its elements are neither float32 nor float64",
    ]


def test_exchange_reports_that_it_was_not_built():
    need("numpy")
    command = unused("torch", "exchange.py", "/nonexistent/exchange.so")
    assert "'make lib' builds it" in fails(command)


PRODUCERS = {
    "C": lambda name: program("stream_producer", name),
    "Python": lambda name: script("stream.py", "produce", name),
}
CONSUMERS = {
    "C": lambda name: program("stream_consumer", name),
    "Python": lambda name: script("stream.py", "consume", name),
}


@pytest.mark.parametrize("consumer", CONSUMERS)
@pytest.mark.parametrize("producer", PRODUCERS)
def test_stream(producer, consumer, name):
    need("numpy")
    consume = Example(CONSUMERS[consumer](name))
    produce = Example(PRODUCERS[producer](name))
    first = int(consume.process.stdout.readline().split()[1])
    with tshare.Stream.open(name, observe=True) as stream:
        assert [seat.keeps_all for seat in stream.seats()] == [True]
    consume.read_until(f"frame {first + 20} ")
    os.kill(produce.process.pid, signal.SIGINT)
    *lines, end = consume.end()[0]
    assert end == "the stream has ended"
    for number, line in enumerate(lines, first + 21):
        assert line == f"frame {number} is {number % 256}, 0 were lost"
    assert not produce.end()[0]


@pytest.mark.parametrize("producer", PRODUCERS)
def test_stream_ends_without_a_consumer_that_hangs(producer, name):
    need("numpy")
    produce = Example(PRODUCERS[producer](name))
    with tshare.Stream.open(name, wait=TIMEOUT) as stream, stream.take(TIMEOUT):
        os.kill(produce.process.pid, signal.SIGINT)
        lines, errors = produce.end()
    assert not lines
    assert "holds frames" in errors
    assert "Traceback" not in errors


POOLS = {"C": lambda *a: program("pool", *a), "Python": lambda *a: script("pool.py", *a)}


@pytest.mark.parametrize("second", POOLS)
@pytest.mark.parametrize("first", POOLS)
def test_pool(first, second, name):
    need("numpy")
    maker = Example(POOLS[first](name, "a", "bc", "a"))
    maker.read_until("found 'a', its pixels are 1")
    maker.read_until("waiting for Enter")
    other = Example(POOLS[second](name, "bc", "def"))
    other.read_until("found 'bc', its pixels are 2")
    other.read_until("made 'def', its pixels are 3")
    other.read_until("waiting for Enter")
    assert not maker.end()[0]
    # The pool goes with the last process that has it open.
    assert run(POOLS[first](name, "a"))[0] == "found 'a', its pixels are 1"
    assert not other.end()[0]


def test_camera_s_reader_prints_frames_until_the_stream_ends(name):
    np = need("numpy")
    fields = {"image": ((2, 3, 2), "uint8"), "fourcc": ((), "uint32")}
    with tshare.Stream.create(name, fields, slots=4) as stream:
        reader = Example(script("camera.py", name))
        while not stream.seats():
            time.sleep(0.01)
        for number in range(1, 4):
            with stream.loan() as frame:
                np.asarray(frame["image"])[:] = number
    lines = reader.end()[0]
    assert lines[-1] == "camera.py: frame 3, 0 missed before: mean 3.0"


def test_dataloader():
    need("torch")
    assert run(script("dataloader.py")) == [
        "fork: 2 workers read pixels and labels that add up to (4096, 2016)",
        "fork: after a change by the parent, the same workers read (12288, -2016)",
        "spawn: 2 workers read pixels and labels that add up to (4096, 2016)",
        "spawn: after a change by the parent, the same workers read (12288, -2016)",
    ]


def test_broadcast():
    need("numpy")
    assert sorted(run(script("broadcast.py", 3))) == [f"reader {i}: 323400" for i in range(3)]


def test_batches():
    need("numpy")
    assert run(script("batches.py", "--batches", 9)) == [
        "2 workers filled 9 batches, 288 samples",
        "each batch was there whole, and in order: True",
    ]


def test_hogwild():
    if version(need("torch")) < (2, 1):
        pytest.skip("load_state_dict() takes assign= since PyTorch 2.1")
    assert run(script("hogwild.py")) == [
        "2 workers trained the same 2 tensors",
        "the loss for data that none of them has seen is below 0.001: True",
    ]


def test_arrow(name):
    need("pyarrow")
    assert run(script("arrow.py", name)) == [
        "child: 30000 rows of x, word",
        "child: bytes that Arrow has allocated: 0",
        "child: the second word is None, the last three",
    ]


def test_checkpoint(tmp_path):
    need("numpy")
    assert run(script("checkpoint.py", tmp_path / "state")) == [
        "50 steps, 5 checkpoints",
        "the file has step 50, and what the trainer has: True",
    ]
    assert os.listdir(tmp_path) == ["state.npz"]


def test_weights():
    torch = need("torch")
    need("safetensors")
    command = script("weights.py", "--layers", 20, "--workers", 2)
    if version(torch) < (2, 9):
        assert "needs PyTorch 2.9" in fails(command)
        return
    assert run(command) == [
        "one region holds 40 tensors",
        "the workers have one copy: True",
        "the workers' results are ours: True",
    ]


# In the place of the package nixl, which imports the one for CUDA 12: prints the sizes of what each
# call registers.
NIXL = """
import sys
from nixl_cu12 import _api

class Agent(_api.nixl_agent):
    def register_memory(self, places, *args):
        print("registered", *[size for _, size, *_ in places], flush=True)
        return super().register_memory(places, *args)

_api.nixl_agent = Agent
sys.modules["nixl._api"] = _api
"""

CONTENTS = """
import hashlib, sys, tshare
region = tshare.Region.open(sys.argv[1], readonly=True)
print([(key, x.shape, x.dtype, x.strides, x.byte_offset) for key, x in region.items()])
print(hashlib.sha256(region).hexdigest())
"""


@pytest.mark.slow_in_guests
def test_peer_read(name, new_name, tmp_path, monkeypatch):
    np = need("numpy")
    # Not imported here, as it keeps a descriptor.
    if not importlib.util.find_spec("nixl_cu12"):
        need("nixl_cu12")
    (tmp_path / "nixl.py").write_text(NIXL)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    # As if the giver were on another machine, one without RDMA.
    command = ["env", "UCX_TLS=tcp", "NIXL_LOG_LEVEL=ERROR", *script("peer_read.py")]
    numbers = np.random.default_rng(1).standard_normal((1000, 1000))
    copy = new_name()
    with tshare.Region.create(name, {"a": numbers, "b": numbers[::7, ::-3]}) as region:
        giver = Example([*command, "give", name])
        lines = giver.process.stdout
        assert lines.readline() == f"registered {region.size}\n"
        port = lines.readline().removeprefix("port ").strip()
        monkeypatch.setenv("TSHARE_SHM_DIR", str(tmp_path))
        reader = Example([*command, "read", copy, "127.0.0.1", port])
        lines = reader.process.stdout
        assert lines.readline() == f"registered {region.size}\n"
        assert lines.readline() == f"{copy}: {region.size} bytes, waiting for Enter\n"
        contents = run_python(CONTENTS, copy)
        assert not giver.end()[0]
        assert not reader.end()[0]
        monkeypatch.undo()
        assert contents == run_python(CONTENTS, name)
        region.unlink()


def test_pillow(tmp_path):
    torch, image = need("torch"), need("PIL.Image")
    saved = tmp_path / "picture.png"
    assert run(script("pillow.py", saved)) == [
        "Pillow: RGB, 64 x 48",
        "Pillow: the pixel at (0, 0) is (0, 0, 128)",
        "Pillow: the pixel at (63, 0) is (255, 0, 128)",
        "Pillow: the pixel at (0, 47) is (0, 255, 128)",
        "Pillow: the pixel at (63, 47) is (255, 255, 128)",
        "PyTorch: a tensor has no longer an array interface",
    ]
    assert not hasattr(torch.Tensor, "__array_interface__")
    with image.open(saved) as picture:
        assert picture.getpixel((63, 47)) == (255, 255, 128)


@pytest.mark.parametrize(
    ("name_of_script", "library"),
    [
        ("ten_million.py", "numpy"),
        ("laplacian.py", "scipy"),
        ("dataloader.py", "torch"),
        ("pillow.py", "torch"),
    ],
)
def test_missing_packages_are_named(name_of_script, library):
    need("numpy")
    assert re.match(f"ModuleNotFoundError: .*{library}", fails(without(library, name_of_script)))


def test_every_example_is_in_the_index():
    index = (EXAMPLES / "README.rst").read_text()
    programs = [path.name for path in EXAMPLES.iterdir() if path.suffix in (".c", ".py")]
    assert [program for program in programs if f"``{program}``" not in index] == []
