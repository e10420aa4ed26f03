# SPDX-License-Identifier: MIT
"""Waiting for a generation, a frame or a name in an event loop.

For generations the loops wait for a region's event descriptor. One thread of the library makes
it readable, for all regions of the process. A loop that reads the descriptor resets it for all
other loops. So that loop looks on behalf of all tasks that wait for the region, in whatever
thread their loops run.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import math
import os
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, TypeVar

from ._timeouts import deadline

if TYPE_CHECKING:
    from collections.abc import Callable

    from ._tshare import Frame, Region, Stream, Watcher

_T = TypeVar("_T")


class _Wait:
    """One task's wait: completes a future of its loop."""

    def __init__(self, region: Region, seen: int) -> None:
        self.region = region
        self.seen = seen
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[int] = self.loop.create_future()

    def look(self) -> None:
        """Complete the future if the wait is over; runs in the future's loop."""
        if self.future.done():
            return
        try:
            self.future.set_result(self.region.wait(self.seen, 0))
        except TimeoutError:
            pass
        except Exception as error:
            self.future.set_exception(error)

    def expire(self) -> None:
        if not self.future.done():
            text = "timeout: nothing was published in time"
            self.future.set_exception(TimeoutError(errno.ETIMEDOUT, text))


class _Watch:
    """Shared by all waits for one region; exists while there are any."""

    def __init__(self, region: Region) -> None:
        self.waits: set[_Wait] = set()
        self.loops: Counter[Any] = Counter()
        # A duplicate: the region may be closed before the loops drop their readers.
        self.fd = region._dup_async_fd()

    def join(self, wait: _Wait) -> None:
        if not self.loops[wait.loop]:
            wait.loop.add_reader(self.fd, self.look, wait.loop)
        self.loops[wait.loop] += 1
        self.waits.add(wait)

    def leave(self, wait: _Wait) -> None:
        self.waits.remove(wait)
        self.loops[wait.loop] -= 1
        if not self.loops[wait.loop]:
            del self.loops[wait.loop]
            wait.loop.remove_reader(self.fd)

    def look(self, loop: Any) -> None:
        """Called by a loop when the descriptor is readable."""
        # Another loop may have read it first; both look on behalf of all.
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self.fd)
        with _lock:
            waits = list(self.waits)
        for wait in waits:
            if wait.loop is loop:
                wait.look()
            else:
                # A closed loop has no task left to wake.
                with contextlib.suppress(RuntimeError):
                    wait.loop.call_soon_threadsafe(wait.look)


_lock = threading.Lock()
_watches: dict[Region, _Watch] = {}


def _after_fork_in_child() -> None:
    """Drop the waits of the parent's loops, and the descriptors inherited with them."""
    global _lock

    _lock = threading.Lock()
    for watch in _watches.values():
        os.close(watch.fd)
    _watches.clear()


os.register_at_fork(after_in_child=_after_fork_in_child)


def _join(wait: _Wait) -> _Watch:
    with _lock:
        watch = _watches.get(wait.region) or _Watch(wait.region)
        try:
            watch.join(wait)
        except BaseException:
            if not watch.waits:
                os.close(watch.fd)
            raise
        _watches[wait.region] = watch
        return watch


def _leave(watch: _Watch, wait: _Wait) -> None:
    with _lock:
        watch.leave(wait)
        # After a fork() the child has closed this watch, and may have another.
        if not watch.waits and _watches.get(wait.region) is watch:
            del _watches[wait.region]
            os.close(watch.fd)


async def wait_async(region: Region, seen: int, timeout: float | None) -> int:
    try:
        return region.wait(seen, 0)
    except TimeoutError:
        if timeout == 0:
            raise
    wait = _Wait(region, seen)
    timer = None
    watch = _join(wait)
    try:
        # Another loop may have read the news since the first look.
        wait.look()
        if timeout is not None and timeout != math.inf:
            timer = wait.loop.call_later(timeout, wait.expire)
        return await wait.future
    finally:
        if timer:
            timer.cancel()
        _leave(watch, wait)


async def _readable(fd: int, timeout: float) -> None:
    """Return when the descriptor is readable, or the seconds have passed."""
    loop = asyncio.get_running_loop()
    news = loop.create_future()
    loop.add_reader(fd, _complete, news)
    try:
        await asyncio.wait([news], timeout=None if timeout == math.inf else timeout)
    finally:
        loop.remove_reader(fd)


def _complete(news: asyncio.Future[None]) -> None:
    if not news.done():
        news.set_result(None)


async def _try_until(source: Watcher | Stream, attempt: Callable[[], _T], until: float) -> _T:
    """Return what attempt() does, which raises TimeoutError until there is news of source."""
    # A duplicate for this task: a loop has only one reader for each descriptor.
    hold, fd = source._hold(), os.dup(source.fileno())
    try:
        while True:
            try:
                return attempt()
            except TimeoutError:
                left = until - time.monotonic()
                if left <= 0:
                    raise
            await _readable(fd, left)
    finally:
        os.close(fd)
        del hold


async def watch_async(watcher: Watcher, seen: int | None, timeout: float | None) -> int | None:
    return await _try_until(watcher, lambda: watcher.wait(seen, 0), deadline(timeout))


async def take_async(stream: Stream, timeout: float | None) -> Frame:
    until = deadline(timeout)
    # Without the descriptor, which costs later takes more.
    try:
        return stream.take(0)
    except TimeoutError:
        if timeout == 0:
            raise
    return await _try_until(stream, lambda: stream.take(0), until)


async def next_async(stream: Stream) -> Frame:
    try:
        return await take_async(stream, None)
    except EOFError:
        raise StopAsyncIteration from None
