# SPDX-License-Identifier: MIT
"""examples/camera.c and camera.py have a camera fill the slots of a stream.

The camera is vivid, a driver without a device. tests/runner/run loads it in the virtual machine.
"""

import collections
import json
import os
import signal
import sys
import time

import pytest

import tshare
import vivid

TIMEOUT = 300

needs_module = pytest.mark.skipif(
    not tshare.limits().dmabuf, reason="shared memory has no dma-bufs"
)
by_both = pytest.mark.parametrize("program", vivid.PRODUCERS)

# A consumer or observer in a process of its own. Prints what it sees of each frame that was whole.
# A consumer that may miss frames holds each fourth one while the camera fills all other slots.
READER = """
import hashlib, json, sys, time, tshare

name, role, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
options = {"keep_all": {"keep_all": True}, "observe": {"observe": True}, "take": {}}[role]

def digest(frame):
    return hashlib.sha256(frame["image"].numpy().tobytes()).hexdigest()

with tshare.Stream.open(name, **options, wait=60) as stream:
    print(json.dumps(stream.role), flush=True)
    for frame in stream:
        seen = digest(frame)
        if role == "take" and frame.number % 4 == 0:
            while stream.newest < frame.number + stream.slots:
                time.sleep(0.01)
            assert digest(frame) == seen
        try:
            frame.check()
        except OSError:
            assert role == "observe"
            continue
        said = [frame.number, frame.sequence, frame.captured, frame.lost, frame.slot, seen]
        print(json.dumps(said), flush=True)
        count -= 1
        if not count:
            break
"""


def end(process, status=0):
    output, errors = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, errors) == (status, "")
    return output.splitlines()


def stop(process):
    process.send_signal(signal.SIGINT)
    return end(process)


def halt(process):
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED)


def until(condition):
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def reader(start, name):
    """A function that starts a reader, and returns when it has a seat."""

    def reader(role, count, **options):
        process = start(sys.executable, "-c", READER, name, role, count, **options)
        expected = "observer" if role == "observe" else "consumer"
        line = process.stdout.readline()
        assert line == json.dumps(expected) + "\n", line + process.communicate()[1]
        return process

    return reader


@needs_module
def test_consumers_and_an_observer_get_whole_frames(camera, reader, device):
    process = camera("-k")
    readers = [reader("keep_all", 20), reader("take", 10), reader("observe", 10)]
    seen = [[json.loads(line) for line in end(reader)] for reader in readers]
    pictures = {}
    for frames in seen:
        numbers, sequences, captured, _, slots, digests = zip(*frames, strict=True)
        for values in (numbers, sequences, captured):
            assert list(values) == sorted(set(values))
        assert set(slots) <= set(range(8))
        # A clock is part of vivid's picture.
        assert len(set(digests)) == len(frames)
        for number, picture in zip(numbers, digests, strict=True):
            assert pictures.setdefault(number, picture) == picture
    assert [frame[3] for frame in seen[0]] == [0] * 20
    assert any(frame[3] for frame in seen[1])
    # All slots are the camera's again, but for the one that is history.
    until(lambda: len(vivid.queued(device)) == 7)
    assert " 0 damaged " in stop(process)[-1]


@needs_module
@by_both
def test_the_camera_s_buffers_are_the_slots(camera, device, name, program):
    process = camera(program=program)
    with tshare.Stream.open(name, hold=3) as stream:
        held = [stream.take() for _ in range(2)]
        before = [bytes(frame["image"]) for frame in held]
        slots = {frame.slot for frame in held}
        # The camera goes on in the others.
        while stream.newest < held[-1].number + 16:
            assert not vivid.queued(device) & slots
            with stream.latest() as frame:
                assert frame.slot not in slots
        assert [bytes(frame["image"]) for frame in held] == before
        assert len(slots) == 2
        # The tensor of all slots was made before they were filled.
        slots = stream.region["image"].numpy()
        assert (slots[held[0].slot, :180] == held[0]["image"].numpy()).all()
        del held, frame
        until(lambda: len(vivid.queued(device)) == 7)
        del slots
    stop(process)


@needs_module
@by_both
def test_time_sequence_and_format_are_the_driver_s(camera, device, name, program):
    vivid.set_format(device, 320, 180, row=768)
    before = time.monotonic_ns()
    process = camera("-n", "5", program=program)
    with tshare.Stream.open(name) as stream, stream.take() as frame:
        assert stream.slots == 5
        assert before < frame.captured
        assert frame["image"].shape == (180, 320, 2)
        assert frame["image"].strides == (768, 2, 1)
        image = frame["image"].numpy()
        # Bars, below the clock.
        assert (image[150:] == image[150]).all()
        assert len(set(image[150, :, 0].tolist())) >= 8
        assert int(frame["fourcc"].numpy()).to_bytes(4, "little") == b"YUYV"
        assert not frame.flags & vivid.BUF_FLAG_ERROR
        assert stream.take().sequence > frame.sequence
        del image
    stop(process)


@needs_module
def test_a_stopped_reader_does_not_stop_the_camera(camera, reader, name):
    process = camera()
    stopped = reader("take", 3)
    halt(stopped)
    with tshare.Stream.open(name) as stream:
        frame = stream.take()
        number = frame.number
        while frame.number < number + 24:
            frame = stream.take()
        del frame
    stopped.send_signal(signal.SIGCONT)
    assert len(end(stopped)) == 3
    stop(process)


@needs_module
def test_a_reader_that_keeps_all_slows_the_camera_while_it_lives(camera, reader, device):
    process = camera("-k")
    keeping = reader("keep_all", 20)
    halt(keeping)
    until(lambda: not vivid.queued(device))
    keeping.send_signal(signal.SIGCONT)
    frames = [json.loads(line) for line in end(keeping)]
    assert [frame[3] for frame in frames] == [0] * 20
    # The camera had no buffer, and went on.
    assert frames[-1][1] - frames[0][1] > 19

    keeping = reader("keep_all", 20)
    halt(keeping)
    until(lambda: not vivid.queued(device))
    keeping.kill()
    until(lambda: len(vivid.queued(device)) == 7)
    stop(process)


@needs_module
@by_both
def test_a_damaged_frame_is_abandoned(camera, device, name, program):
    process = camera(program=program)
    with tshare.Stream.open(name) as stream:
        sequences = [stream.take().sequence]
        vivid.press(device, "Inject V4L2_BUF_FLAG_ERROR")
        for _ in range(8):
            with stream.take() as frame:
                assert not frame.flags & vivid.BUF_FLAG_ERROR
                sequences.append(frame.sequence)
    assert sequences[-1] - sequences[0] > 8
    until(lambda: len(vivid.queued(device)) == 7)
    lines = stop(process)
    assert program == "Python" or " 1 damaged " in lines[-1]


@needs_module
@by_both
def test_frames_are_copied_where_the_memory_has_no_dma_bufs(camera, reader, program):
    environment = {**os.environ, "TSHARE_BACKEND": "shm"}
    process = camera(program=program, env=environment)
    readers = [reader(role, 8, env=environment) for role in ("take", "observe")]
    for frames in map(end, readers):
        assert len({json.loads(frame)[-1] for frame in frames}) == 8
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0
    assert errors.endswith(": copies each frame: shared memory has no dma-bufs\n")


@needs_module
def test_rows_that_are_no_whole_pixels_are_copied(camera, device, name):
    vivid.set_format(device, 320, 180, "RGB3", row=1000)
    process = camera()
    with tshare.Stream.open(name) as stream:
        pictures = set()
        for _ in range(10):
            frame = stream.take()
            assert frame["image"].strides == (960, 3, 1)
            image = frame["image"].numpy()
            assert (image[150:] == image[150]).all()
            pictures.add(image.tobytes())
        assert len(pictures) == 10
        del image, frame
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0
    assert errors.endswith(": copies each frame: a row of 1000 bytes isn't of whole pixels\n")


# Runs as a user of the group that owns the stream.
STRANGER = """
import mmap, os, sys, tshare

name, group = sys.argv[1], os.getgid()
os.setgroups([os.stat("/dev/tshare").st_gid, group])
os.setresgid(12345, 12345, 12345)
os.setresuid(12345, 12345, 12345)

def refused(call, error):
    try:
        call()
    except error:
        return
    sys.exit(f"{call} was not refused")

with tshare.Stream.open(name) as stream:
    frame = stream.take()
    image = frame["image"].numpy()
    assert image.any()
    refused(lambda: image.__setitem__(0, 0), ValueError)
    refused(lambda: image.setflags(write=True), ValueError)
    refused(lambda: tshare.Region.open(name), PermissionError)
    with tshare.Region.open(name, readonly=True) as region:
        size = region.size
        refused(lambda: mmap.mmap(region.fileno(), size, prot=mmap.PROT_WRITE), PermissionError)
        refused(region.export, PermissionError)
        refused(region.publish, PermissionError)
    refused(lambda: stream.region.export(), PermissionError)
    refused(lambda: tshare.unlink(name), PermissionError)
    refused(stream.loan, PermissionError)
    del image, frame
"""


@needs_module
def test_another_user_s_consumer_can_not_write_the_frames(camera, start, name):
    process = camera()
    assert end(start(sys.executable, "-c", STRANGER, name)) == []
    stop(process)


@needs_module
def test_a_killed_camera_leaves_its_frames(camera, name):
    process = camera()
    with tshare.Stream.open(name) as stream:
        frame = stream.take()
        process.kill()
        with pytest.raises(OSError, match="the producer has exited"):
            collections.deque(stream, 0)
        assert frame["image"].numpy().any()
        del frame
    with pytest.raises(FileNotFoundError):
        tshare.Stream.open(name)
    camera()


@needs_module
@by_both
def test_the_stream_ends_with_sigterm(camera, name, program):
    process = camera(program=program)
    with tshare.Stream.open(name) as stream:
        process.send_signal(signal.SIGTERM)
        collections.deque(stream, 0)
        assert stream.ended
    end(process)
    with pytest.raises(FileNotFoundError):
        tshare.Stream.open(name)


@needs_module
@by_both
def test_camera_or_name_that_is_in_use_is_an_error(camera, start, device, new_name, name, program):
    process = camera()
    another = start(*vivid.PRODUCERS[program], "-4", device, new_name())
    output, errors = another.communicate(timeout=TIMEOUT)
    assert (another.returncode, output) == (1, "")
    assert {"C": "resource busy", "Python": "is in use by another program"}[program] in errors
    assert "copies" not in errors
    stop(process)
    with tshare.Stream.create(name, {"x": (1, "uint8")}):
        another = start(*vivid.PRODUCERS[program], "-4", device, name)
        output, errors = another.communicate(timeout=TIMEOUT)
        assert (another.returncode, output) == (1, "")
        assert "is a stream whose producer lives" in errors


@by_both
def test_what_is_no_camera_is_an_error(start, name, program):
    process = start(*vivid.PRODUCERS[program], "/dev/null", name)
    _, errors = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 1
    assert "/dev/null is no camera with the single-planar API: " in errors


@by_both
@pytest.mark.parametrize(
    "arguments", [[], ["a", "b", "c"], ["-n", "33", "a", "b"], ["-n", "2", "a", "b"], ["-x", "a"]]
)
def test_wrong_arguments_are_an_error(start, arguments, program):
    process = start(*vivid.PRODUCERS[program], *arguments)
    _, errors = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 2
    assert "usage: camera" in errors
