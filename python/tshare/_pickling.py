# SPDX-License-Identifier: MIT
"""Tensors and regions in pickles, and other libraries' views of them.

With multiprocessing a region travels by its descriptor. In any other pickle it
goes by its name, which bytes can hold; one without a name is refused.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import multiprocessing
import os
import time
import warnings
import weakref
from multiprocessing import AuthenticationError, context, reduction, resource_sharer, util
from typing import TYPE_CHECKING, Any

from ._tshare import Region, Tensor, bytes_at, rebuild, reducer_override

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import torch

    _Reduced = tuple[Callable[..., Any], tuple[Any, ...]]
    _Identity = tuple[str, str, int, int]

# Regions by their names


@functools.cache
def _boot() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return ""


def _identity(region: Region) -> _Identity:
    """What no other region has: names, and the ids of another machine, come again."""
    return _boot(), region.backend, region.id, region.size


def _by_name(region: Region) -> tuple[str, _Identity] | None:
    """What _find() takes; None for a region that has no name, or no longer."""
    name = region.info().name
    return None if name is None else (name, _identity(region))


def _find(name: str, identity: _Identity, readonly: bool) -> Region:
    try:
        region = Region.open(name, readonly=readonly)
    except FileNotFoundError:
        raise FileNotFoundError(
            errno.ENOENT, "the region that was pickled by its name is gone, or elsewhere", name
        ) from None
    if _identity(region) != identity:
        raise OSError(errno.ESTALE, "the region of this name is not the one that was pickled", name)
    return region


# Regions by their descriptors

# For how many seconds a process that ends waits for receivers to fetch its descriptors.
_LINGER = 1.0

_unfetched: set[int] = set()

_sharer: Any = resource_sharer._resource_sharer  # type: ignore[attr-defined]


def _keep_socket() -> None:
    """Have the sharer's socket go after _linger(), and not first of all.

    What is left of it goes with its directory (-100), which may be the parent's.
    """
    with _sharer._lock:
        unlink = getattr(getattr(_sharer._listener, "_listener", None), "_unlink", None)
        if unlink is not None:
            unlink.cancel()


def _linger() -> None:
    """Wait, in a process that another has started, for the receivers.

    A worker of a Pool may end as soon as it has written its result. The Pool takes
    the OSError of a descriptor that is gone for its own end, and never returns.
    """
    if multiprocessing.parent_process() is None:
        return
    deadline = time.monotonic() + _LINGER
    while _unfetched and time.monotonic() < deadline:
        time.sleep(0.001)
    if _sharer._address is not None:
        with contextlib.suppress(OSError):
            os.unlink(_sharer._address)


def _keep_socket_at_exit() -> None:
    _keep_socket()
    # Finalizers run twice, and a queue that is flushed between may open the socket.
    util.Finalize(None, _keep_socket, exitpriority=1000)


def _linger_at_exit(_: object) -> None:
    util.Finalize(None, _keep_socket_at_exit, exitpriority=1000)
    # After queues are flushed (-5), which may be when they pickle.
    util.Finalize(None, _linger, exitpriority=-50)


class _Descriptor(resource_sharer.DupFd):
    """A duplicate that is known to be unfetched until it is fetched."""

    def __init__(self, fd: int) -> None:
        duplicate = os.dup(fd)

        def send(connection: Any, pid: int) -> None:
            reduction.send_handle(connection, duplicate, pid)

        def close() -> None:
            os.close(duplicate)
            _unfetched.discard(duplicate)

        _unfetched.add(duplicate)
        self._id = _sharer.register(send, close)


def _duplicate(fd: int) -> Any:
    # A process that is being started inherits the descriptor.
    return reduction.DupFd(fd) if context.get_spawning_popen() else _Descriptor(fd)


def _receive(handle: Any) -> int:
    try:
        return int(handle.detach())
    except AuthenticationError as error:
        raise PermissionError(
            errno.EACCES,
            "the descriptor of shared memory can't be fetched from the process that pickled it: "
            "its multiprocessing.current_process().authkey is another. Set the same in both, or "
            f"give the memory a name ({error})",
        ) from error
    except (OSError, EOFError) as error:
        # It is fetched from the sender, over a socket of this machine.
        raise OSError(
            getattr(error, "errno", None) or errno.ECONNRESET,
            "the descriptor of shared memory can't be fetched from the process that pickled it: "
            f"it has ended, is on another machine, or sent it to one process already ({error})",
        ) from error


def _arrive(handle: Any, readonly: bool, by_name: tuple[str, _Identity] | None) -> Region:
    try:
        fd = _receive(handle)
    except OSError:
        # The sender may have ended before a name that is another's.
        if by_name is not None:
            with contextlib.suppress(OSError):
                return _find(*by_name, readonly)
        raise
    try:
        return Region.from_fd(fd, readonly=readonly)
    finally:
        os.close(fd)


def _send(region: Region, readonly: bool) -> _Reduced:
    return _arrive, (_duplicate(region.fileno()), readonly, _by_name(region))


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

    def __reduce__(self) -> _Reduced:
        by_name = _by_name(self.region)
        if by_name is None:
            raise TypeError(
                "a tshare.Tensor or Region without a name is pickled only by multiprocessing, as "
                "its descriptor: create it with a name, or send it by multiprocessing"
            )
        return _find, (*by_name, self.readonly)


# A pickler keeps what it has written until it is done.
_passages: weakref.WeakValueDictionary[Any, _Passage] = weakref.WeakValueDictionary()


def _memory(region: Region) -> tuple[Any, ...]:
    """What no other region of this process has, whatever its peers do."""
    if region.backend == "kmod":
        return region.backend, region.id
    # A peer can write the id of another region into its own shared memory.
    file = os.fstat(region.fileno())
    return region.backend, file.st_dev, file.st_ino


def _passage(region: Region, readonly: bool) -> _Passage:
    key = (*_memory(region), readonly)
    passage = _passages.get(key)
    if passage is None:
        passage = _passages[key] = _Passage(region, readonly)
    return passage


# Regions and tensors


def reduce_region(region: Region) -> Any:
    """What any pickler but multiprocessing's writes."""
    return _Passage(region, region.readonly).__reduce__()


def reduce_tensor(tensor: Tensor) -> _Reduced:
    """What any pickler writes; a passage goes through multiprocessing by its descriptor."""
    return rebuild, (_passage(tensor.region, tensor.readonly), tensor._spec)


def _bytes_of(region: Region, offset: int, size: int) -> Tensor:
    return rebuild(region, ("", (1, 8, 1), (size,), (1,), offset, region.readonly))


def _place(address: int, size: int, readonly: bool) -> tuple[_Passage, int, int] | None:
    """What _bytes_of() is to be called with there; None if it lies in no region."""
    tensor = bytes_at(address, size)
    if tensor is None:
        return None
    return _passage(tensor.region, readonly or tensor.readonly), tensor._spec[4], size


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


def _reduce_masked(array: Any) -> _Reduced:
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
    for count, stride in zip(shape, strides, strict=True):
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


def _rebuild_storage(*place: Any) -> Any:
    import torch

    shared = _bytes_of(*place)
    tensor: Any
    try:
        tensor = torch.utils.dlpack.from_dlpack(shared)
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
    util.register_after_fork(_linger, _linger_at_exit)
    _linger_at_exit(None)
    register = reduction.ForkingPickler.register
    register(Region, lambda region: _send(region, region.readonly))
    register(_Passage, lambda passage: _send(passage.region, passage.readonly))
    # PyTorch registers its types when it is imported, before or after this, and
    # NumPy's have subclasses, which a registered type doesn't stand for.
    pickler: Any = reduction.ForkingPickler
    pickler.reducer_override = reducer_override
