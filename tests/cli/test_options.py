# SPDX-License-Identifier: MIT
"""Arguments that are wrong, and what is suggested in their place."""

import pytest

from helpers import VERBS

pytestmark = pytest.mark.slow_in_guests


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_rejects_unknown_options(tshare, verb):
    tshare(verb, "--frobnicate", status=2)


@pytest.mark.parametrize(
    ("verb", "near"), [("lisp", "list"), ("unlinks", "unlink"), ("frobnicate", None)]
)
def test_near_verbs_are_suggested(tshare, verb, near):
    said = tshare(verb, status=2).err
    assert f"Did you mean '{near}'?" in said if near else "Did you mean" not in said


@pytest.mark.parametrize(
    ("arguments", "near"),
    [
        (["list", "--jsno"], "--json"),
        (["create", "--contigous", "x", "4", "int8"], "--contiguous"),
        (["list", "--frobnicate"], None),
    ],
)
def test_near_options_are_suggested(tshare, arguments, near):
    said = tshare(*arguments, status=2).err
    assert f"tshare {arguments[0]}: unknown option '{arguments[1]}'" in said
    assert f"Did you mean '{near}'?" in said if near else "Did you mean" not in said


@pytest.mark.parametrize("verb", ["show", "unlink"])
def test_near_names_are_suggested(tshare, name, verb):
    tshare("create", name, "4", "int8")
    near = name.replace("cli", "cil")
    assert f"Did you mean '{name}'?" in tshare(verb, near, status=3).err
    assert "Did you mean" not in tshare(verb, f"frobnicate-{name}", status=3).err


def test_names_that_share_no_letter_are_not_suggested(tshare, own_regions):
    tshare("create", "a", "4", "int8", env=own_regions)
    assert "Did you mean" not in tshare("show", "b", status=3, env=own_regions).err
    tshare("create", "ac", "4", "int8", env=own_regions)
    assert "Did you mean 'ac'?" in tshare("show", "c", status=3, env=own_regions).err


def test_options_that_are_ambiguous_are_named(tshare):
    said = tshare("bench", "--p", "x", status=2).err
    assert "tshare bench: option '--p' is ambiguous" in said


@pytest.mark.parametrize(
    ("verb", "option", "named"),
    [("create", "--size", "--size"), ("create", "-s", "--size"), ("bench", "--plot", "--plot")],
)
def test_options_without_their_value_are_named(tshare, verb, option, named):
    assert f"tshare {verb}: option '{named}' needs a value" in tshare(verb, option, status=2).err


def test_options_with_a_value_too_many_are_named(tshare):
    said = tshare("list", "--json=x", status=2).err
    assert "tshare list: option '--json' takes no value" in said


@pytest.mark.parametrize("arguments", [["--json", "-x"], ["-xj"]])
def test_unknown_letters_are_named(tshare, arguments):
    assert "tshare list: unknown option '-x'" in tshare("list", *arguments, status=2).err
