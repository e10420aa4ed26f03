# SPDX-License-Identifier: MIT
"""Generations: publish, wait, and regions whose publishers have exited."""

import pytest

from helpers import state_of, until


@pytest.fixture
def waiting(tshare, start, name):
    """A function that starts a wait for the region of that name, and returns when it sleeps."""

    def waiting(*options):
        process = start("wait", *options, name)
        # By then it has read the generation.
        until(lambda: len(tshare.entry(name)["users"]) == 1 and state_of(process.pid) == "S")
        return process

    return waiting


def test_publish_prints_the_generation(tshare, name):
    tshare("create", name, "4", "int8")
    assert tshare("publish", name).out == "1\n"
    assert tshare("publish", name).out == "2\n"
    assert tshare.json("show", name)["generation"] == 2


def test_publish_needs_one_region(tshare, name):
    tshare("publish", status=2)
    tshare("publish", "a", "b", status=2)


def test_publish_in_a_script_makes_no_publisher(tshare, name, waiting):
    tshare("create", name, "4", "int8")
    tshare("publish", name)
    tshare("wait", "-t", "0.01", name, status=4)
    assert f"-      {name}\n" in tshare("list", "-no", "STATE,NAME").out
    process = waiting("-t", "600")
    tshare("publish", name)
    assert process.communicate()[0] == b"2\n"
    assert process.returncode == 0


def test_regions_whose_publishers_have_exited_are_dead(tshare, name, publisher_exits):
    tshare("create", name, "4", "int8")
    publisher_exits()
    assert tshare.json("show", name)["state"] == "dead"
    assert "1, all publishers have exited" in tshare("show", name).out
    assert ", 1 dead" in tshare("list").out
    assert f"dead   {name}\n" in tshare("list", "-no", "STATE,NAME").out


def test_wait_ends_with_a_publish(tshare, name, waiting):
    tshare("create", name, "4", "int8")
    process = waiting()
    tshare("publish", name)
    assert process.communicate()[0] == b"1\n"
    assert process.returncode == 0


def test_wait_for_a_generation_does_not_end_before_it(tshare, name, waiting, publisher_exits):
    tshare("create", name, "4", "int8")
    process = waiting("-g", "2")
    # The publisher has exited, and so there will be no second one.
    publisher_exits()
    assert process.communicate()[0] == b""
    assert process.returncode == 5


def test_wait_for_a_generation_that_was_published_ends_at_once(tshare, name):
    tshare("create", name, "4", "int8")
    tshare("publish", name)
    assert tshare("wait", "--generation", "1", name).out == "1\n"
    tshare("wait", "-g", "0", name)


def test_wait_fails_after_its_timeout(tshare, name):
    tshare("create", name, "4", "int8")
    assert "tshare wait: " in tshare("wait", "-t", "0.01", name, status=4).err
    tshare("wait", "--timeout", "0", "--generation", "3", name, status=4)


def test_wait_fails_when_the_publishers_have_exited(tshare, name, publisher_exits):
    tshare("create", name, "4", "int8")
    publisher_exits()
    assert "exited" in tshare("wait", name, status=5).err


@pytest.mark.slow_in_guests
@pytest.mark.parametrize("number", ["", "x", "-1", "1x", "nan", "inf", "1e300", "0x"])
def test_wait_rejects_invalid_times(tshare, name, number):
    said = tshare("wait", f"--timeout={number}", name, status=2).err
    assert f"tshare wait: --timeout: '{number}' is not a number of seconds" in said


@pytest.mark.slow_in_guests
@pytest.mark.parametrize("number", ["", "x", "-1", "1.5", "99999999999999999999"])
def test_wait_rejects_invalid_generations(tshare, name, number):
    tshare("wait", f"--generation={number}", name, status=2)
