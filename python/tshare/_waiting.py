# SPDX-License-Identifier: MIT
"""Waiting for a generation in an event loop.

A futex has no descriptor that an event loop could watch, so that a thread
sleeps in the loop's place. It is none of the loop's executor: asyncio joins
those threads when it ends. It is a daemon: an interpreter that exits doesn't
wait for it either.
"""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._tshare import Region

# How long a thread outlives the task that it waits for, in seconds.
_SLICE = 0.1


class _Waiter:
    """One wait: a future of the loop, and the thread that completes it."""

    def __init__(self, region: Region, seen: int, timeout: float | None) -> None:
        self.region = region
        self.seen = seen
        self.deadline = None if timeout is None else time.monotonic() + timeout
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[int] = self.loop.create_future()
        self.abandoned = False

    def run(self) -> None:
        try:
            generation = self.wait()
        except BaseException as error:
            self.report(self.future.set_exception, error)
        else:
            self.report(self.future.set_result, generation)

    def wait(self) -> int:
        while True:
            left = _SLICE if self.deadline is None else self.deadline - time.monotonic()
            try:
                return self.region.wait(self.seen, max(0.0, min(left, _SLICE)))
            except TimeoutError:
                if left < _SLICE or self.abandoned:
                    raise

    def report(self, how: Any, what: Any) -> None:
        def tell() -> None:
            if not self.future.done():
                how(what)

        try:
            self.loop.call_soon_threadsafe(tell)
        except RuntimeError:
            pass  # the loop is closed, and nobody is left to be told


async def wait_async(region: Region, seen: int, timeout: float | None) -> int:
    try:
        return region.wait(seen, 0)
    except TimeoutError:
        if timeout == 0:
            raise
    waiter = _Waiter(region, seen, timeout)
    threading.Thread(target=waiter.run, name="tshare-wait", daemon=True).start()
    try:
        return await waiter.future
    finally:
        waiter.abandoned = True
