# SPDX-License-Identifier: MIT
import contextlib
import errno
import math
import os
import resource
import signal
import socket
import threading
import time

import pytest

import tshare
from support import run, spawn


@pytest.fixture
def region():
    with tshare.Region.create(size=1) as region:
        yield region


@contextlib.contextmanager
def other(code, *args):
    """Another Python that has printed "ready"; it is killed at the end of the block."""
    process = spawn(code, *args)
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.communicate()


PUBLISHER = """
    import sys
    import tshare

    with tshare.Region.open(sys.argv[1]) as region:
        region.publish()
        print("ready", flush=True)
        for line in sys.stdin:
            if line == "close\\n":
                break
            region.publish()
    print("closed", flush=True)
    sys.stdin.read()
"""


def tell(process, what="publish"):
    process.stdin.write(what + "\n")
    process.stdin.flush()


def test_generation_counts_publishes(region):
    assert region.generation == 0
    assert [region.publish() for _ in range(3)] == [1, 2, 3]
    assert region.generation == 3


def test_wait_returns_the_newest_generation_at_once_when_it_is_behind(region):
    region.publish()
    region.publish()
    assert region.wait(0) == 2
    assert region.wait(1) == 2
    assert region.wait(seen=0, timeout=0) == 2
    assert region.wait(0, None, spin=1) == 2


def test_wait_times_out(region):
    start = time.monotonic()
    with pytest.raises(TimeoutError, match="timeout: ") as caught:
        region.wait(0, 0.25)
    assert caught.value.errno == errno.ETIMEDOUT
    assert time.monotonic() - start >= 0.25


def count_sleeps():
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw


@pytest.mark.parametrize("timeout", [0, 0.0, -0.0, False])
def test_wait_without_time_only_looks(region, timeout):
    # The first wait maps the counter.
    assert region.generation == 0
    before = count_sleeps()
    with pytest.raises(TimeoutError):
        region.wait(0, timeout)
    assert count_sleeps() == before


def test_wait_with_a_tiny_timeout_times_out(region):
    with pytest.raises(TimeoutError):
        region.wait(0, 1e-12)


def test_wait_that_spins_times_out_too(region):
    start = time.monotonic()
    with pytest.raises(TimeoutError):
        region.wait(0, 0.3, spin=math.inf)
    assert time.monotonic() - start >= 0.3


@pytest.mark.parametrize("argument", ["timeout", "spin"])
@pytest.mark.parametrize("value", [-1, -1e-9, math.nan, -math.inf])
def test_seconds_below_zero_are_a_value_error(region, argument, value):
    with pytest.raises(ValueError, match=f"^{argument}: "):
        region.wait(0, **{argument: value})


@pytest.mark.parametrize("argument", ["timeout", "spin"])
@pytest.mark.parametrize("value", ["1", b"1", [], 1j])
def test_invalid_seconds_are_a_type_error(region, argument, value):
    with pytest.raises(TypeError, match=f"^{argument}: "):
        region.wait(0, **{argument: value})


def test_seen_is_a_number_from_zero(region):
    for value in (-1, 2**63, -(2**70)):
        with pytest.raises(ValueError, match="^seen: "):
            region.wait(value, 0)
    for value in (None, "0", 0.0):
        with pytest.raises(TypeError, match="^seen: "):
            region.wait(value, 0)
    with pytest.raises(TypeError, match="argument 'seen'"):
        region.wait(timeout=0)


def test_spin_is_keyword_only(region):
    with pytest.raises(TypeError, match="positional"):
        region.wait(0, 0, 0)


def test_closed_region_neither_publishes_nor_waits(region):
    region.close()
    for use in (region.publish, lambda: region.wait(0, 0), lambda: region.generation):
        with pytest.raises(ValueError, match="closed"):
            use()


def test_readonly_region_waits_and_does_not_publish(name):
    region = tshare.Region.create(name, size=1)
    with region, tshare.Region.open(name, readonly=True) as reader:
        with pytest.raises(PermissionError, match="read-only"):
            reader.publish()
        assert reader.generation == 0
        region.publish()
        assert reader.wait(0, 20) == 1


def test_tensors_of_a_region_share_its_generation(name):
    with tshare.create(name, 4) as tensor, tshare.open(name) as same:
        tensor.region.publish()
        assert same.region.wait(0, 20) == 1


def test_publish_wakes_another_process(name, later):
    region = tshare.Region.create(name, size=1)
    with region, other(PUBLISHER, name) as process:
        assert region.wait(0, 20) == 1
        for seen in range(1, 20):
            later(tell, process, seconds=0.01)
            assert region.wait(seen, 20) == seen + 1


def test_other_process_sees_what_was_written_before_the_publish(name):
    code = """
        import sys
        import tshare

        with tshare.Region.open(sys.argv[1], readonly=True) as region:
            seen = 0
            while seen < 100:
                seen = region.wait(seen, 60)
                assert memoryview(region["n"])[0] >= seen, seen
        print("good")
    """
    with tshare.Region.create(name, {"n": (1, "int64")}) as region:
        view = memoryview(region["n"])
        process = spawn(code, name)
        for number in range(1, 101):
            view[0] = number
            region.publish()
            time.sleep(0.002)
        assert process.communicate(timeout=300)[0] == "good\n"
        del view


def test_killed_publisher_is_noticed(name, later):
    region = tshare.Region.create(name, size=1)
    with region, other(PUBLISHER, name) as process:
        with pytest.raises(TimeoutError):
            region.wait(1, 0.3)
        later(process.kill)
        with pytest.raises(OSError, match="publishers have exited") as caught:
            region.wait(1)
        assert caught.value.errno == errno.EOWNERDEAD


ANNOUNCER = """
import sys, tshare

region = tshare.Region.open(sys.argv[1])
region.announce()
print("ready", flush=True)
sys.stdin.read()
"""


def test_publisher_that_has_only_announced_itself_is_noticed_when_it_dies(name):
    region = tshare.Region.create(name, size=1)
    with region, other(ANNOUNCER, name) as process:
        assert region.generation == 0
        process.kill()
        with pytest.raises(OSError, match="publishers have exited"):
            region.wait(0, 200)


def test_program_that_publishes_once_ends_no_wait(name):
    code = "import sys, tshare; print(tshare.Region.open(sys.argv[1]).publish_once())"
    with tshare.Region.create(name, size=1) as region:
        assert run(code, name) == "1"
        assert region.wait(0) == 1
        assert region.has_publishers() is False
        with pytest.raises(TimeoutError):
            region.wait(1, 0.3)


def test_publishers_of_others_are_seen(name):
    with tshare.Region.create(name, size=1) as region:
        assert region.publish() == 1
        assert region.has_publishers() is False
        reader = tshare.Region.open(name, readonly=True)
        with other(ANNOUNCER, name) as process:
            assert region.has_publishers() is True
            assert reader.has_publishers() is True
            process.kill()
            process.wait()
            with pytest.raises(OSError, match="publishers have exited") as caught:
                region.has_publishers()
            assert caught.value.errno == errno.EOWNERDEAD


def test_publishing_once_needs_write_access(name):
    with tshare.Region.create(name, size=1):
        with pytest.raises(PermissionError):
            tshare.Region.open(name, readonly=True).publish_once()


@pytest.mark.parametrize("method", ["publish_once", "has_publishers"])
def test_closed_region_has_no_publishers(method):
    region = tshare.Region.create(None, size=1)
    region.close()
    with pytest.raises(ValueError, match="closed"):
        getattr(region, method)()


def test_publisher_that_closes_is_noticed(name):
    region = tshare.Region.create(name, size=1)
    with region, other(PUBLISHER, name) as process:
        tell(process, "close")
        assert process.stdout.readline() == "closed\n"
        with pytest.raises(OSError, match="publishers have exited") as caught:
            region.wait(1, 20)
        assert caught.value.errno == errno.EOWNERDEAD


def test_publishes_of_the_dead_are_not_lost(name):
    region = tshare.Region.create(name, size=1)
    with region:
        with other(PUBLISHER, name):
            pass
        assert region.wait(0) == 1


def test_child_of_fork_is_a_publisher_of_its_own(region):
    region.publish()
    with tshare.Region.from_fd(region.fileno(), readonly=True) as reader:
        here, there = socket.socketpair()
        pid = os.fork()
        if not pid:
            here.close()
            there.recv(1)
            there.send(bytes([region.publish()]))
            there.recv(1)
            os._exit(0)
        there.close()
        region.close()
        with here:
            with pytest.raises(OSError, match="publishers have exited"):
                reader.wait(1, 20)
            here.send(b".")
            assert here.recv(1) == b"\2"
            with pytest.raises(TimeoutError):
                reader.wait(2, 0.3)
        with pytest.raises(OSError, match="publishers have exited"):
            reader.wait(2, 20)
        assert os.waitpid(pid, 0)[1] == 0


@pytest.mark.parametrize("spin", [0, 1000])
def test_ctrl_c_ends_a_wait_with_keyboard_interrupt(name, spin):
    code = """
        import sys
        import tshare

        region = tshare.Region.create(sys.argv[1], size=1)
        try:
            print("ready", flush=True)
            region.wait(0, spin=float(sys.argv[2]))
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """
    with other(code, name, spin) as process:
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted\n"


@contextlib.contextmanager
def handler_of(number, handler):
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


def test_wait_goes_on_after_a_signal_for_the_time_that_is_left(region):
    calls = []
    with handler_of(signal.SIGALRM, lambda *_: calls.append(1)):
        signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
        try:
            start = time.monotonic()
            with pytest.raises(TimeoutError):
                region.wait(0, 0.5)
            took = time.monotonic() - start
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    assert calls
    assert took >= 0.5


def test_handler_may_publish_what_is_waited_for(region):
    with handler_of(signal.SIGALRM, lambda *_: region.publish()):
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        assert region.wait(0, 20) == 1


def test_signal_in_another_thread_reaches_a_wait_in_the_main_thread(region, later):
    class EnoughError(Exception):
        pass

    def raise_enough(*_):
        raise EnoughError

    def wait():
        later(lambda: signal.pthread_kill(threading.get_ident(), signal.SIGUSR1))
        region.wait(0, 60)

    with handler_of(signal.SIGUSR1, raise_enough), pytest.raises(EnoughError):
        wait()


# It runs, since the wait doesn't hold the interpreter's lock.
@pytest.mark.parametrize("spin", [0, math.inf])
def test_publish_of_another_thread_ends_a_wait(region, spin, later):
    with tshare.Region.from_fd(region.fileno()) as same:
        later(same.publish)
        assert region.wait(0, 60, spin=spin) == 1


@pytest.mark.parametrize("spin", [0, 1000])
def test_close_in_another_thread_ends_a_wait(region, spin, later):
    same = tshare.Region.from_fd(region.fileno())
    later(same.close, seconds=0.5)
    with pytest.raises(ValueError, match="^region: closed during wait"):
        same.wait(0, 60, spin=spin)


def test_close_ends_a_wait_in_a_thread_that_looks_for_nothing_else(region):
    same = tshare.Region.from_fd(region.fileno())
    errors = []

    def wait():
        try:
            same.wait(0)
        except ValueError as error:
            errors.append(str(error))

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    # The first 100 ms are slept alike in all threads.
    time.sleep(0.3)
    same.close()
    thread.join(300)
    assert errors == ["region: closed during wait()"]


def test_wait_in_another_thread_looks_for_no_signals(region):
    sleeps = []

    def wait():
        before = count_sleeps()
        with pytest.raises(TimeoutError):
            region.wait(0, 1)
        sleeps.append(count_sleeps() - before)

    thread = threading.Thread(target=wait)
    thread.start()
    thread.join()
    # The main thread, in which Python's handlers run, wakes up ten times a second.
    assert sleeps[0] < 6


def test_close_of_a_tensors_region_leaves_its_others(later):
    with tshare.create(None, 4) as tensor:
        waiting, closing = tensor.region, tensor.region
        later(closing.close)
        later(tensor.region.publish, seconds=0.3)
        assert waiting.wait(0, 20) == 1
        assert tensor.region.wait(0, 20) == 1


def test_close_ends_only_the_waits_of_that_object(region, later):
    with tshare.Region.from_fd(region.fileno()) as same:
        later(region.close)
        with pytest.raises(TimeoutError):
            same.wait(0, 0.6)


def test_generation_that_is_there_wins_over_a_close(region):
    region.publish()
    same = tshare.Region.from_fd(region.fileno())
    with handler_of(signal.SIGALRM, lambda *_: (region.publish(), same.close())):
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        assert same.wait(1, 60) == 2


def test_wait_takes_no_processor(name):
    code = """
        import sys
        import time
        import tshare

        region = tshare.Region.create(sys.argv[1], size=1)
        start = time.process_time()
        try:
            region.wait(0, 1)
        except TimeoutError:
            print(time.process_time() - start)
    """
    assert float(run(code, name)) < 0.25


def test_first_publish_without_a_free_descriptor_is_emfile():
    code = """
        import os
        import resource

        import tshare

        region = tshare.Region.create(size=1)
        highest = max(map(int, os.listdir("/proc/self/fd")))
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 3, highest + 3))
        taken = []
        while True:
            try:
                taken.append(os.dup(0))
            except OSError:
                break
        try:
            region.publish()
        except OSError as error:
            print(error.errno, error.strerror)
        print(highest + 3)
        for fd in taken:
            os.close(fd)
        print(region.publish())
    """
    said, limit, after = run(code).splitlines()
    assert said.startswith(f"{errno.EMFILE} region: publish needs a file descriptor of its own: ")
    assert f"RLIMIT_NOFILE allows, {limit}, are in use" in said
    assert after == "1"


def test_publishes_of_many_processes_are_all_counted(name):
    code = """
        import sys
        import tshare

        with tshare.Region.open(sys.argv[1]) as region:
            for _ in range(1000):
                region.publish()
    """
    with tshare.Region.create(name, size=1) as region:
        processes = [spawn(code, name) for _ in range(3)]
        for process in processes:
            process.communicate(timeout=300)
            assert not process.returncode
        assert region.generation == 3000


def test_processes_that_answer_one_another_miss_nothing(name):
    code = """
        import sys
        import tshare

        with tshare.Region.open(sys.argv[1]) as region:
            seen = 0
            for _ in range(2000):
                seen = region.wait(seen, 60)
                seen = region.publish()
        print(seen)
    """
    with tshare.Region.create(name, size=1) as region:
        process = spawn(code, name)
        for turn in range(2000):
            seen = region.publish()
            assert seen == 2 * turn + 1
            assert region.wait(seen, 60) == seen + 1
        assert process.communicate(timeout=300)[0] == "4000\n"


def test_generations_begin_after_the_present_one_or_with_it():
    with tshare.Region.create(None, size=1) as region:
        region.publish()
        region.publish()
        assert next(region.generations(0)) == 2
        late = region.generations()
        region.publish()
        assert next(late) == 3
