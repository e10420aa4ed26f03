# SPDX-License-Identifier: MIT
"""Waiting for a generation in an event loop."""

import asyncio
import errno
import math
import subprocess
import sys
import textwrap
import threading
import time

import pytest

import tshare
from support import run_in_silence


@pytest.fixture
def region():
    with tshare.Region.create(size=1) as region:
        yield region


@pytest.fixture(autouse=True)
def no_thread_is_left():
    yield
    deadline = time.monotonic() + 60
    while any(thread.name == "tshare-wait" for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_wait_async_returns_what_is_published_meanwhile(region):
    async def main():
        asyncio.get_running_loop().call_later(0.1, region.publish)
        return await region.wait_async(0)

    assert asyncio.run(main()) == 1


def test_wait_async_returns_at_once_what_is_there(region):
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


def test_wait_async_checks_its_arguments_when_it_is_called(region):
    with pytest.raises(TypeError, match="^seen: "):
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
    # asyncio complains of the task on stderr.
    process = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60
    )
    assert (process.returncode, process.stdout) == (0, "done\n")
