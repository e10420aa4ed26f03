# SPDX-License-Identifier: MIT
import errno
import os
import re

import pytest

import tshare
from support import run

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
        name=name, shape=[2, 3], dtype="int16", mode=0o640, lifetime="maker", node=None,
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
def test_create_takes_dtype_names(dtype, itemsize):
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


def test_create_sets_the_mode(name):
    assert tshare.create(name, 1, mode=0o640).region.info().mode == 0o640


def test_create_sets_a_mode_without_permissions(name):
    assert tshare.create(name, 1, mode=0).region.info().mode == 0


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
def test_create_refuses_invalid_name(name):
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


@pytest.mark.parametrize(
    "dtype",
    ["", "byte", "f16", "F128", "torch.", "float128", "str", ">f4", "object", "U3", "x" * 99],
)
def test_create_refuses_invalid_dtype(dtype):
    with pytest.raises(ValueError, match="dtype"):
        tshare.create(None, 1, dtype)


ALIASES = {
    # NumPy's, Python's and C's
    "float": "float64", "double": "float64", "single": "float32", "half": "float16",
    "int": "int64", "uint": "uint64", "short": "int16", "intc": "int32", "long": "int64",
    "ubyte": "uint8", "complex": "complex128", "csingle": "complex64", "bool_": "bool",
    "np.float32": "float32", "numpy.half": "float16", "jnp.bfloat16": "bfloat16",
    # PyTorch's
    "torch.float32": "float32", "torch.float": "float32", "torch.double": "float64",
    "torch.half": "float16", "torch.int": "int32", "torch.long": "int64", "torch.byte": "uint8",
    "torch.char": "int8", "torch.bfloat16": "bfloat16", "torch.cfloat": "complex64",
    "torch.float4_e2m1fn_x2": "float4_e2m1fnx2",
    # common abbreviations
    "bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "fp64": "float64",
    # safetensors'
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16", "U32": "uint32",
    "I32": "int32", "U64": "uint64", "I64": "int64", "F16": "float16", "BF16": "bfloat16",
    "F32": "float32", "F64": "float64", "C64": "complex64", "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu", "F6_E2M3": "float6_e2m3fn",
    "F4": "float4_e2m1fn",
    # ONNX's, Paddle's and Polars'
    "FLOAT16": "float16", "Float32": "float32", "UINT8": "uint8",
    # NumPy's typestr, where safetensors has another type in capitals
    "f4": "float32", "i8": "int64", "u8": "uint64",
}  # fmt: skip


@pytest.mark.parametrize(("alias", "dtype"), ALIASES.items())
def test_create_takes_the_dtype_names_of_other_libraries(alias, dtype):
    assert tshare.create(None, 1, alias).dtype == dtype


@pytest.mark.parametrize(
    ("wrong", "close"),
    [("flaot32", "float32"), ("float23", "float32"), ("bfloat", "bfloat16"), ("F8_E4", "F8_E4M3"),
     ("dooble", "double"), ("unit8", "uint8"), ("float8_e4m3fnu", "float8_e4m3fnuz")],
)  # fmt: skip
def test_error_of_a_dtype_names_similar_types(wrong, close):
    with pytest.raises(ValueError, match=f"dtype: '{wrong}' .* did you mean .*{close}"):
        tshare.create(None, 1, wrong)


def test_error_of_a_dtype_lists_those_there_are():
    with pytest.raises(ValueError, match="^dtype: 'object' is not ") as caught:
        tshare.create(None, 1, "object")
    assert "did you mean" not in str(caught.value)
    listed = str(caught.value).split("Supported are ")[1].split(", and")[0].split(", ")
    assert set(DTYPES) <= set(listed)
    for dtype in listed:
        assert tshare.create(None, 8, dtype).dtype == dtype


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"lifetime": "persist"}, "^lifetime: "),
        ({"lifetime": "for ever"}, "^lifetime: 'for ever' is "),
        ({"shape": (-1,)}, "^shape"),
        ({"shape": (2**62, 2**62)}, "^shape"),
        ({"name": "a/b"}, "^name: "),
        ({"name": "x" * 200}, "^name: "),
    ],
)
def test_errors_name_the_arguments_of_python(arguments, text):
    with pytest.raises(ValueError, match=text):
        tshare.create(**{"name": None, "shape": 1, **arguments})


@pytest.mark.parametrize("argument", ["dma32", "contiguous", "node"])
def test_what_shm_has_not_is_named_as_the_argument(backend, argument):
    if backend == "shm":
        with pytest.raises(OSError, match=rf"\[Errno {errno.EOPNOTSUPP}\] {argument}: "):
            tshare.create(None, 1, **{argument: 0 if argument == "node" else True})
    else:
        with pytest.raises((OSError, ValueError), match="node: "):
            tshare.create(None, 1, node=1023)


@pytest.mark.parametrize(
    ("what", "text"),
    [
        (((-2,), "uint8"), r"shape\[0\]: "),
        (((2,), "uint8", None, 2**40), "offset: "),
        (((2**62, 2**62), "uint8"), "shape: "),
    ],
)
def test_error_of_a_tensor_names_its_key(what, text):
    with pytest.raises(ValueError, match=f"^tensors: 'y': {text}"):
        tshare.Region.create(None, {"x": ((2,), "uint8"), "y": what}, size=4096)


def available_memory():
    """Return the bytes of memory and swap that the system has left."""
    with open("/proc/meminfo") as lines:
        known = {line.split(":")[0]: int(line.split()[1]) for line in lines}
    return 1024 * (known["MemAvailable"] + known["SwapFree"])


# Of the file system and the memory the smaller one is named. Others' memory comes and goes
# meanwhile, so which one that is follows from the error's own figures.
def test_error_of_no_room_names_what_has_less(name):
    code = """
        import os
        import sys

        import tshare

        files = os.statvfs("/dev")
        size = files.f_bavail * files.f_frsize + (1 << 30)
        try:
            tshare.create(sys.argv[1], size)
        except OSError as error:
            print(error.errno, error.strerror)
        print(files.f_bavail * files.f_frsize, files.f_blocks * files.f_frsize >> 20)
    """
    environment = {**os.environ, "TSHARE_SHM_DIR": "/dev", "TSHARE_BACKEND": "shm"}
    most = available_memory()
    error, room = run(code, name, env=environment).splitlines()
    most = max(most, available_memory())
    unused, total = map(int, room.split())
    assert error.startswith(f"{errno.ENOMEM} size: no room for ")
    if memory := re.search(r": the system has (\d+) MiB of memory and swap available", error):
        assert int(memory[1]) <= unused >> 20
    else:
        assert re.search(rf": /dev has {unused >> 20} MiB free of {total}; enlarge it, ", error)
        assert unused < 1.25 * most


@pytest.mark.parametrize("dtype", [1, b"uint8", ["uint8"], object()])
def test_create_refuses_a_dtype_of_another_type(dtype):
    with pytest.raises(TypeError, match="dtype"):
        tshare.create(None, 1, dtype)


@pytest.mark.parametrize("mode", [-1, 0o1000, 0o4600, 0o700, 0o611, 2**40])
def test_create_refuses_invalid_mode(mode):
    with pytest.raises(ValueError, match="mode"):
        tshare.create(None, 1, mode=mode)


@pytest.mark.parametrize("node", [-1, 2**31])
def test_create_refuses_invalid_node(node):
    with pytest.raises(ValueError, match="node"):
        tshare.create(None, 1, node=node)


@pytest.mark.parametrize("option", ["mode", "node"])
def test_create_refuses_an_option_of_another_type(option):
    with pytest.raises(TypeError, match=option):
        tshare.create(None, 1, **{option: "1"})


@pytest.mark.parametrize("option", ["dma32", "contiguous"])
def test_create_honours_placement_or_refuses_it(option, backend):
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


def test_region_of_the_module_s_pool_says_so():
    size = "/sys/class/misc/tshare/pool_node0/size"
    if tshare.backend() != "kmod":
        with tshare.create(None, 4 << 20, "uint8") as t:
            assert not t.region.info().pool
        return
    with open(size, "w") as file:
        file.write(str(16 << 20))
    with tshare.create(None, 4 << 20, "uint8") as large, tshare.create(None, 4, "uint8") as small:
        assert large.region.info().pool
        assert not small.region.info().pool
    with open(size, "w") as file:
        file.write("0")
