# SPDX-License-Identifier: MIT
"""CUDA streams that publish and release frames and entries, on the stub of NVIDIA's driver."""

import contextlib
import errno
import os

import numpy as np
import pytest

import tshare
from support import NOT_SUPPORTED, other_threads_run_during, run, spawn, with_stub

FIELDS = {"image": ((4, 6), "float32")}


@pytest.fixture
def producer(name):
    with tshare.Stream.create(name, FIELDS, slots=3) as stream:
        yield stream


@pytest.fixture
def consumer(name, producer):
    with tshare.Stream.open(name) as stream:
        yield stream


def publish(producer, value=0):
    with producer.loan(0) as frame:
        frame["image"].numpy()[:] = value


def slots_come_back(producer, count):
    """Whether that many slots can be claimed at a time."""
    frames = [producer.loan(60) for _ in range(count)]
    with pytest.raises(TimeoutError):
        producer.loan(0)
    for frame in frames:
        frame.close()
    return True


both = pytest.mark.parametrize("method", ["publish_on", "release_on"])


class Closes:
    """A stream that closes what it is given to."""

    def __init__(self, closed, stream):
        self.closed, self.stream = closed, stream

    def __cuda_stream__(self):
        self.closed.close()
        return 0, self.stream.handle


# Publishing


def test_frame_is_published_when_the_cuda_stream_comes_to_it(cuda, producer, consumer):
    let_go = cuda.hold()
    frame = producer.loan(0)
    frame["image"].numpy()[:] = 7
    assert frame.publish_on(cuda) is None
    with pytest.raises(TimeoutError):
        consumer.take(0.1)
    assert (frame.number, frame.published) == (0, 0)
    assert " queued>" in repr(frame)
    let_go()
    with consumer.take(60) as taken:
        assert np.all(taken["image"].numpy() == 7)
        cuda.synchronize()
        assert (frame.number, frame.published) == (1, taken.published)
    assert "queued" not in repr(frame)


def test_block_leaves_a_queued_frame_to_the_cuda_stream(cuda, producer, consumer):
    let_go = cuda.hold()
    with producer.loan(0) as frame:
        frame.publish_on(cuda.handle)
    assert frame.closed
    publish(producer)
    assert [consumer.take(0).number, consumer.newest] == [1, 1]
    let_go()
    assert consumer.take(60).number == 2
    cuda.synchronize()


def test_block_that_fails_does_not_take_a_queued_frame_back(cuda, producer, consumer):
    with contextlib.suppress(KeyError), producer.loan(0) as frame:
        frame.publish_on(cuda)
        raise KeyError
    assert consumer.take(60).number == 1


def test_queued_frame_is_the_cuda_stream_s(cuda, producer):
    let_go = cuda.hold()
    frame = producer.loan(0)
    frame.publish_on(stream=cuda)
    for use in (
        frame.publish,
        lambda: frame.publish_on(cuda),
        lambda: frame.set_shape("image", (1, 1)),
        lambda: setattr(frame, "sequence", 1),
    ):
        with pytest.raises(PermissionError, match="a CUDA stream is to publish it already"):
            use()
    let_go()
    cuda.synchronize()


def test_stream_that_closes_first_publishes_nothing(cuda, producer, consumer):
    let_go = cuda.hold()
    frame, late = producer.loan(0), producer.loan(0)
    frame.publish_on(cuda)
    producer.close()
    with pytest.raises(ValueError, match="^stream is closed$"):
        late.publish_on(cuda)
    let_go()
    cuda.synchronize()
    with pytest.raises(EOFError):
        consumer.take(60)
    assert frame.number == 0


def test_consumer_s_frame_is_not_published(cuda, producer, consumer):
    publish(producer)
    with consumer.take(0) as frame, pytest.raises(PermissionError, match="read-only"):
        frame.publish_on(cuda)


# Releasing


def test_frame_is_released_when_the_cuda_stream_comes_to_it(cuda, producer, consumer):
    publish(producer, 5)
    publish(producer)
    frame = consumer.take(0)
    let_go = cuda.hold()
    assert frame.release_on(cuda) is None
    assert frame.closed
    assert frame.number == 1
    assert slots_come_back(producer, 1)
    let_go()
    assert slots_come_back(producer, 2)


def test_array_keeps_a_frame_that_the_cuda_stream_has_released(cuda, producer, consumer):
    publish(producer, 5)
    publish(producer)
    frame = consumer.take(0)
    array = frame["image"].numpy()
    frame.release_on(cuda)
    cuda.synchronize()
    assert slots_come_back(producer, 1)
    assert np.all(array == 5)
    del array
    assert slots_come_back(producer, 2)


def test_loop_ends_with_frames_that_cuda_streams_hold(cuda, producer, consumer):
    """As PyTorch's asynchronous copies are used: in turn, without a synchronisation."""
    for number in range(1, 50):
        with producer.loan(60) as frame:
            frame.publish_on(cuda)
        taken = consumer.take(60)
        assert taken.number == number
        taken.release_on(cuda)


# Pins


def test_one_pin_is_for_all_slots(stub, cuda, producer, consumer):
    with producer.region.pin(), consumer.region.pin():
        for _ in range(8):
            with producer.loan(60) as frame:
                assert stub.stub_flags(frame["image"].numpy().ctypes.data)
            with consumer.take(60) as frame:
                assert stub.stub_flags(frame["image"].numpy().ctypes.data)
        assert stub.stub_calls(b"cuMemHostRegister") == 2


# Threads of CUDA streams whose context has ended may still look at these.
lost = []


def test_context_that_ends_gives_queued_frames_back(stub, cuda, producer, consumer):
    let_go = cuda.hold()
    frames = [producer.loan(0) for _ in range(3)]
    for frame in frames[1:]:
        frame.publish_on(cuda)
        frame.close()
    assert stub.stub_calls(b"cuMemHostRegister") == 1
    cuda.destroy()
    assert len([producer.loan(0) for _ in range(2)]) == 2
    let_go()
    lost.append(let_go)
    cuda.__init__(stub)
    frames[0].publish_on(cuda)
    assert consumer.take(60).number == 1


# Entries of pools


@pytest.fixture
def pool(name):
    with tshare.Pool.create(name, 4096, slots=1) as pool:
        yield pool


def test_entry_is_finished_when_the_cuda_stream_comes_to_it(cuda, pool):
    let_go = cuda.hold()
    with pool.make("a", {"x": (4, "uint8")}) as entry:
        entry["x"].numpy()[:] = 7
        assert entry.finish_on(cuda) is None
        assert repr(entry) == "<tshare.Entry ('x',) queued>"
        with pytest.raises(PermissionError, match="a CUDA stream is to finish it already"):
            entry.finish()
    assert entry.closed
    assert pool.get("a") is None
    let_go()
    cuda.synchronize()
    assert list(pool.get("a")["x"].numpy()) == [7] * 4


def test_entry_is_released_when_the_cuda_stream_comes_to_it(cuda, pool):
    entry = pool.put("a", {"x": np.ones(4)})
    let_go = cuda.hold()
    assert entry.release_on(stream=cuda.handle) is None
    assert entry.closed
    with pytest.raises(TimeoutError):
        pool.put("b", {"x": np.ones(4)}, timeout=0.1)
    let_go()
    assert pool.put("b", {"x": np.ones(4)}, timeout=60)
    cuda.synchronize()


entry_both = pytest.mark.parametrize("method", ["finish_on", "release_on"])


@entry_both
def test_entry_stays_as_it_was_if_cuda_refuses(stub, cuda, pool, method):
    with pool.make("a", {"x": (4, "uint8")}) as entry:
        stub.stub_fail(b"cuLaunchHostFunc", 1, 999)
        with pytest.raises(OSError, match="stream") as caught:
            getattr(entry, method)(cuda)
        assert caught.value.errno == errno.EIO
        with pytest.raises(TypeError, match="stream: "):
            getattr(entry, method)(None)
        assert " unfinished>" in repr(entry)
    assert pool.get("a")


@entry_both
def test_closed_entry_is_refused(cuda, pool, method):
    entry = pool.make("a", {"x": (4, "uint8")})
    for given in (Closes(entry, cuda), cuda):
        with pytest.raises(ValueError, match="^entry is closed$"):
            getattr(entry, method)(given)
    assert cuda.is_idle()


# Arguments and failures


@both
@pytest.mark.parametrize(
    ("given", "error"),
    [(0, ValueError), (-1, ValueError), (None, TypeError), ("1", TypeError), (1.0, TypeError)],
)
def test_other_streams_are_refused(cuda, producer, method, given, error):
    with producer.loan(0) as frame:
        with pytest.raises(error, match="stream: "):
            getattr(frame, method)(given)
        assert not frame.closed


@both
def test_arguments_are_checked(cuda, producer, method):
    with producer.loan(0) as frame:
        with pytest.raises(TypeError, match=method):
            getattr(frame, method)()
        with pytest.raises(TypeError, match=method):
            getattr(frame, method)(cuda, 0)
        with pytest.raises(ValueError, match="there is no device 1"):
            getattr(frame, method)(cuda, device="cuda:1")


@both
def test_closed_frame_is_refused(cuda, producer, method):
    frame = producer.loan(0)
    with pytest.raises(ValueError, match="^frame is closed$"):
        getattr(frame, method)(Closes(frame, cuda))
    with pytest.raises(ValueError, match="^frame is closed$"):
        getattr(frame, method)(cuda)
    assert cuda.is_idle()


@both
@pytest.mark.parametrize(("result", "number"), [(999, errno.EIO), (2, errno.ENOMEM)])
def test_refusal_of_the_driver_leaves_the_frame_as_it_was(
    stub, cuda, producer, consumer, method, result, number
):
    frame = producer.loan(0)
    stub.stub_fail(b"cuLaunchHostFunc", 1, result)
    with pytest.raises(OSError, match="stream") as caught:
        getattr(frame, method)(cuda)
    assert caught.value.errno == number
    assert " loaned>" in repr(frame)
    frame.publish()
    assert consumer.take(0).number == 1


def test_without_a_driver_the_error_says_what_is_missing(tmp_path, name):
    (tmp_path / "libcuda.so.1").write_text("text")
    code = """
        import sys
        import tshare
        with tshare.Stream.create(sys.argv[1], {"a": (4, "uint8")}) as stream:
            for method in ("publish_on", "release_on"):
                frame = stream.loan()
                try:
                    getattr(frame, method)(1)
                except OSError as error:
                    print(error.errno, error.strerror)
                frame.publish()
            print(stream.newest)
    """
    printed = run(code, name, env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}).splitlines()
    for line in printed[:2]:
        assert line.startswith(f"{errno.EOPNOTSUPP} CUDA: no NVIDIA driver: ")
    assert printed[2:] == ["2"]


# Processes

IN_PROGRAM = f"""
sys.path.insert(0, {os.path.dirname(__file__)!r})
from support import Stream
cuda = Stream(stub)
stream = tshare.Stream.create("pytest-cuda-frames-%d" % os.getpid(), {{"a": (4, "uint8")}})
reader = tshare.Stream.open(stream.name)
frame = stream.loan()
"""


def test_forked_child_leaves_the_parent_s_frames_alone():
    code = (
        IN_PROGRAM
        + """
def errno_of(use):
    try:
        use(cuda)
    except OSError as error:
        return errno.errorcode[error.errno]

child = os.fork()
if not child:
    print(errno_of(frame.publish_on), errno_of(frame.release_on), flush=True)
    os._exit(0)
print(os.waitpid(child, 0)[1], flush=True)
frame.publish_on(cuda)
print(reader.take(60).number)
"""
    )
    assert with_stub(code).splitlines() == [f"{NOT_SUPPORTED} {NOT_SUPPORTED}", "0", "1"]


@pytest.mark.parametrize("end", ["", "frame.close()", "del frame, stream, reader"])
def test_exit_leaves_queued_frames_to_the_driver(end):
    # The stub ends a process with 99 whose streams have work at exit for long.
    code = f"""{IN_PROGRAM}
import atexit
let_go = cuda.hold()
atexit.register(let_go)
frame.publish_on(cuda)
stream.loan().release_on(cuda)
print(frame.number)
{end}
"""
    assert with_stub(code) == "0"


def test_frame_of_a_producer_that_is_killed_first_is_not_published(name, stub):
    process = spawn(
        f"""
        import ctypes, os, sys
        sys.path.insert(0, {os.path.dirname(__file__)!r})
        import tshare
        from support import Stream, load_stub
        cuda = Stream(load_stub())
        stream = tshare.Stream.create(sys.argv[1], {{"a": (4, "uint8")}}, slots=3)
        stream.loan().publish()
        let_go = cuda.hold()
        with stream.loan() as frame:
            frame.publish_on(cuda)
        print("queued", flush=True)
        sys.stdin.read()
        """,
        name,
    )
    assert process.stdout.readline() == "queued\n"
    with tshare.Stream.open(name, history=1) as consumer:
        assert consumer.take(60).number == 1
        process.kill()
        process.communicate()
        with pytest.raises(OSError, match="producer has exited") as caught:
            consumer.take(60)
        assert caught.value.errno == errno.EOWNERDEAD


# The GIL


@both
def test_other_threads_run_meanwhile(method):
    assert other_threads_run_during("cuLaunchHostFunc", IN_PROGRAM, f"frame.{method}(cuda)")


def test_other_threads_run_while_a_get_looks_for_lost_contexts():
    prepare = f"""{IN_PROGRAM}
frame.publish()
reader = tshare.Stream.open(stream.name, history=1, hold=1)
let_go = cuda.hold()
reader.take(60).release_on(cuda)
stream.loan().publish()

def get():
    try:
        reader[2]
    except OSError as error:
        assert error.errno == errno.ENOBUFS
    let_go()
    cuda.synchronize()
"""
    assert other_threads_run_during("cuEventCreate", prepare, "get()")
