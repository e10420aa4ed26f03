# SPDX-License-Identifier: MIT
import os
import re

import pytest

module = pytest.mark.needs("kmod", "shared memory has no pool")


@pytest.mark.parametrize("words", ["", "set 8M --node 0"])
def test_pool_needs_the_module(tshare, own_regions, words):
    said = tshare("pool", *words.split(), status=1, env=own_regions).err
    assert "Operation not supported" in said


def test_pool_says_that_it_needs_the_module(tshare, own_regions):
    assert "kernel module" in tshare("pool", status=1, env=own_regions).err


@module
def test_pool_of_the_module_is_shown_for_each_node(tshare):
    pool = {"node": 0, "size": 0, "target": 0, "free": 0, "zeroed": 0}
    assert tshare.json("pool")[0] == pool
    assert "NODE" in tshare("pool").out


@module
@pytest.mark.parametrize("words", ["", "set 8M"])
def test_pool_of_the_module_is_shown_to_root_alone(tshare, words):
    group = os.stat("/dev/tshare").st_gid
    user = ["setpriv", "--reuid", "64101", "--regid", str(group), "--clear-groups"]
    said = tshare("pool", *words.split(), status=1, under=user)
    assert "run it as root" in said.err
    assert said.out == ""


@pytest.fixture
def empty_pool(tshare):
    """The pool is empty again after the test, also where that has failed."""
    yield
    tshare("pool", "set", "0")


@module
@pytest.mark.usefixtures("empty_pool")
def test_pool_of_the_module_says_how_large_it_is_when_set(tshare, name):
    assert "node 0: 8M" in tshare("pool", "set", "8M").out
    assert re.search("^ +0 +8M +8M +8M +[0-9]+M?$", tshare("pool").out, re.MULTILINE)
    said = tshare("pool", "-b").out
    assert re.search("^ +0 +8388608 +8388608 +8388608 +[0-9]+$", said, re.MULTILINE)
    pool = tshare.json("pool")[0]
    assert pool["size"] == pool["target"] == 8 << 20
    tshare("create", name, "--size", "6M")
    assert tshare.json("show", name)["pool"]
    said = tshare("pool", "set", "--node", "0", "0").out
    assert "node 0: 6M, of which 6M go when their regions do" in said
    said = tshare("pool", "set", "0", "--bytes").out
    assert "node 0: 6291456, of which 6291456 go when their regions do" in said
    tshare("unlink", name)
    assert tshare.json("pool")[0]["size"] == 0


@module
def test_pool_of_the_module_names_the_limit_that_it_would_exceed(tshare):
    assert "max_mib" in tshare("pool", "set", "1000T", status=1).err
    assert tshare.json("pool")[0]["size"] == 0


@module
def test_pool_of_the_module_is_not_on_any_node(tshare):
    said = tshare("pool", "set", "8M", "--node", "1000", status=1).err
    assert "node 1000 has no pool" in said


@pytest.mark.slow_in_guests
@pytest.mark.parametrize(
    "size", ["", "x", "-1", "4X", "4GB", "99999999999999999999", "99999999999T"]
)
def test_pool_set_rejects_invalid_sizes(tshare, size):
    tshare("pool", "set", "--", size, status=2)


@pytest.mark.slow_in_guests
@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("get", "'get'"),
        ("set", "tshare pool: "),
        ("set 1M 2M", "tshare pool: "),
        ("set 1M --node x", "tshare pool: "),
        ("--node 0", "tshare pool: "),
        ("set 1M --json", "tshare pool: "),
    ],
)
def test_pool_rejects_other_arguments(tshare, words, problem):
    assert problem in tshare("pool", *words.split(), status=2).err
