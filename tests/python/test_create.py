# SPDX-License-Identifier: MIT
import errno
import os

import pytest

import tshare

DTYPES = {
    "bool": 1,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "uint8": 1,
    "uint16": 2,
    "uint32": 4,
    "uint64": 8,
    "float16": 2,
    "float32": 4,
    "float64": 8,
    "complex64": 8,
    "complex128": 16,
    "bfloat16": 2,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
}


def test_create_takes_name_shape_and_dtype_by_position(name):
    t = tshare.create(name, (8, 48, 64, 3), "uint8")
    assert (t.name, t.shape, t.dtype) == (name, (8, 48, 64, 3), "uint8")


def test_create_takes_all_arguments_by_keyword(name):
    t = tshare.create(
        name=name, shape=[2, 3], dtype="int16", mode=0o640, persist=False, node=None,
        dma32=False, contiguous=False,
    )  # fmt: skip
    assert (t.name, t.shape, t.dtype) == (name, (2, 3), "int16")


def test_create_makes_uint8_by_default():
    assert tshare.create(None, 5).dtype == "uint8"


def test_create_takes_an_int_as_shape():
    assert tshare.create(shape=7).shape == (7,)


def test_create_takes_what_has_index_as_dimension():
    class Three:
        def __index__(self):
            return 3

    assert tshare.create(None, (Three(), 2)).shape == (3, 2)


def test_create_without_a_name_makes_an_unnamed_tensor():
    t = tshare.create(None, (3,), "int32")
    assert t.name is None
    assert t.region.name is None


def test_create_makes_zeroed_writable_memory():
    t = tshare.create(None, 10000, "uint8")
    view = memoryview(t)
    assert not t.readonly
    assert bytes(view) == bytes(10000)
    view[9999] = 1
    assert view[9999] == 1


@pytest.mark.parametrize(("dtype", "itemsize"), DTYPES.items())
def test_create_knows_dtype(dtype, itemsize):
    t = tshare.create(None, (2, 3), dtype)
    assert (t.dtype, t.itemsize, t.nbytes) == (dtype, itemsize, 6 * itemsize)


@pytest.mark.parametrize(
    ("python", "dtype"),
    [(float, "float64"), (int, "int64"), (bool, "bool"), (complex, "complex128")],
)
def test_create_takes_python_types(python, dtype):
    assert tshare.create(None, 1, python).dtype == dtype


@pytest.mark.parametrize(
    ("typestr", "dtype"), [("<f4", "float32"), ("|u1", "uint8"), ("i8", "int64"), ("?", None)]
)
def test_create_takes_typestrings_of_the_array_interface(typestr, dtype):
    if dtype is None:
        with pytest.raises(ValueError, match="dtype"):
            tshare.create(None, 1, typestr)
    else:
        assert tshare.create(None, 1, typestr).dtype == dtype


def test_create_makes_scalars():
    t = tshare.create(None, (), "float64")
    assert (t.shape, t.strides, t.ndim, t.nbytes) == ((), (), 0, 8)


def test_create_makes_empty_tensors():
    t = tshare.create(None, (0, 3), "float64")
    assert (t.shape, t.nbytes, len(t)) == ((0, 3), 0, 0)
    assert bytes(memoryview(t)) == b""


def test_create_gives_the_mode_that_was_asked_for(name):
    assert tshare.create(name, 1, mode=0o640).region.info().mode == 0o640


def test_create_refuses_a_taken_name(name):
    keep = tshare.create(name, 1)
    with pytest.raises(FileExistsError) as caught:
        tshare.create(name, 1)
    assert caught.value.errno == errno.EEXIST
    assert caught.value.filename == name
    assert not keep.closed


def test_create_takes_a_name_again_that_was_unlinked(name):
    first = tshare.create(name, 1)
    first.unlink()
    second = tshare.create(name, 2)
    assert second.shape == (2,)
    assert first.shape == (1,)


@pytest.mark.parametrize("name", ["", "a/b", "/a", ".", "..", "x" * 128, "a\0b"])
def test_create_refuses_a_name_that_is_none(name):
    with pytest.raises(ValueError, match="name"):
        tshare.create(name, 1)


@pytest.mark.parametrize("name", [b"x", 1, ("x",)])
def test_create_refuses_a_name_that_is_not_a_str(name):
    with pytest.raises(TypeError, match="name"):
        tshare.create(name, 1)


def test_create_takes_the_longest_name():
    name = f"{os.getpid()}-".ljust(127, "x")
    with tshare.create(name, 1) as t:
        assert t.name == name
        t.unlink()


def test_create_takes_names_beyond_ascii(name):
    with tshare.create(name + "-\u00e4\u4e2d", 1) as t:
        assert t.name == name + "-\u00e4\u4e2d"
        t.unlink()


@pytest.mark.parametrize(
    "shape",
    [
        -1,
        (2, -1),
        (-(2**63),),
        2**63,
        2**64,
        (2**70, 1),
        (2**40, 2**40),
        (2**62, 2),
        (2**63 - 1, 2**63 - 1, 4),
        (1,) * 33,
    ],
)
def test_create_refuses_a_shape_that_no_memory_has(shape):
    with pytest.raises(ValueError, match="shape"):
        tshare.create(None, shape)


@pytest.mark.parametrize("shape", [1.5, (1.5,), "3", b"3", None, (None,), {"a": 1}, ("3",), {3}])
def test_create_refuses_a_shape_that_is_not_of_ints(shape):
    with pytest.raises(TypeError, match="shape"):
        tshare.create(None, shape)


def test_create_needs_a_shape():
    with pytest.raises(TypeError, match="shape"):
        tshare.create("x")


def test_create_takes_as_many_dimensions_as_there_can_be():
    assert tshare.create(None, (1,) * 32).ndim == 32


@pytest.mark.parametrize("size", [2**45, 2**50])
def test_create_refuses_more_than_there_is_memory(size):
    with pytest.raises(OSError, match=".") as caught:
        tshare.create(None, size)
    assert caught.value.errno in (errno.ENOMEM, errno.EDQUOT)


@pytest.mark.parametrize("dtype", ["", "uint", "float128", "str", ">f4", "object", "U3", "x" * 99])
def test_create_refuses_a_dtype_that_is_none(dtype):
    with pytest.raises(ValueError, match="dtype"):
        tshare.create(None, 1, dtype)


@pytest.mark.parametrize("dtype", [1, b"uint8", ["uint8"], object()])
def test_create_refuses_a_dtype_of_another_type(dtype):
    with pytest.raises(TypeError, match="dtype"):
        tshare.create(None, 1, dtype)


@pytest.mark.parametrize("mode", [-1, 0o1000, 0o4600, 2**40])
def test_create_refuses_a_mode_that_is_none(mode):
    with pytest.raises(ValueError, match="mode"):
        tshare.create(None, 1, mode=mode)


@pytest.mark.parametrize("node", [-1, 2**31])
def test_create_refuses_a_node_that_is_none(node):
    with pytest.raises(ValueError, match="node"):
        tshare.create(None, 1, node=node)


@pytest.mark.parametrize("option", ["mode", "node"])
def test_create_refuses_an_option_of_another_type(option):
    with pytest.raises(TypeError, match=option):
        tshare.create(None, 1, **{option: "1"})


@pytest.mark.parametrize("option", ["dma32", "contiguous"])
def test_create_gives_what_the_backend_can_and_refuses_the_rest(option, backend):
    if backend == "kmod":
        assert getattr(tshare.create(None, 1, **{option: True}).region.info(), option)
    else:
        with pytest.raises(OSError, match=".") as caught:
            tshare.create(None, 1, **{option: True})
        assert caught.value.errno == errno.EOPNOTSUPP


def test_create_refuses_unknown_and_repeated_arguments():
    with pytest.raises(TypeError, match="size"):
        tshare.create(None, 1, size=3)
    with pytest.raises(TypeError, match="shape"):
        tshare.create(None, 1, shape=1)
    with pytest.raises(TypeError, match="positional"):
        tshare.create(None, 1, "uint8", 0o600)


def test_failed_create_leaves_no_name(name):
    with pytest.raises(OSError, match="."):
        tshare.create(name, 2**45)
    with pytest.raises(ValueError, match="shape"):
        tshare.create(name, -1)
    with pytest.raises(FileNotFoundError):
        tshare.open(name)


def test_create_takes_names_that_are_not_utf_8(name):
    other = name + "-\udcff"
    with tshare.create(other, 1) as t:
        assert t.name == other
        assert other in {info.name for info in tshare.list()}
        t.unlink()


def test_create_refuses_names_that_no_bytes_are():
    with pytest.raises(ValueError, match="surrogates"):
        tshare.create("\ud800", 1)
