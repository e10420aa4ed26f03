# SPDX-License-Identifier: MIT
"""Regions that create --from is still filling."""

import os

import pytest

from helpers import npy, until


@pytest.fixture
def half_written(tshare, start, name, tmp_path):
    """A create that has read the header of two bytes from a pipe, and the pipe's other side."""
    pipe = tmp_path / "half.npy"
    os.mkfifo(pipe)
    process = start("create", "-q", "-f", pipe, name)
    with open(pipe, "wb", buffering=0) as file:
        file.write(npy("(2,)", "'|u1'"))
        until(lambda: tshare.entry(name))
        yield process, file


def test_create_from_a_file_makes_a_draft_first(tshare, name, half_written):
    process, file = half_written
    region = tshare.entry(name)
    assert (region["draft"], region["state"]) == (True, "draft")
    assert f"draft  {name}\n" in tshare("list", "-no", "STATE,NAME").out
    file.write(b"ab")
    file.close()
    assert process.wait() == 0
    region = tshare.entry(name)
    assert (region["draft"], region["state"]) == (False, "-")


def test_unlink_with_a_pattern_removes_drafts(tshare, name, half_written):
    process, file = half_written
    assert f"removed {name}\n" in tshare("unlink", "-g", name).out
    file.close()
    assert process.wait() == 1
