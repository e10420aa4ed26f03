# SPDX-License-Identifier: MIT
"""python -m tshare, whose output is that of the command."""

import ctypes
import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import tshare
from support import STUB
from tshare._tshare import raw_interface

COMMAND = Path(__file__).resolve().parents[2] / "build/c/tools/tshare"


def module(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "tshare", *arguments], capture_output=True, timeout=300, **options
    )


def command(*arguments):
    if not COMMAND.exists():
        pytest.fail(f"{COMMAND} does not exist: run make lib")
    return subprocess.run([COMMAND, *arguments], capture_output=True, timeout=300)


def assert_same(*arguments):
    """Compare exit status and errors of both, and return their outputs."""
    ours, theirs = module(*arguments), command(*arguments)
    assert (ours.returncode, ours.stderr) == (theirs.returncode, theirs.stderr)
    return ours.stdout, theirs.stdout


def lasting(text):
    """Remove values that other processes can change in between, and MODULE_FACTS."""
    return [
        line
        for line in text.decode(errors="surrogateescape").splitlines()
        if not line.startswith(("  in use", "  largest region", *MODULE_FACTS))
    ]


# What the command has from libkmod, and the module lacks.
MODULE_FACTS = ("  installed ", "  signed ")

# What it has from /proc and debugfs.
FACTS = ("age ", "rung ", "maker ", "users ", "  user ")
MEMBERS = {"generation", "state", "rung", "created", "maker", "users"}


def without_details(region):
    assert region.keys() >= MEMBERS
    return {key: value for key, value in region.items() if key not in MEMBERS}


@pytest.fixture
def regions(new_name):
    """Names of regions that have everything that can be shown."""
    # A letter, an escape, a control character beyond ASCII, and a byte that isn't UTF-8.
    plain, many = new_name(), f"{new_name()} ü\x1b\x9b\udc9b"
    tshare.create(plain, (2, 5), "float32", mode=0o640)
    kept = tshare.Region.create(
        many,
        {
            "counts": memoryview(bytes(range(20))),
            "few": memoryview(b"\1\2\3"),
            "signed": ((2,), "int16"),
            "truth": ((2,), "bool"),
            "strided": ((2, 3), "float64", (8, 16)),
            "one": ((), "int64"),
            "none": ((0, 3), "uint8"),
            "half": ((9,), "float16"),
            "brain": ((4,), "bfloat16"),
            "complex": ((3,), "complex64"),
            "double": ((2,), "complex128"),
            "packed": ((4,), "float4_e2m1fn"),
            "lanes": ((4,), "float32x2"),
            "漢字 ü": ((1,), "int8"),
            r"\x62": ((1,), "int8"),
            "u\u0308\u00ad\u200b\u2028\ue000": ((1,), "int8"),
            "\u202eesrever\u202c \u2764\ufe0f\u200d\U0001f525": ((1,), "int8"),
            "e\u200d \U000e0041\ufeff\u00e9\ufe0f \\u202e": ((1,), "int8"),
            "\u1820\u180b n\u180d \U0001bca0\U0001d17a\u200d\u180f": ((1,), "int8"),
        },
    )
    memoryview(kept["strided"])[1, 2] = float("inf")
    memoryview(kept["signed"])[1] = -3
    # Infinity, the least and the greatest number, NaN and others, to which 1 is 0x3c00.
    halves = (0x3C00, 0xBC00, 0x7C00, 0xFC00, 0x0001, 0x83FF, 0x7BFF, 0x7E00, 0)
    fill(kept, "half", struct.pack("9H", *halves))
    fill(kept, "brain", struct.pack("4H", 0x3F80, 0xC040, 0x7F80, 0x0001))
    fill(kept, "complex", struct.pack("6f", 1.5, -2, 0, float("nan"), float("-inf"), 1e9))
    fill(kept, "double", struct.pack("4d", 0.1, 0.2, -0.0, 3))
    memoryview(kept["truth"])[1] = True
    yield [plain, many]
    tshare.unlink(many)


def fill(region, name, content):
    """Write the bytes of a contiguous tensor."""
    tensor = region[name]
    array = raw_interface(tensor) if name == "brain" else tensor.__array_interface__
    ctypes.memmove(array["data"][0], content, len(content))


def test_show_prints_what_the_command_prints_with_bytes(regions):
    for name in regions:
        ours, theirs = module("show", name), command("show", "--bytes", name)
        assert (ours.returncode, ours.stderr) == (theirs.returncode, theirs.stderr) == (0, b"")
        lines = theirs.stdout.decode().splitlines()
        assert {line.split()[0] for line in lines if line.startswith(FACTS)} >= {"age", "users"}
        assert ours.stdout.decode().splitlines() == [
            line for line in lines if not line.startswith(FACTS)
        ]


def test_show_has_values_of_types_that_c_lacks(regions):
    ours = module("show", regions[1]).stdout.decode()
    for values in (
        " 1 -1 inf -inf 5.96046e-08 -6.09756e-05 65504 nan ...",
        " 1 -3 inf 9.18355e-41",
        " 1.5-2j 0+nanj -inf+1e+09j",
        " 0.1+0.2j -0+3j",
    ):
        assert f"{values}\n" in ours


def test_show_json_is_the_command_s(regions):
    for name in regions:
        ours, theirs = (json.loads(text) for text in assert_same("show", "--json", name))
        assert ours == without_details(theirs)
        assert ours["name"] == name


def test_list_names_what_the_command_names(regions):
    """Collapse blanks: column widths depend on the regions of other processes, too."""
    chosen = ("--bytes", "--output", "SIZE,TENSORS,MODE,OWNER,FLAGS,NAME")
    said = module("list"), command("list", *chosen)
    assert [(one.returncode, one.stderr) for one in said] == [(0, b"")] * 2
    ours, theirs = ([line.split() for line in lasting(one.stdout)] for one in said)
    for name in (regions[0], regions[1][:-3] + r"\x1b\xc2\x9b\x9b"):
        assert [line for line in ours if line[5:] == name.split()]
        assert [line for line in ours if name.split()[0] in line] == [
            line for line in theirs if name.split()[0] in line
        ]
    assert ours[0] == theirs[0]


def test_list_prints_nothing_without_regions(tmp_path):
    environment = {**os.environ, "TSHARE_BACKEND": "shm", "TSHARE_SHM_DIR": str(tmp_path)}
    said = module("list", env=environment)
    assert (said.returncode, said.stdout) == (0, b"")


def test_list_json_is_the_command_s(regions):
    ours, theirs = (
        [region for region in json.loads(text) if region["name"] in regions]
        for text in assert_same("list", "--json")
    )
    assert ours == [without_details(region) for region in theirs]
    assert [region["name"] for region in ours] == regions


def test_info_prints_what_the_command_prints():
    ours, theirs = assert_same("info")
    assert lasting(ours) == lasting(theirs)


def test_info_json_is_the_command_s(backend):
    ours, theirs = (json.loads(text) for text in assert_same("info", "--json"))
    for report in (ours, theirs):
        for found in report["backends"].values():
            for changing in ("bytes_used", "region_bytes_max"):
                found.pop(changing, None)
    del theirs["module_installed"]
    assert ours == theirs
    assert ours["backends"][backend]["used"]


@pytest.mark.parametrize(
    ("driver", "usable"),
    [("version=12080,devices=2", True), ("cuInit=803", False), ("devices=0", False)],
)
def test_info_shows_cuda_as_the_command_does(monkeypatch, driver, usable):
    monkeypatch.setenv("LD_LIBRARY_PATH", str(STUB.parent))
    monkeypatch.setenv("TSHARE_STUB_CUDA", driver)
    ours, theirs = assert_same("info")
    assert lasting(ours) == lasting(theirs)
    ours, theirs = (json.loads(text)["cuda"] for text in assert_same("info", "--json"))
    assert ours == theirs
    assert ours["usable"] == usable


def test_unlink_removes_names_and_goes_on_after_one_that_fails(new_name):
    names = [new_name(), new_name(), new_name()]
    for name in (names[0], names[2]):
        tshare.create(name, 1, lifetime="persist")
    said = module("unlink", *names)
    assert said.returncode == 3
    assert said.stderr.startswith(b"tshare unlink: ")
    assert names[1].encode() in said.stderr
    assert not {info.name for info in tshare.list()} & set(names)


@pytest.mark.parametrize(
    "end",
    [
        *("", "\x1b", "\x9b", "\udc9b", "\u202e", "\u200d", "\\u202e", "\\x62"),
        *(
            "\udc9b\u200d",
            "\x9b\u200d",
            "\xad\u200d\ufe0f",
            "\udce4\udcb8\u200d",
            "\u4e00\ufe0f\u200d",
        ),
    ],
)
def test_missing_name_is_reported_as_by_the_command(name, end):
    assert_same("show", name + end)
    assert_same("unlink", name + end)
    assert_same("unlink", name + end, "a/b")
    assert module("show", name + end).returncode == 3


def test_near_names_are_suggested_as_by_the_command(new_name):
    name = new_name()
    tshare.create(name, 1, lifetime="persist")
    for near in (name[1:], name + "xyz", name[1] + name[0] + name[2:]):
        assert_same("show", near)
        assert_same("unlink", near)
        assert module("show", near).stderr.endswith(b"'?\n")


@pytest.mark.parametrize(
    "arguments", [(), ("dance",), ("show",), ("unlink",), ("list", "x"), ("info", "--xml")]
)
def test_wrong_usage_exits_with_2(arguments):
    said = module(*arguments)
    assert said.returncode == command(*arguments).returncode == 2
    assert said.stderr


def test_version_is_the_command_s():
    assert module("--version").stdout == command("--version").stdout


def test_full_disk_is_a_failure():
    with open("/dev/full", "wb") as full:
        said = subprocess.run(
            [sys.executable, "-m", "tshare", "info"], stdout=full, stderr=subprocess.PIPE
        )
    assert said.returncode == 1
    assert said.stderr == b"tshare info: standard output: write error\n"


def test_missing_backend_is_a_failure():
    environment = {**os.environ, "TSHARE_BACKEND": "none"}
    said = module("list", env=environment)
    assert said.returncode == 1
    assert b"TSHARE_BACKEND" in said.stderr
