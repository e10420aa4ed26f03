# SPDX-License-Identifier: MIT
"""Files that save writes, and create --from reads."""

import os
import signal
import stat
import subprocess

import pytest

from helpers import npy

pytestmark = pytest.mark.slow_in_guests

# A file with six numbers, and the values that show has of it.
SIX = npy("(2, 3)", "'<i2'") + b"abcdefghijkl"
SIX_SHOWN = "25185 25699 26213 26727 27241 27755"


@pytest.fixture
def refuses(tshare, name, tmp_path):
    """A function that checks that create refuses a file for a reason, and leaves nothing."""

    def refuses(content, reason):
        bad = tmp_path / "bad.npy"
        bad.write_bytes(content)
        said = tshare("create", "--from", bad, name, status=1).err
        assert f"tshare create: {bad}: " in said
        assert reason in said
        tshare("show", name, status=3)

    return refuses


def test_save_writes_what_create_reads(tshare, name, tmp_path):
    given, saved = tmp_path / "in.npy", tmp_path / "out.npy"
    given.write_bytes(SIX)
    assert "1 tensor" in tshare("create", "--from", given, name).out
    assert SIX_SHOWN in tshare("show", name).out
    tshare("save", name, saved)
    assert saved.read_bytes()[-12:] == b"abcdefghijkl"
    assert saved.stat().st_size == 140
    tshare("create", "-r", "--from", saved, name)
    tshare("save", name, given)
    assert given.read_bytes() == saved.read_bytes()


def test_save_writes_fortran_s_order_as_c_s(tshare, name, tmp_path):
    tshare("create", "-f", "-", name, input=npy("(2, 3)", "'|u1'", "True") + b"adbecf")
    assert tshare.json("show", name)["tensors"][0]["strides"] == [1, 2]
    assert "97 98 99 100 101 102" in tshare("show", name).out
    tshare("save", name, tmp_path / "c.npy")
    assert (tmp_path / "c.npy").read_bytes()[-6:] == b"abcdef"


def test_save_ends_a_header_that_fills_its_last_block(tshare, name, tmp_path):
    full = tmp_path / "full.npy"
    tshare("create", name, 20 * "1x" + "100", "int8")
    tshare("save", name, full)
    assert full.stat().st_size == 192 + 100
    tshare("create", "-r", "-f", full, name)
    assert tshare.json("show", name)["tensors"][0]["shape"] == [1] * 20 + [100]


@pytest.mark.parametrize(
    ("descr", "values", "shown"),
    [
        ("|b1", b"\1\0", "1 0"),
        ("|i1", b"\xff\x7f", "-1 127"),
        ("<i2", b"\0\x80\1\0", "-32768 1"),
        ("<i8", 1 * b"\xfe" + 7 * b"\xff" + b"\1" + 7 * b"\0", "-2 1"),
        ("|u1", b"\xff\1", "255 1"),
        (">u1", b"\xff\1", "255 1"),
        ("<u4", 4 * b"\xff" + 4 * b"\0", "4294967295 0"),
        ("<f2", b"\1\x80\0\x3c", "-5.96046e-08 1"),
        ("<f2", b"\0\x7c\xff\x7b", "inf 65504"),
        ("<f4", b"\0\0\xc0\xbf\0\0\x80\x7f", "-1.5 inf"),
        ("<f8", b"\0\0\0\0\0\0\xf8\x3f" + 8 * b"\0", "1.5 0"),
        ("<c8", b"\0\0\xc0\x3f\0\0\0\xc0\0\0\0\0\0\0\x80\x3f", "1.5-2j 0+1j"),
    ],
)
def test_show_has_values_of_all_types(tshare, name, descr, values, shown):
    tshare("create", "-f", "-", name, input=npy("(2,)", f"'{descr}'") + values)
    assert f"  {shown}\n" in tshare("show", name).out


def test_save_and_create_take_pipes(tshare, name):
    tshare("create", "-f", "-", name, input=npy("(3,)", "'|u1'") + b"xyz")
    assert tshare("save", name, "-").out.endswith("xyz")


def test_save_names_the_tensors_of_which_it_needs_one(tshare, name, tmp_path):
    file = tmp_path / "x.npy"
    tshare("create", name, "-t", "a:4:int8", "-t", "b:c:2:int8")
    assert "has 2 tensors" in tshare("save", name, file, status=1).err
    assert not file.exists()
    tshare("save", f"{name}:b:c", file)
    assert file.stat().st_size == 130
    assert "none" in tshare("save", f"{name}:none", file, status=1).err


def test_save_finds_a_region_whose_name_has_a_colon(tshare, name, tmp_path):
    tshare("create", f"{name}:a", "-t", "b:4:int8")
    tshare("save", f"{name}:a", tmp_path / "x.npy")
    tshare("save", f"{name}:a:b", tmp_path / "x.npy")


def test_save_rejects_types_that_numpy_lacks(tshare, name, tmp_path):
    tshare("create", name, "4", "bfloat16")
    said = tshare("save", name, tmp_path / "none.npy", status=1).err
    assert "type bfloat16, which .npy files don't have" in said
    assert not (tmp_path / "none.npy").exists()


def test_save_replaces_files_alone(tshare, name, tmp_path):
    pipe, link, real = tmp_path / "pipe", tmp_path / "link.npy", tmp_path / "real.npy"
    os.mkfifo(pipe)
    link.symlink_to("real.npy")
    real.touch()
    tshare("create", name, "3", "uint8")
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as cat:
        tshare("save", name, pipe)
        piped = cat.stdout.read()
    assert pipe.is_fifo()
    tshare("save", name, link)
    assert link.is_symlink()
    assert not real.is_symlink()
    assert real.read_bytes() == piped != b""
    assert f"{tmp_path}: Is a directory" in tshare("save", name, tmp_path, status=1).err


def test_save_that_fails_leaves_the_file_as_it_was(tshare, name, tmp_path):
    tshare("create", name, "4", "int8")
    none = tmp_path / "none/x.npy"
    assert f"{none}: No such file" in tshare("save", name, none, status=1).err
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "x.npy").write_text("old\n")
    full = ["bash", "-c", 'ulimit -f 0; trap "" XFSZ; exec "$@"', "bash"]
    tshare("save", name, folder / "x.npy", status=1, under=full)
    assert os.listdir(folder) == ["x.npy"]
    assert (folder / "x.npy").read_text() == "old\n"


def test_save_that_a_signal_ends_leaves_nothing(tshare, name, tmp_path):
    tshare("create", name, "4", "int8")
    full = ["bash", "-c", 'ulimit -c 0 -f 0; exec "$@"', "bash"]
    tshare("save", name, tmp_path / "x.npy", status=-signal.SIGXFSZ, under=full)
    assert os.listdir(tmp_path) == []


def test_save_keeps_the_mode_of_the_file(tshare, name, tmp_path):
    private, new = tmp_path / "private.npy", tmp_path / "new.npy"
    tshare("create", name, "4", "int8")
    private.touch()
    private.chmod(0o640)
    tshare("save", name, new, umask=0o027)
    tshare("save", name, private, umask=0)
    assert private.stat().st_size > 0
    assert [stat.S_IMODE(file.stat().st_mode) for file in (private, new)] == [0o640, 0o640]


def test_save_takes_a_name_as_long_as_the_file_system_s(tshare, name, tmp_path):
    longest = os.pathconf(tmp_path, "PC_NAME_MAX") * "n"
    file = tmp_path / longest
    tshare("create", name, "4", "int8")
    tshare("save", name, file)
    file.chmod(0o640)
    tshare("save", name, file)
    assert (file.stat().st_size, stat.S_IMODE(file.stat().st_mode)) == (132, 0o640)
    assert "File name too long" in tshare("save", name, f"{file}n", status=1).err
    assert os.listdir(tmp_path) == [longest]


def test_save_takes_a_path_as_long_as_the_kernel_s(tshare, name, tmp_path):
    # The kernel counts the byte that ends the path.
    limit = os.pathconf("/", "PC_PATH_MAX") - 1
    path = str(tmp_path)
    while len(path) < limit - 260:
        path += "/" + 250 * "d"
    path += "/" + (limit - len(path) - len("//x")) * "d"
    os.makedirs(path)
    tshare("create", name, "4", "int8")
    tshare("save", name, f"{path}/x")
    assert len(f"{path}/x") == limit
    assert os.stat(f"{path}/x").st_size == 132


def test_save_finds_the_folder_of_a_path(tshare, name, tmp_path):
    here = tmp_path / "here"
    here.mkdir()
    tshare("create", name, "4", "int8")
    for path in ("x.npy", "./y.npy", "../here//z.npy"):
        tshare("save", name, path, cwd=here)
    assert sorted(os.listdir(here)) == ["x.npy", "y.npy", "z.npy"]
    assert "none/: No such file" in tshare("save", name, "none/", status=1, cwd=here).err
    assert "x.npy/: Not a directory" in tshare("save", name, "x.npy/", status=1, cwd=here).err


@pytest.mark.parametrize(
    ("target", "problem"),
    [("nowhere/x.npy", "No such file or directory"), ("link.npy", "Too many levels")],
)
def test_save_rejects_a_link_that_leads_nowhere(tshare, name, tmp_path, target, problem):
    link = tmp_path / "link.npy"
    link.symlink_to(tmp_path / target)
    tshare("create", name, "4", "int8")
    assert f"link.npy: {problem}" in tshare("save", name, link, status=1).err
    assert link.is_symlink()


def test_create_from_a_truncated_file_is_an_error(tshare, name, refuses):
    for length in range(len(SIX)):
        refuses(SIX[:length], "truncated")
    tshare("create", "--from", "-", name, status=1, input=SIX[:80])
    tshare("show", name, status=3)


def test_create_from_a_file_with_more_is_an_error(tshare, name, refuses):
    content = npy("(2,)", "'|i1'") + b"abc"
    refuses(content, "something behind the array")
    tshare("create", "--from", "-", name, status=1, input=content)
    tshare("show", name, status=3)


@pytest.mark.parametrize(
    ("shape", "descr", "order", "reason"),
    [
        ("(3,)", "'O'", "False", "Python objects"),
        ("(3,)", "'>i4'", "False", "big-endian"),
        ("(3,)", "[('a', '<i4')]", "False", "structured"),
        ("(3,)", "'<U1'", "False", "unsupported type"),
        ("(3,)", "'<f3'", "False", "unsupported type"),
        ("(3,)", "'i4'", "False", "unsupported type"),
        ("(3,)", "'<i4", "False", "unsupported type"),
        ("(3,)", r"'<\x694'", "False", "unknown"),
        ("(3)", "'<i4'", "False", "not a tuple"),
        ("3", "'<i4'", "False", "not a tuple"),
        ("(-3,)", "'<i4'", "False", "not a tuple"),
        ("(3 4)", "'<i4'", "False", "not a tuple"),
        ("(9223372036854775807, 4)", "'<i4'", "False", "too large"),
        ("(99999999999999999999,)", "'<i4'", "False", "too large"),
        ("(99999999999999999999, 0)", "'<i4'", "False", "too large"),
        ("(3,)", "'<i4'", "None", "fortran_order"),
        ("(3,)", "'<i4'", "False, 'x': 1", "keys"),
        ("(3,)", "'<i4'", "False, 'shape': (3,)", "keys"),
        ("__import__('os')", "'<i4'", "False", "not a tuple"),
        ("(3,), 'shape': (3,)", "'<i4'", "False", "keys"),
        (f"({','.join(33 * '1')})", "'<i4'", "False", "32 dimensions"),
        ("(3,)}", "'<i4'", "False", "behind the dict"),
    ],
)
def test_create_from_a_hostile_header_is_an_error(refuses, shape, descr, order, reason):
    refuses(npy(shape, descr, order) + b"abcdefghijkl", reason)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"no array at all\n", "not a .npy file"),
        (b"\x93NUMPY\x04\x00aaaa", "unknown version"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff", "too long"),
    ],
)
def test_create_from_what_is_no_header_is_an_error(refuses, content, reason):
    refuses(content, reason)


def test_create_from_a_file_names_the_file_whose_shape_is_too_large(refuses):
    refuses(npy("(4611686018427387904, 4, 0)", "'<i4'"), "bad.npy: shape: ")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("--from x NAME 4 int8", "--from needs NAME alone"),
        ("-f x", "tshare create: "),
        ("-f x -t a:4:int8 NAME", "--from needs NAME alone"),
    ],
)
def test_create_from_a_file_takes_no_shape(tshare, name, words, problem):
    assert problem in tshare("create", *words.replace("NAME", name).split(), status=2).err


def test_create_from_a_file_names_the_file_that_is_missing(tshare, name, tmp_path):
    none = tmp_path / "none.npy"
    assert f"{none}: No such file" in tshare("create", "-f", none, name, status=1).err
