# SPDX-License-Identifier: MIT
"""Help, and the short options that it shows. Neither asks the backend."""

import pytest

from helpers import STREAM_VERBS, VERBS

pytestmark = pytest.mark.slow_in_guests

ALL_VERBS = (*VERBS, *STREAM_VERBS)

each_verb = pytest.mark.parametrize("verb", ALL_VERBS)


def test_help_names_all_verbs(tshare):
    said = tshare("--help").out
    assert [verb for verb in VERBS if f"  {verb} " not in said] == []


@each_verb
def test_each_verb_has_help(tshare, verb):
    assert f"Usage: tshare {verb}" in tshare(*verb.split(), "--help").out


@pytest.mark.parametrize("verb", ["", *ALL_VERBS])
def test_help_fits_80_columns(tshare, verb):
    assert max(map(len, tshare("help", *verb.split()).out.splitlines())) <= 80


@each_verb
def test_help_of_a_verb_is_what_its_option_prints(tshare, verb):
    words = verb.split()
    assert tshare(*words, "--help").out == tshare(*words, "-h").out == tshare("help", *words).out


def test_help_without_a_verb_is_the_commands(tshare):
    assert tshare("--help").out == tshare("-h").out == tshare("help").out


def test_help_rejects_other_arguments(tshare):
    assert "Did you mean 'list'?" in tshare("help", "lisst", status=2).err
    said = tshare("help", "list", "show", status=2).err
    assert "tshare help: unexpected argument 'show'" in said
    assert "Did you mean 'list'?" in tshare("help", "stream", "lisst", status=2).err
    said = tshare("help", "stream", "list", "show", status=2).err
    assert "tshare help: unexpected argument 'show'" in said


def test_help_of_stream_names_its_verbs(tshare):
    said = tshare("help", "stream").out
    assert [verb for verb in STREAM_VERBS if f"  {verb.removeprefix('stream ')} " not in said] == []


@pytest.mark.parametrize(
    ("verb", "options"),
    [
        ("create", ["-t, --tensor", "-s, --size", "-m, --mode", "-r, --replace"]),
        ("exec", ["-n, --name"]),
        ("list", ["-j, --json"]),
        ("show", ["-j, --json"]),
        ("info", ["-j, --json"]),
        ("pool", ["-j, --json", "-b, --bytes"]),
    ],
)
def test_help_shows_the_short_option_with_the_long_one(tshare, verb, options):
    said = tshare("help", verb).out
    assert [option for option in options if f"  {option}" not in said] == []


def test_short_options_are_the_long_ones(tshare, name):
    tshare("create", "-s", "8K", "-m", "640", "-t", "a:4:int8", name)
    region = tshare.json("show", name)
    assert (region["size"], region["mode"], region["tensors"][0]["name"]) == (8192, "0640", "a")
    tshare("create", "-r", name, "4", "int8")
    assert tshare.entry(name)
    assert tshare.json("info")
    other = f"{name}-2"
    tshare("exec", "-n", other, "4", "int8", "--", tshare.path, "show", other)
