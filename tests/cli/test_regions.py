# SPDX-License-Identifier: MIT
"""Regions that create makes, and requests that it refuses."""

import os

import pytest


def test_create_makes_a_persistent_tensor(tshare, name):
    tshare("create", name, "8x480x640x3", "uint8")
    region = tshare.json("show", name)
    tensor = region["tensors"][0]
    assert (tensor["shape"], tensor["dtype"]) == ([8, 480, 640, 3], "uint8")
    assert (region["lifetime"], region["mode"]) == ("persist", "0600")


def test_create_makes_a_scalar(tshare, name):
    tshare("create", name, "scalar", "float64")
    tensor = tshare.json("show", name)["tensors"][0]
    assert (tensor["shape"], tensor["nbytes"]) == ([], 8)


def test_create_makes_a_raw_region(tshare, name):
    tshare("create", name, "--size", "3M")
    region = tshare.json("show", name)
    assert (region["size"], region["tensors"]) == (3 << 20, [])


def test_create_makes_several_tensors(tshare, name):
    tshare("create", "--tensor", "w:3x4:float32", "--tensor", "a:b:5:int8", name)
    assert [tensor["name"] for tensor in tshare.json("show", name)["tensors"]] == ["w", "a:b"]


def test_create_takes_a_tensor_s_name_of_1023_bytes(tshare, name):
    tshare("create", "--tensor", 1023 * "n" + ":5:int8", name)
    assert tshare.json("show", name)["tensors"][0]["name"] == 1023 * "n"


@pytest.mark.slow_in_guests
def test_create_rejects_a_tensor_s_name_of_1024_bytes(tshare, name):
    said = tshare("create", "--tensor", 1024 * "n" + ":5:int8", name, status=2).err
    assert "longer than 1023 bytes" in said


def test_create_sets_the_mode(tshare, name):
    tshare("create", "--mode", "0644", name, "4", "int8")
    assert tshare.json("show", name)["mode"] == "0644"


@pytest.mark.slow_in_guests
def test_create_rejects_a_name_that_is_taken(tshare, name):
    tshare("create", name, "4", "int8")
    assert "is taken" in tshare("create", name, "4", "int8", status=1).err


def test_errors_of_the_library_speak_of_options(tshare, name):
    tshare("create", name, "4", "int8")
    said = tshare("create", name, "4", "int8", status=1).err
    assert "unlink it, or replace it (--replace)" in said
    assert "(--replace)" in tshare("exec", "-n", name, "4", "int8", "--", "true", status=1).err
    said = tshare("exec", "--replace", "4", "int8", "--", "true", status=1).err
    assert "tshare exec: --replace needs a name" in said


@pytest.mark.parametrize(
    ("options", "problem"),
    [(["--dma32"], "--dma32 is not supported"), (["--node", "0"], "--node: is not supported")],
)
def test_errors_of_the_library_speak_of_options_of_the_module(
    tshare, name, own_regions, options, problem
):
    said = tshare("create", *options, name, "4", "int8", status=1, env=own_regions).err
    assert f"tshare create: {problem} on shm" in said


def test_errors_of_the_library_that_name_no_option_stay(tshare, name):
    odd = f"{name}-TSHARE_REPLACE"
    tshare("create", "-q", odd, "4", "int8")
    assert f"'{odd}' is taken" in tshare("create", odd, "4", "int8", status=1).err
    said = tshare("create", name, "4", "int8", status=1, env={"TSHARE_BACKEND": "x"}).err
    assert "tshare create: TSHARE_BACKEND: 'x'" in said


def test_create_with_replace_takes_a_name_over(tshare, name):
    tshare("create", name, "4", "int8")
    tshare("create", "--replace", name, "5", "int16")
    assert tshare.json("show", name)["tensors"][0]["shape"] == [5]


def test_create_with_replace_needs_nothing_to_replace(tshare, name):
    tshare("create", "--replace", name, "5", "int16")
    tshare("show", name)


def test_show_reports_that_a_region_is_no_draft(tshare, name):
    tshare("create", name, "4", "int8")
    region = tshare.json("show", name)
    assert (region["draft"], region["lifetime"]) == (False, "persist")


@pytest.mark.slow_in_guests
@pytest.mark.parametrize(
    "shape", ["4x", "x4", "4xx4", "-4", "4.0", "four", " 4", "99999999999999999999"]
)
def test_create_rejects_invalid_shapes(tshare, name, shape):
    tshare("create", "--", name, shape, "int8", status=2)


def test_create_names_the_tensor_that_is_too_large(tshare, name):
    shape = "9223372036854775807x9223372036854775807"
    said = tshare("create", name, shape, "int8", status=1).err
    assert "tshare create: shape: " in said
    tensors = ["--tensor", "a:4:int8", "--tensor", f"b:{shape}:int8"]
    assert "tshare create: tensor 'b': shape: " in tshare("create", *tensors, name, status=1).err


@pytest.mark.slow_in_guests
def test_create_rejects_unknown_types(tshare, name):
    assert "float31" in tshare("create", name, "4", "float31", status=2).err


@pytest.mark.slow_in_guests
@pytest.mark.parametrize("size", ["0", "-1", "4x", "4KK", "99999999999T", ""])
def test_create_rejects_invalid_sizes(tshare, name, size):
    tshare("create", name, "--size", size, status=2)


@pytest.mark.slow_in_guests
@pytest.mark.parametrize("mode", ["8", "1666", "0700"])
def test_create_rejects_invalid_modes(tshare, name, mode):
    said = tshare("create", "--mode", mode, name, "4", "int8", status=2).err
    assert f"--mode: '{mode}' is not an octal number without bits beyond 0666" in said


@pytest.mark.slow_in_guests
@pytest.mark.parametrize("node", ["-1", "x", "0x", "", "2147483648", "4294967296"])
def test_create_rejects_invalid_nodes(tshare, name, node):
    said = tshare("create", "--node", node, name, "4", "int8", status=2).err
    assert f"--node: '{node}' is not the number of a NUMA node" in said


@pytest.mark.slow_in_guests
@pytest.mark.parametrize("words", ["", "NAME", "NAME 4", "NAME 4 int8 5"])
def test_create_rejects_too_few_and_too_many_arguments(tshare, name, words):
    tshare("create", *words.replace("NAME", name).split(), status=2)


def test_create_says_what_it_made_and_where(tshare, name, backend):
    where = {
        "kmod": "kmod",
        "shm": f"shm, {os.environ['TSHARE_SHM_DIR']}/tshare.{name}/region",
    }
    said = tshare("create", name, "8x480x640x3", "uint8").out
    assert said.startswith(f"{name}: 7M, 1 tensor, on {where[backend]}")


def test_create_says_nothing_if_it_is_to_be_quiet(tshare, name):
    assert tshare("create", "-q", name, "4", "int8").out == ""
    assert tshare("create", "--quiet", "--replace", name, "4", "int8").out == ""


def test_contiguous_memory_is_allocated_or_refused(tshare, name, backend):
    arguments = ["create", "--contiguous", name, "4", "int8"]
    if tshare.json("info")["backends"][backend]["contiguous"]:
        tshare(*arguments)
    else:
        said = tshare(*arguments, status=1).err
        problem = "--contiguous is not supported on shm; load the module tshare"
        assert f"tshare create: {problem}" in said


@pytest.mark.needs("kmod", "shared memory has no rungs")
def test_regions_of_the_module_have_a_rung(tshare, name):
    tshare("create", name, "4", "int8")
    region = tshare.json("show", name)
    assert region["rung"] in ("buddy", "contig", "pool")
    assert region["created"] is None
