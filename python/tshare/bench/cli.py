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
Measure the time and memory that it takes to pass an array on, within a process and
to another one, with tshare and with NumPy, PyTorch, pickle and Python's own shared
memory."""


class _Parser(argparse.ArgumentParser):
    """Prints errors in the form of the command's other verbs."""

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
    """Check that the file can be written, as far as is possible without writing it."""
    folder = os.path.dirname(text) or "."
    if not text or os.path.isdir(text):
        raise argparse.ArgumentTypeError(f"'{text}' is not a file")
    if not os.path.isdir(folder):
        raise argparse.ArgumentTypeError(f"'{text}': the directory '{folder}' does not exist")
    if not os.access(text if os.path.exists(text) else folder, os.W_OK):
        raise argparse.ArgumentTypeError(f"'{text}' can't be written")
    return text


def _figure(text: str) -> str:
    if not text.endswith((".png", ".svg")):
        raise argparse.ArgumentTypeError(f"'{text}' must end with .png or .svg")
    try:
        importlib.import_module("matplotlib")
    except ImportError:
        raise argparse.ArgumentTypeError(
            "needs matplotlib, which is not installed (run 'pip install matplotlib')"
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
        "--max-size", metavar="SIZE", type=_size, help="the largest array (default: 1G)"
    )
    parser.add_argument(
        "--time", metavar="SECONDS", type=_seconds, help="how long to measure (default: 160)"
    )
    parser.add_argument("--csv", metavar="FILE", type=_output, help="write all results as CSV")
    parser.add_argument(
        "--plot",
        metavar="FILE",
        type=_figure,
        help="draw a figure, .png or .svg; needs matplotlib",
    )
    parser.add_argument(
        "--progress",
        action="store_true",
        help="show progress even if stderr is not a terminal",
    )
    return parser


class _Progress:
    """One line on standard error, which is overwritten."""

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
    # A second SIGINT must not keep the results from being written.
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
