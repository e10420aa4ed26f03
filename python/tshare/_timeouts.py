# SPDX-License-Identifier: MIT
"""Timeouts that functions take: seconds, or None for no limit."""

from __future__ import annotations

import math
import time


def seconds_of(timeout: float | None, argument: str = "timeout") -> float:
    """Return the seconds, infinity for None, or raise the error of a malformed argument."""
    if timeout is None:
        return math.inf
    try:
        # Unlike float() this refuses text.
        seconds = math.ldexp(timeout, 0)
    except TypeError:
        raise TypeError(
            f"{argument}: must be a number of seconds, not {type(timeout)!r}"
        ) from None
    if not seconds >= 0:
        raise ValueError(f"{argument}: must be 0 seconds or more, not {timeout}")
    return seconds


def deadline(timeout: float | None) -> float:
    """Return when the seconds will have passed, by time.monotonic()."""
    return time.monotonic() + seconds_of(timeout)
