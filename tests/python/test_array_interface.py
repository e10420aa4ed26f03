# SPDX-License-Identifier: MIT
import ctypes

import pytest

import tshare

TYPES = {
    "bool": "|b1",
    "int8": "|i1",
    "int16": "<i2",
    "int32": "<i4",
    "int64": "<i8",
    "uint8": "|u1",
    "uint16": "<u2",
    "uint32": "<u4",
    "uint64": "<u8",
    "float16": "<f2",
    "float32": "<f4",
    "float64": "<f8",
    "complex64": "<c8",
    "complex128": "<c16",
}


@pytest.mark.parametrize(("dtype", "typestr"), TYPES.items())
def test_interface_has_shape_typestr_data_and_version(dtype, typestr):
    t = tshare.create(None, (2, 3), dtype)
    interface = t.__array_interface__
    assert interface["shape"] == (2, 3)
    assert interface["typestr"] == typestr
    assert interface["version"] == 3
    assert interface["strides"] is None
    address, readonly = interface["data"]
    assert readonly is False
    memoryview(t).cast("B")[0] = 1
    assert ctypes.c_uint8.from_address(address).value == 1


def test_interface_flags_readonly_memory(name):
    keep = tshare.create(name, 3)
    assert tshare.open(name, readonly=True).__array_interface__["data"][1] is True
    assert keep.__array_interface__["data"][1] is False


def test_interface_gives_strides_in_bytes_where_there_are_gaps():
    t = tshare.Region.create(None, {"t": ((2, 3), "int16", (64, 8))})["t"]
    assert t.__array_interface__["strides"] == (64, 8)


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e5m2", "float4_e2m1fn"])
def test_type_without_typestr_has_no_interface(dtype):
    t = tshare.create(None, 2, dtype)
    assert not hasattr(t, "__array_interface__")
    with pytest.raises(AttributeError, match=dtype):
        _ = t.__array_interface__


def test_cpu_tensor_has_no_cuda_interface():
    assert not hasattr(tshare.create(None, 2), "__cuda_array_interface__")
