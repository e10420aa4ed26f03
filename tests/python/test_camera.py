# SPDX-License-Identifier: MIT
"""examples/camera.c has a camera write into a region, and camera.py reads it.

The camera is vivid, a driver without a device. tests/runner/run loads it in the virtual machine.
"""

import os
import signal
import sys
from pathlib import Path

import pytest

import tshare
import vivid

ROOT = Path(__file__).resolve().parents[2]
READER = ROOT / "examples/camera.py"

TIMEOUT = 300

needs_module = pytest.mark.skipif(
    not tshare.limits().dmabuf, reason="shared memory has no dma-bufs"
)


def end(process, status=0):
    output, errors = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, errors) == (status, "")
    return output.splitlines()


def stop(process):
    process.send_signal(signal.SIGINT)
    return end(process)


@needs_module
def test_several_programs_read_what_the_camera_writes(camera, start, name):
    process = camera()
    readers = [start(sys.executable, READER, name, count) for count in (3, 6)]
    for reader, count in zip(readers, (3, 6), strict=True):
        lines = end(reader)
        assert lines[0] == "camera.py: 8 frames of 320x180 YUYV"
        numbers = [int(line.split()[2].rstrip(":")) for line in lines if ": mean " in line]
        assert len(set(numbers)) == count
        assert numbers == sorted(numbers)
        assert not [line for line in lines if ": mean 0.0" in line]
        assert lines[-1].startswith(f"camera.py: {count} frames")
    assert " damaged " in stop(process)[-1]
    assert name not in [info.name for info in tshare.list()]


@needs_module
def test_ring_has_the_layout_of_the_driver_s_format(camera, name):
    process = camera("-n", "6")
    with tshare.Region.open(name, readonly=True) as region:
        frames = region["frames"]
        assert frames.shape == (6, 180, 320, 2)
        assert frames.strides == (29 * 4096, 640, 2, 1)
        assert region["kept"].numpy() == 3
        assert int(region["fourcc"].numpy()).to_bytes(4, "little") == b"YUYV"
        assert region["records"].shape == (32, 3)
    stop(process)


@needs_module
def test_array_that_was_made_once_has_all_later_frames(camera, name):
    process = camera("-s", "1920x1080")
    with tshare.Region.open(name, readonly=True) as region:
        frames = region["frames"].numpy()
        assert frames.shape == (8, 1080, 1920, 2)
        vivid.expect_new_pictures(region, frames)
    stop(process)


@needs_module
def test_each_generation_has_a_frame_of_its_own(camera, name):
    process = camera()
    with tshare.Region.open(name, readonly=True) as region:
        frames, records = region["frames"].numpy(), region["records"].numpy()
        seen = []
        for generation in region.generations(0):
            slot, sequence, time = records[generation % 32].tolist()
            seen.append((slot, sequence, time, frames[slot].tobytes()))
            if len(seen) == 5:
                break
    stop(process)
    slots, sequences, times, pictures = zip(*seen, strict=True)
    assert set(slots) <= set(range(8))
    assert list(sequences) == sorted(set(sequences))
    assert list(times) == sorted(set(times))
    # A clock is part of vivid's picture.
    assert len(set(pictures)) == 5


@needs_module
def test_kept_frames_are_not_queued(camera, device, name):
    process = camera("-n", "6")
    with tshare.Region.open(name, readonly=True) as region, open(device, "rb") as video:
        records = region["records"].numpy()
        region.wait(10)
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        newest = region.generation
        kept = {int(records[generation % 32][0]) for generation in range(newest - 2, newest + 1)}
        assert len(kept) == 3
        assert not [slot for slot in kept if vivid.is_queued(video, slot)]
        # But for one that the program has just dequeued, or was about to queue, and those that
        # are filled.
        assert [slot for slot in range(6) if vivid.is_queued(video, slot)]
        process.send_signal(signal.SIGCONT)
    stop(process)


@needs_module
def test_killed_camera_ends_the_readers_and_leaves_them_the_memory(camera, name):
    process = camera()
    with tshare.Region.open(name, readonly=True) as region:
        generations = region.generations()
        next(generations)
        process.kill()
        list(generations)
        assert region["frames"].numpy()[region["records"].numpy()[1][0]].any()
    with pytest.raises(FileNotFoundError):
        tshare.Region.open(name)


@needs_module
def test_reader_goes_on_when_the_camera_was_started_again(camera, start, name):
    first = camera("-n", "6")
    reader = start(sys.executable, READER, name)
    assert reader.stdout.readline() == "camera.py: 6 frames of 320x180 YUYV\n"
    first.kill()
    first.communicate()
    second = camera("-n", "8")
    while "8 frames of" not in reader.stdout.readline():
        assert reader.poll() is None
    assert ": mean " in reader.stdout.readline()
    stop(reader)
    stop(second)


@needs_module
def test_killed_reader_does_not_disturb_the_camera(camera, start, name):
    process = camera()
    reader = start(sys.executable, READER, name)
    reader.stdout.readline()
    reader.kill()
    reader.communicate()
    with tshare.Region.open(name, readonly=True) as region:
        generation = region.generation
        assert region.wait(generation + 8) > generation + 8
    stop(process)


@needs_module
def test_camera_is_stopped_by_sigterm(camera, name):
    process = camera()
    process.send_signal(signal.SIGTERM)
    end(process)
    with pytest.raises(FileNotFoundError):
        tshare.Region.open(name)


@needs_module
def test_name_that_is_taken_is_an_error(camera, start, device, name):
    tensor = tshare.create(name, 1)
    process = start(vivid.PRODUCER, "-d", device, "-4", name)
    output, errors = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, output) == (1, "")
    assert "taken" in errors
    tensor.unlink()
    tensor.close()


@needs_module
def test_what_is_no_camera_is_an_error(start, name):
    process = start(vivid.PRODUCER, "-d", "/dev/null", name)
    _, errors = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 1
    assert errors.startswith("camera: /dev/null: VIDIOC_QUERYCAP: ")


@pytest.mark.skipif(tshare.limits().dmabuf, reason="the module has dma-bufs")
def test_camera_names_the_module_that_it_needs(start, name):
    process = start(vivid.PRODUCER, name)
    _, errors = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 1
    assert errors.startswith("camera: needs the module tshare")


@pytest.mark.parametrize(
    "arguments", [[], ["a", "b"], ["-n", "33", "a"], ["-s", "640", "a"], ["-x", "a"]]
)
def test_wrong_arguments_are_an_error(start, arguments):
    process = start(vivid.PRODUCER, *arguments)
    _, errors = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 2
    assert "usage: camera " in errors
