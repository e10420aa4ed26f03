# SPDX-License-Identifier: MIT
"""Waiting for a generation in an event loop, and iterating over generations."""

import asyncio
import contextlib
import errno
import math
import os
import queue
import select
import selectors
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

import tshare
from support import rounds, run_in_silence, spawn


@pytest.fixture
def region():
    with tshare.Region.create(size=1) as region:
        yield region


def feeders():
    """How many threads the library has."""
    names = []
    for task in Path("/proc/self/task").iterdir():
        try:
            names.append((task / "comm").read_text())
        except OSError:
            continue  # it has just ended
    return names.count("tshare-events\n")


@pytest.fixture(autouse=True)
def no_thread_is_left():
    yield
    deadline = time.monotonic() + 300
    while feeders():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_wait_async_returns_what_is_published_meanwhile(region):
    async def main():
        asyncio.get_running_loop().call_later(0.1, region.publish)
        return await region.wait_async(0)

    assert asyncio.run(main()) == 1


def test_wait_async_returns_at_once_when_it_is_behind(region):
    region.publish()
    assert asyncio.run(region.wait_async(0)) == 1
    assert asyncio.run(region.wait_async(seen=0, timeout=0)) == 1


def test_loop_runs_other_tasks_during_wait_async(region):
    async def main():
        waiting = asyncio.create_task(region.wait_async(0))
        for _ in range(100):
            await asyncio.sleep(0)
        region.publish()
        return await waiting

    assert asyncio.run(main()) == 1


def test_many_tasks_wait_at_a_time(region):
    async def main():
        waiting = [asyncio.create_task(region.wait_async(0)) for _ in range(100)]
        await asyncio.sleep(0.1)
        region.publish()
        return await asyncio.gather(*waiting)

    assert asyncio.run(main()) == [1] * 100


@pytest.mark.parametrize("timeout", [0, 1e-12, 0.05, 0.25])
def test_wait_async_times_out(region, timeout):
    start = time.monotonic()
    with pytest.raises(TimeoutError) as caught:
        asyncio.run(region.wait_async(0, timeout))
    assert caught.value.errno == errno.ETIMEDOUT
    assert time.monotonic() - start >= timeout


def test_wait_async_may_have_infinite_time(region):
    async def main():
        asyncio.get_running_loop().call_later(0.3, region.publish)
        return await region.wait_async(0, math.inf)

    assert asyncio.run(main()) == 1


def test_wait_for_ends_wait_async(region):
    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(asyncio.wait_for(region.wait_async(0), 0.2))


def test_cancelled_task_ends_wait_async(region):
    async def main():
        waiting = asyncio.create_task(region.wait_async(0))
        await asyncio.sleep(0.1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        region.publish()
        return await region.wait_async(0)

    assert asyncio.run(main()) == 1


def test_close_ends_wait_async(region):
    async def main():
        asyncio.get_running_loop().call_later(0.1, region.close)
        await region.wait_async(0)

    with pytest.raises(ValueError, match="^region: closed during wait|^region is closed"):
        asyncio.run(main())


def test_close_in_another_thread_ends_wait_async(region, later):
    async def main():
        later(region.close)
        await region.wait_async(0)

    with pytest.raises(ValueError, match="^region: closed during wait|^region is closed"):
        asyncio.run(main())


def test_close_at_any_moment_ends_wait_async_with_a_value_error():
    regions = queue.SimpleQueue()
    turns = rounds(3000)

    def close():
        for turn in range(turns):
            region = regions.get()
            for _ in range(turn % 300):
                pass
            region.close()

    async def main():
        for _ in range(turns):
            region = tshare.Region.create(size=1)
            waiting = region.wait_async(0)
            regions.put(region)
            with pytest.raises(ValueError, match="^region: closed during wait|^region is closed"):
                await waiting

    closer = threading.Thread(target=close, daemon=True)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        closer.start()
        asyncio.run(main())
        closer.join()
    finally:
        sys.setswitchinterval(interval)


def test_one_thread_serves_all_waits(region):
    async def main():
        others = [tshare.Region.create(size=1) for _ in range(10)]
        tasks = [asyncio.create_task(r.wait_async(0)) for r in (region, *others) for _ in range(3)]
        await asyncio.sleep(0.1)
        for other in (region, *others):
            other.publish()
        assert await asyncio.gather(*tasks) == [1] * 33
        count = feeders(), threading.active_count()
        for other in others:
            other.close()
        return count

    assert asyncio.run(main()) == (1, threading.active_count())


def test_end_of_the_publishers_ends_wait_async(region):
    async def main(other):
        asyncio.get_running_loop().call_later(0.1, other.close)
        await region.wait_async(1)

    other = tshare.Region.from_fd(region.fileno())
    other.publish()
    with pytest.raises(OSError, match="publishers have exited") as caught:
        asyncio.run(main(other))
    assert caught.value.errno == errno.EOWNERDEAD


def test_loops_of_several_threads_wait_for_one_region(region):
    ends = []

    async def main(rounds):
        seen = 0
        while seen < rounds:
            seen = max(await asyncio.gather(*(region.wait_async(seen, 60) for _ in range(5))))
        ends.append(seen)

    threads = [threading.Thread(target=asyncio.run, args=[main(200)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(200):
        time.sleep(0.001)
        region.publish()
    for thread in threads:
        thread.join(300)
    assert ends == [200] * 4


def test_tasks_that_have_seen_different_generations_wait_for_their_own(region):
    async def main():
        tasks = [asyncio.create_task(region.wait_async(seen)) for seen in range(5)]
        await asyncio.sleep(0.1)
        for seen, task in enumerate(tasks):
            region.publish()
            assert await task == seen + 1
            assert [task.done() for task in tasks].count(True) == seen + 1

    asyncio.run(main())


def test_task_and_thread_wait_with_one_object(region):
    async def main():
        for seen in range(200):
            thread = asyncio.create_task(asyncio.to_thread(region.wait, seen, 60))
            task = asyncio.create_task(region.wait_async(seen, 60))
            await asyncio.sleep(0.0005)
            region.publish()
            assert await asyncio.gather(thread, task) == [seen + 1] * 2

    asyncio.run(main())


def test_child_of_fork_waits_in_a_loop_of_its_own(region):
    async def main(count):
        return await asyncio.gather(*(region.wait_async(0, 60) for _ in range(count)))

    async def parent():
        waiting = asyncio.create_task(main(2))
        await asyncio.sleep(0.1)
        pid = os.fork()
        if not pid:
            asyncio._set_running_loop(None)
            os._exit(asyncio.run(main(3)) != [1] * 3)
        await asyncio.sleep(0.2)
        region.publish()
        assert await waiting == [1] * 2
        assert os.waitpid(pid, 0)[1] == 0

    asyncio.run(parent())


def test_end_of_an_inherited_task_leaves_the_parent_s_wait_alone(region):
    async def main():
        waiting = asyncio.create_task(region.wait_async(0, 60))
        await asyncio.sleep(0.1)
        pid = os.fork()
        if not pid:
            try:
                waiting.get_coro().close()
            finally:
                os._exit(sys.exc_info()[0] is not None)
        assert os.waitpid(pid, 0)[1] == 0
        region.publish()
        assert await waiting == 1

    asyncio.run(main())


def test_news_that_another_loop_has_read_in_between_is_not_lost(region, monkeypatch):
    join = tshare._waiting._join

    def join_late(wait):
        watch = join(wait)
        region.publish()
        select.select([watch.fd], [], [])
        os.eventfd_read(watch.fd)
        return watch

    monkeypatch.setattr(tshare._waiting, "_join", join_late)
    assert asyncio.run(region.wait_async(0, 2)) == 1


def test_loop_that_watches_no_descriptors_leaves_none_behind(region):
    class Loop(asyncio.SelectorEventLoop):
        def add_reader(self, *_):
            raise NotImplementedError

    with contextlib.closing(Loop()) as loop, pytest.raises(NotImplementedError):
        loop.run_until_complete(region.wait_async(0))


def test_generations_are_iterated_over(region, later):
    async def main(generations):
        seen = []
        async for generation in generations:
            seen.append(generation)
            if generation == 5:
                return seen
            asyncio.get_running_loop().call_later(0.01, region.publish)

    region.publish()
    generations = region.generations()
    later(region.publish)
    assert next(generations) == 2
    assert next(region.generations(0)) == 2
    assert next(region.generations(seen=1)) == 2
    generations = region.generations()
    later(region.publish)
    assert asyncio.run(main(generations)) == [3, 4, 5]


def test_loop_over_generations_imports_no_asyncio():
    code = """
        import sys
        import tshare

        region = tshare.Region.create(size=1)
        region.publish()
        print(next(region.generations(0)), "asyncio" in sys.modules)
    """
    assert run_in_silence(code) == "1 False"


def test_generations_that_a_loop_was_too_slow_for_are_skipped(region):
    generations = region.generations()
    for _ in range(3):
        region.publish()
    assert next(generations) == 3
    region.publish()
    assert next(generations) == 4


async def _collect(generations):
    return [generation async for generation in generations]


@pytest.mark.parametrize("loop", [list, lambda generations: asyncio.run(_collect(generations))])
def test_loop_over_generations_ends_with_the_publishers(name, loop):
    code = """
        import sys
        import time
        import tshare

        with tshare.Region.open(sys.argv[1]) as region:
            print(region.publish(), flush=True)
            time.sleep(0.3)
    """
    with tshare.Region.create(name, size=1) as region:
        process = spawn(code, name)
        assert process.stdout.readline() == "1\n"
        assert loop(region.generations(0)) == [1]
        process.communicate(timeout=300)


def test_loop_over_generations_ends_with_close(region, later):
    async def main():
        asyncio.get_running_loop().call_later(0.1, region.close)
        return [generation async for generation in region.generations()]

    same = tshare.Region.from_fd(region.fileno())
    generations = same.generations()
    later(same.close)
    assert list(generations) == []
    assert asyncio.run(main()) == []


def test_generations_checks_its_argument_when_it_is_called(region):
    with pytest.raises(TypeError, match="^seen: "):
        region.generations("0")
    with pytest.raises(ValueError, match="^seen: "):
        region.generations(-1)
    region.close()
    with pytest.raises(ValueError, match="closed"):
        region.generations()
    with pytest.raises(ValueError, match="closed"):
        region.generations(0)


def test_event_fileno_is_readable_when_there_is_news(region):
    with selectors.DefaultSelector() as selector:
        fd = region.event_fileno()
        assert region.event_fileno() == fd
        selector.register(fd, selectors.EVENT_READ)
        assert not selector.select(0)
        for seen in range(3):
            region.publish()
            assert selector.select(60)
            os.eventfd_read(fd)
            assert region.wait(seen, 0) == seen + 1
            assert not selector.select(0.1)
        with pytest.raises(BlockingIOError):
            os.eventfd_read(fd)
        selector.unregister(fd)


def test_event_fileno_and_wait_async_take_no_news_from_one_another(region):
    async def main():
        for seen in range(100):
            waiting = asyncio.create_task(region.wait_async(seen, 60))
            await asyncio.sleep(0)
            region.publish()
            assert selector.select(60)
            os.eventfd_read(region.event_fileno())
            assert await waiting == seen + 1

    with selectors.DefaultSelector() as selector:
        selector.register(region.event_fileno(), selectors.EVENT_READ)
        asyncio.run(main())


def test_closed_region_has_no_event_fileno(region):
    region.close()
    with pytest.raises(ValueError, match="closed"):
        region.event_fileno()


def test_wait_async_checks_its_arguments_when_it_is_called(region):
    with pytest.raises(TypeError, match="argument 'seen'"):
        region.wait_async()
    with pytest.raises(ValueError, match="^timeout: "):
        region.wait_async(0, -1)
    with pytest.raises(TypeError, match="spin"):
        region.wait_async(0, spin=1)
    region.close()
    with pytest.raises(ValueError, match="closed"):
        region.wait_async(0)


@pytest.mark.parametrize(
    "end",
    [
        # asyncio.run() cancels what is left.
        """
        async def main():
            asyncio.create_task(region.wait_async(0))
            await asyncio.sleep(0.1)

        asyncio.run(main())
        """,
        # A program that waits with a limit of time, and ends.
        """
        async def main():
            try:
                await asyncio.wait_for(region.wait_async(0), 0.1)
            except asyncio.TimeoutError:
                pass

        asyncio.run(main())
        """,
        # A thread of its own waits; close() is what ends that.
        """
        async def main():
            try:
                await asyncio.wait_for(asyncio.to_thread(region.wait, 0), 0.1)
            except asyncio.TimeoutError:
                region.close()

        asyncio.run(main())
        """,
    ],
)
def test_interpreter_ends_with_a_wait_under_way(end):
    code = "import asyncio, tshare\nregion = tshare.Region.create(size=1)\n"
    assert run_in_silence(code + textwrap.dedent(end) + "print('done')") == "done"


def test_interpreter_ends_with_a_loop_that_was_left_alone():
    code = """
        import asyncio
        import tshare

        region = tshare.Region.create(size=1)
        loop = asyncio.new_event_loop()
        task = loop.create_task(region.wait_async(0))
        loop.call_later(0.1, loop.stop)
        loop.run_forever()
        print("done")
    """
    # asyncio prints a warning about the task on stderr.
    process = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=300
    )
    assert (process.returncode, process.stdout) == (0, "done\n")
