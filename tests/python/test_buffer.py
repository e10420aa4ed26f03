# SPDX-License-Identifier: MIT
import ctypes
import struct

import pytest

import tshare

WRITABLE, FORMAT, ND, STRIDES = 0x1, 0x4, 0x8, 0x18
C, F, ANY = 0x38, 0x58, 0x98
FULL = 0x11D
FULL_RO = 0x11C


class PyBuffer(ctypes.Structure):
    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
        ("suboffsets", ctypes.POINTER(ctypes.c_ssize_t)),
        ("internal", ctypes.c_void_p),
    ]


class Request:
    """A buffer of the kind that the flags request."""

    def __init__(self, tensor, flags):
        self.view = PyBuffer(obj=1)
        self.arguments = ctypes.py_object(tensor), ctypes.byref(self.view), flags

    def __enter__(self):
        ctypes.pythonapi.PyObject_GetBuffer(*self.arguments)
        return self.view

    def __exit__(self, *args):
        ctypes.pythonapi.PyBuffer_Release(ctypes.byref(self.view))


def refused(tensor, flags):
    request = Request(tensor, flags)
    with pytest.raises(BufferError), request:
        pass
    return request.view.obj is None


@pytest.fixture
def tensor():
    return tshare.create(None, (2, 3), "int16")


@pytest.fixture
def readonly(name):
    keep = tshare.create(name, (2, 3), "int16")
    yield tshare.open(name, readonly=True)
    keep.close()


def strided(shape, strides, dtype="int16"):
    return tshare.Region.create(None, {"t": (shape, dtype, strides)})["t"]


def test_full_request_gets_everything(tensor):
    with Request(tensor, FULL) as view:
        assert (view.len, view.itemsize, view.ndim, view.readonly) == (12, 2, 2, 0)
        assert view.format == b"h"
        assert view.shape[:2] == [2, 3]
        assert view.strides[:2] == [6, 2]
        assert not view.suboffsets


def test_simple_request_gets_only_bytes(tensor):
    with Request(tensor, 0) as view:
        assert (view.len, view.format) == (12, None)
        assert not view.shape
        assert not view.strides


def test_nd_request_gets_a_shape_without_strides(tensor):
    with Request(tensor, ND) as view:
        assert view.shape[:2] == [2, 3]
        assert not view.strides
        assert view.format is None


def test_readonly_tensor_refuses_writable_requests(readonly):
    assert refused(readonly, WRITABLE)
    assert refused(readonly, FULL)
    with Request(readonly, FULL_RO) as view:
        assert view.readonly == 1


def test_contiguous_requests_get_contiguous_memory(tensor):
    with Request(tensor, C), Request(tensor, ANY):
        pass
    assert refused(tensor, F)


def test_fortran_order_is_told_from_c_order():
    t = strided((2, 3), (2, 4))
    with Request(t, F), Request(t, ANY), Request(t, STRIDES):
        pass
    assert refused(t, C)
    assert refused(t, ND)
    assert refused(t, 0)


def test_gaps_are_described_only_by_strides():
    t = strided((2, 3), (64, 8))
    with Request(t, FULL) as view:
        assert view.strides[:2] == [64, 8]
        assert view.len == 12
    for flags in (0, ND, C, F, ANY):
        assert refused(t, flags)


def test_one_dimension_is_contiguous_in_both_orders():
    t = tshare.create(None, 7, "int16")
    with Request(t, C), Request(t, F), Request(t, ANY):
        pass


def test_dtype_without_struct_format_is_refused_with_format():
    t = tshare.create(None, 3, "bfloat16")
    assert refused(t, FULL_RO)
    with Request(t, STRIDES) as view:
        assert (view.itemsize, view.len) == (2, 6)


def test_packed_elements_are_bytes_at_most():
    t = tshare.create(None, 5, "float4_e2m1fn")
    assert refused(t, FULL_RO)
    assert refused(t, ND)
    with Request(t, 0) as view:
        assert view.len == 3


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
              "float16", "float32", "float64"]
)  # fmt: skip
def test_format_is_the_struct_module_s(dtype):
    t = tshare.create(None, 3, dtype)
    with memoryview(t) as view, view.cast("B") as raw:
        assert struct.calcsize(view.format) == t.itemsize
        struct.pack_into(view.format, raw, t.itemsize, 1)
        assert struct.unpack(3 * view.format, raw) == (0, 1, 0)


def test_scalar_has_a_buffer_of_no_dimensions():
    t = tshare.create(None, (), "float64")
    with memoryview(t) as view:
        view[()] = 1.5
        assert view.shape == ()
        assert view.nbytes == 8
    assert struct.unpack("d", bytes(t)) == (1.5,)


def test_empty_tensor_has_an_empty_buffer():
    with memoryview(tshare.create(None, (3, 0), "float64")) as view:
        assert view.shape == (3, 0)
        assert view.nbytes == 0


def test_view_keeps_the_tensor_alive(tensor):
    view = memoryview(tensor)
    del tensor
    view[1, 2] = 7
    assert view[1, 2] == 7


def test_files_read_into_a_tensor(tmp_path):
    t = tshare.create(None, 5)
    (tmp_path / "f").write_bytes(b"hello")
    with open(tmp_path / "f", "rb") as file:
        assert file.readinto(t) == 5
    assert bytes(t) == b"hello"
