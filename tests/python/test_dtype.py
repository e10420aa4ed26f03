# SPDX-License-Identifier: MIT
"""t.dtype: the name of a type, which is equal to what other libraries call the type."""

import copy
import json
import pathlib
import pickle

import pytest

import tshare
from support import need

DTYPES = ["bool", "int8", "int64", "uint16", "float16", "float32", "float64", "complex64",
          "bfloat16", "float8_e4m3fn", "int4"]  # fmt: skip


class EqualToAll:
    def __eq__(self, other):
        return True

    __hash__ = None


def dtype_of(name):
    return tshare.create(None, 2, name).dtype


@pytest.mark.parametrize("name", DTYPES)
def test_dtype_is_its_name(name):
    dtype = dtype_of(name)
    assert isinstance(dtype, str)
    assert (dtype, dtype.name, str(dtype), f"{dtype}") == (name,) * 4
    assert type(dtype.name) is str
    assert {name: 5}[dtype] == 5
    assert json.dumps(dtype) == json.dumps(name)
    assert repr(dtype) == repr(name)


def test_dtype_is_ordered_as_a_str():
    assert sorted([dtype_of("uint8"), "int8", dtype_of("bool")]) == ["bool", "int8", "uint8"]


def are_equal(dtype, same, other):
    """Whether the operators hold, from both sides."""
    assert dtype == same and same == dtype  # noqa: PT018
    assert not dtype != same and not same != dtype  # noqa: PT018
    assert dtype != other and other != dtype  # noqa: PT018
    assert not dtype == other and not other == dtype  # noqa: PT018


@pytest.mark.parametrize("name", DTYPES[:8])
def test_dtype_is_equal_to_numpy_s(name):
    np = need("numpy")
    dtype, other = dtype_of(name), dtype_of("uint64")
    are_equal(dtype, np.dtype(name), np.dtype("uint64"))
    are_equal(dtype, np.dtype(name).type, np.uint64)
    assert np.dtype(dtype) == np.dtype(name)
    assert other == np.uint64
    assert dtype.itemsize == np.dtype(name).itemsize
    assert dtype.byteorder == np.dtype(name).byteorder
    assert dtype.kind == np.dtype(name).kind


def test_dtype_differs_from_the_one_of_the_other_byte_order():
    np = need("numpy")
    are_equal(dtype_of("float32"), np.dtype("=f4"), np.dtype("=f4").newbyteorder())


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "int4"])
def test_dtype_is_equal_to_that_of_ml_dtypes(name):
    ml_dtypes, np = need("ml_dtypes"), need("numpy")
    kind = getattr(ml_dtypes, name)
    are_equal(dtype_of(name), kind, ml_dtypes.float8_e5m2)
    are_equal(dtype_of(name), np.dtype(kind), np.dtype("float16"))


@pytest.mark.parametrize("name", ["bool", "int8", "float16", "bfloat16", "float32", "complex64"])
def test_dtype_is_equal_to_pytorch_s(name):
    torch = need("torch")
    are_equal(dtype_of(name), getattr(torch, name), torch.int64)


def test_dtype_is_equal_to_jax_s():
    jnp = need("jax.numpy")
    are_equal(dtype_of("bfloat16"), jnp.bfloat16, jnp.float32)


def test_dtype_is_equal_to_python_s_types():
    for name, kind in {"float64": float, "int64": int, "bool": bool}.items():
        are_equal(dtype_of(name), kind, complex)


@pytest.mark.parametrize("other", [None, 3, "f4", object(), type, pathlib.Path("x"), b"float32"])
def test_dtype_differs_from_what_is_no_type(other):
    assert dtype_of("float32") != other
    assert not dtype_of("float32") == other


def test_dtype_leaves_the_answer_to_what_it_does_not_know():
    assert dtype_of("float32") == EqualToAll()


def test_error_of_a_comparison_is_passed_on():
    class Odd:
        @property
        def name(self):
            raise OSError("odd")

    with pytest.raises(OSError, match="odd"):
        dtype_of("float32") == Odd()  # noqa: B015


@pytest.mark.parametrize(("name", "attributes"), [("bfloat16", (2, "=")), ("int4", (1, "|"))])
def test_dtype_that_numpy_lacks_has_size_byte_order_and_no_kind(name, attributes):
    dtype = dtype_of(name)
    assert (dtype.itemsize, dtype.byteorder) == attributes
    assert dtype.kind == "V"


def test_dtype_is_made_of_what_create_takes():
    assert tshare.DType("F32") == "float32"
    assert tshare.DType(float) == "float64"
    assert tshare.DType(dtype_of("int8")) == "int8"
    with pytest.raises(ValueError, match=r"^dtype: 'flota32'.* did you mean "):
        tshare.DType("flota32")
    with pytest.raises(TypeError, match="^dtype: must be "):
        tshare.DType(3)
    for wrong in ({}, {"dtype": "f4"}):
        with pytest.raises(TypeError):
            tshare.DType(**wrong)


def pickled(protocol):
    return lambda x: pickle.loads(pickle.dumps(x, protocol))


@pytest.mark.parametrize(
    "way", [copy.copy, copy.deepcopy, *map(pickled, range(pickle.HIGHEST_PROTOCOL + 1))]
)
def test_dtype_stays_one_when_it_is_copied(way):
    again = way(dtype_of("bfloat16"))
    assert type(again) is tshare.DType
    assert again == "bfloat16"
