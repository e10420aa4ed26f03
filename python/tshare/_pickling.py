# SPDX-License-Identifier: MIT
"""Tensors and regions as arguments of multiprocessing.

What travels is the region's descriptor, in the way multiprocessing passes
descriptors. Any other pickling is refused: bytes in a file can't hold memory.
"""

from __future__ import annotations

import errno
import os
from multiprocessing import AuthenticationError, reduction
from typing import TYPE_CHECKING, Any

from ._tshare import Region, Tensor, rebuild

if TYPE_CHECKING:
    from collections.abc import Callable


def _receive(handle: Any) -> int:
    try:
        return int(handle.detach())
    except (OSError, EOFError, AuthenticationError) as error:
        # It is fetched from the sender, over a socket of this machine.
        raise OSError(
            getattr(error, "errno", None) or errno.ECONNRESET,
            "the descriptor of shared memory can't be fetched from the process that pickled it: "
            f"it has ended, is on another machine, or sent it to one process already ({error})",
        ) from error


def _rebuild_region(handle: Any, readonly: bool) -> Region:
    fd = _receive(handle)
    try:
        return Region.from_fd(fd, readonly=readonly)
    finally:
        os.close(fd)


def _rebuild_tensor(handle: Any, spec: tuple[Any, ...]) -> Tensor:
    fd = _receive(handle)
    try:
        return rebuild(fd, spec)
    finally:
        os.close(fd)


def _reduce_region(region: Region) -> tuple[Callable[..., Region], tuple[Any, ...]]:
    handle = reduction.DupFd(region.fileno())
    return _rebuild_region, (handle, region.readonly)


def _reduce_tensor(tensor: Tensor) -> tuple[Callable[..., Tensor], tuple[Any, ...]]:
    handle = reduction.DupFd(tensor.fileno())
    return _rebuild_tensor, (handle, tensor._spec)


def register() -> None:
    """Teach multiprocessing's pickler, and only that."""
    reduction.ForkingPickler.register(Region, _reduce_region)
    reduction.ForkingPickler.register(Tensor, _reduce_tensor)
