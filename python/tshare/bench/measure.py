# SPDX-License-Identifier: MIT
"""Time and memory of a piece of code in this process."""

from __future__ import annotations

import ctypes
import gc
import math
from collections.abc import Callable, Sequence
from itertools import repeat
from time import perf_counter
from typing import Any, NamedTuple

# A measurement of less says more of the clock and of interrupts than of the code.
AT_LEAST = 2e-3

# Results that are kept until the clock has stopped: files, so not too many.
KEPT_AT_ONCE = 64

Loop = Callable[[int], float]


def calls(function: Callable[[], Any]) -> Loop:
    """Seconds for a number of calls, each of whose results is let go at once."""

    def loop(count: int) -> float:
        numbers = repeat(None, count)
        start = perf_counter()
        for _ in numbers:
            function()
        return perf_counter() - start

    return loop


def kept(function: Callable[[], Any], release: Callable[[Any], None]) -> Loop:
    """Seconds for a number of calls, without those that letting go of the results takes."""

    def loop(count: int) -> float:
        seconds = 0.0
        for done in range(0, count, KEPT_AT_ONCE):
            results: list[Any] = []
            append = results.append
            numbers = repeat(None, min(KEPT_AT_ONCE, count - done))
            start = perf_counter()
            for _ in numbers:
                append(function())
            seconds += perf_counter() - start
            while results:
                release(results.pop())
        return seconds

    return loop


def per_call(loop: Loop, count: int) -> tuple[float, int]:
    """Seconds per call, and the number of calls that it took to measure that.

    ``count`` calls, or more where they don't take long enough.
    """
    while True:
        elapsed = loop(count)
        if elapsed >= AT_LEAST:
            return elapsed / count, count
        wanted = math.ceil(1.2 * count * AT_LEAST / max(elapsed, 1e-9))
        count = min(max(wanted, 2 * count), 10 * count)


def percentile(values: Sequence[float], percent: float) -> float:
    """The value that so many percent of the values don't exceed; the lowest one for 0."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


class Memory(NamedTuple):
    """Bytes of this process, or what was added to them."""

    private: int  # anonymous pages
    shared: int  # pages of shared mappings, those of n processes counting as an nth
    resident: int  # pages of mappings of files and of shared memory, counting in full
    peak: int  # resident at most, of any kind

    @property
    def most(self) -> int:
        """Private at most, and shared: of what is shared a process has but its part.

        The kernel counts what is resident in steps of up to 64 pages for each
        thread, and so may say less than there is.
        """
        return max(self.peak - self.resident, self.private) + self.shared

    def minus(self, other: Memory) -> Memory:
        return Memory(*(a - b for a, b in zip(self, other, strict=True)))

    def plus(self, other: Memory) -> Memory:
        return Memory(*(a + b for a, b in zip(self, other, strict=True)))


def _status() -> dict[str, int]:
    """The fields of /proc/self/status that are memory, in bytes."""
    fields = {}
    with open("/proc/self/status") as status:
        for line in status:
            name, _, value = line.partition(":")
            if value.endswith(" kB\n"):
                fields[name] = int(value.split()[0]) * 1024
    return fields


def _pages() -> tuple[int, int]:
    """Private and shared bytes.

    Libraries are left out, as their share changes with every process that comes
    and goes: of private mappings only the anonymous pages are counted.
    """
    private = shared = 0
    is_shared = False
    with open("/proc/self/smaps", "rb") as smaps:
        for line in smaps:
            key, _, rest = line.partition(b" ")
            if not key.endswith(b":"):
                is_shared = rest[3:4] == b"s"
            elif key == b"Pss:" and is_shared:
                shared += int(rest.split()[0])
            elif key == b"Anonymous:" and not is_shared:
                private += int(rest.split()[0])
    return private * 1024, shared * 1024


def _trim() -> None:
    """Give memory back that was freed, or it is used again and no more is seen of that."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim:
        trim(0)


def memory_before() -> Memory:
    """What to subtract in memory_after(), whose peak is counted from here on."""
    gc.collect()
    _trim()
    # Once for what the looking itself takes.
    _pages(), _status()
    private, shared = _pages()
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    status = _status()
    return Memory(private, shared, status["RssFile"] + status["RssShmem"], status["VmRSS"])


def memory_after(before: Memory) -> Memory:
    """What was added since."""
    status = _status()
    resident = status["RssFile"] + status["RssShmem"]
    return Memory(*_pages(), resident, status["VmHWM"]).minus(before)
