# SPDX-License-Identifier: MIT
"""tshare.torch.collate(): batches of a DataLoader in shared slots.

The slots are a pool, which the first worker makes and all processes of the loader open by its name.
A worker collates into an entry, and holds it until the consumer has removed its key. By then the
consumer holds the entry itself, and drops it with the last tensor. The queue carries the
key or, if no slot was free, the descriptor of a region for this batch alone.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import math
import mmap
import os
import warnings
import weakref
from collections.abc import Callable
from functools import partial
from multiprocessing import util
from typing import Any

import torch
from torch.utils.data import default_collate, get_worker_info
from torch.utils.data._utils import collate as _torch
from torch.utils.dlpack import from_dlpack

from ._tshare import Entry, Pin, Pool, Tensor, asarray, create


def _round_up(size: int, unit: int) -> int:
    return -(-size // unit) * unit


def _is_plain(x: Any) -> bool:
    """Whether x, and a stack of such tensors, is bytes in the processor's memory."""
    if type(x) is not torch.Tensor or x.layout != torch.strided or x.device.type != "cpu":
        return False
    return not (x.is_quantized or x.is_nested or x.requires_grad)


def _part(memory: Tensor, start: int, end: int) -> torch.UntypedStorage:
    return from_dlpack(memory[start:end]).untyped_storage()


def _arrive(name: str, source: bytes | Tensor) -> Tensor:
    """Return the bytes of a batch: of the entry of a key, or those that were sent."""
    if (loader := _loaders.get(name)) is None:
        raise RuntimeError("collate: the batch arrives in a process that hasn't the DataLoader")
    return loader._take(source)


def _arrive_again(memory: Tensor) -> Tensor:
    return memory


def _rejoin(name: str, *arguments: Any) -> Collate:
    """Return the object of this name. A process has one, also if a loader was copied."""
    return _loaders.get(name) or Collate(name, *arguments)


class _Batch:
    """A batch in a worker, in an entry, in a region of its own or, to measure it, in no memory.

    It is pickled with its tensors. If they are dropped before, the entry is given up.
    """

    def __init__(
        self, loader: Collate, memory: Tensor | None, entry: Entry | None = None, key: bytes = b""
    ) -> None:
        self.loader, self.memory, self.entry, self.key = loader, memory, entry, key
        self.end, self.room = 0, 0 if memory is None else memory.nbytes

    def __reduce__(self) -> tuple[Any, ...]:
        if self.entry is not None:
            self.entry.finish()
            self.loader._held[self.key] = self.entry
            self.entry = None
        elif self.key:
            # It was sent before, and the consumer has removed the key or will.
            return _arrive_again, (asarray(self.memory, copy=True),)
        return _arrive, (self.loader._name, self.key or self.memory)

    def collate(self, samples: list[Any]) -> Any:
        known = _torch.default_collate_fn_map
        functions: dict[Any, Any] = {kind: partial(self._other, known[kind]) for kind in known}
        functions[torch.Tensor] = self._stack
        return _torch.collate(samples, collate_fn_map=functions)

    def _stack(self, batch: list[torch.Tensor], **options: Any) -> torch.Tensor:
        if not _is_plain(batch[0]):
            other: torch.Tensor = _torch.collate_tensor_fn(batch, **options)
            return other
        out = self._empty((len(batch), *batch[0].shape), batch[0].dtype)
        return out if self.end > self.room else torch.stack(batch, out=out)

    def _other(self, function: Callable[..., Any], batch: Any, **options: Any) -> Any:
        end, value = self.end, function(batch, **options)
        # The function may have stacked tensors itself.
        if self.end > end or not _is_plain(value):
            return value
        return self._empty(tuple(value.shape), value.dtype).copy_(value)

    def _empty(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """Return the next part of the memory or, beyond its end, other memory."""
        start, end = self.end, self.end + math.prod(shape) * dtype.itemsize
        self.end = _round_up(end, 64)
        if self.memory is None or self.end > self.room:
            return torch.empty(shape, dtype=dtype)
        part = from_dlpack(self.memory[start:end])
        # For the pickler. PyTorch keeps the attribute as long as the memory.
        storage: Any = part.untyped_storage()
        storage._tshare = _part, (self, start, end)
        return part.view(dtype).view(shape)


class Collate:
    """The object that collate() returns, in the consumer and in the workers."""

    def __init__(self, name: str, slots: int | None, slot_bytes: int | None, pin: bool) -> None:
        self._arguments, self._name = (name, slots, slot_bytes, pin), name
        self._warned = False
        self._begin()
        _loaders[name] = self

    def __reduce__(self) -> tuple[Any, ...]:
        return _rejoin, self._arguments

    def _begin(self) -> None:
        """Begin anew in this process: an open pool was the parent's."""
        self._pool: Pool | None = None
        self._pin: Pin | None = None
        # Entries that this worker has sent, until the consumer has removed the key.
        self._held: dict[bytes, Entry] = {}
        self._random, self._numbers = os.urandom(8), itertools.count()

    def _check(self, pool: Pool) -> Pool:
        # Others have seen the name, and can take it while no process of the loader has it.
        if (uid := pool.region.info().uid) != os.geteuid():
            raise PermissionError(errno.EPERM, f"collate: its name was taken by user {uid}")
        return pool

    # In a worker

    def __call__(self, samples: list[Any]) -> Any:
        """Collate samples as default_collate() does; in a worker, into shared memory."""
        if (info := get_worker_info()) is None:
            return default_collate(samples)
        # Most batches fit a slot, and are walked through once.
        batch = self._make(self._pool, self._slot) if self._pool else _Batch(self, None)
        result = batch.collate(samples)
        if (size := batch.end) > batch.room:
            del batch, result
            self._pool = self._pool or self._create(size, info.num_workers)
            batch = self._make(self._pool, size)
            if batch.memory is None:
                batch = _Batch(self, create(None, size))
            result = batch.collate(samples)
        return result

    def _make(self, pool: Pool, size: int) -> _Batch:
        """Return an entry or, if no slot is free, no memory."""
        for key in [key for key in tuple(self._held) if key not in pool]:
            del self._held[key]
        key = b"%b%d" % (self._random, next(self._numbers))
        try:
            entry = pool.make(key, {"batch": (size, "uint8")}, 0)
        except TimeoutError:
            return _Batch(self, None)
        except OSError as error:
            if error.errno != errno.EFBIG:
                raise
            text = f"slot_bytes: a batch of {size} bytes exceeds all slots ({error.strerror})"
            raise ValueError(text) from error
        return _Batch(self, entry["batch"], entry, key)

    def _create(self, size: int, workers: int) -> Pool:
        _, slots, slot_bytes, _ = self._arguments
        slots = slots or 2 * workers + 4
        each = _round_up(slot_bytes or size, mmap.PAGESIZE)
        # The last process removes the name: a worker, if the consumer was killed.
        util.Finalize(self, self._begin, exitpriority=0)
        try:
            pool = Pool.create(self._name, slots * each, slots, lifetime="users", exist_ok=True)
        except OSError as error:
            text = f"slots: {slots} of {each} bytes can't be shared: {error.strerror}"
            raise OSError(error.errno, text) from error
        self._slot = pool.info().slot_size
        return self._check(pool)

    # In the consumer

    def _take(self, source: bytes | Tensor) -> Tensor:
        if isinstance(source, Tensor):
            if not self._warned:
                text = "slots: none was free, so a batch has memory of its own, which takes longer"
                warnings.warn(f"{text} (raise slots, or keep fewer batches)", stacklevel=3)
            self._warned = True
            return source
        try:
            pool = self._pool = self._pool or self._open()
            entry = pool[source]
        except (KeyError, FileNotFoundError) as error:
            raise RuntimeError("collate: the worker that made the batch has died") from error
        # If a stopped process prevents it, the slot stays in use until the worker ends.
        with contextlib.suppress(TimeoutError):
            del pool[source]
        return entry["batch"]

    def _open(self) -> Pool:
        pool = self._check(Pool.open(self._name))
        if self._arguments[-1]:
            self._pin = pool.region.pin()
        return pool


_loaders: weakref.WeakValueDictionary[str, Collate] = weakref.WeakValueDictionary()


def _begin_in_child() -> None:
    for loader in list(_loaders.values()):
        loader._begin()


os.register_at_fork(after_in_child=_begin_in_child)
