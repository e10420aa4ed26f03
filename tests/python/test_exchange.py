# SPDX-License-Identifier: MIT
"""__dlpack_c_exchange_api__, called as a library in C would."""

import ctypes
import gc

import pytest

import tshare
from support import READ_ONLY, DLTensor, Versioned, VersionedDeleter, address, mapped

SetError = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)


class Api(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("prev_api", ctypes.c_void_p),
        (
            "allocate",
            ctypes.CFUNCTYPE(
                ctypes.c_int,
                ctypes.POINTER(DLTensor),
                ctypes.POINTER(ctypes.POINTER(Versioned)),
                ctypes.c_void_p,
                SetError,
            ),
        ),
        (
            "from_object",
            ctypes.PYFUNCTYPE(
                ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.POINTER(Versioned))
            ),
        ),
        (
            "to_object",
            ctypes.PYFUNCTYPE(
                ctypes.c_int, ctypes.POINTER(Versioned), ctypes.POINTER(ctypes.c_void_p)
            ),
        ),
        (
            "describe",
            ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(DLTensor)),
        ),
        (
            "current_work_stream",
            ctypes.PYFUNCTYPE(
                ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p)
            ),
        ),
    ]


get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
api = Api.from_address(get_pointer(tshare.Tensor.__dlpack_c_exchange_api__, b"dlpack_exchange_api"))


def exported(tensor):
    out = ctypes.POINTER(Versioned)()
    assert api.from_object(tensor, out) == 0
    return out


def imported(managed):
    out = ctypes.c_void_p()
    assert api.to_object(managed, out) == 0
    tensor = ctypes.cast(out, ctypes.py_object).value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(tensor))
    return tensor


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
