# SPDX-License-Identifier: MIT
"""Regions that nobody opens before they are finished, and that take a name over."""

import subprocess
import sys

import numpy as np
import pytest

import tshare


def test_draft_is_opened_once_it_is_finished(name):
    t = tshare.create(name, 4, draft=True)
    assert t.region.info().draft
    with pytest.raises(BlockingIOError, match="is a draft") as caught:
        tshare.open(name)
    assert caught.value.filename == name
    np.asarray(t)[:] = 7
    t.finish()
    assert bytes(tshare.open(name)) == bytes([7] * 4)
    assert not t.region.info().draft


@pytest.mark.parametrize(
    "make",
    [
        lambda name, **options: tshare.create(name, 4, **options).region,
        lambda name, **options: tshare.Region.create(name, size=4, **options),
        lambda name, **options: tshare.Region.create(name, {"a": np.ones(4)}, **options),
        lambda name, **options: tshare.asarray(np.ones(4), name, **options).region,
    ],
)
def test_each_way_to_create_makes_drafts_and_replaces(name, make):
    region = make(name, draft=True)
    with pytest.raises(BlockingIOError):
        tshare.Region.open(name)
    with pytest.raises(FileExistsError):
        make(name, exist_ok=True)
    region.finish()
    assert tshare.Region.open(name).id == region.id
    with pytest.raises(FileExistsError):
        make(name)
    successor = make(name, exist_ok=True)
    assert tshare.Region.open(name).id == successor.id
    assert region.info().name is None


def test_draft_replaces_when_it_is_finished(name):
    old = tshare.create(name, 4)
    new = tshare.create(name, 4, draft=True, exist_ok=True)
    assert tshare.open(name).region.id == old.region.id
    with pytest.raises(FileExistsError):
        new.finish()
    new.finish(replace=True)
    assert tshare.open(name).region.id == new.region.id


def test_finish_of_a_finished_region_is_a_value_error(name):
    t = tshare.create(name, 4)
    for finish in (t.finish, t.region.finish, tshare.create(None, 4).finish):
        with pytest.raises(ValueError, match="^region: is not a draft"):
            finish()


def test_finish_rejects_wrong_arguments(name):
    t = tshare.create(name, 4, draft=True)
    with pytest.raises(TypeError, match="positional"):
        t.finish(True)
    with pytest.raises(TypeError, match="overwrite"):
        t.finish(overwrite=True)


@pytest.mark.parametrize("option", ["draft", "exist_ok"])
def test_error_of_an_option_without_a_name_names_it(option):
    with pytest.raises(ValueError, match=f"^{option}: needs a name"):
        tshare.create(None, 4, **{option: True})


def test_unlinked_draft_can_not_be_finished(name):
    t = tshare.create(name, 4, draft=True)
    t.unlink()
    with pytest.raises(FileNotFoundError):
        t.finish()
    with pytest.raises(FileNotFoundError):
        tshare.open(name)


def test_unlink_leaves_a_successor_s_name(name):
    old = tshare.create(name, 4)
    new = tshare.create(name, 4, exist_ok=True)
    for unlink in (old.unlink, old.region.unlink):
        with pytest.raises(FileNotFoundError):
            unlink()
    assert tshare.open(name).region.id == new.region.id
    new.unlink()
    with pytest.raises(FileNotFoundError):
        tshare.open(name)


def test_draft_of_another_process_can_not_be_finished(name):
    t = tshare.create(name, 4, draft=True)
    code = "import sys, tshare; tshare.from_fd(int(sys.argv[1])).finish()"
    ended = subprocess.run(
        [sys.executable, "-c", code, str(t.fileno())],
        pass_fds=[t.fileno()], capture_output=True, text=True,
    )  # fmt: skip
    assert "PermissionError" in ended.stderr


COPY = """
import sys, numpy as np, tshare
source = np.full(4 << 20, 7, np.uint8)
for i in range(20):
    if i % 2:
        t = tshare.asarray(source, sys.argv[1])
    else:
        t = tshare.Region.create(sys.argv[1], {"a": source})
    t.unlink()
"""


def test_copy_is_opened_only_when_complete(name):
    with subprocess.Popen([sys.executable, "-c", COPY, name]) as copying:
        while copying.poll() is None:
            try:
                with tshare.open(name) as t:
                    assert bytes(t[0:1]) == bytes(t[-1:]) == b"\x07"
            except OSError:
                pass
        assert copying.returncode == 0
