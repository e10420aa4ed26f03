# SPDX-License-Identifier: MIT
"""Streams: record, whose files NumPy loads."""

import os
import signal
import subprocess

import numpy as np
import pytest

from helpers import catches, state_of, until

pytestmark = pytest.mark.slow_in_guests


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "recording"


@pytest.fixture
def recording(start, name, folder):
    """A function that starts record of the stream of that name, and returns when it waits."""

    def recording(*options, **more):
        process = start("stream", "record", *options, name, folder, **more)
        # It makes the files when it has opened the stream, and catches signals before.
        until(lambda: (folder / "frames.npy").exists() and state_of(process.pid) == "S")
        assert catches(process.pid, signal.SIGINT)
        return process

    return recording


def images(numbers):
    """The images that tests/cli/streamer.c publishes."""
    return np.array([np.arange(7 * n, 7 * n + 24).reshape(4, 6) % 256 for n in numbers], np.uint8)


def load(folder):
    """Check that all files are whole, and return frames.npy and those of the fields."""
    frames = np.load(folder / "frames.npy")
    fields = {file.stem: np.load(file) for file in folder.iterdir() if file.stem != "frames"}
    assert {len(field) for field in fields.values()} == {len(frames)}
    return frames, fields


def is_what_was_published(folder):
    """Check that a recording has whole frames of tests/cli/streamer.c, and return their numbers."""
    frames, fields = load(folder)
    numbers = frames["number"]
    assert (np.diff(numbers) > 0).all()
    assert sorted(fields) == ["image", "pose", "the%2Fcount"]
    assert fields["pose"].dtype == np.float32
    assert (fields["image"] == images(numbers)).all()
    assert (fields["pose"].T == [numbers, -numbers.astype(np.int64)]).all()
    assert (fields["the%2Fcount"] == 1000 * numbers).all()
    assert (frames["sequence"] == 10 * numbers).all()
    assert (frames["flags"] == numbers % 3).all()
    assert (frames["image.shape"] == [4, 6]).all()
    assert (frames["published_ns"] - frames["captured_ns"] >= 5000000).all()
    assert (np.diff(frames["published_ns"]) > 0).all()
    return list(numbers)


def test_a_recording_is_what_was_published(name, folder, streamer, recording):
    producer = streamer("produce", name, 8, 1, "keep")
    producer("publish", 5)
    process = recording("-n", "20")
    producer("publish", 25)
    out = process.communicate()[0].decode()
    assert process.returncode == 0
    assert out == f"20 frames in {folder}, 2K, 0 missed\n"
    assert is_what_was_published(folder) == list(range(6, 26))


def test_record_misses_nothing_if_the_producer_allows_that(name, folder, streamer, recording):
    producer = streamer("produce", name, 3, 1, "keep")
    process = recording("--count", "500")
    producer("publish", 500)
    assert process.wait() == 0
    assert is_what_was_published(folder) == list(range(1, 501))


def test_record_says_that_it_may_miss_frames(name, folder, streamer, recording):
    producer = streamer("produce", name, 3, 1)
    process = recording(stderr=subprocess.PIPE)
    process.send_signal(signal.SIGSTOP)
    until(lambda: state_of(process.pid) == "T")
    producer("publish", 100)
    producer("close")
    process.send_signal(signal.SIGCONT)
    out, err = process.communicate()
    said = f"tshare stream record: the producer of '{name}' lets nobody keep all frames"
    assert said in err.decode()
    recorded = is_what_was_published(folder)
    assert f", {100 - len(recorded)} missed\n" in out.decode()
    assert 1 <= len(recorded) <= 3


def test_record_observes_where_all_seats_are_taken(name, folder, streamer, recording):
    producer = streamer("produce", name, 8, 4)
    consumers = [streamer("consume", name) for _ in range(62)]
    process = recording("-n", "3", stderr=subprocess.PIPE)
    while process.poll() is None:
        producer("publish", 1)
    assert b"only observes" in process.stderr.read()
    assert len(is_what_was_published(folder)) == 3
    assert consumers


def test_a_shape_in_use_is_recorded_with_zeros_beside_it(name, folder, streamer, recording):
    producer = streamer("produce", name, 3, 1, "keep")
    process = recording("-n", "4")
    rows = [4, 2, 0, 3]
    for number in rows:
        producer("small", number)
    assert process.wait() == 0
    frames, fields = load(folder)
    assert frames["image.shape"].tolist() == [[number, 6] for number in rows]
    for number, image, whole in zip(rows, fields["image"], images(range(1, 5)), strict=True):
        assert (image[:number] == whole[:number]).all()
        assert not image[number:].any()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_record_with_whole_files(name, folder, streamer, recording, number):
    producer = streamer("produce", name, 3, 1, "keep")
    process = recording()
    producer("publish", 10)
    until(lambda: len(np.load(folder / "frames.npy")) == 10)
    process.send_signal(number)
    assert process.wait() == 0
    assert is_what_was_published(folder) == list(range(1, 11))


def test_a_killed_record_leaves_files_that_are_valid(name, folder, streamer, recording):
    producer = streamer("produce", name, 3, 1, "keep")
    process = recording()
    print("publish 100000", file=producer.process.stdin)
    until(lambda: len(np.load(folder / "frames.npy")) > 100)
    process.kill()
    process.wait()
    frames = np.load(folder / "frames.npy")
    image = np.load(folder / "image.npy")
    assert len(frames) <= len(image) <= len(frames) + 1
    assert (image[: len(frames)] == images(frames["number"])).all()


def test_the_end_of_the_stream_ends_record(name, folder, streamer, recording):
    producer = streamer("produce", name, 3, 1, "keep")
    process = recording()
    producer("publish", 7)
    producer("close")
    assert process.wait() == 0
    assert is_what_was_published(folder) == list(range(1, 8))


def test_a_dead_producers_frames_are_recorded(name, folder, streamer, recording):
    producer = streamer("produce", name, 8, 1, "keep")
    process = recording(stderr=subprocess.PIPE)
    producer("publish", 7)
    producer.kill()
    assert b"stream: the producer has exited" in process.communicate()[1]
    assert process.returncode == 5
    assert is_what_was_published(folder) == list(range(1, 8))


def test_a_full_disk_ends_record_with_whole_files(tshare, name, folder, streamer, start):
    producer = streamer("produce", name, 3, 1, "keep")
    full = 'ulimit -f 2; exec "$0" "$@"'
    words = ("stream", "record", name, folder)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = start("-c", full, tshare.path, *words, executable="/bin/bash", **pipes)
    until((folder / "frames.npy").exists)
    print("publish 1000", file=producer.process.stdin)
    out, err = process.communicate()
    assert process.returncode == 1
    # The image's header has 128 bytes, each frame 24.
    assert f"{folder}/frames.npy: File too large".encode() in err
    recorded = is_what_was_published(folder)
    assert recorded[-1] == len(recorded) > 10
    assert out.decode().startswith(f"{len(recorded)} frames in ")
    assert (folder / "image.npy").stat().st_size == 128 + 24 * len(recorded)


def test_record_replaces_nothing(tshare, name, folder, streamer):
    producer = streamer("produce", name, 3, 1)
    folder.mkdir()
    (folder / "pose.npy").write_text("mine\n")
    said = tshare("stream", "record", name, folder, status=1).err
    assert f"{folder}/pose.npy: File exists" in said
    assert os.listdir(folder) == ["pose.npy"]
    assert (folder / "pose.npy").read_text() == "mine\n"
    said = tshare("stream", "record", name, folder / "pose.npy", status=1).err
    assert "Not a directory" in said
    said = tshare("stream", "record", name, folder / "none/deep", status=1).err
    assert "none/deep: No such file" in said
    assert producer("publish", 1) == 1


def test_record_without_frames_leaves_nothing(tshare, name, folder, streamer):
    streamer("produce", name)
    said = tshare("stream", "record", "-t", "0.01", name, folder, status=4).err
    assert "no frame was published in time" in said
    assert not folder.exists()


def test_names_of_fields_can_not_leave_the_folder(name, folder, streamer, recording):
    names = ["frames", "up/../up", "it's 100%", 'a"\\b', "é\n", "plain x.y"]
    producer = streamer("fields", name, "uint16", *names)
    process = recording("-n", "3")
    producer("publish", 3)
    assert process.wait() == 0
    frames, fields = load(folder)
    encoded = ["%66rames", "up%2F..%2Fup", "it%27s 100%25", "a%22%5Cb", "%C3%A9%0A", "plain x.y"]
    assert sorted(fields) == sorted(encoded)
    assert frames.dtype.names[5:] == tuple(f"{one}.shape" for one in encoded)
    for one in encoded:
        assert fields[one].tolist() == [0x0101, 0x0202, 0x0303]
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_record_rejects_types_that_numpy_lacks(tshare, name, folder, streamer):
    streamer("fields", name, "bfloat16", "x")
    said = tshare("stream", "record", name, folder, status=1).err
    assert "field 'x' is of type bfloat16, which .npy files don't have" in said
    assert not folder.exists()


def test_record_waits_for_the_stream(tshare, name, folder, streamer, start):
    tshare("stream", "record", name, folder, status=3)
    tshare("stream", "record", "-w", "0.01", name, folder, status=4)
    process = start("stream", "record", "-w", "60", "-n", "2", name, folder)
    until(lambda: state_of(process.pid) == "S")
    producer = streamer("produce", name)
    until((folder / "frames.npy").exists)
    producer("publish", 2)
    assert process.wait() == 0
    assert is_what_was_published(folder) == [1, 2]


@pytest.mark.slow_in_guests
@pytest.mark.parametrize("words", ["", "a", "a b c", "-n x a b"])
def test_record_rejects_other_arguments(tshare, words):
    said = tshare("stream", "record", *words.split(), status=2).err
    assert "Try 'tshare stream record --help'." in said
