# SPDX-License-Identifier: MIT
"""Streams: play, which publishes what record has written."""

import signal

import numpy as np
import pytest

from helpers import catches, state_of, until

pytestmark = pytest.mark.slow_in_guests

FRAMES = [
    *[("number", "<u8"), ("captured_ns", "<i8"), ("published_ns", "<i8"), ("sequence", "<u8")],
    *[("flags", "<u8"), ("x.shape", "<i8", (1,))],
]


def save(folder, count=5, interval_ns=0, dtype=FRAMES, x=None):
    """Write a recording of a field "x" as NumPy does, and return frames.npy."""
    folder.mkdir(exist_ok=True)
    frames = np.zeros(count, dtype)
    frames["number"] = np.arange(1, count + 1)
    frames["published_ns"] = 1000 + interval_ns * np.arange(count)
    frames[frames.dtype.names[5]] = 2
    np.save(folder / "frames.npy", frames)
    numbers = np.repeat(np.arange(count, dtype=np.float64), 2).reshape(count, 2)
    np.save(folder / "x.npy", numbers if x is None else x)
    return frames


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "recording"


@pytest.fixture
def recording(tmp_path, start, name):
    """A function that starts record of the stream of that name; its folder is "again"."""
    words = ("stream", "record", "-w", "60")
    return lambda *options: start(*words, *options, name, tmp_path / "again")


@pytest.fixture
def playing(start, name, folder):
    """A function that starts play under that name, and returns when the stream is there."""

    def playing(*options):
        process = start("stream", "play", *options, folder, name)
        until(lambda: catches(process.pid, signal.SIGINT) and state_of(process.pid) == "S")
        return process

    return playing


def test_play_publishes_the_frames_that_were_recorded(
    tshare, name, folder, tmp_path, streamer, start, recording
):
    producer = streamer("produce", name, 8, 1, "keep")
    process = start("stream", "record", name, folder)
    until((folder / "frames.npy").exists)
    producer("publish", 30)
    producer("small", 2)
    producer("close")
    assert process.wait() == 0
    producer.kill()

    # The second consumer comes when the first one is ready.
    player = start("stream", "play", "--consumers", "2", folder, name)
    process, again = recording(), tmp_path / "again"
    until((again / "frames.npy").exists)
    streamer("consume", name)
    assert player.communicate()[0] == b"31 frames published\n"
    assert (player.returncode, process.wait()) == (0, 0)
    for file in ("image.npy", "pose.npy", "the%2Fcount.npy"):
        assert (again / file).read_bytes() == (folder / file).read_bytes()
    first, second = np.load(folder / "frames.npy"), np.load(again / "frames.npy")
    for member in set(first.dtype.names) - {"captured_ns", "published_ns"}:
        assert (first[member] == second[member]).all()
    late = second["published_ns"] - second["captured_ns"]
    assert (late >= first["published_ns"] - first["captured_ns"]).all()
    assert (second["published_ns"] > first["published_ns"][-1]).all()


def test_play_publishes_at_the_recorded_intervals(tshare, name, folder, playing):
    save(folder, 3, 10**12)
    process = playing()
    until(lambda: tshare.json("stream", "show", name)["newest"] == 1)
    until(lambda: state_of(process.pid) == "S")
    assert tshare.json("stream", "show", name)["newest"] == 1
    process.send_signal(signal.SIGINT)
    assert process.wait() == -signal.SIGINT


@pytest.mark.parametrize("rate", ["0", "1e6", "1000000.0"])
def test_play_is_as_fast_as_its_rate(tshare, name, folder, rate):
    save(folder, 3, 10**10)
    assert tshare("stream", "play", "--rate", rate, folder, name).out == "3 frames published\n"


def test_play_takes_any_times(tshare, name, folder):
    frames = save(folder, 4)
    frames["published_ns"] = [2**62, -(2**62), 0, 5]
    frames["captured_ns"] = [-(2**63), 2**63 - 1, 0, -1]
    np.save(folder / "frames.npy", frames)
    assert tshare("stream", "play", folder, name).out == "4 frames published\n"


def test_play_begins_again_in_a_loop(name, folder, tmp_path, playing, recording):
    save(folder, 5, 10**6)
    process = playing("--loop", "-c", "1")
    assert recording("-n", "22").wait() == 0
    process.send_signal(signal.SIGTERM)
    assert process.wait() == -signal.SIGTERM
    x = np.load(tmp_path / "again/x.npy")[:, 0]
    assert (np.diff(x) % 5 == 1).all()


def test_consumers_see_the_end_of_a_play_that_a_signal_ends(name, folder, playing, recording):
    save(folder, 2, 10**12)
    process = playing("-c", "1")
    record = recording()
    until(lambda: (folder.parent / "again/frames.npy").exists())
    until(lambda: len(np.load(folder.parent / "again/frames.npy")) == 1)
    process.send_signal(signal.SIGHUP)
    assert process.wait() == -signal.SIGHUP
    assert record.wait() == 0


def test_a_play_that_waits_for_a_slot_can_be_ended(tshare, name, folder, playing, streamer):
    save(folder, 100)
    process = playing("--slots", "3", "-c", "1")
    streamer("consume", name, "keep")
    until(lambda: tshare.json("stream", "show", name)["newest"] == 3)
    assert tshare.json("stream", "show", name)["slots"] == 3
    process.send_signal(signal.SIGINT)
    assert process.wait() == -signal.SIGINT


def test_play_refuses_a_name_that_lives(tshare, name, folder, streamer):
    save(folder)
    producer = streamer("produce", name)
    said = tshare("stream", "play", folder, name, status=1).err
    assert f"tshare stream play: name: '{name}' is a stream whose producer lives" in said
    assert "--replace" in said
    assert producer("publish", 1) == 1
    tshare("stream", "play", "--replace", folder, name)
    tshare("create", name, "4", "int8")
    said = tshare("stream", "play", folder, name, status=1).err
    assert f"'{name}' is a region, and no stream's" in said


def test_play_takes_frames_that_all_files_have(tshare, name, folder):
    # As a recording that was killed may leave them.
    save(folder, 3, x=np.ones((4, 2), np.float32))
    with (folder / "x.npy").open("ab") as file:
        file.write(b"a part")
    assert tshare("stream", "play", folder, name).out == "3 frames published\n"


def other(*, dtype=None, **more):
    return lambda folder: save(folder, dtype=dtype or FRAMES, **more)


def named(member):
    return other(dtype=[*FRAMES[:5], (member, "<i8", (1,))])


def truncate(file, length):
    def change(folder):
        save(folder)
        data = (folder / file).read_bytes()
        (folder / file).write_bytes(data[:length])

    return change


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda _: None, "frames.npy: No such file or directory"),
        (other(dtype=FRAMES[:5] + [("y.shape", "<i8", (1,))]), "y.npy: No such file"),
        (other(dtype=[*FRAMES, ("z", "<i8")]), "frames.npy: is not of a recording"),
        (other(dtype=FRAMES[1:] + FRAMES[:1]), "frames.npy: is not of a recording"),
        (other(dtype=FRAMES[:5] + [("x.shape", "<u8", (1,))]), "is not of a recording"),
        (other(count=0), "frames.npy: has no frames"),
        (truncate("frames.npy", -1), "frames.npy: the file is truncated"),
        (truncate("x.npy", -1), "x.npy: the file is truncated"),
        (truncate("x.npy", 50), "x.npy: the file is truncated"),
        (named("../x.shape"), "frames.npy: has an invalid name"),
        (named("%78.shape"), "frames.npy: has an invalid name"),
        (named("%.shape"), "frames.npy: has an invalid name"),
        (named("%00.shape"), "frames.npy: has an invalid name"),
        (other(x=np.zeros((4, 2))), "x.npy: has fewer frames"),
        (other(x=np.zeros((5, 2, 2))), "x.npy: has other dimensions"),
        (other(x=np.zeros((5, 1))), "x.npy: frame 0: shape[0]: 2 is not 0 to 1"),
        (other(x=np.zeros((2, 5)).T), "x.npy: is in Fortran's order"),
        (other(x=np.zeros((5, 2), ">i4")), "x.npy: the elements are big-endian"),
    ],
)
def test_play_refuses_what_is_no_recording(tshare, name, folder, make, problem):
    make(folder)
    said = tshare("stream", "play", folder, name, status=1).err
    assert f"tshare stream play: {folder}/" in said
    assert problem in said
    tshare("stream", "show", name, status=3)


@pytest.mark.slow_in_guests
@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("", "needs FOLDER and NAME"),
        ("a", "needs FOLDER and NAME"),
        ("--rate x a b", "--rate: 'x' is not 0 to 1000000"),
        ("--rate -1 a b", "--rate: '-1' is not 0 to 1000000"),
        ("--rate 1e7 a b", "--rate: '1e7' is not 0 to 1000000"),
        ("-c 63 a b", "--consumers: '63' is not 1 to 62"),
        ("-s 257 a b", "--slots: '257' is not 1 to 256"),
    ],
)
def test_play_rejects_other_arguments(tshare, words, problem):
    said = tshare("stream", "play", *words.split(), status=2).err
    assert f"tshare stream play: {problem}" in said


def test_a_killed_play_is_a_dead_producer(name, folder, playing, recording):
    save(folder, 2, 10**12)
    process = playing("-c", "1")
    record = recording()
    until(lambda: (folder.parent / "again/frames.npy").exists())
    until(lambda: len(np.load(folder.parent / "again/frames.npy")) == 1)
    process.kill()
    assert record.wait() == 5
