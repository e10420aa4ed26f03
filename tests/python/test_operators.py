# SPDX-License-Identifier: MIT
"""Operators of a Tensor, and one element as a number of Python's."""

import math
import operator

import pytest

import tshare
from support import need

np = need("numpy")

COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
BINARY = [operator.add, operator.sub, operator.mul, operator.matmul, operator.truediv,
          operator.floordiv, operator.mod, divmod, pow, operator.lshift, operator.rshift,
          operator.and_, operator.or_, operator.xor]  # fmt: skip
UNARY = [operator.neg, operator.pos, abs, operator.invert]


@pytest.fixture
def t():
    return tshare.asarray(np.arange(1, 5, dtype="int32"))


ARRAYS = [np.arange(1, 5), np.int32(2), np.ma.arange(1, 5)]


@pytest.mark.parametrize("other", [0, 1.5, 2j, True, "x", b"x", [1, 2], (), object()], ids=repr)
@pytest.mark.parametrize("compare", COMPARISONS)
def test_comparison_with_values_names_numpy(t, compare, other):
    for operands in ((t, other), (other, t), (t[0], other)):
        with pytest.raises(TypeError, match=r"tshare.Tensor has no comparison .*t\.numpy\(\)"):
            compare(*operands)


@pytest.mark.parametrize("other", [0, 1.5, [1, 2], "x", None, "itself"], ids=repr)
@pytest.mark.parametrize("operate", BINARY)
def test_arithmetic_names_numpy(t, operate, other):
    other = t if other == "itself" else other
    for operands in ((t, other), (other, t)):
        if isinstance(other, str) and operate is operator.mod and operands[0] is other:
            continue  # Python's formatting
        with pytest.raises(TypeError, match=r"tshare.Tensor has no arithmetic .*t\.numpy\(\)"):
            operate(*operands)


@pytest.mark.parametrize("other", ARRAYS, ids=repr)
@pytest.mark.parametrize("operate", [*COMPARISONS, *BINARY])
def test_tensor_on_the_left_of_an_array_names_numpy(t, operate, other):
    for left in (t, t[0]):
        with pytest.raises(TypeError, match=r"tshare.Tensor has no .*t\.numpy\(\)"):
            operate(left, other)


@pytest.mark.parametrize("operate", UNARY)
def test_unary_arithmetic_names_numpy(t, operate):
    with pytest.raises(TypeError, match=r"tshare.Tensor has no arithmetic .*t\.numpy\(\)"):
        operate(t)


@pytest.mark.parametrize("other", [1, *ARRAYS], ids=repr)
def test_arithmetic_in_place_is_no_new_array(t, other):
    x = t
    with pytest.raises(TypeError, match=r"t\.numpy\(\)"):
        x += other
    assert x is t
    with pytest.raises(TypeError, match=r"t\.numpy\(\)"):
        t[0] += other
    assert t.numpy().tolist() == [1, 2, 3, 4]


def test_torch_s_operators_name_the_remedy(t):
    x = need("torch").arange(4)
    for operate in (operator.eq, operator.ne, operator.add, operator.lt):
        for operands in ((t, x), (x, t)):
            with pytest.raises(TypeError, match=r"t\.torch\(\)"):
                operate(*operands)


@pytest.mark.parametrize("other", ARRAYS, ids=repr)
@pytest.mark.parametrize("operate", [*COMPARISONS, *BINARY])
def test_array_on_the_left_takes_a_tensor_as_an_array(t, operate, other):
    if operate is operator.matmul and not np.ndim(other):
        other = np.arange(1, 5)
    assert np.array_equal(operate(other, t), operate(other, t.numpy()))


def test_array_takes_a_tensor_in_place(t):
    a = t.numpy()
    a += t
    assert memoryview(t).tolist() == [2, 4, 6, 8]


def test_tensors_are_equal_if_they_are_the_same_object(t):
    again = t[:]
    assert t == t  # noqa: PLR0124
    assert not t != t  # noqa: PLR0124
    assert t != again
    assert not t == again
    assert {t: 1, again: 2}[t] == 1
    assert [again, t].index(t) == 1
    with pytest.raises(TypeError, match="comparison"):
        t < again  # noqa: B015


def test_tensor_is_not_none(t):
    assert t != None  # noqa: E711
    assert not t == None  # noqa: E711
    assert t not in [None, 1][:1]


def test_elements_are_views_when_they_are_swapped(t):
    t[0], t[1] = t[1], t[0]
    assert t.numpy().tolist() == [2, 2, 3, 4]


# One element


NUMBERS = {
    "bool": [True, False],
    "int8": [-128, 127],
    "uint8": [0, 255],
    "int16": [-(2**15), 7],
    "uint16": [2**16 - 1],
    "int32": [-(2**31)],
    "uint32": [2**32 - 1],
    "int64": [-(2**63), 2**63 - 1],
    "uint64": [2**64 - 1],
    "float16": [1.5, -65504.0],
    "float32": [0.5, -math.inf],
    "float64": [1 / 3],
    "complex64": [1.5 - 2j],
    "complex128": [1 / 3 + 1j],
    "bfloat16": [-2.5],
    "float8_e4m3fn": [448.0],
    "int4": [-8],
}


@pytest.mark.parametrize("dtype", NUMBERS)
def test_item_is_a_number_of_python_s(dtype):
    if dtype in ("bfloat16", "float8_e4m3fn", "int4"):
        need("ml_dtypes")
    for value in NUMBERS[dtype]:
        for shape in ((), 1, (1, 1)):
            t = tshare.create(None, shape, dtype)
            t[...] = [[value]] if shape == (1, 1) else [value] if shape else value
            assert t.item() == value
            assert type(t.item()) is type(value)
            assert bool(t) is bool(value)
            assert complex(t) == complex(value)


def test_element_converts_as_its_number(t):
    assert (int(t[1]), float(t[1])) == (2, 2.0)
    assert math.sqrt(t[3]) == 2
    assert f"{t[1]:03d} {t[2]}" == f"002 {t[2]!r}"
    assert int(tshare.asarray(2.75)) == 2
    with pytest.raises(TypeError):
        float(tshare.asarray(1j))


@pytest.mark.parametrize("key", [slice(None), slice(0)])
def test_other_numbers_of_elements_are_no_number(t, key):
    with pytest.raises(ValueError, match=r"^item\(\) of a tensor with "):
        t[key].item()
    with pytest.raises(ValueError, match=r"truth value .*any\(\)"):
        bool(t[key])
    for convert in (int, float, complex):
        with pytest.raises(TypeError, match="elements, not one"):
            convert(t[key])


def test_bytes_of_an_element_are_its_memory(t):
    for convert in (bytes, bytearray):
        assert convert(t[2]) == b"\3\0\0\0"
        assert convert(tshare.asarray(b"\5")) == b"\5"


def test_wait_for_a_flag_ends(t):
    flag = tshare.create(None, 4)
    rounds = 0
    while not flag[0]:
        rounds += 1
        if rounds == 3:
            flag[0] = 1
    assert rounds == 3


def test_size_is_the_number_of_elements(t):
    assert (t.size, t[0].size) == (4, 1)
    assert tshare.create(None, (3, 0, 5)).size == 0
    assert tshare.create(None, (3, 5), "int4").size == 15
