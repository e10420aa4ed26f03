# SPDX-License-Identifier: MIT
"""Verbs, the version, and what holds of the errors of all verbs."""

import os

import pytest

pytestmark = pytest.mark.slow_in_guests


def test_without_a_verb_is_a_usage_error(tshare):
    assert "Usage" in tshare(status=2).err


def test_an_unknown_verb_is_a_usage_error(tshare):
    assert "frobnicate" in tshare("frobnicate", status=2).err


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("help frobnicate-it now", 2),
        ("info now", 2),
        ("info -x", 2),
        ("create NAME", 2),
        ("create NAME x int8", 2),
        ("create NAME 9223372036854775807x2 int8", 1),
        ("list --frobnicate", 2),
        ("show NAME", 3),
        ("unlink NAME", 3),
        ("unlink -s", 2),
        ("exec 4 int8 -- /nonexistent/none", 127),
        ("exec --name", 2),
        ("pool set", 2),
        ("load x", 2),
        ("unload x", 2),
        ("weights x", 2),
        ("bench x", 2),
    ],
)
def test_every_error_begins_with_the_verb(tshare, name, words, status):
    words = words.replace("NAME", name).split()
    assert tshare(*words, status=status).err.startswith(f"tshare {words[0]}: ")


@pytest.mark.parametrize("words", ["info", "list", "show NAME", "create NAME 4 int8", "pool"])
def test_errors_without_a_backend_begin_with_the_verb(tshare, words):
    none = {"TSHARE_BACKEND": "shm", "TSHARE_SHM_DIR": "/nonexistent"}
    words = words.split()
    assert f"tshare {words[0]}: /nonexistent: " in tshare(*words, status=1, env=none).err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--help"], "tshare: standard output: write error"),
        (["help"], "tshare help: standard output: write error"),
    ],
)
def test_a_full_disk_is_an_error_of_the_verb(tshare, arguments, said):
    with open("/dev/full", "w") as full:
        assert said in tshare(*arguments, status=1, stdout=full).err


@pytest.mark.parametrize("verb", ["show", "unlink", "publish", "wait"])
def test_every_verb_tells_a_missing_region_from_other_failures(tshare, name, verb):
    assert f"tshare {verb}: " in tshare(verb, name, status=3).err
    assert f"tshare {verb}: " in tshare(verb, "a/b", status=1).err


@pytest.mark.parametrize("tensor", ["", ":a"])
def test_save_tells_a_missing_region_from_other_failures(tshare, name, tmp_path, tensor):
    tshare("save", name + tensor, tmp_path / "none.npy", status=3)


def test_version_is_printed(tshare, version):
    said = tshare("--version").out
    assert said.startswith(f"tshare {version}")
    assert tshare("-V").out == said


def test_version_has_the_library_s(tshare, version):
    assert f"tshare {version}, library {version}, " in tshare("--version").out


def test_version_has_the_module_s_if_it_is_loaded(tshare, version):
    loaded = version if os.path.exists("/sys/module/tshare") else "not loaded"
    assert tshare("--version").out.endswith(f", module {loaded}\n")


def test_version_is_of_the_module_that_is_loaded(tshare, module):
    module.load("0.9.0")
    assert ", module 0.9.0" in tshare("--version", env=module.env(state=1)).out
