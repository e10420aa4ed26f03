# SPDX-License-Identifier: MIT
"""Tensors as a GPU sees them, on the stub of NVIDIA's driver."""

import copy
import ctypes
import errno
import itertools
import pickle
import threading

import numpy as np
import pytest

import tshare
from support import READ_ONLY, address, capsule_name, legacy, mapped, versioned

pytestmark = pytest.mark.usefixtures("stub")

# Attributes of devices
PAGEABLE_MEMORY, SAME_ADDRESS, READ_ONLY_REGISTER = 88, 91, 113

# The first path that works.
FIRST = "dmabuf" if tshare.limits().dmabuf else "registered"


class Stream:
    """An object that has a stream, as cuda.core, CuPy and Numba make them."""

    def __init__(self, pair):
        self.pair = pair

    def __cuda_stream__(self):
        return self.pair


def data_of(g):
    return g.__cuda_array_interface__["data"][0]


def test_it_has_the_tensor_s_properties(tensor):
    view = tensor[:, ::2]
    g = view.cuda()
    for name in ("shape", "strides", "dtype", "ndim", "itemsize", "nbytes", "readonly"):
        assert getattr(g, name) == getattr(view, name)
    assert address(g.tensor) == address(view)
    assert g.tensor.strides == view.strides
    assert g.region.id == tensor.region.id


def test_it_says_how_the_device_reaches_it(tensor):
    g = tensor.cuda()
    assert (g.device, g.path, g.driver_version, g.context_created) == (
        "cuda:0", FIRST, 13000, True)  # fmt: skip
    assert not tensor.cuda().context_created
    assert repr(g) == (
        f"<tshare.CudaTensor device='cuda:0' path='{FIRST}' shape=(2, 3) dtype=float32>"
    )


def test_paths_that_fail_are_reported(stub, tensor):
    stub.stub_set_dmabuf(False)
    g = tensor.cuda()
    assert g.path == "registered"
    assert g.failures == {"dmabuf": 801 if FIRST == "dmabuf" else -errno.EOPNOTSUPP}


def test_what_is_written_on_either_side_is_seen_on_the_other(stub, tensor):
    # The stub's device addresses are the process's own.
    array = np.asarray(tensor)
    array[:] = 1
    seen = (ctypes.c_float * 6).from_address(data_of(tensor.cuda()))
    assert list(seen) == [1] * 6
    seen[5] = 7
    assert array[1, 2] == 7


@pytest.mark.parametrize("path", ["registered", "pageable"])
def test_path_can_be_demanded(stub, tensor, path):
    stub.stub_set_attribute(-1, PAGEABLE_MEMORY, 1)
    assert tensor.cuda(path=path).path == path
    assert stub.stub_registrations() == (path == "registered")


def test_demanded_path_that_fails_is_eopnotsupp(stub, tensor):
    with pytest.raises(OSError, match="pageable") as caught:
        tensor.cuda(path="pageable")
    assert caught.value.errno == errno.EOPNOTSUPP
    stub.stub_set_dmabuf(False)
    with pytest.raises(OSError, match="dma-buf") as caught:
        tensor.cuda(path="dmabuf")
    assert caught.value.errno == errno.EOPNOTSUPP


@pytest.mark.parametrize(
    ("path", "error"), [("rung", ValueError), ("", ValueError), (1, TypeError), (b"", TypeError)]
)
def test_other_paths_are_refused(stub, tensor, path, error):
    with pytest.raises(error, match="path: "):
        tensor.cuda(path=path)
    assert stub.stub_calls(None) == 0


def test_pinned_region_is_not_registered_again(stub, tensor):
    with tensor.pin():
        assert tensor.cuda().path == "registered"
    assert stub.stub_registrations() == 1


def test_second_view_only_looks_the_first_up(stub, tensor):
    first = tensor.cuda()
    calls = [stub.stub_calls(name) for name in (b"cuMemHostRegister", b"cuImportExternalMemory")]
    second = tensor.cuda(0)
    assert data_of(second) == data_of(first)
    assert calls == [
        stub.stub_calls(name) for name in (b"cuMemHostRegister", b"cuImportExternalMemory")
    ]


def test_device_can_be_chosen(stub, tensor):
    stub.stub_set_devices(2)
    for device in (1, "cuda:1"):
        g = tensor.cuda(device)
        assert (g.device, g.__dlpack_device__()) == ("cuda:1", (2, 1))


@pytest.mark.parametrize(
    ("result", "number", "what"),
    [
        (712, errno.EBUSY, "ALREADY_REGISTERED"),
        (2, errno.ENOMEM, "OUT_OF_MEMORY"),
        (999, errno.EIO, "CUDA_ERROR_UNKNOWN"),
    ],
)
def test_refusal_of_the_driver_has_an_errno(stub, tensor, result, number, what):
    stub.stub_fail(b"cuMemHostRegister", 1, result)
    with pytest.raises(OSError, match=what) as caught:
        tensor.cuda(path="registered")
    assert caught.value.errno == number
    assert stub.stub_left() is None


# Read-only memory


def test_readonly_memory_is_readonly_for_the_device(stub, readonly):
    g = readonly.cuda()
    assert g.readonly
    assert stub.stub_flags(address(readonly)) & 8
    assert g.__cuda_array_interface__["data"] == (data_of(g), True)
    assert versioned(g.__dlpack__(max_version=(1, 0))).flags == READ_ONLY
    assert repr(g).endswith(" readonly>")


def test_readonly_memory_is_refused_where_devices_would_write(stub, readonly):
    stub.stub_set_attribute(-1, READ_ONLY_REGISTER, 0)
    with pytest.raises(OSError, match="read-only") as caught:
        readonly.cuda()
    assert caught.value.errno == errno.EOPNOTSUPP
    assert stub.stub_left() is None


def test_legacy_capsule_of_readonly_memory_is_refused(readonly):
    with pytest.raises(BufferError, match="max_version"):
        readonly.cuda().__dlpack__()


# The CUDA array interface


@pytest.mark.parametrize("same", [0, 1])
def test_array_interface_is_version_3(stub, tensor, same):
    stub.stub_set_attribute(-1, SAME_ADDRESS, same)
    g = tensor.cuda(path="registered")
    found = g.__cuda_array_interface__
    where = found["data"][0]
    assert (where == address(tensor)) == same
    assert found == {
        "shape": (2, 3),
        "typestr": "<f4",
        "data": (where, False),
        "strides": None,
        "version": 3,
        "stream": None,
    }


def test_array_interface_has_strides_in_bytes(tensor):
    assert tensor[:, ::2].cuda().__cuda_array_interface__["strides"] == (12, 8)


def test_type_without_typestr_has_no_array_interface(stub):
    g = tshare.create(None, 3, "bfloat16").cuda()
    assert not hasattr(g, "__cuda_array_interface__")
    with pytest.raises(AttributeError, match="^__cuda_array_interface__: .*bfloat16"):
        g.__cuda_array_interface__  # noqa: B018


def test_cpu_s_protocols_are_the_tensor_s(tensor):
    g = tensor.cuda()
    assert not hasattr(tensor, "__cuda_array_interface__")
    assert not hasattr(g, "__array_interface__")
    with pytest.raises(TypeError, match="buffer|bytes-like"):
        memoryview(g)
    for x in (g, g[0, 0]):
        with pytest.raises(TypeError, match=r"g\.tensor\.numpy\(\)"):
            np.asarray(x)
    for take in (tshare.asarray, tshare.from_dlpack, tensor.copy_from):
        with pytest.raises(BufferError, match=r"x\.tensor"):
            take(g)
    with pytest.raises(BufferError, match=r"g\.tensor"):
        tshare.from_dlpack(g, device="cpu")


# DLPack


@pytest.mark.parametrize("max_version", [None, (0, 8), (1, 0), (1, 3), (2, 0)])
def test_capsule_describes_the_device_s_memory(tensor, max_version):
    g = tensor[:, ::2].cuda()
    new = bool(max_version and max_version[0])
    capsule = g.__dlpack__(max_version=max_version)
    assert capsule_name(capsule) == (b"dltensor_versioned" if new else b"dltensor")
    t = (versioned if new else legacy)(capsule).dl_tensor
    assert (t.device.device_type, t.device.device_id) == g.__dlpack_device__() == (2, 0)
    assert (t.data, t.byte_offset) == (data_of(g), 0)
    assert (t.ndim, t.shape[:2], t.strides[:2]) == (2, [2, 2], [3, 2])
    assert (t.dtype.code, t.dtype.bits, t.dtype.lanes) == (2, 32, 1)
    if new:
        assert versioned(capsule).flags == 0


@pytest.mark.parametrize("stream", [None, 1, 2, 0x7F0012345678, -1])
def test_consumer_s_stream_is_taken(tensor, stream):
    assert tensor.cuda().__dlpack__(stream=stream)


@pytest.mark.parametrize("pair", [(0, 0), (0, 1), (0, 0x7F0012345678)])
def test_stream_may_be_an_object(tensor, pair):
    assert tensor.cuda().__dlpack__(stream=Stream(pair))


@pytest.mark.parametrize(
    ("pair", "error"),
    [((1, 1), ValueError), ((0, -1), ValueError), ((0, 2**70), ValueError), ((0, "1"), TypeError),
     ((0,), TypeError), (1, TypeError), (None, TypeError)],
)  # fmt: skip
def test_object_without_a_stream_is_refused(tensor, pair, error):
    with pytest.raises(error, match="stream: "):
        tensor.cuda().__dlpack__(stream=Stream(pair))


def test_error_of_a_stream_s_object_is_passed_on(tensor):
    class Broken:
        def __cuda_stream__(self):
            raise KeyError("closed")

    with pytest.raises(KeyError, match="closed"):
        tensor.cuda().__dlpack__(stream=Broken())


@pytest.mark.parametrize(
    ("stream", "error"),
    [(0, ValueError), (-2, ValueError), (2**70, ValueError), (True, ValueError),
     ("1", TypeError), (1.0, TypeError)],
)  # fmt: skip
def test_other_streams_are_refused(tensor, stream, error):
    with pytest.raises(error, match="stream: "):
        tensor.cuda().__dlpack__(stream=stream)


def test_numpy_takes_no_device_memory(tensor):
    g = tensor.cuda()
    # It is a BufferError since NumPy 2.5.
    with pytest.raises((RuntimeError, BufferError), match="Unsupported device"):
        np.from_dlpack(g)
    # NumPy before 2.1 can't ask for a device.
    if np.lib.NumpyVersion(np.__version__) >= "2.1.0":
        with pytest.raises(BufferError, match=r"^dl_device: .*the CPU's view is g\.tensor"):
            np.from_dlpack(g, device="cpu")


@pytest.mark.parametrize("stream", [2**63, 2**64 - 1, -2, -(2**63) - 1])
def test_error_of_a_stream_out_of_range_names_the_range(tensor, stream):
    with pytest.raises(ValueError, match=f"^stream: must be 1 .* handle, up to {2**63 - 1}, not "):
        tensor.cuda().__dlpack__(stream=stream)


def test_own_device_is_granted_alone(stub, tensor):
    stub.stub_set_devices(2)
    g = tensor.cuda(1)
    assert g.__dlpack__(dl_device=(2, 1))
    for device in ((2, 0), (1, 0), (3, 0), (13, 0)):
        with pytest.raises(BufferError, match=r"dl_device: .*\(2, 1\)"):
            g.__dlpack__(dl_device=device)


def test_copy_is_left_to_the_consumer(tensor):
    g = tensor.cuda()
    assert g.__dlpack__(copy=False)
    with pytest.raises(BufferError, match="copy: "):
        g.__dlpack__(copy=True)


def test_empty_tensor_maps_nothing(stub):
    stub.stub_set_devices(2)
    g = tshare.create(None, (0, 3)).cuda(1)
    assert (g.device, g.path, g.failures) == ("cuda:1", None, {})
    assert data_of(g) == 0
    assert versioned(g.__dlpack__(max_version=(1, 0))).dl_tensor.data is None
    assert stub.stub_left() is None
    with pytest.raises(ValueError, match="device: there is no device 2 of 2"):
        g.tensor.cuda(2)


# Views


@pytest.mark.parametrize(
    "key", [0, -1, (1, 2), (..., 1), slice(1, None), (slice(None), slice(None, None, -1)), None]
)
def test_view_is_where_the_tensor_s_is(tensor, key):
    g = tensor.cuda()
    view = g[key]
    assert isinstance(view, tshare.CudaTensor)
    assert (view.shape, view.strides) == (tensor[key].shape, tensor[key].strides)
    assert data_of(view) - data_of(g) == address(tensor[key]) - address(tensor)
    assert (view.device, view.path) == (g.device, g.path)


def test_empty_view_has_no_address(tensor):
    assert data_of(tensor.cuda()[2:]) == 0


def test_it_is_a_sequence_of_views(tensor):
    g = tensor.cuda()
    assert len(g) == 2
    assert [data_of(row) for row in g] == [data_of(g), data_of(g) + 12]
    with pytest.raises(TypeError, match="without dimensions"):
        len(g[0, 0])
    with pytest.raises(IndexError, match="out of range"):
        g[2]
    with pytest.raises(TypeError, match="'in'"):
        1.0 in g  # noqa: B015
    with pytest.raises(TypeError, match="item assignment"):
        g[0] = 1
    assert {g: 1}[g] == 1
    assert g != tensor.cuda()


# Lifetimes


@pytest.mark.parametrize("order", list(itertools.permutations(["tensor", "region", "pin", "g"])))
def test_memory_is_given_back_before_it_is_unmapped_in_any_order(stub, order):
    tensor = tshare.create(None, (2, 3), "float32")
    where = address(tensor)
    things = {"tensor": tensor, "region": tensor.region, "pin": tensor.pin(), "g": tensor.cuda()}
    del tensor
    for thing in order:
        assert mapped(where)
        assert stub.stub_registrations() == 1
        del things[thing]
    assert not mapped(where)
    assert stub.stub_left() is None


def test_closed_tensor_is_refused(stub, tensor):
    tensor.close()
    with pytest.raises(ValueError, match="tensor is closed"):
        tensor.cuda()
    assert stub.stub_calls(None) == 0


def test_device_may_close_the_tensor(tensor):
    class Closes:
        def __index__(self):
            tensor.close()
            return 0

    g = tensor.cuda(Closes())
    assert tensor.closed
    assert g.shape == (2, 3)
    assert mapped(data_of(g))


def test_it_outlives_the_tensor_s_close(tensor):
    g = tensor.cuda()
    where = address(tensor)
    tensor.close()
    del tensor
    assert g.shape == (2, 3)
    assert mapped(where)


@pytest.mark.parametrize("max_version", [None, (1, 0)])
def test_consumer_keeps_the_memory(stub, tensor, max_version):
    capsule = tensor.cuda().__dlpack__(max_version=max_version)
    where = (versioned if max_version else legacy)(capsule).dl_tensor.data
    tensor.close()
    del tensor
    assert mapped(where)
    assert stub.stub_left() is not None
    del capsule
    assert not mapped(where)
    assert stub.stub_left() is None


def test_threads_that_come_at_once_share_a_mapping(stub, tensor):
    barrier = threading.Barrier(8)
    found = []

    def view():
        barrier.wait()
        found.append(tensor.cuda())

    threads = [threading.Thread(target=view) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({data_of(g) for g in found}) == 1
    assert stub.stub_calls(b"cuMemHostRegister") + stub.stub_calls(b"cuImportExternalMemory") == 1


def test_it_can_t_be_pickled_or_copied_or_made(tensor, travel):
    g = tensor.cuda()
    for send in (pickle.dumps, travel, copy.copy, copy.deepcopy, type(g).__reduce__):
        with pytest.raises(TypeError, match="send the Tensor, the Region or the name, and call"):
            send(g)
    with pytest.raises(TypeError):
        type(g)()


def test_operators_name_the_remedy(stub, tensor):
    g = tensor.cuda()
    for use in (lambda: g == 0, lambda: g != 1.5, lambda: g < g, lambda: g + 1, lambda: -g):
        with pytest.raises(TypeError, match=r"tshare.CudaTensor has no .*torch\.from_dlpack"):
            use()
    assert g == g  # noqa: PLR0124
    assert g not in [None, g[:]]
