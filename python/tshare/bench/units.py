# SPDX-License-Identifier: MIT
"""Parsing and printing of sizes, times and ratios."""

from __future__ import annotations

import re

_FACTORS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
_SIZES = ("bytes", "KiB", "MiB", "GiB", "TiB")
_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))


def parse_size(text: str) -> int:
    """Parse a number of bytes, with K, M, G or T behind it for powers of 1024."""
    match = re.fullmatch(r"([0-9]+)([KMGT]?)", text)
    if not match:
        raise ValueError(f"'{text}' is not a size, such as 4096, 64K or 1G")
    return int(match[1]) << _FACTORS[match[2]]


def digits(value: float) -> str:
    """Return the number with three significant digits."""
    if value == 0:
        return "0"
    if abs(value) >= 99.95:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 9.995 else f"{value:.2f}"


def size(count: float) -> str:
    """Return a number of bytes, which may be negative, with its unit."""
    power = 0
    while abs(count) >= 1024 and power < len(_SIZES) - 1:
        count /= 1024
        power += 1
    number = f"{count:.0f}" if count == int(count) else digits(count)
    return f"{number} {_SIZES[power]}"


def seconds(value: float) -> str:
    for factor, unit in _TIMES:
        if value >= 0.9995 * factor:
            return f"{digits(value / factor)} {unit}"
    return f"{digits(value * 1e9)} ns"


def ratio(value: float) -> str:
    return f"{value:.1g}" if value < 0.00995 else digits(value)
