# SPDX-License-Identifier: MIT
"""The C examples of streams and pools drop what they use; LeakSanitizer finds what they don't."""

import os
import signal
import subprocess

import pytest


@pytest.fixture
def example(build, tshare):
    """A function that starts one of the C programs in examples/."""
    started = []

    def start(program, *arguments):
        command = [build / "examples" / program, *arguments]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        started.append(subprocess.Popen(command, text=True, **pipes))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def ends(process):
    """Return the rest of what it prints, if its exit status is 0."""
    out, err = process.communicate()
    assert process.returncode == 0, err
    return out, err


def test_stream_is_published_and_taken_until_the_producer_is_interrupted(example, name):
    consumer = example("stream_consumer", name)
    producer = example("stream_producer", name)
    for _ in range(3):
        assert consumer.stdout.readline().startswith("frame ")
    os.kill(producer.pid, signal.SIGINT)
    assert ends(consumer)[0].endswith("the stream has ended\n")
    assert ends(producer) == ("", "")


def test_producer_names_a_consumer_that_it_waits_for_until_it_is_interrupted(example, name):
    producer = example("stream_producer", name)
    consumer = example("stream_consumer", name)
    consumer.stdout.readline()
    os.kill(consumer.pid, signal.SIGSTOP)
    assert f"(pid {consumer.pid}, 'stream_consumer') holds frames" in producer.stderr.readline()
    os.kill(producer.pid, signal.SIGINT)
    os.kill(consumer.pid, signal.SIGCONT)
    assert ends(consumer)[0].endswith("the stream has ended\n")
    ends(producer)


def test_pool_makes_and_finds_entries_and_room_for_more(example, name):
    keys = ["a", "bc", "a", *map(str, range(300))]
    out = ends(example("pool", name, *keys))[0].splitlines()
    assert [line.split(",")[0] for line in out[:4]] == [
        *("made 'a'", "made 'bc'", "found 'a'", "made '0'"),
    ]
    assert out[len(keys) :] == ["waiting for Enter"]
