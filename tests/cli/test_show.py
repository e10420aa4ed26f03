# SPDX-License-Identifier: MIT
"""Tensors and their values, as show prints them."""

import json
import re

import pytest


def test_show_fails_without_the_region(tshare, name):
    assert name in tshare("show", name, status=3).err
    tshare("show", status=2)


def test_show_shortens_long_names_of_tensors_in_the_middle(tshare, name):
    tshare("create", "--tensor", f"first.{500 * 'é'}.last:5:int8", name)
    said = tshare("show", name).out
    assert re.search(r"^first\.é{24}\.\.\.é{26}\.last  int8 ", said, re.MULTILINE)


def test_show_has_names_of_64_columns_whole(tshare, name):
    tshare("create", "-t", 64 * "n" + ":5:int8", name)
    assert 64 * "n" + "  int8 " in tshare("show", name).out


def test_show_tells_a_region_that_describes_a_gpu_s_memory(tshare, name):
    tshare("create", name, "--tensor", "tshare.cuda:360:uint8")
    said = tshare("show", name).out
    assert re.search(r"^describes +a tensor in a GPU's own memory$", said, re.MULTILINE)
    assert json.loads(tshare("show", "--json", name).out)["describes_gpu_memory"] is True


def test_show_tells_no_other_region_of_a_gpu_s_memory(tshare, name):
    tshare("create", name, "--tensor", "tshare.cud:360:uint8")
    assert "describes" not in tshare("show", name).out
    assert json.loads(tshare("show", "--json", name).out)["describes_gpu_memory"] is False


def test_show_has_first_values(tshare, name):
    tshare("create", name, "2x3", "float32")
    said = tshare("show", name).out
    assert re.search(r"^ +float32  \(2, 3\) .* 24  0 0 0 0 0 0$", said, re.MULTILINE)


@pytest.mark.parametrize(
    ("length", "values"), [("8", "0 0 0 0 0 0 0 0\n"), ("9", "0 0 0 0 0 0 0 0 ...\n")]
)
def test_show_has_up_to_eight_values(tshare, name, length, values):
    tshare("create", name, length, "int8")
    assert f"  {values}" in tshare("show", name).out


def test_show_has_no_values_of_types_of_several_lanes(tshare, name):
    tshare("create", name, "4", "float32x2")
    assert re.search(r"float32x2  \(4\) .* 32 *$", tshare("show", name).out, re.MULTILINE)


def test_show_aligns_wide_characters(tshare, name):
    tshare("create", name, "--tensor", "漢字:1:int8", "--tensor", "abcd:1:int8")
    said = tshare("show", name).out
    assert "\n漢字    int8  (1)" in said
    assert "\nabcd    int8  (1)" in said


def test_show_escapes_a_literal_backslash(tshare, name):
    tshare("create", name, "--tensor", r"a\x62:1:int8")
    assert r"a\x5cx62" in tshare("show", name).out


def test_show_shortens_values_only_on_a_terminal(tshare, name, terminal):
    values = "0 0 0 0 0 0 0 0"
    tshare("create", name, "8", "uint64")
    said = terminal(60, "show", name)
    assert values not in said
    assert all(len(line) <= 60 for line in said.splitlines() if "uint64" in line)
    assert values in tshare("show", name).out
