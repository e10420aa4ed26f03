# SPDX-License-Identifier: MIT
"""Streams: hz, which measures them."""

import json
import re
import signal
import time

import pytest

from helpers import catches, state_of, until

pytestmark = pytest.mark.slow_in_guests


@pytest.fixture
def measuring(start, name):
    """A function that starts hz for the stream of that name, and returns when it waits."""

    def measuring(*options, **more):
        process = start("stream", "hz", *options, name, **more)
        # It catches signals when it has opened the stream.
        until(lambda: catches(process.pid, signal.SIGINT) and state_of(process.pid) == "S")
        return process

    return measuring


def users(tshare, name):
    return [user["pid"] for user in tshare.entry(name)["users"]]


def publish_while(process, producer):
    """Publish until the process has ended, and return what it printed."""
    while process.poll() is None:
        producer("publish", 1)
        time.sleep(0.002)
    return process.communicate()[0].decode()


def test_hz_measures_rate_interval_and_delay(name, streamer, measuring):
    producer = streamer("produce", name)
    said = json.loads(publish_while(measuring("-j", "-n", "20"), producer))
    assert said["frames"] == 20
    assert said["rate"] > 0
    interval = said["interval"]
    assert 0 < interval["min"] <= interval["mean"] <= interval["max"]
    assert interval["stddev"] >= 0
    # The producer says that it has captured each frame 5 ms ago.
    assert said["delay"]["min"] >= 0.005


def test_hz_counts_what_it_missed(name, streamer, measuring):
    producer = streamer("produce", name, 4, 1)
    process = measuring("-j")
    process.send_signal(signal.SIGSTOP)
    until(lambda: state_of(process.pid) == "T")
    producer("publish", 100)
    producer("close")
    process.send_signal(signal.SIGCONT)
    said = json.loads(process.communicate()[0])
    assert said["frames"] + said["missed"] == 100
    assert 1 <= said["frames"] <= 4


def test_hz_delays_nobody_and_takes_no_seat(tshare, name, streamer, measuring):
    producer = streamer("produce", name, 4, 1, "keep")
    process = measuring()
    process.send_signal(signal.SIGSTOP)
    assert producer("publish", 100) == 100
    assert tshare.json("stream", "show", name)["seats"] == []


def test_hz_prints_a_line_each_second_and_then_the_whole(name, streamer, measuring):
    producer = streamer("produce", name)
    said = publish_while(measuring("--time", "2.5"), producer)
    lines = re.findall(r"^[0-9.]+/s, interval .* to .* ms, delay .* ms, missed \d+$", said, re.M)
    assert 1 <= len(lines) <= 2
    for fact in ("frames +[0-9]+", "missed +[0-9]+", "rate +.*/s", r"interval +.* ms \(.*\)"):
        assert re.search(f"^{fact}$", said, re.M)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_hz_with_what_it_has_measured(name, streamer, measuring, number):
    producer = streamer("produce", name)
    process = measuring()
    producer("publish", 3)
    until(lambda: state_of(process.pid) == "S")
    process.send_signal(number)
    said = process.communicate()[0].decode()
    assert process.returncode == 0
    assert re.search("^frames +[0-3]$", said, re.M)


def test_signals_that_are_ignored_do_not_end_hz(tshare, name, streamer, start):
    producer = streamer("produce", name)
    words = ("stream", "hz", "-jn", "1", name)
    ignoring = 'trap "" INT; exec "$0" "$@"'
    process = start("-c", ignoring, tshare.path, *words, executable="/bin/sh")
    until(lambda: process.pid in users(tshare, name))
    process.send_signal(signal.SIGINT)
    assert json.loads(publish_while(process, producer))["frames"] == 1


def test_hz_of_a_busy_stream_can_be_ended(name, streamer, measuring):
    producer = streamer("produce", name)
    process = measuring()
    print("publish 100000000", file=producer.process.stdin)
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode == 0
    producer.kill()


def test_the_end_of_the_stream_ends_hz(name, streamer, measuring):
    producer = streamer("produce", name)
    process = measuring("-j")
    producer("publish", 2)
    producer("close")
    assert json.loads(process.communicate()[0])["frames"] == 2
    assert process.returncode == 0


def test_a_dead_producer_ends_hz(name, streamer, measuring):
    producer = streamer("produce", name)
    process = measuring("-j", stderr=-1)
    producer("publish", 2)
    producer.kill()
    out, err = process.communicate()
    assert json.loads(out)["frames"] == 2
    assert process.returncode == 5
    assert err == b"tshare stream hz: stream: the producer has exited\n"


def test_hz_without_frames_fails_after_its_time(tshare, name, streamer):
    streamer("produce", name)
    said = tshare("stream", "hz", "-t", "0.01", name, status=4)
    assert "no frame was published in time" in said.err
    assert re.search("^frames +0$", said.out, re.M)
    assert re.search("^rate +-$", said.out, re.M)
    said = tshare.json("stream", "hz", "-t", "0", name, status=4)
    assert (said["rate"], said["interval"], said["delay"]) == (None, None, None)


def test_hz_waits_for_the_stream(tshare, name, streamer, start):
    tshare("stream", "hz", name, status=3)
    tshare("stream", "hz", "--wait", "0.01", name, status=4)
    process = start("stream", "hz", "-w", "60", "-jn", "1", name)
    until(lambda: state_of(process.pid) == "S")
    producer = streamer("produce", name)
    assert json.loads(publish_while(process, producer))["frames"] == 1


@pytest.mark.slow_in_guests
@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("", "needs one NAME"),
        ("a b", "needs one NAME"),
        ("-n 0 a", "--count: '0' is not a number of frames"),
        ("-n 1x a", "--count: '1x' is not a number of frames"),
        ("-t x a", "--time: 'x' is not a number of seconds"),
        ("-w -1 a", "--wait: '-1' is not a number of seconds"),
    ],
)
def test_hz_rejects_other_arguments(tshare, words, problem):
    assert f"tshare stream hz: {problem}" in tshare("stream", "hz", *words.split(), status=2).err


def test_hz_refuses_a_region_that_is_no_stream(tshare, name):
    tshare("create", name, "4", "int8")
    assert "is no stream" in tshare("stream", "hz", name, status=1).err
