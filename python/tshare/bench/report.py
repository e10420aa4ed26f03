# SPDX-License-Identifier: MIT
"""The results as tables and as CSV."""

from __future__ import annotations

import csv
import os
import platform
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from statistics import median
from typing import TextIO

import tshare

from . import units
from .measure import percentile
from .processes import LIBRARIES
from .runner import HAS, READ, Results, Row

COLUMNS = (
    "section",
    "way",
    "backend",
    "until",
    "size_bytes",
    "median_s",
    "p0_s",
    "p99_s",
    "samples",
    "ratio_to_memcpy",
    "private_bytes_added",
    "shared_bytes_added",
    "peak_rss_bytes_added",
    "peak_bytes_added",
    "includes",
    "reason",
)

# Columns of the tables if the output is not a terminal.
WIDE = 200


def memcpy(results: Results, size: int) -> float | None:
    """Return memcpy's time at that size, by which all others are divided."""
    for row in results.section("within"):
        if row.way.key == "memcpy":
            times = row.times(size, "")
            return median(times) if times else None
    return None


# CSV


def write_csv(results: Results, file: TextIO) -> None:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in results.rows:
        for phase in row.phases:
            # A row without measurements is one line.
            for size in sorted(row.cells) or [0]:
                writer.writerow(_csv_fields(results, row, size, phase))


def save_csv(results: Results, path: str) -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        write_csv(results, file)


def _csv_fields(results: Results, row: Row, size: int, phase: str) -> list[object]:
    cell = row.seen(size)
    times = row.times(size, phase)
    reference = memcpy(results, size)
    figures: list[object] = [""] * 5
    if times:
        middle = median(times)
        figures = [
            f"{middle:.4g}",
            f"{min(times):.4g}",
            f"{percentile(times, 99):.4g}",
            len(times),
            f"{middle / reference:.4g}" if reference else "",
        ]
    memory: Sequence[object] = [""] * 4
    if cell.memory:
        m = cell.memory
        memory = m.private, m.shared, m.peak, m.most
    reason = "" if times else row.reason or cell.reason or "interrupted"
    return [
        row.section,
        row.label,
        row.backend,
        phase,
        size or "",
        *figures,
        *memory,
        row.way.includes,
        reason,
    ]


# Tables


def _cpu() -> str:
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def _machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        with open("/sys/class/dmi/id/product_name") as file:
            product = file.read().strip() + ", "
    except OSError:
        product = ""
    return f"{product}{platform.machine()}, {units.size(memory)} of memory"


def summary(results: Results) -> list[tuple[str, str]]:
    """Return machine, versions and load that the figures belong to."""
    versions: dict[str, str] = {}
    missing: dict[str, str] = {}
    for hello in results.hellos.values():
        versions |= hello.versions
        missing |= hello.missing
    libraries = [f"Python {platform.python_version()}"]
    for module, name in LIBRARIES.items():
        if module in versions:
            libraries.append(f"{name} {versions[module]}")
        elif module in missing:
            libraries.append(missing[module])
    backends = [f"{b} {hello.unusable or 'used'}" for b, hello in results.hellos.items()]
    return [
        ("tshare", f"{tshare.__version__}, {datetime.now().astimezone():%Y-%m-%d %H:%M %Z}"),
        ("machine", _machine()),
        ("CPU", f"{_cpu()}, {len(os.sched_getaffinity(0))} CPUs"),
        ("kernel", f"{platform.system()} {platform.release()}"),
        ("libraries", ", ".join(libraries)),
        ("backends", "; ".join(backends) or "none was started"),
        ("load", " before, ".join(f"{load:.2f}" for load in results.load) + " after"),
    ]


class _Notes:
    """Numbered reasons, for below the table."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def mark(self, reason: str) -> str:
        number = self._numbers.setdefault(reason, len(self._numbers) + 1)
        return f"[{number}]"

    def lines(self) -> list[str]:
        return [f"  [{number}] {reason}" for reason, number in self._numbers.items()]


def _columns(header: Sequence[str], lines: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Lay out columns; lines that are too long continue below, with the first column again.

    A line of two cells is a label and a text in place of figures.
    """
    every = [header, *lines]
    whole = [line for line in every if len(line) == len(header)]
    widths = [max(len(line[i]) for line in whole) for i in range(len(header))]
    widths[0] = max(len(line[0]) for line in every)
    first = 1
    while first < len(header):
        last = first + 1
        while last < len(header) and widths[0] + sum(w + 2 for w in widths[first : last + 1]) <= (
            width
        ):
            last += 1
        if first > 1:
            yield ""
        for line in every:
            if len(line) == len(header):
                cells = "".join(f"  {line[i]:>{widths[i]}}" for i in range(first, last))
            else:
                cells = f"  {line[1]}"
            yield f"{line[0]:<{widths[0]}}{cells}".rstrip()
        first = last


def _by_size(results: Results, section: str, phase: str, title: str, width: int) -> Iterator[str]:
    """Return the lines of median times, then of these as multiples of memcpy's."""
    rows = results.section(section)
    sizes = [size for size in results.sizes() if any(size in row.cells for row in rows)]
    if not sizes:
        return
    header = ["", *(units.size(size) for size in sizes)]
    notes = _Notes()

    def line(row: Row, ratios: bool) -> list[str]:
        if row.reason and not row.cells:
            return [f"  {row.label}", row.reason]
        cells = []
        for size in sizes:
            times = row.times(size, phase)
            reference = memcpy(results, size)
            if not times:
                reason = row.reason or row.seen(size).reason or "interrupted"
                cells.append(notes.mark(reason))
            elif ratios:
                cells.append(units.ratio(median(times) / reference) if reference else "-")
            else:
                cells.append(units.seconds(median(times)))
        return [f"  {row.label}", *cells]

    yield title
    yield from _columns(header, [line(row, False) for row in rows], width)
    yield ""
    yield "  the same, divided by memcpy's time"
    yield from _columns(header, [line(row, True) for row in rows], width)
    yield from notes.lines()
    yield ""


def _memory(results: Results, width: int) -> Iterator[str]:
    rows = [row for row in results.rows if any(cell.memory for cell in row.cells.values())]
    if not rows:
        return
    size = max(size for row in rows for size, cell in row.cells.items() if cell.memory)
    lines = []
    for row in rows:
        memory = row.seen(size).memory
        if memory:
            held = memory.private + memory.shared
            cells = [units.size(n) for n in (memory.private, memory.shared, held, memory.most)]
            lines.append([f"  {row.label}", *cells, units.ratio(max(0, memory.most) / size)])
    yield f"Memory added by an array of {units.size(size)}; between processes, in both of them"
    header = ["", "private", "shared", "both", "at most", "at most / size"]
    yield from _columns(header, lines, width)
    yield "  Private and shared: PSS while the array exists; between processes, after it was read."
    yield "  At most: plus memory that was private only in between."
    yield ""


def _unsized(results: Results, section: str, title: str, width: int) -> Iterator[str]:
    lines = []
    for row in results.section(section):
        times = row.times(0, "")
        if times:
            shown = [units.seconds(percentile(times, p)) for p in (0, 50, 99)]
            lines.append([f"  {row.label}", *shown, str(len(times))])
        else:
            reason = row.reason or row.seen(0).reason or "interrupted"
            lines.append([f"  {row.label}", reason])
    yield title
    yield from _columns(["", "P0", "P50", "P99", "samples"], lines, width)
    yield ""


def _includes(rows: Iterable[Row]) -> Iterator[str]:
    seen = {(row.way.label.format(backend="*"), row.way.includes): None for row in rows}
    width = max(len(label) for label, _ in seen)
    for label, includes in seen:
        yield f"  {label:<{width}}  {includes}"


def tables(results: Results, width: int = WIDE) -> Iterator[str]:
    """Return the lines of the report."""
    for name, value in summary(results):
        yield f"{name:<10} {value}"
    if results.interrupted:
        yield "interrupted: the tables hold what was measured until then"
    yield ""
    yield from _by_size(
        results,
        "within",
        "",
        "Within a process: median time. float32: a is a NumPy array, x a PyTorch tensor,\n"
        "t a tshare tensor",
        width,
    )
    yield from _by_size(
        results, "open", "", "From a name to an array: median time, without closing", width
    )
    yield from _by_size(
        results,
        "between",
        HAS,
        "Between processes: median time from when the producer has the array in its place\n"
        "until the consumer has it, and could read",
        width,
    )
    yield from _by_size(
        results,
        "between",
        READ,
        "Between processes: the same, until the consumer has read the whole of it once",
        width,
    )
    yield from _memory(results, width)
    yield from _unsized(results, "dlpack", "DLPack: the protocol's own cost for a tensor", width)
    yield from _unsized(
        results, "latency", "Wake-up: from the announcement until the other process runs", width
    )
    yield "What each time includes"
    yield from _includes(results.rows)


def print_tables(results: Results) -> None:
    width = WIDE
    if sys.stdout.isatty():
        width = os.get_terminal_size(sys.stdout.fileno()).columns
    for line in tables(results, width):
        print(line)
