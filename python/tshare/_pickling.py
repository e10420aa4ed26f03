# SPDX-License-Identifier: MIT
"""Tensors and regions as arguments of multiprocessing.

What travels is the region's descriptor, in the way multiprocessing passes
descriptors. Any other pickling is refused: bytes in a file can't hold memory.
"""

from __future__ import annotations

import os
from multiprocessing import reduction
from typing import TYPE_CHECKING, Any

from ._tshare import Region, Tensor

if TYPE_CHECKING:
    from collections.abc import Callable


def _rebuild_region(handle: Any, readonly: bool) -> Region:
    fd = handle.detach()
    try:
        return Region.from_fd(fd, readonly=readonly)
    finally:
        os.close(fd)


def _rebuild_tensor(handle: Any, readonly: bool, key: str) -> Tensor:
    with _rebuild_region(handle, readonly) as region:
        return region[key]


def _reduce_region(region: Region) -> tuple[Callable[..., Region], tuple[Any, ...]]:
    handle = reduction.DupFd(region.fileno())
    return _rebuild_region, (handle, region.readonly)


def _reduce_tensor(tensor: Tensor) -> tuple[Callable[..., Tensor], tuple[Any, ...]]:
    handle = reduction.DupFd(tensor.fileno())
    return _rebuild_tensor, (handle, tensor.readonly, tensor._key)


def register() -> None:
    """Teach multiprocessing's pickler, and only that."""
    reduction.ForkingPickler.register(Region, _reduce_region)
    reduction.ForkingPickler.register(Tensor, _reduce_tensor)
