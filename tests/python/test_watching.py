# SPDX-License-Identifier: MIT
"""Waiting until a name leads to another region, or to none."""

import asyncio
import contextlib
import copy
import errno
import gc
import os
import pickle
import select
import signal
import sys
import threading
import time
import weakref
from pathlib import Path

import pytest

import tshare
from support import spawn


@pytest.fixture
def watcher(name):
    with tshare.watch(name) as watcher:
        yield watcher


@pytest.fixture(autouse=True)
def no_thread_is_left():
    """The library's thread for names keeps two descriptors for a while."""
    yield
    deadline = time.monotonic() + 300
    while "tshare-names" in threads():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def threads():
    """The names of this process's threads."""
    names = []
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # one has just ended
            names.append((task / "comm").read_text().strip())
    return names


def later(function, *args):
    timer = threading.Timer(0.1, function, args)
    timer.start()
    return timer


def test_wait_returns_the_region_s_id_its_successor_s_and_none(watcher, name):
    assert watcher.name == name
    with pytest.raises(TimeoutError, match="led nowhere else"):
        watcher.wait(timeout=0)
    region = tshare.Region.create(name, size=1)
    assert watcher.wait() == region.id
    with pytest.raises(TimeoutError):
        watcher.wait(region.id, 0.01)
    successor = tshare.Region.create(name, size=1, exist_ok=True)
    assert watcher.wait(region.id) == successor.id
    tshare.unlink(name)
    assert watcher.wait(successor.id) is None


def test_wait_sleeps_until_then(watcher, name):
    regions = []
    timer = later(lambda: regions.append(tshare.Region.create(name, size=1)))
    seen = watcher.wait()
    timer.join()
    assert seen == regions[0].id


def test_wait_notices_a_server_that_was_killed_before_it_published(watcher, name):
    server = spawn(
        """
        import sys, time, tshare
        region = tshare.Region.create(sys.argv[1], size=1)
        print(flush=True)
        time.sleep(1000)
        """,
        name,
    )
    server.stdout.readline()
    seen = watcher.wait()
    server.kill()
    server.communicate()
    assert watcher.wait(seen) is None


def test_wait_async_in_several_tasks(watcher, name):
    async def main():
        tasks = [asyncio.create_task(watcher.wait_async()) for _ in range(3)]
        await asyncio.sleep(0.01)
        region = tshare.Region.create(name, size=1)
        assert await asyncio.gather(*tasks) == [region.id] * 3
        return await watcher.wait_async(0)

    assert asyncio.run(main())


def test_wait_async_ends_in_time_and_when_cancelled(watcher):
    async def main():
        with pytest.raises(TimeoutError):
            await watcher.wait_async(timeout=0.01)
        with pytest.raises(TimeoutError):
            await watcher.wait_async(None, 0)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(watcher.wait_async(), 0.01)

    asyncio.run(main())


def test_cancel_ends_waits_for_good(watcher):
    later(watcher.cancel)
    with pytest.raises(OSError, match="cancelled") as caught:
        watcher.wait()
    assert caught.value.errno == errno.ECANCELED

    async def main():
        with pytest.raises(OSError, match="cancelled"):
            await watcher.wait_async()

    asyncio.run(main())


def test_close_ends_waits(watcher):
    later(watcher.close)
    with pytest.raises(ValueError, match="closed during wait"):
        watcher.wait()
    assert watcher.closed
    watcher.close()
    names = ("wait", "wait_async", "cancel", "fileno", "__enter__")
    for use in [getattr(watcher, name) for name in names]:
        with pytest.raises(ValueError, match="watcher: is closed"):
            use()


def test_close_ends_a_wait_in_a_loop(watcher):
    async def main():
        task = asyncio.create_task(watcher.wait_async())
        await asyncio.sleep(0.01)
        watcher.close()
        with pytest.raises(ValueError, match="closed"):
            await task

    asyncio.run(main())


def test_second_thread_needs_its_own(watcher):
    ends = []

    def wait():
        # Until it is the first, and is cancelled.
        while errno.ECANCELED not in ends:
            try:
                watcher.wait()
            except OSError as error:
                ends.append(error.errno)

    thread = threading.Thread(target=wait)
    thread.start()
    error = TimeoutError()
    while error.errno != errno.EBUSY:
        with pytest.raises(OSError, match="another thread|in time") as caught:
            watcher.wait(0, 0.001)
        error = caught.value
    watcher.cancel()
    thread.join()
    assert set(ends) <= {errno.EBUSY, errno.ECANCELED}


def test_fileno_is_for_select(watcher, name):
    with pytest.raises(TimeoutError):
        watcher.wait(None, 0)
    assert select.select([watcher], [], [], 0)[0] == []
    region = tshare.Region.create(name, size=1)
    assert select.select([watcher], [], [], 300)[0] == [watcher]
    assert watcher.wait(None, 0) == region.id


def test_signal_handlers_run_while_it_waits(watcher):
    def handler(*_):
        raise KeyError

    before = signal.signal(signal.SIGUSR1, handler)
    later(os.kill, os.getpid(), signal.SIGUSR1)
    with pytest.raises(KeyError):
        watcher.wait()
    signal.signal(signal.SIGUSR1, before)


def test_child_of_fork_needs_its_own(watcher):
    pid = os.fork()
    if not pid:
        try:
            watcher.wait(1, 0)
        except OSError as error:
            os._exit(error.errno)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == errno.EOPNOTSUPP


@pytest.mark.parametrize(
    ("args", "error", "match"),
    [
        (("x",), TypeError, "str"),
        ((-1,), OverflowError, "^seen: "),
        ((2**64,), OverflowError, "^seen: "),
        ((None, -1), ValueError, "^timeout: "),
        ((None, "x"), TypeError, "^timeout: "),
        ((1, 2, 3), TypeError, "wait"),
    ],
)
def test_wrong_arguments_are_refused(watcher, args, error, match):
    for wait in (watcher.wait, watcher.wait_async):
        with pytest.raises(error, match=match):
            wait(*args)


def test_malformed_names_are_refused():
    for name in ("", "a/b", "x" * 128):
        with pytest.raises((ValueError, OSError), match="name"):
            tshare.watch(name)
    with pytest.raises(TypeError):
        tshare.watch(None)


def test_watcher_is_this_process_s_own_and_goes_with_its_last_reference(name):
    watcher = tshare.watch(name)
    assert repr(watcher) == f"<tshare.Watcher {name!r}>"
    for use in (pickle.dumps, copy.copy):
        with pytest.raises(TypeError):
            use(watcher)
    references, fd = sys.getrefcount(name), watcher.fileno()
    gone = weakref.ref(watcher)
    del watcher
    gc.collect()
    assert gone() is None
    assert sys.getrefcount(name) == references - 1
    with pytest.raises(OSError, match="descriptor"):
        os.fstat(fd)
