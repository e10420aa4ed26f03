# SPDX-License-Identifier: MIT
import ctypes
import gc

import pytest

import tshare
from support import address, mapped, need, version, versioned

np = need("numpy")

VERSIONED = version(np) >= (2, 1)

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
          "float16", "float32", "float64", "complex64", "complex128"]  # fmt: skip


def where(array):
    return array.__array_interface__["data"][0]


class OnlyInterface:
    """An object that has only the array interface, and holds the tensor."""

    def __init__(self, tensor):
        self.tensor = tensor
        self.__array_interface__ = tensor.__array_interface__


@pytest.mark.parametrize("dtype", DTYPES)
def test_asarray_shares_memory_and_dtype(dtype):
    t = tshare.create(None, (2, 3), dtype)
    a = np.asarray(t)
    assert where(a) == address(t)
    assert a.dtype == np.dtype(dtype) == np.dtype(t.dtype)
    assert a.shape == t.shape
    assert a.strides == t.strides
    a[1, 2] = 1
    assert np.asarray(t)[1, 2] == 1


def test_asarray_sees_what_another_tensor_of_the_region_writes(name):
    a = np.asarray(tshare.create(name, (4,), "int32"))
    b = np.asarray(tshare.open(name))
    a[:] = [1, 2, 3, 4]
    assert b.tolist() == [1, 2, 3, 4]
    b *= 2
    assert a.tolist() == [2, 4, 6, 8]


def test_array_copies():
    t = tshare.create(None, 4)
    a = np.array(t)
    assert where(a) != address(t)


def test_asarray_of_strided_tensor_has_its_strides():
    t = tshare.Region.create(None, {"t": ((2, 3), "int16", (2, 64))})["t"]
    a = np.asarray(t)
    assert a.strides == (2, 64)
    assert where(a) == address(t)


def test_asarray_of_scalar_and_empty_tensors():
    scalar = np.asarray(tshare.create(None, (), "float32"))
    assert scalar.shape == ()
    scalar[...] = 3
    assert np.asarray(tshare.create(None, (0, 3), "float32")).shape == (0, 3)


def test_writing_to_a_readonly_array_raises(name):
    keep = np.asarray(tshare.create(name, 4))
    a = np.asarray(tshare.open(name, readonly=True))
    assert not a.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        a[0] = 1
    with pytest.raises(ValueError, match="WRITEABLE"):
        a.flags.writeable = True
    keep[0] = 1
    assert a[0] == 1


def test_live_array_keeps_the_tensor_open():
    t = tshare.create(None, 4)
    a = np.asarray(t)
    with pytest.raises(BufferError, match="views"):
        t.close()
    del a
    gc.collect()
    t.close()


def test_array_keeps_the_memory():
    a = np.asarray(tshare.create(None, 1 << 20))
    gc.collect()
    assert mapped(where(a))
    a[-1] = 1


def test_view_of_an_array_keeps_the_memory():
    view = np.asarray(tshare.create(None, (1024, 1024)))[1:, ::2].T
    gc.collect()
    view[:] = 3
    assert view.sum() == 3 * 1023 * 512


def test_array_interface_shares_memory():
    t = tshare.create(None, (2, 3), "float64")
    a = np.asarray(OnlyInterface(t))
    assert where(a) == address(t)
    a[0, 0] = 5
    assert np.asarray(t)[0, 0] == 5


def test_array_interface_of_a_closed_tensor_does_not_dangle():
    t = tshare.create(None, 1 << 20)
    a = np.asarray(OnlyInterface(t))
    t.close()
    del t
    gc.collect()
    a[-1] = 7
    assert a[-1] == 7


def test_closed_tensor_is_no_object_array():
    t = tshare.create(None, 4)
    t.close()
    with pytest.raises(ValueError, match="tensor is closed"):
        np.asarray(t)


def test_from_dlpack_shares_memory():
    t = tshare.create(None, (2, 3), "int32")
    a = np.from_dlpack(t)
    assert where(a) == address(t)
    assert a.strides == (12, 4)
    np.asarray(t)[:] = 5
    assert a.tolist() == [[5] * 3] * 2
    # A legacy capsule is read-only to NumPy.
    assert a.flags.writeable is VERSIONED


def test_from_dlpack_of_a_readonly_tensor_is_readonly_or_refused(name):
    keep = tshare.create(name, 4)
    t = tshare.open(name, readonly=True)
    if VERSIONED:
        assert not np.from_dlpack(t).flags.writeable
    else:
        with pytest.raises(BufferError, match="max_version"):
            np.from_dlpack(t)
    assert not keep.closed


def test_from_dlpack_outlives_a_closed_tensor():
    t = tshare.create(None, 1 << 20)
    a = np.from_dlpack(t)
    t.close()
    del t
    gc.collect()
    assert a[-1] == 0
    assert mapped(where(a))
    address = where(a)
    del a
    assert not mapped(address)


def test_from_dlpack_copy_is_granted_to_versions_that_have_the_argument():
    t = tshare.create(None, 4)
    if not VERSIONED:
        with pytest.raises(TypeError):
            np.from_dlpack(t, copy=True)
        return
    a = np.from_dlpack(t, copy=True)
    assert where(a) != address(t)
    assert a.flags.writeable
    assert where(np.from_dlpack(t, copy=False)) == address(t)
    assert where(np.from_dlpack(t, device="cpu")) == address(t)


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn"])
def test_from_dlpack_of_a_type_that_numpy_lacks_is_refused(dtype):
    with pytest.raises((BufferError, RuntimeError)):
        np.from_dlpack(tshare.create(None, 2, dtype))


PACKED = [
    ("float4_e2m1fn", [1, 0.5, 3, -6, 0]),
    ("float6_e2m3fn", [1, 0.125, -7.5, 3, 0]),
    ("int4", [-8, 7, 1, 0, -1]),
    ("uint2", [3, 2, 1, 0, 3]),
]


@pytest.mark.parametrize(("dtype", "values"), PACKED)
def test_packed_elements_are_unpacked_into_ml_dtypes_arrays(dtype, values):
    ml_dtypes = need("ml_dtypes")
    there = np.array(values, getattr(ml_dtypes, dtype))
    tensor = tshare.asarray(there)
    assert tensor.dtype == dtype
    assert tensor.nbytes < there.nbytes
    back = np.asarray(tensor)
    assert back.dtype == there.dtype
    assert np.array_equal(back.view(np.uint8), there.view(np.uint8))


def test_packed_elements_lie_low_bits_first():
    ml_dtypes = need("ml_dtypes")
    tensor = tshare.asarray(np.array([1, 2, 3], ml_dtypes.uint4))
    capsule = tensor.__dlpack__(max_version=(1, 0))
    assert ctypes.string_at(versioned(capsule).dl_tensor.data, 2) == b"\x21\x03"


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.0.0", reason="NumPy before 2.0")
def test_packed_elements_are_no_array_without_a_copy():
    with pytest.raises(ValueError, match="copy"):
        np.asarray(tshare.create(None, 3, "float4_e2m1fn"), copy=False)


@pytest.mark.parametrize(
    "dtype", ["bool_", "int8", "uint16", "int32", "longlong", "float32", "complex64", "half"]
)
def test_create_takes_numpy_s_types(dtype):
    scalar = getattr(np, dtype)
    expected = np.dtype(scalar)
    for given in (scalar, expected, expected.name, expected.str):
        assert np.dtype(tshare.create(None, 1, given).dtype) == expected


@pytest.mark.parametrize("dtype", [">f4", "M8[s]", "V4", "S3", "O", "f4,i4", "longdouble"])
def test_create_refuses_numpy_s_other_types(dtype):
    with pytest.raises(ValueError, match="dtype"):
        tshare.create(None, 1, np.dtype(dtype))


def test_create_takes_numpy_s_ints_and_shapes():
    t = tshare.create(None, np.zeros((2, 3)).shape, "uint8")
    assert t.shape == (2, 3)
    assert tshare.create(None, np.int64(3)).shape == (3,)
    assert tshare.create(None, np.array([2, 3])).shape == (2, 3)


def test_from_dlpack_copies_arrays():
    for source in (
        np.arange(12.0).reshape(3, 4),
        np.arange(24, dtype="int16").reshape(4, 6)[::2, 5::-2],
        np.arange(24, dtype="int16").reshape(2, 3, 4).transpose(2, 0, 1),
        np.array(5.0),
        np.zeros((0, 3)),
        np.array([True, False] if VERSIONED else [1, 0]),
        np.array([1 + 2j]),
    ):
        t = tshare.from_dlpack(source)
        np.testing.assert_array_equal(np.asarray(t), source)
        assert np.asarray(t).dtype == source.dtype
        assert not np.shares_memory(np.asarray(t), source)
