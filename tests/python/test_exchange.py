# SPDX-License-Identifier: MIT
"""__dlpack_c_exchange_api__, called as a library in C would."""

import ctypes
import gc

import pytest

import tshare
from support import (
    READ_ONLY,
    DLTensor,
    SetError,
    Versioned,
    VersionedDeleter,
    address,
    exchange_api,
    exported,
    imported,
    mapped,
)

api = exchange_api(tshare.Tensor)


def three_int16(data, byte_offset):
    """A struct as another library exports it, without strides, which means C order."""
    managed = Versioned(major=1, minor=9)
    dl = managed.dl_tensor
    dl.data, dl.byte_offset = data, byte_offset
    dl.device.device_type = 1
    dl.ndim, dl.shape = 1, (ctypes.c_int64 * 1)(3)
    dl.dtype.bits, dl.dtype.lanes = 16, 1
    return managed


@pytest.fixture
def tensor():
    return tshare.create(None, (2, 3), "int16")


def test_table_is_of_version_1_3():
    assert (api.major, api.minor, api.prev_api) == (1, 3, None)


def test_export_describes_and_owns():
    tensor = tshare.create(None, (1024, 1024))
    out = exported(tensor)
    t = out.contents.dl_tensor
    assert (t.ndim, t.shape[:2], t.strides[:2]) == (2, [1024, 1024], [1024, 1])
    tensor.close()
    del tensor
    gc.collect()
    where = t.data
    assert mapped(where)
    out.contents.deleter(out)
    assert not mapped(where)


def test_export_of_a_readonly_tensor_is_flagged(name):
    keep = tshare.create(name, 3)
    out = exported(tshare.open(name, readonly=True))
    assert out.contents.flags == READ_ONLY
    out.contents.deleter(out)
    assert not keep.closed


def test_own_export_comes_back_as_the_same_memory(tensor):
    back = imported(exported(tensor))
    assert address(back) == address(tensor)
    assert (back.shape, back.dtype) == (tensor.shape, tensor.dtype)


def test_tensor_in_shared_memory_is_taken_from_any_exporter(tensor):
    deleted = []
    managed = three_int16(address(tensor), 6)
    managed.flags = READ_ONLY
    managed.deleter = VersionedDeleter(deleted.append)
    back = imported(ctypes.pointer(managed))
    assert address(back) == address(tensor) + 6
    assert (back.shape, back.dtype, back.readonly) == ((3,), "int16", True)
    assert len(deleted) == 1


def test_foreign_tensor_is_refused_and_stays_the_caller_s():
    managed = Versioned(major=1, minor=3)
    with pytest.raises(BufferError, match="from_dlpack"):
        api.to_object(managed, ctypes.c_void_p())


def test_byte_offset_without_data_is_no_address(tensor):
    managed = three_int16(None, address(tensor))
    with pytest.raises(BufferError, match="from_dlpack"):
        api.to_object(managed, ctypes.c_void_p())


def test_description_borrows(tensor):
    out = DLTensor()
    assert api.describe(tensor, out) == 0
    assert out.data == address(tensor)
    assert out.shape[:2] == [2, 3]


def test_description_of_a_readonly_tensor_is_refused(name):
    keep = tshare.create(name, 3)
    with pytest.raises(BufferError, match="read-only"):
        api.describe(tshare.open(name, readonly=True), DLTensor())
    assert not keep.closed


def test_closed_tensor_and_other_objects_are_refused(tensor):
    tensor.close()
    with pytest.raises(ValueError, match="closed"):
        exported(tensor)
    with pytest.raises(TypeError, match="Tensor"):
        exported(3)


def test_allocator_makes_shared_memory(tensor):
    prototype = DLTensor()
    api.describe(tensor, prototype)
    out = ctypes.POINTER(Versioned)()
    assert api.allocate(prototype, out, None, SetError(lambda *args: None)) == 0
    made = imported(out)
    assert (made.shape, made.dtype, made.name) == ((2, 3), "int16", None)
    assert made.region.id != tensor.region.id


def test_allocator_reports_through_its_callback(tensor):
    prototype = DLTensor()
    api.describe(tensor, prototype)
    prototype.device.device_type = 2
    errors = []
    report = SetError(lambda context, kind, message: errors.append((kind, message)))
    out = ctypes.POINTER(Versioned)()
    assert api.allocate(prototype, out, None, report) == -1
    prototype.device.device_type = 1
    prototype.shape = (ctypes.c_int64 * 2)(-1, 2)
    assert api.allocate(prototype, out, None, report) == -1
    assert [kind for kind, _ in errors] == [b"BufferError"] * 2
    assert b"shape" in errors[1][1]


def test_cpu_has_no_stream():
    out = ctypes.c_void_p(1)
    assert api.current_work_stream(1, 0, out) == 0
    assert out.value is None


# The table of CudaTensor

cuda_api = exchange_api(tshare.CudaTensor)


@pytest.fixture
def on_device(stub):
    return tshare.create(None, (2, 3), "int16").cuda()


def data_of(g):
    return g.__cuda_array_interface__["data"][0]


def test_cuda_export_describes_and_owns(stub, on_device):
    out = exported(on_device, cuda_api)
    t = out.contents.dl_tensor
    assert (t.device.device_type, t.device.device_id, t.data) == (2, 0, data_of(on_device))
    assert (t.shape[:2], t.strides[:2]) == ([2, 3], [3, 1])
    del on_device
    gc.collect()
    assert stub.stub_left() is not None
    out.contents.deleter(out)


def test_cuda_export_comes_back_as_the_same_memory(on_device):
    back = imported(exported(on_device[1], cuda_api), cuda_api)
    assert isinstance(back, tshare.CudaTensor)
    assert data_of(back) == data_of(on_device[1])
    assert (back.shape, back.device, back.path) == ((3,), on_device.device, on_device.path)


def test_export_of_one_type_is_refused_by_the_other(on_device, tensor):
    for thing, theirs, other in ((on_device, cuda_api, api), (tensor, api, cuda_api)):
        out = exported(thing, theirs)
        with pytest.raises(BufferError):
            other.to_object(out, ctypes.c_void_p())
        out.contents.deleter(out)
        with pytest.raises(TypeError, match="must be a tshare"):
            other.from_object(thing, ctypes.POINTER(Versioned)())


def test_cuda_description_borrows(on_device):
    out = DLTensor()
    assert cuda_api.describe(on_device, out) == 0
    assert (out.data, out.device.device_type) == (data_of(on_device), 2)


def test_cuda_description_of_readonly_memory_is_refused(stub, name):
    keep = tshare.create(name, 3)
    with pytest.raises(BufferError, match="read-only"):
        cuda_api.describe(tshare.open(name, readonly=True).cuda(), DLTensor())
    assert not keep.closed


def test_cuda_allocator_has_no_memory(on_device):
    prototype = DLTensor()
    cuda_api.describe(on_device, prototype)
    errors = []
    report = SetError(lambda context, kind, message: errors.append((kind, message)))
    assert cuda_api.allocate(prototype, ctypes.POINTER(Versioned)(), None, report) == -1
    assert errors[0][0] == b"BufferError"


def test_cuda_stream_is_the_default_one():
    out = ctypes.c_void_p(1)
    assert cuda_api.current_work_stream(2, 0, out) == 0
    assert out.value is None
