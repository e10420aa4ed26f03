# SPDX-License-Identifier: MIT
"""The access that a region's mode grants to other users."""

import os

import pytest

import tshare
from support import run

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")

# Runs as user and group 12345, which may use the device but owns nothing.
STRANGER = """
    import os, sys, tshare

    groups = [os.stat("/dev/tshare").st_gid] if os.path.exists("/dev/tshare") else []
    os.setgroups(groups)
    os.setresgid(12345, 12345, 12345)
    os.setresuid(12345, 12345, 12345)

    def attempt(call):
        try:
            result = call()
        except OSError as error:
            print(type(error).__name__, error.filename == sys.argv[1])
        else:
            print(result)

    name = sys.argv[1]
"""


def stranger(code, *args):
    return run(STRANGER + code, *args).splitlines()


READ = "    attempt(lambda: tshare.open(name, readonly=True).readonly)\n"
WRITE = "    attempt(lambda: tshare.open(name).readonly)\n"
JOIN = """
    try:
        print(tshare.Stream.open(name).role)
    except PermissionError as error:
        print(error.strerror)
"""
OBSERVE = "    attempt(lambda: tshare.Stream.open(name, observe=True).role)\n"
UNLINK = "    attempt(lambda: tshare.unlink(name))\n"
LIST = "    print(name in [info.name for info in tshare.list()])\n"
CREATE = "    attempt(lambda: tshare.create(name, 1).shape)\n"


def test_region_is_private_by_default(name):
    t = tshare.create(name, 4)
    assert stranger(READ + WRITE + LIST, name) == [
        "PermissionError True",
        "PermissionError True",
        "False",
    ]
    assert not t.closed


def test_mode_lets_others_read(name):
    t = tshare.create(name, 4, mode=0o644)
    assert stranger(READ + WRITE + LIST, name) == ["True", "PermissionError True", "True"]
    assert not t.closed


def test_mode_lets_others_write(name):
    t = tshare.create(name, 4, mode=0o666)
    assert stranger(READ + WRITE, name) == ["True", "False"]
    assert not t.closed


def test_mode_is_reported_with_any_umask(name):
    old = os.umask(0o777)
    try:
        t = tshare.create(name, 4, mode=0o666)
    finally:
        os.umask(old)
    assert stranger(WRITE, name) == ["False"]
    assert t.region.info().mode == 0o666


def test_mode_lets_others_read_a_stream(name, backend):
    with tshare.Stream.create(name, {"x": (1, "int8")}, mode=0o644):
        joined, observed = stranger(JOIN + OBSERVE, name)
    refused = f"name: the mode of '{name}' lets this user only observe it (observe=True)"
    assert joined == ("consumer" if backend == "kmod" else refused)
    assert observed == "observer"


def test_others_can_not_unlink(name):
    t = tshare.create(name, 4, mode=0o666)
    assert stranger(UNLINK, name) == ["PermissionError True"]
    assert tshare.open(name).region.id == t.region.id


def test_others_can_not_take_a_name_that_is_taken(name):
    t = tshare.create(name, 4)
    assert stranger(CREATE, name) == ["FileExistsError True"]
    assert not t.closed


def test_owner_is_reported(name):
    tshare.create(name, 4, mode=0o644)
    assert stranger(
        "    (info,) = [info for info in tshare.list() if info.name == name]\n"
        "    print(info.uid, info.readonly)\n",
        name,
    ) == ["0 True"]


def test_others_make_regions_of_their_own(name):
    code = """
    t = tshare.create(name, 4)
    info = t.region.info()
    print(info.uid, info.gid)
    """
    assert stranger(code, name) == ["12345 12345"]


def test_group_and_owner_are_those_of_the_maker(name):
    t = tshare.create(name, 4)
    info = t.region.info()
    assert (info.uid, info.gid) == (os.getuid(), os.getgid())
