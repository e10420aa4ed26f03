# SPDX-License-Identifier: MIT
"""tshare save and tshare create --from, compared with NumPy's own .npy files."""

import io
import subprocess

import numpy as np
import pytest

import tshare
from test_main import BUILT

TYPES = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
]
SHAPES = [(), (0,), (3,), (2, 3), (4, 0, 2), (2, 3, 4), (1,) * 32]


def command(*arguments):
    return subprocess.run([BUILT, *arguments], capture_output=True, timeout=300)


def run(*arguments):
    said = command(*arguments)
    assert (said.returncode, said.stderr) == (0, b"")
    return said.stdout


def array_of(shape, dtype):
    size = int(np.prod(shape))
    return (np.arange(size) * 7 + 1).astype(dtype).reshape(shape)


def assert_same_array(one, other):
    assert (one.dtype, one.shape) == (other.dtype, other.shape)
    assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("dtype", TYPES)
def test_numpy_loads_what_save_writes(name, tmp_path, dtype):
    for shape in SHAPES:
        array = array_of(shape, dtype)
        with tshare.create(name, shape, dtype) as t:
            t.numpy()[...] = array
            run("save", name, tmp_path / "x.npy")
            t.unlink()
        assert_same_array(np.load(tmp_path / "x.npy"), array)


@pytest.mark.parametrize("dtype", TYPES)
def test_create_reads_what_numpy_saves(name, tmp_path, dtype):
    for shape in SHAPES:
        for version in ((1, 0), (2, 0), (3, 0)):
            array = array_of(shape, dtype)
            with open(tmp_path / "x.npy", "wb") as file:
                np.lib.format.write_array(file, array, version=version)
            run("create", "--from", tmp_path / "x.npy", name)
            with tshare.open(name) as t:
                assert_same_array(t.numpy(), array)
                t.unlink()


def test_fortran_order_becomes_strides(name, tmp_path):
    array = np.asfortranarray(array_of((2, 3, 4), "int32"))
    np.save(tmp_path / "x.npy", array)
    run("create", "--from", tmp_path / "x.npy", name)
    with tshare.open(name) as t:
        assert t.numpy().strides == array.strides
        assert_same_array(t.numpy(), array)
        run("save", name, tmp_path / "y.npy")
        t.unlink()
    assert_same_array(np.load(tmp_path / "y.npy"), array)


def test_save_has_the_header_that_numpy_writes(name):
    for shape in SHAPES[1:]:
        expected = io.BytesIO()
        np.save(expected, array_of(shape, "float32"))
        run("create", "--quiet", "--replace", name, "x".join(map(str, shape)), "float32")
        written = run("save", name, "-")
        length = len(written) - 4 * int(np.prod(shape))
        # NumPy leaves room for a first dimension that grows.
        assert written[10:length].split() == expected.getvalue()[10:length].split()
        assert length % 64 == 0
    tshare.unlink(name)


@pytest.mark.parametrize(
    ("array", "problem"),
    [
        (np.zeros(3, ">f4"), b"big-endian"),
        (np.zeros(3, "U4"), b"unsupported type"),
        (np.zeros(3, "datetime64[s]"), b"unsupported type"),
        (np.zeros(3, [("a", "f4")]), b"structured"),
        (np.array([None, {}]), b"Python objects"),
    ],
)
def test_arrays_that_can_not_be_shared_are_refused(name, tmp_path, array, problem):
    np.save(tmp_path / "x.npy", array, allow_pickle=True)
    said = command("create", "--from", tmp_path / "x.npy", name)
    assert said.returncode == 1
    assert problem in said.stderr
    assert name not in {info.name for info in tshare.list()}


def test_damaged_headers_are_refused_or_mean_what_numpy_reads(name, tmp_path):
    good = io.BytesIO()
    np.lib.format.write_array(good, np.arange(6, dtype="<i2").reshape(2, 3), version=(1, 0))
    generator = np.random.default_rng(1)
    for _ in range(150):
        bad = bytearray(good.getvalue())
        place = generator.integers(6, 80)
        bad[place] = generator.choice(list(b"'\"(),:{}\\0 0129<>|fiObLTF\xff"))
        (tmp_path / "x.npy").write_bytes(bad)
        said = command("create", "--quiet", "--from", tmp_path / "x.npy", name)
        if said.returncode:
            assert said.returncode == 1
            assert said.stderr.startswith(b"tshare create: ")
            continue
        with tshare.open(name) as t:
            assert_same_array(t.numpy(), np.load(tmp_path / "x.npy"))
            t.unlink()


def test_save_into_a_pipe_that_closes_is_an_error(name):
    run("create", "--quiet", name, "4000000", "int8")
    said = subprocess.run(
        f"trap '' PIPE; {BUILT} save {name} - | true; exit ${{PIPESTATUS[0]}}",
        shell=True,
        executable="/bin/bash",
        stderr=subprocess.PIPE,
    )
    tshare.unlink(name)
    assert said.returncode == 1
    assert b"standard output" in said.stderr
