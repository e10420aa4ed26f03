# SPDX-License-Identifier: MIT
"""tshare.Camera: several processes open a camera, and one of them reads it for all."""

import asyncio
import concurrent.futures
import errno
import itertools
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

import tshare
import vivid
from support import need, run_in_silence
from tshare import _v4l2

np = need("numpy")

TIMEOUT = 60


def until(condition):
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def images(value=None, count=None, shape=(4, 6, 3)):
    """Yield images of one value each."""
    for i in itertools.count() if count is None else range(count):
        time.sleep(0.005)
        yield np.full(shape, i if value is None else value)


# Opens the camera with images of one value, sys.argv[2], or a device; prints "owner" as soon as it
# is that, and each value that it reads. With "fork" in sys.argv[3] a child lives until the standard
# input ends.
PROGRAM = """
import os, sys, time
import numpy as np
import tshare

def source():
    time.sleep(0.005)
    return True, np.full((400, 600, 3), int(sys.argv[2]), "uint8")

device = sys.argv[2].startswith("/")
owner, last = False, None
camera = tshare.Camera(sys.argv[2] if device else source, sys.argv[1], dma32=device, wait=60)
print("opened", flush=True)
if "fork" in sys.argv[3:] and not os.fork():
    sys.exit(sys.stdin.read())
while True:
    if camera.owner and not owner:
        owner = print("owner", flush=True) or True
    if device:
        with camera.take(60) as frame:
            image = frame["image"].numpy()
            if frame.number % 2:
                time.sleep(0.1)
            # Vivid's bars, below its clock.
            assert (image[150:] == image[150]).all()
            print(camera.stream.region.id, frame.number, flush=True)
        del image
    else:
        ok, image = camera.read(60)
        assert ok and (image == image[0, 0, 0]).all(), "a torn frame"
        if image[0, 0, 0] != last:
            last = image[0, 0, 0]
            print(last, flush=True)
"""


@pytest.fixture
def program(start, name):
    """A function that starts the program, and returns when it has opened the camera."""

    def program(source, *more):
        process = start(sys.executable, "-c", PROGRAM, name, source, *more, stdin=subprocess.PIPE)
        line = process.stdout.readline()
        assert line == "opened\n", line + process.communicate()[1]
        return process

    return program


def lines_until(process, wanted):
    """Return what a process prints up to a line."""
    lines = []
    while not lines or lines[-1] != wanted:
        line = process.stdout.readline()
        assert line, (lines, process.communicate()[1])
        lines.append(line.strip())
    return lines


@pytest.fixture
def camera(name):
    with tshare.Camera(images(), name) as camera:
        yield camera


def test_the_first_one_owns_the_camera(camera, name):
    assert camera.owner
    with tshare.Camera("/dev/null", name) as other:
        assert not other.owner
        assert other.isOpened()
        frame = other.take(TIMEOUT)
        assert frame["image"].shape == (4, 6, 3)
        same = camera.stream[frame.number]["image"].numpy()
        assert (same == frame["image"].numpy()).all()
        del frame
        ok, image = other.read(TIMEOUT)
        assert ok
        assert isinstance(image, np.ndarray)
        assert not image.flags.writeable
        # Images stay when the camera goes.
        copy = image.copy()
    assert (image == copy).all()
    assert camera.copies == "a function returns them"


def test_read_latest_passes_over_older_frames(camera):
    with camera.take(TIMEOUT) as frame:
        number, value = frame.number, frame["image"][0, 0, 0].item()
    until(lambda: camera.stream.newest > number + 3)
    newest = camera.stream.newest
    ok, image = camera.read_latest(TIMEOUT)
    assert ok
    assert image[0, 0, 0] >= value + newest - number
    with camera.latest(TIMEOUT) as frame:
        assert frame.number > newest


def test_frames_by_iteration(camera):
    frames = list(itertools.islice(camera, 2))
    assert frames[0].number < frames[1].number

    async def read():
        found = []
        async for frame in camera:
            found.append(frame.number)
            if len(found) == 3:
                return found

    del frames[:]
    numbers = asyncio.run(read())
    assert numbers == sorted(set(numbers))


def test_time_for_a_task_goes_on_with_each_owner(camera, monkeypatch):
    class Gone:
        """A stream whose owner always goes."""

        calls = 0

        async def take_async(self, timeout):
            self.calls += 1
            assert self.calls < 1000
            if not timeout:
                raise TimeoutError
            await asyncio.sleep(min(timeout, 0.02))
            raise EOFError

    monkeypatch.setattr(camera, "_stream", Gone())
    monkeypatch.setattr(camera, "_move", lambda *_: None)
    with pytest.raises(TimeoutError):
        asyncio.run(camera.take_async(0.1))


def test_threads_share_an_object(camera):
    seen = []

    def read():
        for _ in range(5):
            with camera.take(TIMEOUT) as frame:
                seen.append(frame.number)

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(seen)) == 10


def test_threads_go_on_with_the_next_owner(name):
    first = tshare.Camera(images(7), name)
    second = tshare.Camera(images(8), name)

    def read():
        values = set()
        while 8 not in values:
            with second.take(TIMEOUT) as frame:
                values.add(frame["image"][0, 0, 0].item())
        return values

    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        for _ in range(10):
            results = [threads.submit(read) for _ in range(2)]
            time.sleep(0.05)
            first.release()
            for result in results:
                assert result.result(TIMEOUT) <= {7, 8}
            second.release()
            first, second = tshare.Camera(images(7), name), tshare.Camera(images(8), name)
    first.release()
    second.release()


def test_the_source_is_read_while_readers_hold_all_slots(name):
    calls = itertools.count()

    def source():
        time.sleep(0.001)
        next(calls)
        return np.zeros(3)

    with tshare.Camera(source, name, slots=3, hold=3) as camera:
        held = [camera.read(TIMEOUT)[1] for _ in range(3)]
        before = next(calls)
        until(lambda: next(calls) > before + 100)
        assert len(held) == 3
        del held[:]
        assert camera.read(TIMEOUT)[0]


# Owners


@pytest.mark.parametrize("child", [pytest.param([], marks=pytest.mark.slow_in_guests), ["fork"]])
def test_another_one_goes_on_when_the_owner_is_killed(name, program, child):
    owner = program("1", *child)
    lines_until(owner, "owner")
    others = [program("2"), program("3")]
    for process in others:
        lines_until(process, "1")
    owner.kill()
    # Both see the images of whoever is the owner now.
    value, same = [process.stdout.readline().strip() for process in others]
    assert value == same
    owner.communicate()
    # The end of the owner's child is none of the names'.
    with tshare.Camera("/dev/null", name) as camera:
        assert (camera.read(TIMEOUT)[1] == int(value)).all()
    heir = others.pop("23".index(value))
    assert heir.stdout.readline() == "owner\n"
    heir.kill()
    left = "32"["23".index(value)]
    assert lines_until(others[0], "owner") == [left, "owner"]


def test_another_one_goes_on_when_the_owner_is_killed_early(name, start):
    code = """
    import sys, time, tshare
    claim = tshare.create(sys.argv[1] + ".owner", (1,), "uint8")
    # Stream.create() was interrupted.
    draft = tshare.Region.create(sys.argv[1], {"a": (1, "uint8")}, draft=True)
    print(flush=True)
    time.sleep(300)
    """
    process = start(sys.executable, "-c", textwrap.dedent(code), name)
    process.stdout.readline()
    timer = threading.Timer(0.2, process.kill)
    timer.start()
    with tshare.Camera(images(), name, wait=TIMEOUT) as camera:
        assert camera.owner
        assert camera.read(TIMEOUT)[0]
    timer.join()


def test_another_one_goes_on_when_the_owner_releases_it(name):
    with (
        tshare.Camera(images(7), name) as first,
        tshare.Camera(images(8), name, hold=3) as second,
    ):
        ok, image = second.read(TIMEOUT)
        assert ok
        first.release()
        with pytest.raises(FileNotFoundError):
            tshare.Stream.open(name)
        assert not first.isOpened()
        assert not first.owner
        assert first.read() == (False, None)
        with pytest.raises(EOFError, match="release"):
            first.take(0)
        value = 7
        while value == 7:
            ok, new = second.read(TIMEOUT)
            assert ok
            value = new[0, 0, 0]
        assert value == 8
        assert second.owner
        assert (image == 7).all()


def test_owner_that_exits_leaves_nothing(name):
    code = """
    import sys, numpy as np, tshare, time
    camera = tshare.Camera(lambda: time.sleep(0.001) or np.ones(3), sys.argv[1])
    print(camera.take()["image"].numpy().sum())
    """
    assert run_in_silence(code, name) == "3.0"
    for part in ("", ".owner", ".seats"):
        with pytest.raises(FileNotFoundError):
            tshare.unlink(name + part)


def test_thread_doesn_t_own_the_camera_again_at_exit(name):
    # What atexit runs ends the owner's thread, and a daemon's goes on.
    code = """
    import sys, threading, time, weakref, numpy as np, tshare
    camera = tshare.Camera(lambda: time.sleep(0.001) or np.ones(3), sys.argv[1])
    thread = threading.Thread(target=lambda: [frame.close() for frame in camera], daemon=True)
    thread.start()
    weakref.finalize._exitfunc()
    thread.join()
    print(camera.owner, camera.isOpened())
    """
    assert run_in_silence(code, name) == "False False"


def test_a_camera_that_is_dropped_is_released(name):
    camera = tshare.Camera(images(), name)
    threads = threading.active_count()
    del camera
    until(lambda: threading.active_count() < threads)
    with pytest.raises(FileNotFoundError):
        tshare.Stream.open(name)
    with pytest.raises(FileNotFoundError):
        tshare.unlink(f"{name}.owner")


def test_release_ends_a_wait_of_another_thread(name):
    go = threading.Event()

    def source():
        if threading.current_thread() is not threading.main_thread():
            go.wait()
        return np.zeros(3)

    camera = tshare.Camera(source, name)
    assert camera.read(TIMEOUT)[0]
    results = []
    thread = threading.Thread(target=lambda: results.append(camera.read()))
    thread.start()
    time.sleep(0.1)
    with pytest.raises(TimeoutError):
        camera.take(0.01)
    threading.Timer(0.1, go.set).start()
    camera.release()
    thread.join()
    assert results == [(False, None)]


@pytest.fixture
def moving(name):
    """A camera whose owner has ended, and an event: set while it waits for the next one."""
    waits = threading.Event()
    claim = tshare.create(f"{name}.owner", (1,), "uint8")
    stream = tshare.Stream.create(name, {"image": (3, "uint8")})
    camera = tshare.Camera(images(), name, wait=TIMEOUT)
    claim_it = camera._claim

    def try_to_claim(until):
        waits.set()
        return claim_it(until)

    camera._claim = try_to_claim
    stream.close()
    yield camera, waits
    claim.unlink()


def test_timeout_ends_a_wait_for_the_next_owner(moving):
    camera, waits = moving
    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        result = threads.submit(camera.read)
        waits.wait()
        begin = time.monotonic()
        # The other thread looks for the owner, and in the end this one does.
        with pytest.raises(TimeoutError, match="another thread"):
            camera.read(0.1)
        camera.release()
        assert result.result(TIMEOUT) == (False, None)
        assert time.monotonic() < begin + TIMEOUT / 2


def test_timeout_ends_the_wait_while_a_child_keeps_the_names(name, start, monkeypatch):
    code = """
    import os, sys, time, tshare
    stream = tshare.Stream.create(sys.argv[1], {"image": (3, "uint8")})
    if os.fork():
        time.sleep(300)
    # A child publishes as long as fork()'s handlers have not run in it.
    print(flush=True)
    sys.stdin.read()
    """
    owner = start(sys.executable, "-c", textwrap.dedent(code), name, stdin=subprocess.PIPE)
    owner.stdout.readline()
    with (
        tshare.create(f"{name}.owner", (1,), "uint8") as claim,
        tshare.Camera(images(), name, wait=TIMEOUT) as camera,
    ):

        def take_async(timeout):
            return asyncio.run(camera.take_async(timeout))

        claim_it, looks = camera._claim, []

        def look(until):
            looks.append(until)
            return claim_it(until)

        monkeypatch.setattr(camera, "_claim", look)
        owner.kill()
        owner.wait()
        begin = time.monotonic()
        for wait in (camera.take, camera.read_latest, take_async):
            for timeout in (0, 0.5):
                with pytest.raises(TimeoutError, match="has an owner, but no stream for"):
                    wait(timeout)
        assert time.monotonic() < begin + TIMEOUT / 2
        # Not without a pause.
        assert len(looks) < 100
        claim.unlink()


def test_timeout_ends_the_wait_for_a_busy_device(name, monkeypatch):
    def busy(*_):
        raise OSError(errno.EBUSY, "busy")

    monkeypatch.setattr(_v4l2, "V4L2", busy)
    with tshare.Camera(images(), name) as first, tshare.Camera("/dev/null", name) as second:
        first.release()
        with pytest.raises(TimeoutError, match="/dev/null is in use by another program"):
            for _ in iter(lambda: second.read(0.1), None):
                pass
        with pytest.raises(OSError, match="/dev/null is in use by another program") as caught:
            second.read()
        assert caught.value.errno == errno.EBUSY


def test_handler_of_a_signal_releases_a_camera_that_waits(moving):
    camera, waits = moving

    def interrupt():
        waits.wait()
        signal.raise_signal(signal.SIGUSR1)

    thread = threading.Thread(target=interrupt)
    before = signal.signal(signal.SIGUSR1, lambda *_: camera.release())
    thread.start()
    try:
        assert camera.read() == (False, None)
    finally:
        signal.signal(signal.SIGUSR1, before)
        thread.join()


def test_forked_child_releases_a_camera_that_waits(moving):
    camera, waits = moving
    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        result = threads.submit(camera.read)
        waits.wait()
        if not (child := os.fork()):
            signal.alarm(TIMEOUT)
            camera.release()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        camera.release()
        assert result.result(TIMEOUT) == (False, None)


def test_release_while_the_source_is_opened_leaves_nothing(name):
    opening, go = threading.Event(), threading.Event()

    def source():
        opening.set()
        go.wait()
        return np.zeros(3)

    first, second = tshare.Camera(images(), name), tshare.Camera(source, name)
    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        result = threads.submit(lambda: [ok for ok, _ in iter(second.read, (False, None))])
        first.release()
        opening.wait()
        second.release()
        go.set()
        result.result(TIMEOUT)
    with tshare.Camera(images(), name) as camera:
        assert camera.owner


def test_forked_child_opens_its_own(camera, name):
    read, write = os.pipe()
    if not (child := os.fork()):
        try:
            camera.take(TIMEOUT)
        except OSError as error:
            os.write(write, errno.errorcode[error.errno].encode())
        with tshare.Camera("/dev/null", name) as own:
            os.write(write, b" own" if own.read(TIMEOUT)[0] else b"")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 100) == b"ENOTSUP own"
    os.close(read)
    os.close(write)
    assert camera.read(TIMEOUT)[0]


def test_child_of_a_forked_child_keeps_its_files():
    camera = _v4l2.V4L2.__new__(_v4l2.V4L2)
    camera.fd = os.open("/dev/null", os.O_RDONLY)
    _v4l2._cameras.add(camera)
    try:
        if not (child := os.fork()):
            file = os.open("/dev/zero", os.O_RDONLY)
            if not (grandchild := os.fork()):
                # The number was free.
                os._exit(0 if file == camera.fd and os.read(file, 1) else 1)
            os._exit(os.waitpid(grandchild, 0)[1] != 0)
        assert os.waitpid(child, 0)[1] == 0
    finally:
        camera.close()


# Ends and errors

IMAGE = np.zeros(3, "int16")


@pytest.mark.parametrize("last", [None, (False, None), (False, IMAGE), StopIteration])
def test_the_source_s_end_is_everybody_s(name, last):
    found = [np.full(3, i, "int16") for i in range(4)]
    both, ends = threading.Event(), []

    def source():
        if not found:
            both.wait()
            ends.append(last)
            if last is StopIteration:
                raise StopIteration
            return last
        return found.pop(0)

    with tshare.Camera(source, name) as first, tshare.Camera(source, name) as second:
        both.set()
        for camera in first, second:
            while camera.read(TIMEOUT)[0]:
                pass
            assert not camera.isOpened()
            with pytest.raises(EOFError, match="the source has ended"):
                camera.take()
        assert list(second) == []
        assert not second.owner
    assert ends == [last]


def test_heir_whose_source_has_ended_is_at_its_end(name):
    with tshare.Camera(images(), name) as first, tshare.Camera(lambda: None, name) as second:
        assert second.read(TIMEOUT)[0]
        first.release()
        while second.read(TIMEOUT)[0]:
            pass
        assert not second.isOpened()
        with tshare.Camera(images(), name) as third:
            assert third.owner


def test_last_frame_is_taken_while_another_thread_sees_the_end(name):
    with tshare.Camera(images(count=2), name) as camera:

        def take(stream, timeout):
            frame = stream.take(timeout)
            with pytest.raises(EOFError):
                camera.take(TIMEOUT)
            return frame

        camera.take(TIMEOUT).close()
        assert camera._get(take, TIMEOUT).number == 2


def test_what_the_source_raises_is_raised_for_the_owner(name):
    fail = threading.Event()

    def source():
        if fail.is_set():
            raise RuntimeError("no light")
        time.sleep(0.001)
        return np.zeros(3)

    with tshare.Camera(source, name) as owner, tshare.Camera(images(), name) as other:
        assert other.read(TIMEOUT)[0]
        fail.set()
        with pytest.raises(RuntimeError, match="no light"):
            for _ in owner:
                pass
        assert owner.read() == (False, None)
        # The other one's own source goes on.
        until(lambda: other.read(TIMEOUT)[1].shape == (4, 6, 3))
        assert other.owner


@pytest.mark.parametrize("other", [np.zeros((3, 4), "uint8"), np.zeros((4, 6, 3))])
def test_images_have_one_shape_and_dtype(name, other):
    source = itertools.chain(images(count=2), itertools.repeat(other))
    with tshare.Camera(source, name) as camera:
        with pytest.raises(ValueError, match=r"^source: returned .* before$"):
            for _ in camera:
                pass


@pytest.mark.parametrize(
    ("returned", "error"), [({}, TypeError), (images, TypeError), ((True, 1, 2), ValueError)]
)
def test_what_is_no_image_is_an_error_of_the_source(name, returned, error):
    with pytest.raises(error, match=r"^source: "):
        tshare.Camera(lambda: returned, name)


def test_a_function_that_raises_at_once_leaves_nothing(name):
    def source():
        raise RuntimeError("no light")

    with pytest.raises(RuntimeError, match="no light"):
        tshare.Camera(source, name)
    with pytest.raises(EOFError, match="source"):
        tshare.Camera(lambda: None, name)
    with tshare.Camera(images(), name) as camera:
        assert camera.owner


def test_a_claim_that_fails_is_given_up_at_once(name):
    with pytest.raises(ValueError, match="hold") as caught:
        tshare.Camera(images(), name, hold=257)
    # The traceback has the object still.
    with tshare.Camera(images(), name) as camera:
        assert camera.owner
        assert camera.read(TIMEOUT)[0]
    assert caught.tb


def test_an_heir_that_can_t_start_gives_the_camera_up(name, monkeypatch):
    def start(self):
        raise RuntimeError("no thread")

    with tshare.Camera(images(7), name) as first, tshare.Camera(images(8), name) as second:
        monkeypatch.setattr(threading.Thread, "start", start)
        first.release()
        with pytest.raises(RuntimeError, match="no thread"):
            for _ in second:
                pass
        assert not second.owner
        monkeypatch.undo()
        with tshare.Camera(images(9), name) as third:
            assert third.owner
            assert second.read(TIMEOUT)[1][0, 0, 0] == 9


def test_wrong_arguments(name):
    with pytest.raises(TypeError, match=r"^source: must be a device, a function or an iterator"):
        tshare.Camera(1.5, name)
    with pytest.raises(FileNotFoundError, match="/dev/video4711"):
        tshare.Camera(4711, name)
    with pytest.raises(OSError, match="/dev/null is no camera with the single-planar") as caught:
        tshare.Camera("/dev/null", name)
    assert caught.value.errno == errno.ENOTTY
    with pytest.raises(ValueError, match="slots"):
        tshare.Camera(images(), name, slots=257)
    with tshare.Stream.create(name, {"a": (3, "uint8")}):
        with pytest.raises(FileExistsError, match=name):
            tshare.Camera(images(), name)
    with pytest.raises(ValueError, match="^wait: "):
        tshare.Camera(images(), name, wait=-1)
    # All of them have let the name go.
    with tshare.Camera(images(), name) as camera:
        assert camera.owner


def test_wrong_timeouts(camera):
    def take_async(timeout):
        return asyncio.run(camera.take_async(timeout))

    for wait in (camera.take, camera.latest, camera.read, camera.read_latest, take_async):
        for timeout in (-1, float("nan")):
            with pytest.raises(ValueError, match="^timeout: "):
                wait(timeout)
        with pytest.raises(TypeError, match="^timeout: "):
            wait("x")


def test_an_owner_without_a_stream_is_named(name):
    with tshare.create(f"{name}.owner", (1,), "uint8") as claim:
        with pytest.raises(TimeoutError, match=f"{name}' has an owner, but no stream for 0.1 s"):
            tshare.Camera(images(), name, wait=0.1)
        claim.unlink()


# With a device

needs_module = pytest.mark.skipif(
    not tshare.limits().dmabuf, reason="shared memory has no dma-bufs"
)


def frame_from(process):
    """Return the stream and the number of the frame that a process reads next."""
    line = process.stdout.readline()
    if line == "owner\n":
        return frame_from(process)
    assert line, process.communicate()[1]
    return [int(number) for number in line.split()]


def frames_until(process, more):
    """Read frames until that many have passed since the first one, and return the stream."""
    stream, first = frame_from(process)
    while frame_from(process)[1] < first + more:
        pass
    return stream


@needs_module
def test_device_goes_on_with_the_next_owner(device, name, program):
    processes = [program(device) for _ in range(3)]
    streams = {frames_until(process, 8) for process in processes}
    processes[0].kill()
    processes[0].communicate()
    assert len(streams) == 1
    for process in processes[1:]:
        while frame_from(process)[0] in streams:
            pass
    with tshare.Camera(device, name, dma32=True, wait=TIMEOUT) as camera:
        assert not camera.owner
        with camera.take(TIMEOUT) as frame:
            assert frame["image"].shape == (180, 320, 2)
            assert frame.captured
            assert frame.slot not in vivid.queued(device)
        for process in processes[1:]:
            frames_until(process, 8)
    # The heir, too.
    for process in processes[1:]:
        process.kill()
        process.communicate()
    with tshare.Camera(device, name, dma32=True, wait=TIMEOUT) as camera:
        assert camera.owner
        assert camera.copies is None
        assert camera.read(TIMEOUT)[0]


@needs_module
def test_slots_that_can_not_be_exported_leave_no_descriptor(device, name, monkeypatch):
    exported = []

    def fail_at_the_third(fd, flags):
        exported.append(fd)
        if len(exported) == 3:
            raise OSError(errno.EIO, "no dma-buf")

    monkeypatch.setattr("tshare._v4l2._sync", fail_at_the_third)
    with tshare.Camera(device, name, dma32=True) as camera:
        with pytest.raises(OSError, match="no dma-buf"):
            camera.take(TIMEOUT)
    for fd in exported:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(fd)
