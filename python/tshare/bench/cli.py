# SPDX-License-Identifier: MIT
"""The command line."""

from __future__ import annotations

import argparse
import importlib
import math
import os
import signal
import sys
from collections.abc import Callable
from typing import NoReturn

from . import report, units
from .processes import MeasurementError
from .runner import Runner, plan

INTERRUPTED = 128 + signal.SIGINT

SMALLEST = 1 << 10

DESCRIPTION = """\
What it takes to hand an array over, in time and memory, within a process and
from one to another, by tshare and by what else people use."""


class _Parser(argparse.ArgumentParser):
    """Errors look as those of the command's other verbs."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\nTry '{self.prog} --help'.\n")


def _size(text: str) -> int:
    try:
        size = units.parse_size(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if size < SMALLEST:
        raise argparse.ArgumentTypeError(f"'{text}' is less than 1K, the smallest size")
    return size


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of seconds")
    return seconds


def _output(text: str) -> str:
    """A file that can be written, as far as can be told without writing it."""
    folder = os.path.dirname(text) or "."
    if not text or os.path.isdir(text):
        raise argparse.ArgumentTypeError(f"'{text}' is not a file")
    if not os.path.isdir(folder):
        raise argparse.ArgumentTypeError(f"'{text}': there is no directory '{folder}'")
    if not os.access(text if os.path.exists(text) else folder, os.W_OK):
        raise argparse.ArgumentTypeError(f"'{text}' can't be written")
    return text


def _figure(text: str) -> str:
    if not text.endswith((".png", ".svg")):
        raise argparse.ArgumentTypeError(f"'{text}' ends neither with .png nor with .svg")
    try:
        importlib.import_module("matplotlib")
    except ImportError:
        raise argparse.ArgumentTypeError(
            "needs matplotlib, which is not installed: pip install matplotlib"
        ) from None
    return _output(text)


def parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="tshare bench",
        usage="%(prog)s [OPTION...]",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="few sizes, up to 16M, in 20 seconds")
    parser.add_argument(
        "--max-size", metavar="SIZE", type=_size, help="the largest array; 1G without it"
    )
    parser.add_argument(
        "--time", metavar="SECONDS", type=_seconds, help="how long to measure; 160 without it"
    )
    parser.add_argument("--csv", metavar="FILE", type=_output, help="everything, as CSV")
    parser.add_argument("--plot", metavar="FILE", type=_figure, help="a figure, .png or .svg")
    parser.add_argument(
        "--progress", action="store_true", help="tell what is measured, if not on a terminal, too"
    )
    return parser


class _Progress:
    """One line on standard error, always the same one."""

    def __init__(self, shown: bool) -> None:
        self._shown = shown
        self._length = 0

    def tell(self, text: str) -> None:
        if self._shown and (text or self._length):
            text = text[:79]
            sys.stderr.write(f"\r{text:<{self._length}}" + ("" if text else "\r"))
            sys.stderr.flush()
            self._length = len(text)

    def warn(self, text: str) -> None:
        self.tell("")
        print(f"tshare bench: {text}", file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    progress = _Progress(options.progress or sys.stderr.isatty())
    runner = Runner(
        plan(options.quick, options.max_size, options.time), progress.tell, progress.warn
    )
    try:
        runner.run()
    except MeasurementError as error:
        progress.warn(str(error))
        return 1
    # What is there is written, whoever is in a hurry now.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    results = runner.results
    outputs: list[tuple[str, Callable[[str], None]]] = []
    if options.csv:
        outputs.append((options.csv, lambda path: report.save_csv(results, path)))
    if options.plot:
        from . import plot

        outputs.append((options.plot, lambda path: plot.save(results, path)))
    report.print_tables(results)
    status = INTERRUPTED if results.interrupted else 0
    for path, write in outputs:
        try:
            write(path)
        except OSError as error:
            progress.warn(f"{path}: {error.strerror}")
            status = 1
    return status
