# SPDX-License-Identifier: MIT
"""The figure: time against size, and wake-up latency. Needs matplotlib."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any, NamedTuple

from . import report, units
from .measure import percentile
from .runner import HAS, READ, Results, Row

# Told apart by marker and dashes; colour comes on top, from a palette that the
# colour-blind can read, dark enough for paper.
MARKERS = "os^DvPX<>*hp"
DASHES: Sequence[Any] = ("-", (0, (5, 1.5)), (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5)))
COLOURS = ("#0072b2", "#d55e00", "#007a5a", "#a5447b", "#8a6d00", "#3a3a3a")

# Inches: of a panel, and of what is around it.
WIDTH, HEIGHT = 4.1, 3.5
LEFT, RIGHT, BELOW, ABOVE = 0.85, 2.5, 0.6, 0.45
CAPTION = 0.35
FONT = 8.5  # points

# A label's share of the height of a panel, so that no two overlap.
LABEL_HEIGHT = 1.35 * FONT / 72 / HEIGHT

PAGE = 4096


class _Panel(NamedTuple):
    section: str
    title: str
    value: Callable[[Row, int], float | None]
    is_time: bool = True


def _time(phase: str) -> Callable[[Row, int], float | None]:
    def value(row: Row, size: int) -> float | None:
        times = row.times(size, phase)
        return median(times) if times else None

    return value


def _memory(row: Row, size: int) -> float | None:
    """A page for nothing, as zero has no place on a logarithmic axis."""
    memory = row.seen(size).memory
    return max(PAGE, memory.most) if memory else None


PANELS = (
    _Panel("within", "Within a process", _time("")),
    _Panel("open", "From a name to an array", _time("")),
    _Panel("between", "Between processes, until the consumer has the array", _time(HAS)),
    _Panel("between", "Between processes, until the consumer has read it all", _time(READ)),
    _Panel("between", "Between processes, memory added in both at most", _memory, False),
)


class _Line(NamedTuple):
    label: str
    sizes: list[int]
    values: list[float]
    style: dict[str, Any]


def _style(number: int, ours: bool) -> dict[str, Any]:
    return {
        "marker": MARKERS[number % len(MARKERS)],
        "linestyle": DASHES[number % len(DASHES)],
        "color": COLOURS[number % len(COLOURS)],
        "markersize": 5,
        # tshare's own stand out: filled and thick.
        "linewidth": 2.0 if ours else 1.1,
        "markerfacecolor": COLOURS[number % len(COLOURS)] if ours else "white",
    }


def _lines(rows: Sequence[Row], panel: _Panel) -> list[_Line]:
    lines = []
    for number, row in enumerate(rows):
        points = [(size, panel.value(row, size)) for size in sorted(row.cells)]
        found = [(size, value) for size, value in points if value is not None]
        if found:
            sizes, values = zip(*found, strict=True)
            style = _style(number, bool(row.backend))
            lines.append(_Line(row.label, list(sizes), list(values), style))
    return lines


def _spread(wanted: Sequence[float], distance: float) -> list[float]:
    """Places near those wanted, in the same order, and no two nearer than distance."""
    places: list[list[float]] = []  # groups of neighbours: the sum of wanted starts, and count
    for i, place in enumerate(wanted):
        places.append([place - i * distance, 1])
        # In terms of "start of the first", groups that overlap are those out of order.
        while len(places) > 1 and (places[-2][0] / places[-2][1] > places[-1][0] / places[-1][1]):
            last = places.pop()
            places[-1][0] += last[0]
            places[-1][1] += last[1]
    starts = [total / count for total, count in places for _ in range(int(count))]
    return [start + i * distance for i, start in enumerate(starts)]


def _label_ends(axes: Any, lines: Sequence[_Line]) -> None:
    """Each line's name at its right end, moved up or down where there are many."""
    to_axes = axes.transData + axes.transAxes.inverted()
    ends = sorted(
        (float(to_axes.transform((line.sizes[-1], line.values[-1]))[1]), line) for line in lines
    )
    places = _spread([place for place, _ in ends], LABEL_HEIGHT)
    # Not beyond the panel's top, if possible.
    excess = max(0.0, places[-1] - 1.0)
    for place, (end, line) in zip(places, ends, strict=True):
        right = float(to_axes.transform((line.sizes[-1], line.values[-1]))[0])
        axes.annotate(
            line.label,
            xy=(right, end),
            xycoords="axes fraction",
            xytext=(1.07, place - excess),
            textcoords="axes fraction",
            va="center",
            fontsize=FONT,
            color=line.style["color"],
            fontweight="bold" if line.style["linewidth"] > 1.5 else "normal",
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "relpos": (0, 0.5),
                "color": line.style["color"],
                "linewidth": 0.6,
                "shrinkA": 1,
                "shrinkB": 4,
            },
        )
        axes.plot(
            [1.045],
            [place - excess],
            transform=axes.transAxes,
            clip_on=False,
            **{**line.style, "linestyle": "none"},
        )


def _draw_sizes(axes: Any, panel: _Panel, lines: Sequence[_Line]) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

    for line in lines:
        axes.plot(line.sizes, line.values, **line.style)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=10 if panel.is_time else 2)
    sizes = sorted({size for line in lines for size in line.sizes})
    # Every second has a name, as there is no room for all.
    named = sizes if len(sizes) < 7 else sizes[::2]
    axes.xaxis.set_major_locator(FixedLocator(named))
    axes.xaxis.set_minor_locator(FixedLocator(sizes))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: units.size(size)))
    axes.xaxis.set_minor_formatter("")
    if panel.is_time:
        # At least two decades, or noise is all that is seen.
        low, high = axes.get_ylim()
        middle = math.sqrt(low * high)
        axes.set_ylim(min(low, middle / 10), max(high, middle * 10))
        axes.yaxis.set_major_locator(LogLocator(numticks=20))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda time, _: _time_tick(time)))
    else:
        axes.yaxis.set_major_locator(FixedLocator([1 << power for power in range(12, 50, 4)]))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(FuncFormatter(lambda size, _: units.size(size)))
    axes.set_xlabel("size of the array")
    axes.set_ylabel("median time" if panel.is_time else "memory added")
    axes.set_title(panel.title, loc="left", fontweight="bold")
    axes.grid(True, which="major", color="0.88", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.figure.canvas.draw()
    _label_ends(axes, lines)


def _time_tick(time: float) -> str:
    return units.seconds(time).replace(".00", "").replace("10.0", "10").replace("us", "µs")


def _draw_latency(axes: Any, rows: Sequence[Row]) -> None:
    """A bar from the 0th to the 99th percentile, with a mark at the median."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    for number, row in enumerate(reversed(rows)):
        times = row.times(0, "")
        low, middle, high = (percentile(times, p) for p in (0, 50, 99))
        ours = bool(row.backend)
        axes.plot(
            [low, high], [number, number], color="0.25", linewidth=2.4 if ours else 1.1, zorder=2
        )
        axes.plot([low, high], [number, number], "|", color="0.25", markersize=9, zorder=2)
        axes.plot(
            [middle],
            [number],
            "o",
            color=COLOURS[0] if ours else "0.25",
            markerfacecolor=COLOURS[0] if ours else "white",
            markersize=7,
            zorder=3,
        )
        axes.annotate(
            units.seconds(middle).replace("us", "µs"),
            (middle, number),
            xytext=(0, 7),
            textcoords="offset points",
            ha="center",
            fontsize=FONT,
        )
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(numticks=20))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda time, _: _time_tick(time)))
    axes.yaxis.tick_right()
    axes.set_yticks(range(len(rows)), [row.label for row in reversed(rows)])
    axes.tick_params(axis="y", length=0)
    for label, row in zip(axes.get_yticklabels(), reversed(rows), strict=True):
        label.set_fontweight("bold" if row.backend else "normal")
    axes.set_ylim(-0.6, len(rows) - 0.3)
    axes.set_xlabel("time until the other process runs: lowest, median, 99th percentile")
    axes.set_title("Wake-up", loc="left", fontweight="bold")
    axes.grid(True, axis="x", color="0.88", linewidth=0.6)
    axes.set_axisbelow(True)


def _caption(results: Results) -> str:
    what = dict(report.summary(results))
    return (
        f"Bold: tshare {what['tshare']}. {what['CPU']}, {what['kernel']}, {what['libraries']}."
        + (" Interrupted." if results.interrupted else "")
    )


def save(results: Results, path: str) -> None:
    import matplotlib
    from matplotlib.figure import Figure

    panels = [(panel, _lines(results.section(panel.section), panel)) for panel in PANELS]
    panels = [(panel, lines) for panel, lines in panels if lines]
    latencies = [row for row in results.section("latency") if row.times(0, "")]
    count = max(1, len(panels) + bool(latencies))
    columns = min(2, count)
    width = columns * (LEFT + WIDTH + RIGHT)
    height = -(-count // columns) * (BELOW + HEIGHT + ABOVE) + CAPTION
    settings: Any = {
        "font.size": FONT,
        "axes.titlesize": FONT + 1.5,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "svg.fonttype": "none",
    }
    with matplotlib.rc_context(settings):
        figure = Figure(figsize=(width, height))

        def place(number: int) -> Any:
            down, right = divmod(number, columns)
            x = right * (LEFT + WIDTH + RIGHT) + LEFT
            y = height - (down + 1) * (BELOW + HEIGHT + ABOVE) + BELOW
            return figure.add_axes((x / width, y / height, WIDTH / width, HEIGHT / height))

        for number, (panel, lines) in enumerate(panels):
            _draw_sizes(place(number), panel, lines)
        if latencies:
            _draw_latency(place(count - 1), latencies)
        if not panels and not latencies:
            figure.text(0.5, 0.5, "nothing was measured", ha="center")
        figure.text(0.1 / width, 0.1 / height, _caption(results), fontsize=FONT - 1, color="0.35")
        figure.savefig(path, dpi=150)
