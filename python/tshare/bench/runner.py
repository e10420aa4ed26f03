# SPDX-License-Identifier: MIT
"""The order of the measurements, and their results."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from statistics import median
from time import monotonic
from typing import Any

from . import between, units, within
from .measure import Memory
from .processes import Hello, MeasurementError, Pair, PairDiedError
from .within import Way

BACKENDS = ("shm", "kmod")

# Phases of a hand-over between processes: until the consumer has the array, and has read it.
HAS, READ = "has it", "has read it"

# The most arrays that exist at once: pickling makes three copies besides the producer's
# array and the consumer's.
COPIES = 5
SPARE = 256 << 20

# From this size on, available memory is checked before each measurement.
LARGE = 16 << 20

# The most rounds of one size; medians hardly move from then on.
ROUNDS = 25
QUICK_ROUNDS = 5

# Announcements in one round, and rounds: enough for a 99th percentile.
ANNOUNCED, ANNOUNCEMENT_ROUNDS = 100, 10
QUICK_ANNOUNCEMENT_ROUNDS = 3

EXCHANGE_ROUNDS = 15


@dataclass
class Plan:
    sizes: list[int]
    seconds: float  # for everything, once the processes have started
    quick: bool


def plan(quick: bool, max_size: int | None, seconds: float | None) -> Plan:
    step = 4 if quick else 2
    limit = max_size or (16 << 20 if quick else 1 << 30)
    sizes = [1 << power for power in range(10, 41, step) if 1 << power <= limit]
    return Plan(sizes, seconds or (10.0 if quick else 160.0), quick)


@dataclass
class Cell:
    """One way, at one size."""

    samples: dict[str, list[float]] = field(default_factory=dict)  # seconds, by phase
    memory: Memory | None = None
    reason: str = ""  # why nothing was measured
    count: int = 1  # calls or hand-overs in a sample


@dataclass
class Row:
    section: str
    way: Way
    backend: str  # "" for ways without tshare
    phases: tuple[str, ...]
    cells: dict[int, Cell] = field(default_factory=dict)  # by size; 0 where size doesn't matter
    reason: str = ""  # why nothing was measured at any size
    label: str = ""

    def __post_init__(self) -> None:
        self.label = self.way.label.format(backend=self.backend)

    def cell(self, size: int) -> Cell:
        return self.cells.setdefault(size, Cell())

    def seen(self, size: int) -> Cell:
        return self.cells.get(size, Cell())

    def times(self, size: int, phase: str) -> list[float]:
        return self.seen(size).samples.get(phase, [])


@dataclass
class Results:
    plan: Plan
    rows: list[Row]
    hellos: dict[str, Hello]
    load: list[float]  # before and after
    interrupted: bool = False

    def section(self, name: str) -> list[Row]:
        return [row for row in self.rows if row.section == name]

    def sizes(self) -> list[int]:
        """Return the sizes that were measured or left out."""
        return sorted({size for row in self.rows for size in row.cells} - {0})


def _ways() -> Iterator[tuple[str, Way, tuple[str, ...]]]:
    for way in within.TRANSFERS.values():
        yield "within", way, ("",)
    for way in within.OPENINGS.values():
        yield "open", way, ("",)
    for key, hand_over in between.HAND_OVERS.items():
        yield "between", between.way(key, hand_over), (HAS, READ)
    for way in within.EXCHANGES.values():
        yield "dlpack", way, ("",)
    for key, announcement in between.ANNOUNCEMENTS.items():
        yield "latency", between.way(key, announcement), ("",)


def _rows() -> list[Row]:
    return [
        Row(section, way, backend, phases)
        for section, way, phases in _ways()
        for backend in (BACKENDS if way.on_backend else ("",))
    ]


def available_memory() -> int:
    with open("/proc/meminfo") as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    raise RuntimeError("/proc/meminfo has no MemAvailable")


def available_shared_memory() -> int:
    """Return the free bytes in /dev/shm; a process that writes to more is killed by SIGBUS."""
    if not os.path.isdir("/dev/shm"):
        return 0
    found = os.statvfs("/dev/shm")
    return found.f_bavail * found.f_frsize


class Runner:
    """Measures everything; results is valid at any time."""

    def __init__(
        self,
        plan: Plan,
        progress: Callable[[str], None],
        warn: Callable[[str], None],
    ) -> None:
        self.plan = plan
        self.results = Results(plan, _rows(), {}, [os.getloadavg()[0]])
        self._progress = progress
        self._warn = warn
        self._end = 0.0
        self._pairs: dict[str, Pair] = {}
        # Seconds that the first two rounds took, of memory and time, and their size.
        self._two_rounds = 0.0, 0
        self._fixed = math.inf
        # Ways without tshare run in this backend's pair.
        self._base = BACKENDS[0]

    def run(self) -> None:
        try:
            self._start()
            self._end = monotonic() + self.plan.seconds
            self._exchanges()
            self._announcements()
            for size in self.plan.sizes:
                self._size(size)
        except KeyboardInterrupt:
            self.results.interrupted = True
        finally:
            self._progress("")
            for pair in self._pairs.values():
                pair.stop()
            self.results.load.append(os.getloadavg()[0])

    # Which rows there are

    def _start(self) -> None:
        forced = os.environ.get("TSHARE_BACKEND", "")
        if forced in BACKENDS:
            self._base = forced
        for backend in BACKENDS:
            if forced not in ("", backend):
                reason = f"not measured: TSHARE_BACKEND is {forced}"
                self.results.hellos[backend] = Hello(backend, reason)
                continue
            self._progress(f"starting, {backend}")
            self._pairs[backend] = pair = Pair(backend, needs_backend=backend != self._base)
            try:
                hello = pair.start()
            except MeasurementError as error:
                if backend == self._base:
                    raise
                hello = Hello(backend, str(error))
            if hello.unusable:
                hello.unusable = f"not usable: {hello.unusable}"
            self.results.hellos[backend] = hello
        missing = self.results.hellos[self._base].missing
        for row in self.results.rows:
            reasons = [missing[module] for module in row.way.needs if module in missing]
            if row.backend:
                reasons.insert(0, self.results.hellos[row.backend].unusable or "")
            row.reason = next(filter(None, reasons), "")

    def _measurable(self, *sections: str) -> list[Row]:
        return [row for row in self.results.rows if row.section in sections and not row.reason]

    # One measurement

    def _ask(self, row: Row, size: int, method: str, *arguments: Any) -> Any:
        """Send a request to the row's pair; return None and record the reason if it fails."""
        try:
            return self._pairs[row.backend or self._base].ask(method, *arguments)
        except PairDiedError as error:
            # Such a way isn't tried again, since each try would end a pair.
            row.cell(size).reason = row.reason = str(error)
        except MeasurementError as error:
            row.cell(size).reason = str(error)
        self._warn(f"{row.label}{_at(size)}: {row.cell(size).reason}")
        return None

    def _time(self, row: Row, size: int) -> None:
        cell = row.cell(size)
        key = row.way.key
        if row.section == "between":
            got = self._ask(row, size, "time_between", key, size, cell.count)
            if got:
                # Each sample is of some milliseconds, here a median.
                for phase, times in zip(row.phases, zip(*got, strict=True), strict=True):
                    cell.samples.setdefault(phase, []).append(median(times))
                cell.count = max(1, min(200, int(2e-3 / median([read for _, read in got]))))
        else:
            got = self._ask(row, size, "time_within", row.section, key, size, cell.count)
            if got:
                seconds, cell.count = got
                cell.samples.setdefault("", []).append(seconds)

    def _measure_memory(self, row: Row, size: int) -> None:
        if row.section == "between":
            got = self._ask(row, size, "memory_between", row.way.key, size)
        else:
            got = self._ask(row, size, "memory_within", row.section, row.way.key, size)
        if got:
            row.cell(size).memory = got

    # All of them

    def _exchanges(self) -> None:
        rows = self._measurable("dlpack")
        rounds = 3 if self.plan.quick else EXCHANGE_ROUNDS
        for number in range(1 + rounds):
            for row in _turned(rows, number):
                self._progress(f"DLPack, round {number} of {rounds}: {row.label}")
                if not row.cell(0).reason:
                    self._time(row, 0)
            if number == 0:
                _forget(rows, 0)

    def _announcements(self) -> None:
        rows = self._measurable("latency")
        rounds = QUICK_ANNOUNCEMENT_ROUNDS if self.plan.quick else ANNOUNCEMENT_ROUNDS
        for number in range(1 + rounds):
            for row in _turned(rows, number):
                self._progress(f"wake-up, round {number} of {rounds}: {row.label}")
                if row.cell(0).reason:
                    continue
                count = ANNOUNCED if number else ANNOUNCED // 10
                got = self._ask(row, 0, "announce", row.way.key, count)
                if got and number:
                    row.cell(0).samples.setdefault("", []).extend(got)

    def _size(self, size: int) -> None:
        rows = self._measurable("within", "open", "between")
        if not self._fits(size, rows) or not self._in_time(size, rows):
            return
        self._leave_out_of_shared_memory(size, rows)
        first = not self._two_rounds[1]
        if first:
            # Memory that is allocated only once, as by imports, does not count.
            self._round(rows, size, 0, self._time, math.inf)
            _forget(rows, size)
        # Rounds of larger sizes take longer, so these sizes get more of the time.
        weights = [1 + 10 * s / (1 << 30) for s in self.plan.sizes if s >= size]
        start = monotonic()
        end = start + (self._end - start) * weights[0] / sum(weights)
        # A size that was begun gets two rounds, unless all the time is used up.
        last = math.inf if first else self._end
        self._round(rows, size, 0, self._measure_memory, last)
        self._round(rows, size, 1, self._time, last)
        self._two_rounds = monotonic() - start, size
        for row in rows:
            if not any(row.times(size, phase) for phase in row.phases):
                row.cell(size).reason = row.cell(size).reason or "no time was left: see --time"
        for number in range(2, 1 + (QUICK_ROUNDS if self.plan.quick else ROUNDS)):
            self._round(rows, size, number, self._time, end)

    def _round(
        self,
        rows: list[Row],
        size: int,
        number: int,
        measure: Callable[[Row, int], None],
        end: float,
    ) -> None:
        for row in _turned(rows, number):
            if row.reason or row.cell(size).reason or monotonic() >= end:
                continue
            # When memory runs out, the kernel kills the process that uses most of it.
            if size >= LARGE and available_memory() < (COPIES - 1) * size:
                row.cell(size).reason = "too little memory was left by other programs"
                continue
            self._progress(f"{units.size(size)}, round {number}: {row.label}")
            measure(row, size)

    def _fits(self, size: int, rows: Iterable[Row]) -> bool:
        pairs = sum(not hello.unusable for hello in self.results.hellos.values())
        needed = (COPIES + max(0, pairs - 1)) * size + SPARE
        available = available_memory()
        if available >= needed:
            return True
        reason = f"needs {units.size(needed)} of memory; {units.size(available)} are available"
        self._leave_out(size, rows, reason)
        return False

    def _in_time(self, size: int, rows: Iterable[Row]) -> bool:
        seconds, last = self._two_rounds
        # The time of the smallest size is that of calls and messages; the rest grows.
        self._fixed = min(self._fixed, seconds or math.inf)
        expected = seconds + (seconds - self._fixed) * (size / last - 1) if last else 0.0
        # A quarter more is accepted: rounds that have no time left are left out later.
        if not last or expected <= 1.25 * (self._end - monotonic()):
            return True
        reason = f"takes about {units.seconds(expected)}, and less is left: see --time"
        self._leave_out(size, rows, reason)
        return False

    def _leave_out(self, size: int, rows: Iterable[Row], reason: str) -> None:
        self._warn(f"{units.size(size)} left out: {reason}")
        for row in rows:
            row.cell(size).reason = reason

    def _leave_out_of_shared_memory(self, size: int, rows: Iterable[Row]) -> None:
        available = available_shared_memory()
        # Some blocks more, for headers.
        needed = size + (1 << 20)
        if available >= needed:
            return
        reason = f"needs {units.size(needed)} in /dev/shm; {units.size(available)} are available"
        self._warn(f"{units.size(size)}: {reason}; ways that need it are left out")
        for row in rows:
            kind = between.HAND_OVERS.get(row.way.key)
            in_files = kind.shared_files if kind else row.section == "open" or row.way.on_backend
            if in_files and row.backend != "kmod":
                row.cell(size).reason = reason


def _at(size: int) -> str:
    return f", {units.size(size)}" if size else ""


def _turned(rows: list[Row], number: int) -> list[Row]:
    """Rotate the rows, so that no row is always measured after the same one."""
    if not rows:
        return rows
    start = number * 5 % len(rows)
    return rows[start:] + rows[:start]


def _forget(rows: Iterable[Row], size: int) -> None:
    """Drop samples that were measured with cold caches."""
    for row in rows:
        row.cell(size).samples.clear()
