# SPDX-License-Identifier: MIT
"""Tensors, regions, and other libraries' views of them as arguments of multiprocessing.

What travels is the region's descriptor, in the way multiprocessing passes
descriptors, and what is to be made of it there. Any other pickling is refused:
bytes in a file can't hold memory.
"""

from __future__ import annotations

import errno
import os
import warnings
import weakref
from multiprocessing import AuthenticationError, reduction
from typing import TYPE_CHECKING, Any

from ._tshare import Region, Tensor, bytes_at, rebuild, reducer_override

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import torch

    _Reduced = tuple[Callable[..., Any], tuple[Any, ...]]

# Regions


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


def _reduce_region(region: Region) -> _Reduced:
    return _rebuild_region, (reduction.DupFd(region.fileno()), region.readonly)


class _Passage:
    """A region as part of a pickle; it arrives as a Region.

    A pickler writes an object once, however often it meets it. All that lies in
    one region meets the same passage, and so takes one descriptor and, where it
    arrives, one mapping.
    """

    __slots__ = ("__weakref__", "readonly", "region")

    def __init__(self, region: Region, readonly: bool) -> None:
        self.region = region
        self.readonly = readonly


# A pickler keeps what it has written until it is done.
_passages: weakref.WeakValueDictionary[Any, _Passage] = weakref.WeakValueDictionary()


def _passage(tensor: Tensor, readonly: bool) -> _Passage:
    region = tensor.region
    key = (region.backend, region.id, readonly)
    passage = _passages.get(key)
    if passage is None:
        passage = _passages[key] = _Passage(region, readonly)
    return passage


def _reduce_passage(passage: _Passage) -> _Reduced:
    return _rebuild_region, (reduction.DupFd(passage.region.fileno()), passage.readonly)


# Tensors


def _reduce_tensor(tensor: Tensor) -> _Reduced:
    return rebuild, (_passage(tensor, tensor.readonly), tensor._spec)


def _bytes_of(region: Region, offset: int, size: int) -> Tensor:
    return rebuild(region, ("", (1, 8, 1), (size,), (1,), offset, region.readonly))


def _place(address: int, size: int, readonly: bool) -> tuple[_Passage, int, int] | None:
    """What _bytes_of() is to be called with there; None if it lies in no region."""
    tensor = bytes_at(address, size)
    if tensor is None:
        return None
    return _passage(tensor, readonly or tensor.readonly), tensor._spec[4], size


# NumPy


def _rebuild_array(
    place: tuple[Region, int, int],
    kind: type[np.ndarray[Any, Any]],
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    first: int,
) -> np.ndarray[Any, Any]:
    import numpy as np

    # NumPy keeps the memoryview, which keeps anybody from closing the tensor.
    buffer = memoryview(_bytes_of(*place))
    array: np.ndarray[Any, Any] = np.ndarray(shape, dtype, buffer, first, strides)
    return array if kind is np.ndarray else array.view(kind)


def _rebuild_masked(
    data: np.ndarray[Any, Any], mask: Any, fill_value: Any, hard: bool
) -> np.ma.MaskedArray[Any, Any]:
    import numpy as np

    return np.ma.MaskedArray(
        data, mask, copy=False, keep_mask=False, fill_value=fill_value, hard_mask=hard
    )


def _reduce_masked(array: np.ma.MaskedArray[Any, Any]) -> _Reduced:
    return _rebuild_masked, (array.data, array.mask, array._fill_value, array.hardmask)


def reduce_array(array: np.ndarray[Any, Any]) -> Any:
    """How an array travels that lies in a region: as that; NotImplemented for any other."""
    import numpy as np

    dtype, shape, strides = array.dtype, array.shape, array.strides
    # Of an object there is but the address there, of nothing there is nothing to share.
    if dtype.hasobject or not array.nbytes:
        return NotImplemented
    start = address = array.__array_interface__["data"][0]
    end = address + dtype.itemsize
    for count, stride in zip(shape, strides):
        if stride < 0:
            start += (count - 1) * stride
        else:
            end += (count - 1) * stride
    place = _place(start, end - start, not array.flags.writeable)
    kind = type(array)
    if place is None:
        return NotImplemented
    if kind.__reduce__ is not np.ndarray.__reduce__:
        # A class that has more to say than an array has, and may copy.
        return _reduce_masked(array) if kind is np.ma.MaskedArray else NotImplemented
    return _rebuild_array, (place, kind, dtype, shape, strides, address - start)


# PyTorch


def _rebuild_storage(*place: Any) -> torch.UntypedStorage:
    import torch

    shared = _bytes_of(*place)
    try:
        tensor = torch.from_dlpack(shared)
    except BufferError:
        # Before 2.9 it takes what may not be written only as a buffer, and warns of that.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tensor = torch.frombuffer(shared, dtype=torch.uint8)
    if hasattr(tensor, "untyped_storage"):
        return tensor.untyped_storage()
    return tensor.storage().untyped()  # before 2.0


def reduce_storage(storage: torch.UntypedStorage) -> Any:
    """How PyTorch's memory travels that lies in a region; NotImplemented for any other.

    By itself PyTorch would move it to shared memory of its own, and with it all
    tensors that the sender has there.
    """
    size = storage.nbytes()
    if storage.device.type != "cpu" or not size:
        return NotImplemented
    place = _place(storage.data_ptr(), size, False)
    return NotImplemented if place is None else (_rebuild_storage, place)


def register() -> None:
    """Teach multiprocessing's pickler, and only that."""
    reduction.ForkingPickler.register(Region, _reduce_region)
    reduction.ForkingPickler.register(_Passage, _reduce_passage)
    reduction.ForkingPickler.register(Tensor, _reduce_tensor)
    # PyTorch registers its types when it is imported, before or after this, and
    # NumPy's have subclasses, which a registered type doesn't stand for.
    reduction.ForkingPickler.reducer_override = reducer_override
