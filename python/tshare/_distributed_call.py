# SPDX-License-Identifier: MIT
"""A call that all ranks of tshare.distributed make together, and what moves bytes for them."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import queue
import re
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from ._tshare import Region

# Seconds that ranks wait longer for rank 0, which tells them who is late.
_GRACE = 2.0

# Seconds of a call where neither the caller nor the group has a limit.
_PATIENCE = 1800.0

# More than all calls take, and less than what clocks and engines can count.
_LONGEST = 1e8

# Errors of one rank that all others raise, too. RuntimeError stands for all other errors.
_TOLD = (OSError, TypeError, ValueError, MemoryError, RuntimeError)

# A message begins with a frame: the content's length and as much of the content as fits. Most
# messages are shorter, and a second one waits for the first.
_FRAME_BYTES = 1024
_LENGTH_BYTES = 8

# Messages of ranks are far shorter. A wrong length must not take the machine's memory.
_LONGEST_MESSAGE = 1 << 30


# Groups that a child by fork() has taken over: the threads that move their bytes are the parent's.
_inherited: list[Any] = []


def _note_inherited() -> None:
    dist, mpi = (sys.modules.get(name) for name in ("torch.distributed", "mpi4py.MPI"))
    if dist is not None and dist.is_available() and dist.is_initialized():
        _inherited.append(dist.group.WORLD)
    if mpi is not None and mpi.Is_initialized():
        _inherited.append(mpi)


os.register_at_fork(after_in_child=_note_inherited)


def check_fork(thing: Any) -> None:
    if any(thing is each for each in _inherited):
        raise ValueError(
            "group: was made before fork() and works in the parent alone (start the process by "
            "spawn, or make the group in it)"
        )


class Engine(Protocol):
    """An engine moves bytes between ranks: torch.distributed or MPI.

    Messages of one rank to another arrive in their order. A wait that fails raises RuntimeError.
    """

    rank: int
    size: int
    timeout: float | None

    def memory(self, found: Region | bytearray) -> Any:
        """Return all of the bytes in the form in which the engine moves them, to be sliced."""

    def isend(self, memory: Any, peer: int) -> Any: ...
    def irecv(self, memory: Any, peer: int) -> Any: ...
    def wait(self, work: Any, seconds: float) -> None: ...

    def close(self, works: list[Any]) -> None:
        """End what is under way, so that the memory can go, and peers don't wait, if possible."""


def _describe(error: Exception | None) -> list[Any] | None:
    if error is None:
        return None
    if isinstance(error, OSError) and error.errno:
        return ["OSError", error.errno, error.strerror, error.filename]
    for kind in _TOLD:
        if isinstance(error, kind):
            return [kind.__name__, str(error)]
    return [RuntimeError.__name__, repr(error)]


def _rebuild(told: list[Any], where: str) -> Exception:
    kind, *rest = told
    if len(rest) > 1:
        number, text, filename = rest
        return OSError(number, f"{where}: {text}", *([filename] if filename else []))
    found = {each.__name__: each for each in _TOLD}
    return found[kind](f"{where}: {rest[0]}")


class Call:
    """A call that all ranks make: what they tell one another, and when it has to end.

    Rank 0 hears all others, and answers. So it can tell all of them which rank is late. Ranks are
    counted among those that take part: all of the engine's, or those in ranks.
    """

    def __init__(
        self, engine: Engine, timeout: float | None, ranks: Sequence[int] | None = None
    ) -> None:
        self.engine = engine
        self.ranks = range(engine.size) if ranks is None else ranks
        self.rank = self.ranks.index(engine.rank)
        self.limit = min(timeout or engine.timeout or _PATIENCE, _LONGEST)
        self._deadline = time.monotonic() + self.limit
        # Keep the memory of what is under way.
        self._works: list[Any] = []
        self._error: Exception | None = None
        self._is_agreed = False
        self._nodes: list[str] = []
        # Of rank 0. Python must not end while it is in the engine, which would abort the process.
        self._hearer: threading.Thread | None = None

    def give_up(self) -> None:
        """End what is under way after an error that ends the call."""
        # Ranks that raise what all have been told are in step, and can use the group again.
        if not self._is_agreed:
            self.engine.close(self._works)
        if self._hearer:
            self._hearer.join(_GRACE)

    def _left(self, grace: float = 0.0) -> float:
        return max(self._deadline + grace - time.monotonic(), 0.001)

    def where(self, rank: int) -> str:
        node = f" on {self._nodes[rank]}" if self._nodes else ""
        return f"rank {self.ranks[rank]}{node}"

    def agreed(self, error: Exception) -> Exception:
        """Return an error that all ranks raise here."""
        self._is_agreed = True
        return error

    def isend(self, memory: Any, peer: int) -> Any:
        return self._begin(self.engine.isend, memory, peer)

    def irecv(self, memory: Any, peer: int) -> Any:
        return self._begin(self.engine.irecv, memory, peer)

    def _begin(self, start: Any, memory: Any, peer: int) -> Any:
        try:
            work = start(memory, self.ranks[peer])
        except RuntimeError as error:
            raise self._lost(peer, error) from None
        self._works.append(work)
        return work

    def _lost(self, peer: int, error: RuntimeError) -> OSError:
        # Without the line of the engine's source.
        reason = re.sub(r"^\[[^]]*\] ?", "", str(error).partition("\n")[0])
        return OSError(errno.ECONNRESET, f"{self.where(peer)}: the connection is lost: {reason}")

    def wait(self, work: Any, peer: int, grace: float = 0.0) -> None:
        seconds = self._left(grace)
        end = time.monotonic() + seconds
        try:
            self.engine.wait(work, seconds)
        except RuntimeError as error:
            if time.monotonic() < end:
                raise self._lost(peer, error) from None
            raise OSError(
                errno.ETIMEDOUT, f"{self.where(peer)}: is silent, and {self.limit:g} s have passed"
            ) from None
        self._works.remove(work)

    def _send(self, content: bytes, peer: int) -> list[Any]:
        whole = len(content).to_bytes(_LENGTH_BYTES, "little") + content
        frame, rest = whole[:_FRAME_BYTES].ljust(_FRAME_BYTES, b"\0"), whole[_FRAME_BYTES:]
        parts = [frame, rest] if rest else [frame]
        return [self.isend(self.engine.memory(bytearray(part)), peer) for part in parts]

    def _ask(self, peer: int) -> tuple[bytearray, Any]:
        """Ask for the frame of the next message of another rank."""
        frame = bytearray(_FRAME_BYTES)
        return frame, self.irecv(self.engine.memory(frame), peer)

    def _receive(self, frame: bytearray, work: Any, peer: int) -> bytes:
        self.wait(work, peer, _GRACE)
        count = int.from_bytes(frame[:_LENGTH_BYTES], "little")
        if count > _LONGEST_MESSAGE:
            text = f"{self.where(peer)}: announces {count} bytes, more than {_LONGEST_MESSAGE}"
            raise OSError(errno.EPROTO, text)
        content = bytes(frame[_LENGTH_BYTES:][:count])
        if rest := bytearray(count - len(content)):
            self.wait(self.irecv(self.engine.memory(rest), peer), peer, _GRACE)
        return content + rest

    def _hear(self, heard: queue.SimpleQueue[bytes | OSError]) -> None:
        """Put what each rank says; a thread of rank 0, which alone can wait beyond the limit."""
        try:
            asked = [(peer, *self._ask(peer)) for peer in range(1, len(self.ranks))]
            for peer, frame, work in asked:
                heard.put(self._receive(frame, work, peer))
        except OSError as error:
            heard.put(error)

    def _answer(self, mine: Any) -> bytes:
        """Return what all ranks have said, or the reason why that is unknown; sends it to all."""
        heard: queue.SimpleQueue[bytes | OSError] = queue.SimpleQueue()
        self._hearer = threading.Thread(target=self._hear, args=(heard,), daemon=True)
        self._hearer.start()
        answer: dict[str, Any] = {"said": [mine]}
        others = list(range(1, len(self.ranks)))
        for peer in others:
            try:
                content = heard.get(timeout=self._left())
            except queue.Empty:
                text = f"{self.where(peer)}: has not called within {self.limit:g} s"
                content = OSError(errno.ETIMEDOUT, text)
                others.remove(peer)
            if isinstance(content, OSError):
                answer = {"lost": [content.errno, content.strerror]}
                break
            answer["said"].append(json.loads(content))
        packed = json.dumps(answer, default=repr).encode()
        if "lost" not in answer:
            self._hearer.join()
            self._tell(packed, others)
            return packed
        # More of them may be lost. Ranks that haven't called yet aren't waited for.
        self._deadline = min(self._deadline, time.monotonic())
        with contextlib.suppress(OSError):
            self._tell(packed, others)
        # If this rank closed the connection at once, the engine of another might tell that first.
        time.sleep(_GRACE / 10)
        return packed

    def _tell(self, packed: bytes, others: list[int]) -> None:
        """Send the answer to each of them, and raise the error of one if there is any."""
        sends: list[tuple[int, Any]] = []
        failed: OSError | None = None
        for peer in others:
            try:
                sends += [(peer, work) for work in self._send(packed, peer)]
            except OSError as error:
                failed = error
        for peer, work in sends:
            try:
                self.wait(work, peer, _GRACE / 2)
            except OSError as error:
                failed = error
        if failed is not None:
            raise failed

    def exchange(self, mine: Any) -> list[Any]:
        """Return what each rank gives."""
        if len(self.ranks) == 1:
            return [mine]
        if self.rank == 0:
            sends, packed = [], self._answer(mine)
        else:
            sends = self._send(json.dumps(mine, default=repr).encode(), 0)
            packed = self._receive(*self._ask(0), 0)
        answer = json.loads(packed)
        if "lost" in answer:
            raise OSError(*answer["lost"])
        for work in sends:
            self.wait(work, 0)
        found: list[Any] = answer["said"]
        return found

    @contextlib.contextmanager
    def attempt(self) -> Iterator[None]:
        """Keep an error of the block until all ranks have agreed on it."""
        try:
            yield
        except Exception as error:
            self._error = error

    def agree(self, mine: dict[str, Any]) -> list[Any]:
        """Return what each rank gives, unless one of them has an error: all raise that."""
        error = self._error
        said = self.exchange({**mine, "error": _describe(error)})
        for rank, each in enumerate(said):
            if not isinstance(each, dict) or each.keys() != {*mine, "error"}:
                text = f"{self.where(rank)}: gives what this version of tshare can't read"
                raise self.agreed(OSError(errno.EPROTO, text))
        if "node" in mine:
            self._nodes = [each["node"] for each in said]
        if error is not None:
            raise self.agreed(error)
        for rank, each in enumerate(said):
            if each["error"]:
                raise self.agreed(_rebuild(each["error"], self.where(rank)))
        return said
