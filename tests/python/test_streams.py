# SPDX-License-Identifier: MIT
"""Streams that publish and wait, on the stub of NVIDIA's driver."""

import copy
import ctypes
import errno
import gc
import math
import os
import pickle
import threading
import time
import weakref
from pathlib import Path

import numpy as np
import pytest

import tshare
from support import (
    NOT_SUPPORTED,
    STUB,
    need,
    other_threads_run_during,
    run,
    spawn,
    version,
    with_stub,
)

LEGACY, PER_THREAD = 1, 2
STREAM_VALUES = 122  # an attribute of devices


@pytest.fixture
def stream(cuda):
    return cuda


@pytest.fixture
def region():
    return tshare.Region.create(size=1)


@pytest.fixture
def other(region):
    """Another object of the region."""
    return tshare.Region.from_fd(region.fileno())


class Object:
    """An object that has a stream, as libraries make them."""

    def __init__(self, pair):
        self.pair = pair

    def __cuda_stream__(self):
        return self.pair


both = pytest.mark.parametrize(
    "use",
    [
        lambda region, stream, **options: region.publish_on(stream, **options),
        lambda region, stream, **options: region.wait_on(stream, 0, **options),
    ],
    ids=["publish", "wait"],
)


# Publishing


def test_stream_publishes_when_it_comes_to_that(stream, region, other):
    let_go = stream.hold()
    assert region.publish_on(stream.handle) is None
    with pytest.raises(TimeoutError):
        other.wait(0, 0.1)
    let_go()
    assert other.wait(0, 60) == 1


def test_each_publish_of_a_stream_counts(stream, region):
    for _ in range(100):
        region.publish_on(stream=stream)
    stream.synchronize()
    assert region.generation == 100


def test_stream_publishes_although_the_region_was_closed(stream, region, other):
    let_go = stream.hold()
    region.publish_on(stream)
    region.close()
    let_go()
    assert other.wait(0, 60) == 1
    with pytest.raises(OSError, match="publishers have exited"):
        other.wait(1, 60)


def test_stream_publishes_to_other_processes(stream, name):
    region = tshare.Region.create(name, size=1)
    process = spawn(
        """
        import sys
        import tshare
        with tshare.Region.open(sys.argv[1], readonly=True) as region:
            print(region.wait(0, 60))
        """,
        name,
    )
    region.publish_on(stream)
    assert process.communicate(timeout=300)[0] == "1\n"


# Waiting

PUBLISHER = """
    import sys
    import tshare
    region = tshare.Region.open(sys.argv[1])
    for line in sys.stdin:
        print(region.publish(), flush=True)
"""


@pytest.fixture
def publisher(name):
    """Another process, which publishes what it reads a line for."""
    process = spawn(PUBLISHER, name)
    yield process
    process.kill()
    process.communicate()


def publish(process):
    process.stdin.write("\n")
    process.stdin.flush()
    return int(process.stdout.readline())


@pytest.fixture
def shared(name, request):
    region = tshare.Region.create(name, size=1)
    return region, request.getfixturevalue("publisher")


def test_stream_waits_until_another_process_publishes(stream, shared):
    region, publisher = shared
    wait = region.wait_on(stream, 0)
    assert stream.waits()
    assert not wait.done
    with pytest.raises(BlockingIOError, match="nothing was published") as caught:
        wait.result()
    assert caught.value.errno == errno.EINPROGRESS
    assert publish(publisher) == 1
    stream.synchronize()
    assert wait.done
    assert wait.result() == 1
    assert wait.result() == 1


def test_processes_take_turns_by_their_streams(stream, name, new_name):
    code = f"""
        sys.path.insert(0, {os.path.dirname(__file__)!r})
        from support import Stream
        stream = Stream(stub)
        there, back = map(tshare.Region.open, sys.argv[2:])
        for turn in range(50):
            there.wait_on(stream, turn, 60)
            back.publish_on(stream)
        stream.synchronize()
        print(there.generation)
    """
    there, back = tshare.Region.create(name, size=1), tshare.Region.create(new_name(), size=1)
    thread_s = []
    thread = threading.Thread(
        target=lambda: thread_s.append(with_stub(code, there.name, back.name))
    )
    thread.start()
    waits = []
    for turn in range(50):
        there.publish_on(stream)
        waits.append(back.wait_on(stream, turn, 60))
    stream.synchronize()
    assert all(wait.result() > turn for turn, wait in enumerate(waits))
    thread.join()
    assert thread_s == ["50"]


def test_stream_doesn_t_wait_for_what_was_published(stream, region, other):
    other.publish()
    other.publish()
    wait = region.wait_on(stream, 1)
    assert wait.done
    assert wait.result() == 2
    stream.synchronize()


@pytest.mark.parametrize("timeout", [0, 0.0, False, 1e-12, np.float32(0.2), 0.2])
def test_stream_waits_until_its_time_is_over(stream, region, timeout):
    start = time.monotonic()
    wait = region.wait_on(stream, 0, timeout)
    stream.synchronize()
    assert time.monotonic() - start >= timeout
    with pytest.raises(TimeoutError, match="timeout: ") as caught:
        wait.result()
    assert caught.value.errno == errno.ETIMEDOUT


@pytest.mark.parametrize("timeout", [None, math.inf, 1e300, 60])
def test_stream_waits_long(stream, region, timeout):
    wait = region.wait_on(stream, seen=0, timeout=timeout)
    assert stream.waits()
    region.publish()
    stream.synchronize()
    assert wait.result() == 1


def test_stream_doesn_t_wait_for_dead_publishers(stream, shared):
    region, publisher = shared
    assert publish(publisher) == 1
    wait = region.wait_on(stream, 1)
    assert stream.waits()
    publisher.kill()
    stream.synchronize()
    with pytest.raises(OSError, match="publishers have exited") as caught:
        wait.result()
    assert caught.value.errno == errno.EOWNERDEAD


def test_any_number_of_waits_may_be_under_way(stream, region):
    waits = [region.wait_on(stream, seen) for seen in range(200)]
    for _ in waits:
        region.publish()
    stream.synchronize()
    assert all(wait.result() > seen for seen, wait in enumerate(waits))


# Giving up


def test_close_ends_the_waits_of_that_object(stream, region, other):
    wait, stays = region.wait_on(stream, 0), other.wait_on(stream, 0)
    region.close()
    with pytest.raises(ValueError, match=r"^region: closed during wait_on\(\)$"):
        wait.result()
    assert wait.done
    assert stream.waits()
    assert not stays.done
    other.publish()
    stream.synchronize()
    assert stays.result() == 1


def test_region_that_is_dropped_leaves_its_waits(stream, region):
    dropped = tshare.Region.from_fd(region.fileno())
    wait, reference = dropped.wait_on(stream, 0), weakref.ref(dropped)
    del dropped
    gc.collect()
    assert reference() is None
    assert stream.waits()
    region.publish()
    stream.synchronize()
    assert wait.result() == 1


def test_wait_can_be_cancelled(stream, region):
    wait, stays = region.wait_on(stream, 0), region.wait_on(stream, 0)
    assert wait.cancel() is None
    wait.cancel()
    assert wait.done
    with pytest.raises(OSError, match="cancelled") as caught:
        wait.result()
    assert caught.value.errno == errno.ECANCELED
    assert stream.waits()
    assert not stays.done
    region.publish()
    stream.synchronize()
    assert stays.result() == 1


def test_cancelled_wait_stays_so_when_the_region_is_closed(stream, region):
    wait = region.wait_on(stream, 0)
    wait.cancel()
    region.close()
    with pytest.raises(OSError, match="cancelled"):
        wait.result()


def test_wait_that_is_over_can_t_be_cancelled(stream, region, other):
    region.publish()
    found, late, closed = (
        region.wait_on(stream, 0),
        region.wait_on(stream, 1, 0),
        other.wait_on(stream, 1),
    )
    other.close()
    for wait in (found, late, closed):
        wait.cancel()
    assert found.result() == 1
    with pytest.raises(TimeoutError):
        late.result()
    with pytest.raises(ValueError, match="closed"):
        closed.result()


def test_close_in_another_thread_ends_waits(stream, region, other):
    waits = []

    def wait():
        try:
            while True:
                waits.append(region.wait_on(stream, 0))
        except ValueError as error:
            waits.append(error)

    threads = [threading.Thread(target=wait) for _ in range(2)]
    for thread in threads:
        thread.start()
    while len(waits) < 20:
        time.sleep(0.001)
    region.close()
    for thread in threads:
        thread.join()
    stream.synchronize()
    for wait in waits:
        with pytest.raises(ValueError, match=r"^region(: closed during wait_on\(\)| is closed)$"):
            raise wait if isinstance(wait, ValueError) else wait.result()


@pytest.mark.parametrize("function", [b"cuStreamGetCtx", b"cuStreamWaitValue64"])
def test_close_during_the_call_ends_the_wait(stub, stream, region, function):
    hook = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: region.close())
    stub.stub_set_hook(function, hook, None)
    wait = region.wait_on(stream, 0)
    stub.stub_set_hook(function, None, None)
    stream.synchronize()
    with pytest.raises(ValueError, match=r"^region: closed during wait_on\(\)$"):
        wait.result()


def test_close_during_the_call_leaves_a_publish(stub, stream, region, other):
    hook = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: region.close())
    stub.stub_set_hook(b"cuLaunchHostFunc", hook, None)
    region.publish_on(stream)
    stub.stub_set_hook(b"cuLaunchHostFunc", None, None)
    assert other.wait(0, 60) == 1


# StreamWait


def test_stream_waits_on_when_the_object_is_gone(stream, region):
    wait = region.wait_on(stream, 0)
    reference = weakref.ref(wait)
    del wait
    assert reference() is None
    region.wait_on(stream, 0)
    assert stream.waits()
    region.publish()
    stream.synchronize()


def test_wait_says_what_it_is(stream, region):
    wait = region.wait_on(stream, 0)
    assert isinstance(wait, tshare.StreamWait)
    assert repr(wait) == "<tshare.StreamWait waiting>"
    region.publish()
    stream.synchronize()
    assert repr(wait) == "<tshare.StreamWait generation=1>"
    assert repr(region.wait_on(stream, 1, 0)) == "<tshare.StreamWait failed>"


def test_wait_can_t_be_pickled_or_copied_or_made(stream, region, travel):
    wait = region.wait_on(stream, 0, 0)
    for send in (pickle.dumps, travel, copy.copy, copy.deepcopy, type(wait).__reduce__):
        with pytest.raises(TypeError, match=r"send the Tensor.*wait_on\(\)"):
            send(wait)
    with pytest.raises(TypeError):
        type(wait)()


# Arguments


@pytest.mark.parametrize("make", [int, np.uint64, lambda handle: Object((0, handle))])
def test_stream_is_a_handle_or_an_object(stream, region, make):
    wait = region.wait_on(make(stream.handle), 0)
    assert stream.waits()
    region.publish_on(make(stream.handle))
    wait.cancel()
    stream.synchronize()
    assert region.generation == 1


@pytest.mark.parametrize(
    ("given", "handle"),
    [
        (1, LEGACY),
        (2, PER_THREAD),
        (Object((0, 0)), LEGACY),
        (Object((0, 1)), LEGACY),
        (Object((0, 2)), PER_THREAD),
    ],
)
def test_default_streams(stream, region, given, handle):
    wait = region.wait_on(given, 0)
    assert stream.waits(handle)
    assert stream.is_idle(LEGACY + PER_THREAD - handle)
    assert stream.is_idle()
    wait.cancel()
    region.publish_on(given)
    stream.synchronize(handle)
    assert region.generation == 1


@both
@pytest.mark.parametrize(
    ("given", "error"),
    [
        (0, ValueError),
        (-1, ValueError),
        (-2, ValueError),
        (2**64, ValueError),
        (True, ValueError),
        (None, TypeError),
        ("1", TypeError),
        (b"1", TypeError),
        (1.0, TypeError),
        (object(), TypeError),
        (Object((1, 1)), ValueError),
        (Object((0, -1)), ValueError),
        (Object((0, 2**64)), ValueError),
        (Object((0, "1")), TypeError),
        (Object((0, None)), TypeError),
        (Object((0,)), TypeError),
        (Object([0, 1]), TypeError),
        (Object(1), TypeError),
        (Object(None), TypeError),
    ],
)
def test_other_streams_are_refused(stub, stream, region, use, given, error):
    with pytest.raises(error, match="^stream: "):
        use(region, given)
    assert stub.stub_calls(b"cuStreamGetCtx") == 0


@both
def test_error_of_a_stream_s_object_is_passed_on(stream, region, use):
    class Broken:
        def __cuda_stream__(self):
            raise KeyError("no stream")

    with pytest.raises(KeyError, match="no stream"):
        use(region, Broken())


@both
def test_error_of_a_property_is_passed_on(stream, region, use):
    class Broken:
        @property
        def __cuda_stream__(self):
            raise KeyError("no stream")

    with pytest.raises(KeyError, match="no stream"):
        use(region, Broken())


@both
def test_property_instead_of_a_method_is_refused(stream, region, use):
    class Property:
        __cuda_stream__ = (0, 1)

    with pytest.raises(TypeError, match="^stream: .*method, not <class 'tuple'>"):
        use(region, Property())


def test_arguments_that_are_missing_or_too_many(stream, region):
    with pytest.raises(TypeError, match="argument 'stream'"):
        region.publish_on()
    with pytest.raises(TypeError, match="argument 'stream'"):
        region.wait_on(seen=0)
    with pytest.raises(TypeError, match="argument 'seen'"):
        region.wait_on(stream)
    with pytest.raises(TypeError, match="positional"):
        region.publish_on(stream, 0)
    with pytest.raises(TypeError, match="positional"):
        region.wait_on(stream, 0, None, 0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'spin'"):
        region.wait_on(stream, 0, spin=1)


@pytest.mark.parametrize(
    ("seen", "error"),
    [(-1, ValueError), (2**63, ValueError), (None, TypeError), ("0", TypeError), (0.0, TypeError)],
)
def test_other_generations_are_refused(stub, stream, region, seen, error):
    with pytest.raises(error, match="^seen: "):
        region.wait_on(stream, seen)
    assert stub.stub_calls(b"cuStreamGetCtx") == 0


@pytest.mark.parametrize(
    ("timeout", "error"),
    [(-1, ValueError), (math.nan, ValueError), (-math.inf, ValueError), ("1", TypeError),
     (1j, TypeError)],
)  # fmt: skip
def test_other_timeouts_are_refused(stub, stream, region, timeout, error):
    with pytest.raises(error, match="^timeout: "):
        region.wait_on(stream, 0, timeout)
    assert stub.stub_calls(b"cuStreamGetCtx") == 0


@both
@pytest.mark.parametrize(
    ("device", "error", "what"),
    [
        (99, ValueError, "device: there is no device 99 of 2"),
        (1, ValueError, "device: the stream is of device 0, not 1"),
        ("cuda:1", ValueError, "device: the stream is of device 0, not 1"),
        ("cuda", ValueError, "device: must be .* not 'cuda'"),
        (-1, ValueError, "device: must be between 0"),
        (True, TypeError, "device: must be a number .* not True"),
        (0.0, TypeError, "device: must be a number .* not <class 'float'>"),
    ],
)
def test_other_devices_are_refused(stub, stream, region, use, device, error, what):
    stub.stub_set_devices(2)
    with pytest.raises(error, match=f"^{what}"):
        use(region, stream, device=device)


@pytest.mark.parametrize("device", [1, "cuda:1", None])
def test_default_streams_are_those_of_the_device(stub, stream, region, device):
    stub.stub_set_devices(2)
    primary, handle = ctypes.c_void_p(), ctypes.c_void_p(LEGACY)
    assert stub.cuDevicePrimaryCtxRetain(ctypes.byref(primary), 1) == 0
    wait = region.wait_on(LEGACY, 0, device=device)
    assert stream.waits(LEGACY) == (device is None)
    assert stub.cuCtxPushCurrent_v2(primary) == 0
    assert (stub.cuStreamQuery(handle) == 0) == (device is None)
    region.publish_on(PER_THREAD, device=device)
    wait.cancel()
    assert stub.cuStreamSynchronize(handle) == 0
    assert stub.cuCtxPopCurrent_v2(ctypes.byref(primary)) == 0
    assert region.wait(0, 60) == 1
    stream.synchronize(LEGACY)
    stream.synchronize(PER_THREAD)
    assert stub.cuDevicePrimaryCtxRelease_v2(1) == 0


@both
def test_device_without_a_context_has_no_streams(stub, region, use):
    with pytest.raises(ValueError, match="^stream: device 0 has no context"):
        use(region, LEGACY)


@both
def test_closed_region_is_refused(stream, region, use):
    region.close()
    with pytest.raises(ValueError, match="region is closed"):
        use(region, stream)


class Closes:
    """An argument that closes the region while it is read."""

    def __init__(self, region, value):
        self.region, self.value = region, value

    def read(self):
        self.region.close()
        return self.value

    __cuda_stream__ = read


class ClosesAsNumber(Closes):
    __index__ = __float__ = Closes.read
    __cuda_stream__ = property()


@pytest.mark.parametrize(
    "use",
    [
        lambda region, stream: region.publish_on(Closes(region, (0, stream.handle))),
        lambda region, stream: region.publish_on(ClosesAsNumber(region, stream.handle)),
        lambda region, stream: region.publish_on(stream, device=ClosesAsNumber(region, 0)),
        lambda region, stream: region.wait_on(Closes(region, (0, stream.handle)), 0),
        lambda region, stream: region.wait_on(stream, ClosesAsNumber(region, 0)),
        lambda region, stream: region.wait_on(stream, 0, ClosesAsNumber(region, 1.0)),
        lambda region, stream: region.wait_on(stream, 0, device=ClosesAsNumber(region, 0)),
    ],
)
def test_argument_may_close_the_region(stream, region, use):
    with pytest.raises(ValueError, match="^region is closed$"):
        use(region, stream)
    assert stream.is_idle()


def test_readonly_region_waits_and_does_not_publish(stream, name):
    region = tshare.Region.create(name, size=1)
    reader = tshare.Region.open(name, readonly=True)
    with pytest.raises(PermissionError, match="read-only"):
        reader.publish_on(stream)
    wait = reader.wait_on(stream, 0)
    region.publish_on(stream)
    assert stream.waits()
    region.publish()
    stream.synchronize()
    assert wait.result() == 1
    assert region.generation == 2


# What CUDA refuses


@both
def test_stream_that_is_captured_is_refused(stub, stream, region, use):
    stub.stub_set_capturing(ctypes.c_void_p(stream.handle), True)
    with pytest.raises(OSError, match="^.*stream: is being captured") as caught:
        use(region, stream)
    assert caught.value.errno == errno.EOPNOTSUPP
    stub.stub_set_capturing(ctypes.c_void_p(stream.handle), False)


def test_device_without_memory_operations_can_t_wait(stub, stream, region):
    stub.stub_set_attribute(-1, STREAM_VALUES, 0)
    with pytest.raises(OSError, match="can't have a stream wait") as caught:
        region.wait_on(stream, 0)
    assert caught.value.errno == errno.EOPNOTSUPP
    region.publish_on(stream)
    stream.synchronize()
    assert region.generation == 1


@pytest.mark.parametrize(
    ("function", "use"),
    [
        (b"cuLaunchHostFunc", lambda region, stream: region.publish_on(stream)),
        (b"cuStreamWaitValue64", lambda region, stream: region.wait_on(stream, 0)),
    ],
)
@pytest.mark.parametrize(("result", "number"), [(999, errno.EIO), (2, errno.ENOMEM)])
def test_refusal_of_the_driver_has_an_errno(stub, stream, region, function, use, result, number):
    stub.stub_fail(function, 1, result)
    with pytest.raises(OSError, match="stream") as caught:
        use(region, stream)
    assert caught.value.errno == number
    assert stream.is_idle()
    use(region, stream)
    region.publish()
    stream.synchronize()


IN_PROGRAM = f"""
sys.path.insert(0, {os.path.dirname(__file__)!r})
from support import Stream
stream = Stream(stub)
region = tshare.Region.create(size=1)

def errno_of(use, *args):
    try:
        use(*args)
    except OSError as error:
        return errno.errorcode[error.errno]
"""


def test_without_a_driver_the_error_says_what_is_missing(tmp_path):
    (tmp_path / "libcuda.so.1").write_text("text")
    code = """
        import tshare
        region = tshare.Region.create(size=1)
        for use in (region.publish_on, lambda stream: region.wait_on(stream, 0)):
            try:
                use(1)
            except OSError as error:
                print(error.errno, error.strerror)
    """
    printed = run(code, env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}).splitlines()
    assert len(printed) == 2
    for line in printed:
        assert line.startswith(f"{errno.EOPNOTSUPP} CUDA: no NVIDIA driver: ")


def test_driver_that_is_too_old_can_t_wait():
    code = IN_PROGRAM + (
        "print(errno_of(region.wait_on, stream, 0))\n"
        "region.publish_on(stream)\n"
        "print(region.wait(0, 60))\n"
    )
    env = {**os.environ, "TSHARE_STUB_CUDA": "hide=cuStreamWaitValue64"}
    assert with_stub(code, env=env).split() == [NOT_SUPPORTED, "1"]


# Processes


def test_forked_child_leaves_the_parent_s_streams_alone():
    code = (
        IN_PROGRAM
        + """
wait = region.wait_on(stream, 0)
child = os.fork()
if not child:
    print(wait.done, errno_of(wait.result))
    wait.cancel()
    print(errno_of(region.publish_on, stream), errno_of(region.wait_on, stream, 0))
    del wait
    region.close()
    sys.stdout.flush()
    os._exit(0)
print(os.waitpid(child, 0)[1])
print(wait.done, stream.waits(), region.publish())
stream.synchronize()
print(wait.result())
"""
    )
    assert with_stub(code).splitlines() == [
        f"True {NOT_SUPPORTED}",
        f"{NOT_SUPPORTED} {NOT_SUPPORTED}",
        "0",
        "False True 1",
        "1",
    ]


@pytest.mark.parametrize("end", ["", "del wait", "del wait, region", "sys.exit(0)"])
def test_exit_releases_a_stream_that_waits(end):
    # The stub ends a process with 99 whose streams have work at exit.
    code = f"{IN_PROGRAM}\nwait = region.wait_on(stream, 0)\nprint(wait.done)\n{end}\n"
    assert with_stub(code) == "False"


@pytest.mark.parametrize("end", ["", "del wait", "del wait, region"])
def test_exit_ends_waits_before_what_is_behind_them_goes(end):
    code = f"""{IN_PROGRAM}
wait = region.wait_on(stream, 0)
behind = tshare.create(None, 3).cuda(copy=True, stream=stream)
print(wait.done)
{end}
"""
    assert with_stub(code) == "False"


def test_exit_is_no_close():
    # What is registered first is called last, after the package's own.
    code = f"""
import atexit
atexit.register(lambda: print(errno_of(wait.result)))
import ctypes, errno, os, sys
stub = ctypes.CDLL(sys.argv[1])
import tshare
{IN_PROGRAM}
wait = region.wait_on(stream, 0)
"""
    assert run(code, STUB) == "ECANCELED"


def test_no_wait_begins_once_the_interpreter_goes():
    # What is registered first is called last, after the package's own.
    code = f"""
import atexit
atexit.register(lambda: print(errno_of(lambda: region.wait_on(stream, 0))))
import ctypes, errno, os, sys
stub = ctypes.CDLL(sys.argv[1])
import tshare
{IN_PROGRAM}
"""
    assert run(code, STUB) == "ECANCELED"


def test_waits_that_have_ended_are_forgotten(stream, region):
    region.publish()
    before = int(Path("/proc/self/statm").read_text().split()[1])
    for _ in range(100_000):
        region.wait_on(stream, 0)
    stream.synchronize()
    pages = int(Path("/proc/self/statm").read_text().split()[1]) - before
    assert pages * os.sysconf("SC_PAGE_SIZE") < 10 << 20


def test_ctrl_c_ends_a_loop_that_looks_at_the_wait():
    code = f"""{IN_PROGRAM}
import signal, threading, time
wait = region.wait_on(stream, 0)
try:
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    while not wait.done:
        time.sleep(0.001)
except KeyboardInterrupt:
    wait.cancel()
    stream.synchronize()
    print(errno_of(wait.result))
"""
    assert with_stub(code) == "ECANCELED"


# The GIL


@pytest.mark.parametrize(
    ("function", "call"),
    [
        ("cuStreamGetCtx", "region.publish_on(stream)"),
        ("cuLaunchHostFunc", "region.publish_on(stream)"),
        ("cuStreamGetCtx", "region.wait_on(stream, 0, 0)"),
        ("cuStreamWaitValue64", "region.wait_on(stream, 0, 0)"),
    ],
)
def test_other_threads_run_meanwhile(function, call):
    assert other_threads_run_during(function, IN_PROGRAM, call)


# Libraries


def test_streams_of_cuda_core_are_taken(stream, region):
    given = need("cuda.core").Stream.from_handle(stream.handle)
    wait = region.wait_on(given, 0)
    assert stream.waits()
    wait.cancel()
    region.publish_on(given)
    assert region.wait(0, 60) == 1


def test_streams_of_cuda_bindings_are_taken(stream, region):
    region.publish_on(need("cuda.bindings.driver").CUstream(stream.handle))
    assert region.wait(0, 60) == 1


def test_pytorch_s_streams_have_the_protocol():
    torch = need("torch")
    if version(torch) < (2, 10):
        pytest.skip("PyTorch has it since 2.10")
    assert callable(torch.cuda.Stream.__cuda_stream__)


# Kernels


def generation_at(address):
    return ctypes.c_uint64.from_address(address)


def test_kernels_reach_the_generation(stream, region, other):
    """On the stub a device's address is one of the process."""
    counter = generation_at(region.cuda_counter())
    assert counter.value == 0
    other.publish()
    assert counter.value == 1
    region.publish()
    counter.value = 3
    assert other.generation == 3
    assert other.wait(2, 60) == 3
    assert region.cuda_counter(0) == region.cuda_counter(device="cuda:0")


def test_the_counter_goes_with_the_region(stream, stub, region):
    region.cuda_counter()
    assert stub.stub_registrations() == 1
    region.close()
    assert stub.stub_registrations() == 0


def test_counter_needs_a_writable_region(stub, region):
    reader = tshare.Region.from_fd(region.fileno(), readonly=True)
    with pytest.raises(PermissionError, match="region: is read-only"):
        reader.cuda_counter()


@pytest.mark.parametrize(
    ("device", "error"),
    [
        (-1, ValueError), (99, ValueError), ("cuda", ValueError), (2**40, ValueError),
        (True, TypeError), (1.0, TypeError),
    ],
)  # fmt: skip
def test_counter_refuses_what_is_no_device(stub, region, device, error):
    with pytest.raises(error, match="device: "):
        region.cuda_counter(device)


def test_counter_of_a_closed_region(stub, region):
    region.close()
    with pytest.raises(ValueError, match="region is closed"):
        region.cuda_counter()


def test_counter_whose_device_closes_the_region(stub, region):
    class Closes:
        def __index__(self):
            region.close()
            return 0

    with pytest.raises(ValueError, match="region is closed"):
        region.cuda_counter(Closes())


@pytest.mark.parametrize(
    ("function", "prepare", "call"),
    [
        ("cuMemHostRegister", "region = tensor.region", "region.cuda_counter()"),
        ("cuMemHostUnregister", "tensor.region.cuda_counter()", "tensor.close()"),
    ],
)
def test_other_threads_run_while_a_counter_is(function, prepare, call):
    assert other_threads_run_during(function, prepare, call)
