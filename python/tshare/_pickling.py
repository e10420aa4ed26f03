# SPDX-License-Identifier: MIT
"""Tensors and regions in pickles, and other libraries' views of them.

multiprocessing passes a region by its descriptor, which bytes can't hold. Other picklers can't know
whether a pickle is sent or kept: a name in a file would lose the data, and a copy in a message the
writes. So other picklers are refused, unless by_name() selects the name.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import hmac  # noqa: F401 (see register())
import multiprocessing.connection
import os
import resource
import tempfile
import time
import warnings
import weakref
from multiprocessing import AuthenticationError, context, reduction, resource_sharer, util
from typing import TYPE_CHECKING, Any

from ._tshare import Pool, Region, Tensor, asarray, bytes_at, rebuild, reducer_override

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import torch

    _Reduced = tuple[Callable[..., Any], tuple[Any, ...]]
    _Identity = tuple[str, str, int, int]
    _File = tuple[int, int, bool]

# Regions by their names


@functools.cache
def _boot() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return ""


def _identity(region: Region) -> _Identity:
    """Identify a region: names are reused, and so are ids on other machines."""
    return _boot(), region.backend, region.id, region.size


def _place_of_name(region: Region) -> tuple[str, _Identity] | None:
    """Return the arguments of _find(), or None if the region has no name (any more)."""
    name = region.info().name
    return None if name is None else (name, _identity(region))


def _find(name: str, identity: _Identity, readonly: bool) -> Region:
    try:
        region = Region.open(name, readonly=readonly)
    except FileNotFoundError:
        raise FileNotFoundError(
            errno.ENOENT, "the pickled region no longer exists, or is on another machine", name
        ) from None
    if _identity(region) != identity:
        raise OSError(errno.ESTALE, "the region of this name is not the one that was pickled", name)
    return region


# Regions by their descriptors

# Seconds that a process waits, before it ends, for receivers to fetch its descriptors.
_LINGER = 1.0

# Duplicates that wait for receivers, by their files.
_unfetched: weakref.WeakValueDictionary[_File, _Duplicate] = weakref.WeakValueDictionary()

# Where regions under arrays that have arrived are mapped, by their files. They may have gone since.
_addresses: dict[_File, int] = {}

# More are forgotten. A region that is forgotten takes another descriptor when it arrives again.
_ADDRESSES = 4096

_sharer: Any = resource_sharer._resource_sharer  # type: ignore[attr-defined]


def _keep_socket() -> None:
    """Keep the sharer's socket from being removed before _linger().

    _linger() removes it; otherwise it goes with its directory (-100), maybe the parent's.
    """
    with _sharer._lock:
        unlink = getattr(getattr(_sharer._listener, "_listener", None), "_unlink", None)
        if unlink is not None:
            unlink.cancel()


def _linger() -> None:
    """Wait for the receivers, in a process that multiprocessing has started.

    A worker of a Pool may end as soon as it has written its result. If the Pool then can't
    fetch the descriptor, it takes the OSError for its own end, and never returns.
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
    # Finalizers run twice; a queue that is flushed in between may open the socket.
    util.Finalize(None, _keep_socket, exitpriority=1000)


def _linger_at_exit(_: object) -> None:
    # A child has sent nothing yet, but has what its parent's other threads referred to.
    _unfetched.clear()
    util.Finalize(None, _keep_socket_at_exit, exitpriority=1000)
    # After queues are flushed (-5), since that may pickle tensors.
    util.Finalize(None, _linger, exitpriority=-50)


def _file(fd: int, readonly: bool = False) -> _File:
    """Identify the open file of a descriptor, and the access that a region over it has."""
    status = os.fstat(fd)
    access = fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE
    return status.st_dev, status.st_ino, readonly or access == os.O_RDONLY


class _Duplicate:
    """A duplicate of a descriptor, which is closed with this object."""

    __slots__ = ("__weakref__", "fd")

    def __init__(self, fd: int) -> None:
        # Above the first three descriptors, to which this process may print messages.
        self.fd = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
        weakref.finalize(self, os.close, self.fd).atexit = False


class _Descriptor(resource_sharer.DupFd):
    """A descriptor in a message. All messages about one file have one duplicate until fetched."""

    def __init__(self, fd: int) -> None:
        file = _file(fd)
        duplicate = _unfetched.get(file)
        if duplicate is None:
            duplicate = _unfetched[file] = _Duplicate(fd)
        kept = [duplicate]

        def send(connection: Any, pid: int) -> None:
            reduction.send_handle(connection, kept[0].fd, pid)

        self._id = _sharer.register(send, kept.clear)


def _duplicate(fd: int) -> Any:
    # A process that is just being started inherits the descriptor.
    return reduction.DupFd(fd) if context.get_spawning_popen() else _Descriptor(fd)


def _is_full(error: Exception) -> bool:
    """Whether this process has no descriptor left to receive one with."""
    if isinstance(error, OSError):
        return error.errno == errno.EMFILE
    # reduction.recvfds(): the kernel has dropped the descriptor that came.
    return "ancdata" in str(error)


def _too_many(error: Exception) -> RuntimeError:
    """Return the error for a lack of descriptors.

    It is no OSError: a Pool takes that for the end of its pipe, and ends its thread silently.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return RuntimeError(
        "the descriptor of shared memory can't be received: all that RLIMIT_NOFILE allows, "
        f"{limit}, are in use (drop some, return many results in one region, or raise the limit "
        f"by ulimit -n) ({error})"
    )


def _receive(handle: Any) -> int:
    try:
        return int(handle.detach())
    except AuthenticationError as error:
        raise PermissionError(
            errno.EACCES,
            "the descriptor of shared memory can't be fetched from the process that pickled it: "
            "its multiprocessing.current_process().authkey differs; set the same in both, or "
            f"give the memory a name ({error})",
        ) from error
    except (OSError, EOFError, RuntimeError) as error:
        if _is_full(error):
            raise _too_many(error) from error
        # The sender passes the descriptor over a Unix socket.
        raise OSError(
            getattr(error, "errno", None) or errno.ECONNRESET,
            "the descriptor of shared memory can't be fetched from the process that pickled it: "
            f"it has ended, is on another machine, or sent it to one process already ({error})",
        ) from error


def _mapped(file: _File) -> Region | None:
    """Return the region over a file that an earlier message has brought."""
    tensor = bytes_at(_addresses.get(file, 0), 1)
    if tensor is None:
        return None
    region = tensor.region
    # Another region may be mapped there by now.
    return region if _file(region.fileno(), region.readonly) == file else None


def _map(fd: int, readonly: bool) -> Region:
    file = _file(fd, readonly)
    region = _mapped(file)
    if region is None:
        region = Region.from_fd(fd, readonly=readonly)
        _addresses.pop(file, None)
        _addresses[file] = _bytes_of(region, 0, 1).__array_interface__["data"][0]
        if len(_addresses) > _ADDRESSES:
            del _addresses[next(iter(_addresses))]
    return region


def _arrive(
    handle: Any, readonly: bool, by_name: tuple[str, _Identity] | None, shared: bool = False
) -> Region:
    try:
        fd = _receive(handle)
    except OSError:
        # The name may outlive the sender, if another process made the region.
        if by_name is not None:
            with contextlib.suppress(OSError):
                return _find(*by_name, readonly)
        raise
    try:
        return _map(fd, readonly) if shared else Region.from_fd(fd, readonly=readonly)
    finally:
        os.close(fd)


def _send(region: Region, readonly: bool, shared: bool = False) -> _Reduced:
    return _arrive, (_duplicate(region.fileno()), readonly, _place_of_name(region), shared)


class _Passage:
    """A region as part of a pickle; the receiver gets a Region.

    A pickler writes an object once, however often it is referred to. All tensors of a
    region refer to one passage, and all arrays to another, so a message has one descriptor
    for all of them, and the receiver makes one mapping.
    """

    __slots__ = ("__weakref__", "readonly", "region")

    def __init__(self, region: Region, readonly: bool) -> None:
        self.region = region
        self.readonly = readonly

    def __reduce__(self) -> _Reduced:
        raise TypeError(
            "a tshare.Tensor or Region can be pickled only by multiprocessing, which passes its "
            "descriptor (to keep the data, save t.numpy() or t.torch(); to pass the tensor on by "
            "its region's name, pickle tshare.by_name(t))"
        )


class _MemoryPassage(_Passage):
    """A region as part of a pickle, for arrays and storages over it alone.

    They share a mapping with those of other messages. A Region or Tensor may publish, and what
    publishes ends with its own last reference.
    """

    __slots__ = ()


class _NamedPassage(_Passage):
    """A region as part of a pickle that holds its name."""

    __slots__ = ()

    def __reduce__(self) -> _Reduced:
        place = _place_of_name(self.region)
        if place is None:
            raise ValueError("tshare.by_name: the region has no name any more")
        return _find, (*place, self.readonly)


# Weak: until a pickler is done, it holds references to all objects that it has written.
_passages: weakref.WeakValueDictionary[Any, _Passage] = weakref.WeakValueDictionary()


def _memory(region: Region) -> tuple[Any, ...]:
    """Identify the memory of a region in this process; peers can't forge it."""
    if region.backend == "kmod":
        return region.backend, region.id
    # A peer can write the id of another region into its own shared memory.
    file = os.fstat(region.fileno())
    return region.backend, file.st_dev, file.st_ino


def _passage(region: Region, readonly: bool, kind: type[_Passage] = _Passage) -> _Passage:
    key = (*_memory(region), readonly, kind)
    passage = _passages.get(key)
    if passage is None:
        passage = _passages[key] = kind(region, readonly)
    return passage


# Regions and tensors


def reduce_region(region: Region) -> Any:
    """Refuse a region; multiprocessing's pickler doesn't call this."""
    return _Passage(region, region.readonly).__reduce__()


def reduce_tensor(tensor: Tensor) -> _Reduced:
    """Reduce a tensor to its passage, which multiprocessing's pickler takes and others refuse.

    A frame's tensor is copied: where it arrives nothing would keep the frame.
    """
    if tensor._in_frame:
        tensor = asarray(tensor, copy=True)
    return rebuild, (_passage(tensor.region, tensor.readonly), tensor._spec)


class _ByName:
    """The result of by_name()."""

    __slots__ = ("_thing",)

    def __init__(self, thing: Tensor | Region) -> None:
        self._thing = thing

    def __repr__(self) -> str:
        return f"tshare.by_name({self._thing!r})"

    def __reduce__(self) -> _Reduced:
        if isinstance(self._thing, Tensor):
            tensor = self._thing
            return rebuild, (_passage(tensor.region, tensor.readonly, _NamedPassage), tensor._spec)
        return _NamedPassage(self._thing, self._thing.readonly).__reduce__()


def _open_pool(name: str, readonly: bool) -> Pool:
    return Pool.open(name, readonly=readonly)


def reduce_pool(pool: Pool) -> _Reduced:
    """Send a pool as its name, which the receiver opens."""
    return _open_pool, (pool.name, pool.region.readonly)


def by_name(thing: Tensor | Region) -> object:
    """Return an object that any pickler takes, with the region's name, for a tensor or region.

    It is loaded as that tensor or region: the same memory, with the sender's access. Use it for
    libraries that start processes and have picklers of their own, such as joblib. The loaded
    object can't be pickled again: where a process only passes it on, as Dask's scheduler does,
    send the name. The pickle holds no data. It can be loaded on this machine, as long as the
    region has its name: FileNotFoundError or OSError (ESTALE) otherwise. The pickle of a draft
    can be loaded after finish().

    :param thing: Tensor or region.
    :raises ValueError: The region has no name, or the tensor is of a frame of a stream.
    """
    if not isinstance(thing, Tensor | Region):
        raise TypeError(f"thing: must be a tshare.Tensor or Region, not {type(thing)}")
    if isinstance(thing, Tensor) and thing._in_frame:
        raise ValueError("thing: is of a frame, which ends (open the stream where it is needed)")
    if _place_of_name(thing.region if isinstance(thing, Tensor) else thing) is None:
        raise ValueError("thing: its region has no name (create it with one)")
    return _ByName(thing)


def _bytes_of(region: Region, offset: int, size: int) -> Tensor:
    return rebuild(region, ("", (1, 8, 1), (size,), (1,), offset, region.readonly))


def _place(address: int, size: int, readonly: bool) -> tuple[_Passage, int, int] | None:
    """Return the receiver's arguments of _bytes_of(), or None for memory in no region.

    Memory of a frame is as that in no region, so that it is copied.
    """
    tensor = bytes_at(address, size)
    if tensor is None or tensor._in_frame:
        return None
    passage = _passage(tensor.region, readonly or tensor.readonly, _MemoryPassage)
    return passage, tensor._spec[4], size


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

    # NumPy holds the memoryview, so the tensor can't be closed.
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
    """Reduce an array that lies in a region; NotImplemented for any other."""
    import numpy as np

    dtype, shape, strides = array.dtype, array.shape, array.strides
    # An array of objects holds addresses only; one without elements has no memory to share.
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
        # A subclass with its own state has its own method to pickle that.
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
        # PyTorch before 2.9 takes read-only memory only as a buffer, and warns about it.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tensor = torch.frombuffer(shared, dtype=torch.uint8)
    if hasattr(tensor, "untyped_storage"):
        return tensor.untyped_storage()
    return tensor.storage().untyped()  # before 2.0


def reduce_storage(storage: torch.UntypedStorage) -> Any:
    """Reduce a storage of PyTorch that lies in a region; NotImplemented for any other.

    PyTorch itself would move the storage, with all of the sender's tensors over it, to its
    own shared memory.
    """
    size = storage.nbytes()
    if storage.device.type != "cpu" or not size:
        return NotImplemented
    if batch := getattr(storage, "_tshare", None):
        return batch  # of tshare.torch.collate(), which has an entry of its pool
    place = _place(storage.data_ptr(), size, False)
    return NotImplemented if place is None else (_rebuild_storage, place)


def register() -> None:
    """Register the reducers with multiprocessing's pickler, and only with that."""
    # The sharer and its clients import hmac and multiprocessing.connection, and make names by
    # tempfile, at their first use. A process that is forked while a thread does so would wait for
    # ever for locks that the thread holds. So this module imports the two, and tempfile's lock is
    # made anew.
    lock: Any = tempfile._once_lock  # type: ignore[attr-defined]
    os.register_at_fork(after_in_child=lock._at_fork_reinit)
    util.register_after_fork(_linger, _linger_at_exit)
    _linger_at_exit(None)
    register = reduction.ForkingPickler.register
    register(Region, lambda region: _send(region, region.readonly))
    register(_Passage, lambda passage: _send(passage.region, passage.readonly))
    register(_MemoryPassage, lambda passage: _send(passage.region, passage.readonly, shared=True))
    # Arrays and storages need an override: PyTorch registers its own reducers when it is
    # imported, before or after this, and a registered type doesn't include its subclasses.
    pickler: Any = reduction.ForkingPickler
    pickler.reducer_override = reducer_override
