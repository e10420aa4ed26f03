# SPDX-License-Identifier: MIT
"""Iterators over generations; they don't import asyncio for a program without an event loop."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._tshare import Region


class Generations:
    """Iterates over a region's generations; see Region.generations()."""

    def __init__(self, region: Region, seen: int) -> None:
        self._region = region
        self._seen = seen

    def _is_end(self, error: Exception) -> bool:
        if isinstance(error, OSError):
            return error.errno == errno.EOWNERDEAD
        return self._region.closed

    def __iter__(self) -> Generations:
        return self

    def __next__(self) -> int:
        try:
            self._seen = self._region.wait(self._seen)
        except (OSError, ValueError) as error:
            if self._is_end(error):
                raise StopIteration from None
            raise
        return self._seen

    def __aiter__(self) -> Generations:
        return self

    async def __anext__(self) -> int:
        try:
            self._seen = await self._region.wait_async(self._seen)
        except (OSError, ValueError) as error:
            if self._is_end(error):
                raise StopAsyncIteration from None
            raise
        return self._seen
