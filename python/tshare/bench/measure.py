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

# Shorter measurements depend more on the clock and on interrupts than on the code.
AT_LEAST = 2e-3

# Results that are kept until the clock has stopped. They may be open files, so not too many.
KEPT_AT_ONCE = 64

Loop = Callable[[int], float]


def calls(function: Callable[[], Any]) -> Loop:
    """Time a number of calls in seconds; each result is dropped at once."""

    def loop(count: int) -> float:
        numbers = repeat(None, count)
        start = perf_counter()
        for _ in numbers:
            function()
        return perf_counter() - start

    return loop


def kept(function: Callable[[], Any], release: Callable[[Any], None]) -> Loop:
    """Time a number of calls in seconds, without the time that releasing the results takes."""

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
    """Return the seconds per call, and the number of calls that were measured.

    These are ``count`` calls, or more if they don't take long enough.
    """
    while True:
        elapsed = loop(count)
        if elapsed >= AT_LEAST:
            return elapsed / count, count
        wanted = math.ceil(1.2 * count * AT_LEAST / max(elapsed, 1e-9))
        count = min(max(wanted, 2 * count), 10 * count)


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the value that ``percent`` percent of the values don't exceed; the lowest for 0."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


class Memory(NamedTuple):
    """Bytes of this process, or a difference of these."""

    private: int  # anonymous pages
    shared: int  # pages of shared mappings, those of n processes counting as an nth
    resident: int  # pages of mappings of files and of shared memory, counting in full
    peak: int  # the most resident pages, of any kind

    @property
    def most(self) -> int:
        """The most private bytes, plus this process's part of the shared ones.

        The kernel counts resident pages in steps of up to 64 for each thread, and so
        may report too few.
        """
        return max(self.peak - self.resident, self.private) + self.shared

    def minus(self, other: Memory) -> Memory:
        return Memory(*(a - b for a, b in zip(self, other, strict=True)))

    def plus(self, other: Memory) -> Memory:
        return Memory(*(a + b for a, b in zip(self, other, strict=True)))


def _status() -> dict[str, int]:
    """Return the fields of /proc/self/status that count memory, in bytes."""
    fields = {}
    with open("/proc/self/status") as status:
        for line in status:
            name, _, value = line.partition(":")
            if value.endswith(" kB\n"):
                fields[name] = int(value.split()[0]) * 1024
    return fields


def _pages() -> tuple[int, int]:
    """Return private and shared bytes.

    Of private mappings only the anonymous pages count. The share of libraries would
    change with every process that starts or ends, and so would that of what the C
    library maps shared, as its cache of character sets.
    """
    private = shared = 0
    is_shared = is_installed = False
    with open("/proc/self/smaps", "rb") as smaps:
        for line in smaps:
            key, _, rest = line.partition(b" ")
            if not key.endswith(b":"):
                is_shared = rest[3:4] == b"s"
                is_installed = b" /usr/" in rest
            elif key == b"Pss:" and is_shared and not is_installed:
                shared += int(rest.split()[0])
            elif key == b"Anonymous:" and not is_shared:
                private += int(rest.split()[0])
    return private * 1024, shared * 1024


def _trim() -> None:
    """Return freed memory to the kernel; reusing it would not show in the counters."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim:
        trim(0)


def memory_before() -> Memory:
    """Return what memory_after() subtracts, and reset the peak."""
    gc.collect()
    _trim()
    # Once before, for the memory that reading these files takes.
    _pages(), _status()
    private, shared = _pages()
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    status = _status()
    return Memory(private, shared, status["RssFile"] + status["RssShmem"], status["VmRSS"])


def memory_after(before: Memory) -> Memory:
    """Return what was added since memory_before()."""
    status = _status()
    resident = status["RssFile"] + status["RssShmem"]
    return Memory(*_pages(), resident, status["VmHWM"]).minus(before)
