# SPDX-License-Identifier: MIT
"""Tensors in a GPU's own memory that have a name, on the stub of NVIDIA's driver."""

import ctypes
import errno
import os
import signal

import numpy as np
import pytest

import tshare
from support import STUB, capsule_name, spawn, versioned

pytestmark = pytest.mark.usefixtures("stub")

OTHER = """
import ctypes
import sys

stub = ctypes.CDLL(sys.argv[1])
import tshare

def words(g):
    address = g.__cuda_array_interface__["data"][0]
    return (ctypes.c_float * g.shape[0]).from_address(address)

name = sys.argv[2]
"""


def other(code, name, **options):
    """Start a process that uses the stub, too."""
    return spawn(OTHER + code, STUB, name, **options)


def words(g):
    address = g.__cuda_array_interface__["data"][0]
    return (ctypes.c_float * g.shape[0]).from_address(address)


def test_create_with_a_device_makes_a_cudatensor(name):
    g = tshare.create(name, (4, 3), "float32", device="cuda:0")
    assert type(g) is tshare.CudaTensor
    assert (g.shape, g.dtype, g.nbytes, g.readonly) == ((4, 3), "float32", 48, False)
    assert (g.device, g.path, g.failures) == ("cuda:0", "device", {})
    assert (g.context_created, g.driver_version) == (True, 13000)
    assert g.region.name == name
    assert repr(g) == (
        "<tshare.CudaTensor device='cuda:0' path='device' shape=(4, 3) dtype=float32>"
    )


def test_open_gives_the_memory_in_another_process(name):
    g = tshare.create(name, 5, "float32", device=0)
    assert list(words(g)) == [0] * 5
    words(g)[4] = 7
    process = other(
        "g = tshare.open(name)\n"
        "assert type(g) is tshare.CudaTensor and words(g)[4] == 7\n"
        "words(g)[0] = 8\n"
        "assert tshare.open(name).__dlpack_device__() == (2, 0)\n"
        "del g\n"
        "assert not stub.stub_left() and not stub.stub_complaint()\n",
        name,
    )
    assert process.wait() == 0
    assert words(g)[0] == 8


def test_open_takes_the_device(stub, name):
    stub.stub_set_devices(2)
    g = tshare.create(name, 5, "float32", device="cuda:1")
    assert g.device == tshare.open(name, device="cuda:1").device == "cuda:1"
    assert tshare.open(name, device=None).device == "cuda:1"
    with pytest.raises(ValueError, match=r"^device: the memory is on device 1 \(GPU-02"):
        tshare.open(name, device=0)
    with pytest.raises(ValueError, match="^device: must be a number or"):
        tshare.open(name, device="cpu")


def test_open_of_the_host_s_memory_refuses_a_device(name):
    t = tshare.create(name, 5)
    with pytest.raises(ValueError, match="^device: the region is in the host's memory"):
        tshare.open(name, device=0)
    with pytest.raises(TypeError, match="device"):
        tshare.Region.open(name, device=0)
    assert tshare.open(name, device=None).shape == t.shape


def test_from_fd_gives_the_same_memory(name):
    g = tshare.create(name, 5, "float32", device=0)
    again = tshare.from_fd(g.region.fileno())
    assert ctypes.addressof(words(again)) == ctypes.addressof(words(g))


def test_another_process_opens_it_by_a_descriptor(name):
    g = tshare.create(name, 5, "float32", device=0)
    fd = g.region.fileno()
    process = other(f"g = tshare.from_fd({fd})\nwords(g)[0] = 8\n", name, pass_fds=[fd])
    assert process.wait() == 0
    assert words(g)[0] == 8


def test_a_forked_child_has_neither_the_memory_nor_its_end(name):
    process = other(
        "import os\n"
        'g = tshare.create(name, 5, "float32", device=0)\n'
        "child = os.fork()\n"
        "if not child:\n"
        "    try:\n"
        "        g.__dlpack__()\n"
        "    except OSError as e:\n"
        "        print(e, flush=True)\n"
        "    del g\n"
        "    sys.exit()\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
        "assert list(words(tshare.open(name))) == [0] * 5\n",
        name,
    )
    assert "is the parent's, whose CUDA a child can't use" in process.stdout.readline()
    assert process.wait() == 0


def test_the_maker_s_open_is_the_same_memory(name):
    g = tshare.create(name, 5, "float32", device=0)
    assert ctypes.addressof(words(tshare.open(name))) == ctypes.addressof(words(g))


def test_views_and_exports_keep_the_memory(stub, name):
    g = tshare.create(name, 5, "float32", device=0)
    words(g)[3] = 7
    view = g[3:]
    capsule = view.__dlpack__(max_version=(1, 0))
    interface = view.__cuda_array_interface__
    assert interface["stream"] is None
    assert interface["data"][0] == ctypes.addressof(words(g)) + 12
    assert capsule_name(capsule) == b"dltensor_versioned"
    del g, view
    assert stub.stub_left()
    tensor = versioned(capsule).dl_tensor
    assert (tensor.device.device_type, tensor.device.device_id) == (2, 0)
    assert ctypes.c_float.from_address(tensor.data).value == 7
    del capsule, tensor
    assert stub.stub_left() is None


def test_a_legacy_capsule_is_the_device_s(name):
    capsule = tshare.create(name, 5, device=0).__dlpack__()
    assert capsule_name(capsule) == b"dltensor"


def test_the_host_has_no_view_of_it(name):
    g = tshare.create(name, 5, device=0)
    with pytest.raises(AttributeError, match=r"^tensor: the memory is on the device alone"):
        g.tensor  # noqa: B018
    with pytest.raises(TypeError, match=r"can't be converted to a NumPy array \(copy it back"):
        np.asarray(g)
    with pytest.raises(BufferError, match="^x: is in a GPU's memory"):
        tshare.asarray(g)
    with pytest.raises(BufferError, match="that device alone"):
        g.__dlpack__(dl_device=(1, 0))


def test_a_draft_is_finished_by_its_region(name):
    g = tshare.create(name, 5, device=0, draft=True)
    with pytest.raises(BlockingIOError):
        tshare.open(name)
    g.region.finish()
    assert tshare.open(name).shape == (5,)


def test_the_name_is_listed_and_goes_with_the_tensor(name):
    g = tshare.create(name, 5, device=0)
    assert name in [region.name for region in tshare.list()]
    del g
    with pytest.raises(FileNotFoundError):
        tshare.open(name)


def test_exist_ok_replaces_it(name):
    g = tshare.create(name, 5, device=0)
    with pytest.raises(FileExistsError):
        tshare.create(name, 6, device=0)
    new = tshare.create(name, 6, device=0, exist_ok=True)
    assert tshare.open(name).shape == (6,)
    assert g.shape == (5,)
    del new


def test_generations_are_the_region_s(name):
    g = tshare.create(name, 5, device=0)
    region = tshare.Region.open(name)
    g.region.publish()
    assert region.wait(0, timeout=10) == 1


def test_a_killed_maker_is_noticed_before_each_export(name):
    maker = other(
        'g = tshare.create(name, 5, "float32", device=0)\nprint(flush=True)\nsys.stdin.read()\n',
        name,
    )
    maker.stdout.readline()
    g = tshare.open(name)
    assert list(words(g)) == [0] * 5
    os.kill(maker.pid, signal.SIGKILL)
    maker.wait()
    for export in (
        lambda: g.__cuda_array_interface__,
        g.__dlpack__,
        lambda: g.__dlpack__(stream=-1),
        lambda: g.__dlpack__(stream=2),
        lambda: g[1:].__dlpack__(max_version=(1, 0)),
    ):
        with pytest.raises(OSError, match="the maker of its memory on a device") as caught:
            export()
        assert caught.value.errno == errno.EOWNERDEAD
    with pytest.raises(FileNotFoundError):
        tshare.open(name)


def test_another_gpu_is_refused(stub, name):
    g = tshare.create(name, 5, device=0)
    process = other(
        "stub.stub_set_uuid(0, 9)\n"
        "try:\n"
        "    tshare.open(name)\n"
        "except OSError as e:\n"
        "    print(e, flush=True)\n",
        name,
    )
    assert "its memory is on GPU-01000000-" in process.stdout.readline()
    assert process.wait() == 0
    del g


def test_open_readonly_is_refused(name):
    g = tshare.create(name, 5, device=0)
    with pytest.raises(OSError, match="^.*read-only, and CUDA maps") as caught:
        tshare.open(name, readonly=True)
    assert caught.value.errno == errno.EOPNOTSUPP
    del g


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"device": "gpu"}, ValueError, "^device: "),
        ({"device": 1}, ValueError, "^device: there is no device 1 of 1"),
        ({"device": True}, TypeError, "^device: "),
        ({"device": 0, "contiguous": True}, ValueError, "^contiguous: is for the host"),
        ({"device": 0, "dma32": True}, ValueError, "^dma32: is for the host"),
        ({"device": 0, "node": 0}, ValueError, "^node: is for the host"),
        ({"device": 0, "lifetime": "persist"}, ValueError, "^lifetime: .* pass 'maker'"),
        ({"device": 0, "mode": 0o644}, OSError, "mode: 0644 lets some only read"),
        ({"device": 0, "shape": -1}, ValueError, r"^shape\[0\]: "),
    ],
)
def test_bad_arguments_are_named(name, arguments, error, text):
    with pytest.raises(error, match=text):
        tshare.create(name, **{"shape": 5, **arguments})
    assert name not in [region.name for region in tshare.list()]


def test_a_name_is_needed():
    with pytest.raises(ValueError, match="^name: must be given with device"):
        tshare.create(None, 5, device=0)


def test_an_old_driver_is_eopnotsupp(name):
    process = other(
        "try:\n"
        "    tshare.create(name, 5, device=0)\n"
        "except OSError as e:\n"
        "    print(e, flush=True)\n",
        name,
        env={**os.environ, "TSHARE_STUB_CUDA": "version=11030"},
    )
    assert "takes CUDA 11.4 or later" in process.stdout.readline()
    assert process.wait() == 0


def test_an_empty_tensor_has_no_address(name):
    g = tshare.create(name, (0, 3), device=0)
    assert g.__cuda_array_interface__["data"][0] == 0
