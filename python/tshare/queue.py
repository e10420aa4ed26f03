# SPDX-License-Identifier: MIT
"""A queue from one process to several of its machine, which sleep until a message comes::

    from tshare.queue import Broadcast

    queue = Broadcast(2, 2)                              # the writer, of two readers
    ...                                                  # passes on queue.export_handle()
    queue.enqueue({"step": 1, "tokens": np.arange(10)})

    queue = Broadcast.create_from_handle(handle, rank)   # reader 0, and reader 1
    message = queue.dequeue(timeout=60)

Every reader gets every message, a copy of its own. Broadcast has the methods and arguments of
vLLM's MessageQueue for readers on one machine. The messages lie in a stream, which keeps each
until all readers have taken it.
"""

from __future__ import annotations

import contextlib
import copyreg
import errno
import io
import math
import os
import pickle
import struct
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ._timeouts import deadline
from ._tshare import Frame, Region, Stream

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Broadcast", "Handle"]

# Seconds between two looks whether all readers are there, which take some time.
_LOOK = 0.1


@dataclass
class Handle:
    """The name of a queue and its readers, to open it with. It can be pickled."""

    name: str
    local_reader_ranks: list[int]
    spin: float = 0.0


def _rebuild_torch(buffer: bytearray, dtype: str, shape: tuple[int, ...]) -> Any:
    import torch

    kind = getattr(torch, dtype)
    if not buffer:
        return torch.empty(shape, dtype=kind)
    return torch.frombuffer(buffer, dtype=torch.uint8).view(kind).view(shape)


def _reduce_torch(tensor: Any) -> Any:
    """Pickle a tensor's memory out of band, as PyTorch doesn't; or as PyTorch does."""
    import torch

    is_special = tensor.requires_grad or tensor.is_quantized or vars(tensor)
    # Without NumPy, or of a sparse one, that is a RuntimeError; of one on a GPU, a TypeError.
    with contextlib.suppress(RuntimeError, TypeError):
        if not is_special:
            # PyTorch 1.13 would drop what is lazy.
            plain = tensor.resolve_conj().resolve_neg().contiguous()
            data = plain.reshape(-1).view(torch.uint8).numpy()
            dtype = str(tensor.dtype).removeprefix("torch.")
            return _rebuild_torch, (pickle.PickleBuffer(data), dtype, tuple(tensor.shape))
    return tensor.__reduce_ex__(5)


def _pickle(message: object) -> list[Any]:
    """Return the message's parts: their count and sizes, its pickle, and its arrays' bytes."""
    buffers: list[pickle.PickleBuffer] = []
    file = io.BytesIO()
    pickler = pickle.Pickler(file, 5, buffer_callback=buffers.append)
    # Another thread may be importing it.
    if kind := getattr(sys.modules.get("torch"), "Tensor", None):
        pickler.dispatch_table = {**copyreg.dispatch_table, kind: _reduce_torch}
    pickler.dump(message)
    parts = [file.getbuffer(), *(buffer.raw() for buffer in buffers)]
    return [struct.pack(f"{len(parts) + 1}q", len(parts), *map(len, parts)), *parts]


def _unpickle(data: memoryview) -> Any:
    (count,) = struct.unpack_from("q", data)
    parts, offset = [], 8 + 8 * count
    for size in struct.unpack_from(f"{count}q", data, 8):
        # Memory of an allocator is aligned for any type of element.
        parts.append(bytearray(data[offset : offset + size]))
        offset += size
    return pickle.loads(parts[0], buffers=parts[1:])


class Broadcast:
    """A queue whose writer this process is, or of which it is a reader.

    One thread at a time may use an object, but shutdown() can be called by any. In a child by
    fork() it raises OSError: pass the child a handle. Can be used in a with block.
    """

    def __init__(
        self,
        n_reader: int,
        n_local_reader: int,
        local_reader_ranks: Sequence[int] | None = None,
        max_chunk_bytes: int = 24 << 20,
        max_chunks: int = 10,
        connect_ip: str | None = None,
        enable_shm_tensor_arena: bool = False,
        *,
        spin: float = 0.0,
    ) -> None:
        """Create a queue, and become its writer.

        :param n_reader: Readers, up to 62.
        :param n_local_reader: Readers on this machine, which must be all.
        :param local_reader_ranks: The readers' numbers; None for 0, 1, ...
        :param max_chunk_bytes: Bytes of a slot, and so of the largest message.
        :param max_chunks: Slots, 2 to 256: messages that a reader may be late. All their memory is
            there from the start.
        :param connect_ip: Ignored.
        :param enable_shm_tensor_arena: Ignored.
        :param spin: Seconds for which readers poll before they sleep.
        :raises ValueError: An argument is out of its range.
        :raises OSError: As of Stream.create(), such as ENOMEM.
        """
        ranks = list(range(n_reader) if local_reader_ranks is None else local_reader_ranks)
        if not len(ranks) == len({*ranks}) == n_local_reader == n_reader:
            text = f"must be the different numbers of {n_reader} readers, all on this machine"
            raise ValueError(f"local_reader_ranks: {text}")
        limits = {
            "n_reader": (n_reader, 0, 62),
            "max_chunk_bytes": (max_chunk_bytes, 0, sys.maxsize),
            "max_chunks": (max_chunks, 2, 256),
            "spin": (spin, 0, math.inf),
        }
        for name, (value, least, most) in limits.items():
            if not least <= value <= most:
                raise ValueError(f"{name}: must be between {least} and {most}, not {value}")
        handle = Handle(f"queue-{os.getpid()}-{os.urandom(4).hex()}", ranks, spin)
        fields = {"data": (max_chunk_bytes, "uint8")}
        self._begin(handle, Stream.create(handle.name, fields, max_chunks, keep_all=True))
        self._missing += ranks

    def _begin(self, handle: Handle, stream: Stream, *cards: Region) -> None:
        self.handle, self._stream, self._cards = handle, stream, [*cards]
        self._region, self._seen, self._next_look = stream.region, 0, 0.0
        # Of the writer: the ranks of readers that it hasn't met, and where the others are.
        self._missing: list[int] = []
        self._readers: dict[int, tuple[int, int]] = {}

    def export_handle(self) -> Handle:
        """Return what create_from_handle() needs, in any process of this machine."""
        return self.handle

    @staticmethod
    def create_from_handle(handle: Handle, rank: int) -> Broadcast:
        """Open a queue as one of its readers.

        :raises ValueError: The queue has no reader of that rank.
        :raises FileExistsError: The reader of that rank has opened the queue before.
        :raises FileNotFoundError: The writer is gone.
        """
        if rank not in handle.local_reader_ranks:
            raise ValueError(f"rank: must be one of {handle.local_reader_ranks}, not {rank}")
        # This name is taken as long as the reader or the writer is there, which waits for it.
        name, fields = f"{handle.name}.{rank}", {"seat": (2, "int64")}
        self = Broadcast.__new__(Broadcast)
        with contextlib.ExitStack() as undo:
            card = undo.enter_context(Region.create(name, fields, draft=True, lifetime="users"))
            stream = undo.enter_context(Stream.open(handle.name, keep_all=True))
            self._begin(handle, stream, card)
            with memoryview(card["seat"]) as seat:
                seat[0], seat[1] = stream.seat or 0, os.getpid()
            card.finish()
            undo.pop_all()
        return self

    def wait_until_ready(self) -> None:
        """Wait until all readers have opened the queue, and the writer has called this.

        A reader's wait also ends when the writer has closed the queue; dequeue() says so.
        shutdown() doesn't end this wait, nor that of the first message for its readers.

        :raises BrokenPipeError: As of enqueue(), for the writer.
        :raises OSError: EOWNERDEAD: the writer has died.
        """
        if self._stream.role == "consumer":
            self._region.wait(0)
        else:
            self._put([], math.inf)

    def enqueue(self, obj: object, timeout: float | None = None) -> None:
        """Pass a message to all readers, as the writer.

        :param timeout: Seconds to wait for a free slot and, with the first message, until all
            readers have opened the queue. None: no limit.
        :raises ValueError: The message is larger than a slot.
        :raises TimeoutError: They have passed. The text names the readers that are late.
        :raises BrokenPipeError: A reader has closed the queue or ended; the text names it.
        :raises RuntimeError: shutdown() was called.
        :raises TypeError: The message can't be pickled; or pickle.PicklingError.
        """
        self._put(_pickle(obj), deadline(timeout))

    def _put(self, parts: list[Any], until: float) -> None:
        total, offset = sum(map(len, parts)), 0
        with self._loan(until) as frame, memoryview(frame["data"]) as data:
            if total > len(data):
                raise ValueError(
                    f"obj: takes {total} bytes, more than max_chunk_bytes, {len(data)}"
                )
            frame.flags = total
            for part in parts:
                data[offset : offset + len(part)] = part
                offset += len(part)

    def _loan(self, until: float) -> Frame:
        while True:
            # A reader may end while others are waited for, maybe because of that.
            if time.monotonic() >= self._next_look:
                self._look()
                self._next_look = time.monotonic() + _LOOK
            look = min(until, self._next_look)
            try:
                if not self._missing:
                    return _unless_cancelled(self._stream.loan, look)
                self._meet(self._missing[0], look)
            except (TimeoutError, FileNotFoundError, BlockingIOError) as error:
                if time.monotonic() >= until:
                    missing = [f"reader {rank} hasn't opened the queue" for rank in self._missing]
                    late = missing[:1] or self._look() or [str(error)]
                    raise TimeoutError("; ".join(late)) from None

    def _meet(self, rank: int, until: float) -> None:
        left = max(until - time.monotonic(), 0)
        card = Region.open(f"{self.handle.name}.{rank}", wait=left)
        with memoryview(card["seat"]) as seat:
            self._readers[rank] = seat[0], seat[1]
        # The name goes with this process then, also if the reader is killed.
        self._cards.append(card)
        self._missing.remove(rank)

    def _look(self) -> list[str]:
        """Return what readers have to take, or raise BrokenPipeError for one that is gone."""
        held = {(seat.seat, seat.pid): seat.held for seat in self._stream.seats()}
        late = []
        for rank, place in self._readers.items():
            reader = f"reader {rank} (process {place[1]})"
            if place not in held:
                raise BrokenPipeError(errno.EPIPE, f"{reader} has closed the queue or ended")
            if held[place]:
                late.append(f"{reader} has {held[place]} messages to take")
        return late

    def dequeue(self, timeout: float | None = None, indefinite: bool = False) -> Any:
        """Return the next message, as a reader.

        :param timeout: Seconds to wait for it. None: no limit.
        :param indefinite: Ignored: it keeps vLLM's class from logging that it waits.
        :raises TimeoutError: No message came in time.
        :raises EOFError: The writer has closed the queue, and no message is left.
        :raises RuntimeError: shutdown() was called.
        :raises OSError: EOWNERDEAD: the writer has died, and no message is left.
        """
        until = deadline(timeout)
        while True:
            if spin := min(self.handle.spin, max(until - time.monotonic(), 0)):
                # However this ends, take() returns or raises.
                with contextlib.suppress(OSError):
                    self._region.wait(self._seen, spin, spin=spin)
            frame = _unless_cancelled(self._stream.take, until)
            with frame, memoryview(frame["data"]) as data:
                self._seen = frame.number
                # The one of wait_until_ready() is empty.
                if frame.flags:
                    return _unpickle(data)

    def shutdown(self) -> None:
        """End enqueue() and dequeue() of this object for good, in any thread."""
        self._stream.cancel()

    def close(self) -> None:
        """Drop this object's part of the queue. Readers still get what was passed to them."""
        self._stream.close()
        for region in (self._region, *self._cards):
            region.close()

    def __enter__(self) -> Broadcast:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _unless_cancelled(call: Callable[[float], Frame], until: float) -> Frame:
    try:
        return call(max(until - time.monotonic(), 0))
    except OSError as error:
        if error.errno == errno.ECANCELED:
            raise RuntimeError("queue: shutdown() was called") from None
        raise
