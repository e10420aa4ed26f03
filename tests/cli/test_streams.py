# SPDX-License-Identifier: MIT
"""Streams: list and show."""

import re

import pytest

from helpers import until


@pytest.fixture
def entry(tshare):
    """A function that returns what "stream list" has of a stream, or None."""
    return lambda name: next((s for s in tshare.json("stream", "list") if s["name"] == name), None)


def test_stream_needs_one_of_its_verbs(tshare):
    assert "tshare stream: needs a VERB" in tshare("stream", status=2).err
    assert "Did you mean 'show'?" in tshare("stream", "shou", status=2).err
    assert "unknown option '-x'" in tshare("stream", "-x", status=2).err


def test_list_has_streams_alone(tshare, name, streamer):
    tshare("create", f"{name}-region", "4", "int8")
    streamer("produce", f"{name}-stream")
    names = [stream["name"] for stream in tshare.json("stream", "list") if name in stream["name"]]
    assert names == [f"{name}-stream"]
    said = tshare("stream", "list").out
    assert f" {name}-stream\n" in said
    assert "region" not in said


def test_list_of_no_streams_is_empty(tshare, own_regions):
    tshare("create", "region", "4", "int8", env=own_regions)
    assert tshare("stream", "list", env=own_regions).out == ""
    assert tshare.json("stream", "list", env=own_regions) == []


def test_list_has_what_a_stream_is(tshare, name, streamer):
    producer = streamer("produce", name, 6, 2, "keep")
    producer("publish", 5)
    said = tshare("stream", "list").out
    assert re.search("^SLOTS  HISTORY  NEWEST  FIELDS  SEATS  PRODUCER.*STATE.*NAME$", said, re.M)
    maker = rf"{producer.pid} streamer +live"
    assert re.search(rf"^ *6 +2 +5 +3 +0 +{maker} +{name}$", said, re.M)
    assert "NAME" not in tshare("stream", "list", "-n").out
    assert name in tshare("stream", "list", "--names").out.splitlines()


def test_list_and_show_are_the_same_json(tshare, name, streamer, entry):
    producer = streamer("produce", name, 6, 2, "keep")
    producer("publish", 5)
    shown = tshare.json("stream", "show", name)
    assert shown == entry(name)
    assert shown["name"] == name
    assert (shown["slots"], shown["history"], shown["newest"]) == (6, 2, 5)
    assert (shown["keep_all"], shown["state"], shown["seats"]) == (True, "live", [])
    assert shown["producer"] == {"pid": producer.pid, "command": "streamer"}
    assert shown["fields"] == [
        {"name": "image", "dtype": "uint8", "shape": [4, 6]},
        {"name": "pose", "dtype": "float32", "shape": [2]},
        {"name": "the/count", "dtype": "int64", "shape": []},
    ]


def test_show_has_the_fields_and_the_consumers(tshare, name, streamer):
    producer = streamer("produce", name, 6, 2, "keep")
    first, second = streamer("consume", name), streamer("consume", name, "keep")
    producer("publish", 3)
    first("take")
    said = tshare("stream", "show", name).out
    for fact in ("slots +6", "history +2", "keep all +allowed", "newest +3", "consumers +2"):
        assert re.search(f"^{fact}$", said, re.M)
    assert re.search(r"^image +uint8 +\(4, 6\) +24$", said, re.M)
    assert re.search(r"^the/count +int64 +\(\) +8$", said, re.M)
    assert re.search(f"^ *0 +1 +- +live +{first.pid} +streamer$", said, re.M)
    assert re.search(f"^ *1 +3 +all +live +{second.pid} +streamer$", said, re.M)
    seats = tshare.json("stream", "show", name)["seats"]
    assert seats[1] == {
        **{"seat": 1, "pid": second.pid, "command": "streamer"},
        **{"held": 3, "keeps_all": True, "evicted": False},
    }


def test_show_and_list_take_no_seat(tshare, name, streamer, entry):
    streamer("produce", name)
    for _ in range(2):
        assert tshare.json("stream", "show", name)["seats"] == []
        assert entry(name)["seats"] == []


def test_a_killed_consumer_is_not_shown(tshare, name, streamer):
    streamer("produce", name)
    consumer = streamer("consume", name)
    assert len(tshare.json("stream", "show", name)["seats"]) == 1
    consumer.kill()
    assert tshare.json("stream", "show", name)["seats"] == []


def test_a_stream_that_was_closed_has_ended(tshare, name, streamer, entry):
    producer = streamer("produce", name)
    producer("publish", 2)
    producer("close")
    assert (entry(name)["state"], entry(name)["newest"]) == ("ended", 2)
    assert re.search("^state +ended$", tshare("stream", "show", name).out, re.M)


def test_a_killed_producers_stream_is_gone(tshare, name, streamer, entry):
    producer = streamer("produce", name)
    producer.kill()
    until(lambda: not entry(name))
    tshare("stream", "show", name, status=3)


def test_show_names_the_stream_that_was_meant(tshare, name, streamer):
    streamer("produce", name)
    said = tshare("stream", "show", f"{name}x", status=3).err
    assert "tshare stream show: name: there is no region" in said
    assert f"Did you mean '{name}'?" in said


def test_show_refuses_a_region_that_is_no_stream(tshare, name):
    tshare("create", name, "4", "int8")
    said = tshare("stream", "show", name, status=1).err
    assert f"tshare stream show: name: '{name}' is no stream" in said


@pytest.mark.slow_in_guests
@pytest.mark.parametrize("words", ["list x", "show", "show a b", "list --sort", "show -q x"])
def test_list_and_show_reject_other_arguments(tshare, words):
    assert "Try 'tshare stream " in tshare("stream", *words.split(), status=2).err


def test_seats_that_can_not_be_seen_are_unknown(tshare, name, streamer):
    streamer("produce", name)
    tshare("unlink", f"{name}.seats")
    assert tshare.json("stream", "show", name)["seats"] is None
    assert re.search("^consumers +-$", tshare("stream", "show", name).out, re.M)
    assert re.search(f" - +[0-9]+ streamer +live +{name}$", tshare("stream", "list").out, re.M)
