# SPDX-License-Identifier: MIT
import gc

import pytest

import tshare
from support import address, need

jax = need("jax")

DTYPES = ["bool", "int8", "int16", "int32", "uint8", "uint16", "uint32", "float16", "bfloat16",
          "float32", "complex64"]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
def test_from_dlpack_takes_dtype(dtype):
    x = jax.numpy.from_dlpack(tshare.create(None, (2, 3), dtype))
    assert x.shape == (2, 3)
    assert x.dtype == jax.numpy.dtype(dtype)


def test_from_dlpack_is_the_same_address():
    t = tshare.create(None, (2, 3), "float32")
    assert jax.numpy.from_dlpack(t).unsafe_buffer_pointer() == address(t)


def test_from_dlpack_sees_what_was_written():
    t = tshare.create(None, 4, "int32")
    memoryview(t)[2] = 7
    assert jax.numpy.from_dlpack(t).tolist() == [0, 0, 7, 0]


def test_readonly_tensor_is_refused_to_versions_that_ask_for_legacy_capsules(name):
    keep = tshare.create(name, 4, "int32")
    try:
        x = jax.numpy.from_dlpack(tshare.open(name, readonly=True))
    except BufferError:
        x = None
    assert x is None or x.tolist() == [0] * 4
    assert not keep.closed


def test_array_outlives_a_closed_tensor():
    t = tshare.create(None, 1000, "int32")
    x = jax.numpy.from_dlpack(t)
    t.close()
    del t
    gc.collect()
    assert int(x.sum()) == 0


def test_create_takes_jax_s_types():
    assert tshare.create(None, 1, jax.numpy.bfloat16).dtype == "bfloat16"
    assert tshare.create(None, 1, jax.numpy.float32).dtype == "float32"
    assert tshare.create(None, 1, jax.numpy.zeros(1, "int8").dtype).dtype == "int8"


def test_from_dlpack_copies_arrays():
    t = tshare.from_dlpack(jax.numpy.arange(6, dtype="int32").reshape(2, 3))
    assert memoryview(t).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_64_bits_are_a_copy_of_32_without_x64():
    t = tshare.create(None, 3, "float64")
    for take in (jax.numpy.from_dlpack, jax.numpy.asarray):
        x = take(t)
        assert x.dtype == ("float64" if jax.config.jax_enable_x64 else "float32")
        assert jax.config.jax_enable_x64 or x.unsafe_buffer_pointer() != address(t)
