# SPDX-License-Identifier: MIT
"""Ways between two processes: to pass an array on, and to announce new data.

Each class has two halves, the producer's and the consumer's.
"""

from __future__ import annotations

import os
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import shared_memory
from multiprocessing.connection import Connection
from multiprocessing.queues import Queue
from typing import Any, ClassVar

import tshare

from .within import DTYPE, ITEMSIZE, Way, filled, library, new_name

# Timeout of waits, in seconds.
PATIENCE = 60.0


@dataclass
class Link:
    """One side's ends of the connections between the two processes."""

    control: Connection[Any, Any]
    pipe: Connection[Any, Any]  # a pipe's end: the producer writes, the consumer reads
    socket: socket.socket
    queue: Queue[Any]


class HandOver(ABC):
    """A way to pass an array on: the producer's side, with the consumer's in receive().

    The clock runs from before send() until receive() has returned, and then on
    until the array has been read.
    """

    label: ClassVar[str]
    includes: ClassVar[str]
    needs: ClassVar[tuple[str, ...]] = ("numpy",)
    on_backend: ClassVar[bool] = False
    shared_files: ClassVar[bool] = True  # whether /dev/shm has to hold the array

    def __init__(self, link: Link, size: int) -> None:
        self.link = link
        self.size = size
        # In private memory, allocated before anything is measured.
        self.source = filled(size)

    def before(self) -> None:  # noqa: B027, most have nothing to do
        """Prepare one hand-over."""

    @abstractmethod
    def send(self) -> None: ...

    def after(self) -> None:  # noqa: B027, most have nothing to do
        """Clean up after one hand-over, when the consumer has released the array."""

    def close(self) -> None:  # noqa: B027, most have nothing to do
        """At the very end."""

    @staticmethod
    @abstractmethod
    def receive(link: Link) -> tuple[Any, Callable[[], None]]:
        """Return the array, and a function that releases the memory under it."""


def _nothing() -> None:
    pass


class Pickled(HandOver):
    label = "pickle through a pipe"
    includes = "Connection.send() and recv(); the array is copied several times"
    shared_files = False

    def send(self) -> None:
        self.link.pipe.send(self.source)

    @staticmethod
    def receive(link: Link) -> tuple[Any, Callable[[], None]]:
        return link.pipe.recv(), _nothing


class _SharedMemory(HandOver):
    """The message holds name, type and shape."""

    memory: shared_memory.SharedMemory | None = None

    def _create(self) -> None:
        np = library("numpy")

        self.memory = shared_memory.SharedMemory(name=new_name(), create=True, size=self.size)
        self.array: Any = np.ndarray(self.size // ITEMSIZE, DTYPE, buffer=self.memory.buf)

    def _send(self) -> None:
        assert self.memory is not None
        self.link.pipe.send((self.memory.name, self.array.shape, DTYPE))

    def close(self) -> None:
        if self.memory is None:
            return
        memory, self.memory = self.memory, None
        self.array = None
        memory.unlink()
        memory.close()

    @staticmethod
    def receive(link: Link) -> tuple[Any, Callable[[], None]]:
        np = library("numpy")

        name, shape, dtype = link.pipe.recv()
        memory = shared_memory.SharedMemory(name=name)
        return np.ndarray(shape, dtype, buffer=memory.buf), memory.close


class SharedMemoryInPlace(_SharedMemory):
    label = "SharedMemory, in place"
    includes = "sends the name; opens, maps"

    def __init__(self, link: Link, size: int) -> None:
        super().__init__(link, size)
        self._create()
        self.array[:] = 1

    def send(self) -> None:
        self._send()


class SharedMemoryCopied(_SharedMemory):
    label = "SharedMemory, copied in"
    includes = "creates, copies in, sends the name; opens, maps"

    def send(self) -> None:
        self._create()
        self.array[:] = self.source
        self._send()

    def after(self) -> None:
        self.close()


class _TorchQueue(HandOver):
    """Queues pass tensors once torch.multiprocessing is imported."""

    needs = ("numpy", "torch")
    tensor: Any = None

    def send(self) -> None:
        self.link.queue.put(self.tensor)

    def close(self) -> None:
        self.tensor = None

    @staticmethod
    def receive(link: Link) -> tuple[Any, Callable[[], None]]:
        return link.queue.get(), _nothing


class TorchQueueInPlace(_TorchQueue):
    label = "torch queue, in place"
    includes = "put() of a shared tensor, whose descriptor is passed; get() maps it"

    def __init__(self, link: Link, size: int) -> None:
        torch = library("torch")

        super().__init__(link, size)
        self.tensor = torch.ones(size // ITEMSIZE).share_memory_()


class TorchQueueCopied(_TorchQueue):
    label = "torch queue, copied in"
    includes = "put() of a private tensor, which is moved to shared memory; get() maps it"

    def before(self) -> None:
        torch = library("torch")

        # put() moves a tensor to shared memory, so each hand-over needs a new one.
        self.tensor = torch.from_numpy(self.source).clone()


class _Tshare(HandOver):
    """The message is the name; the region has type and shape."""

    on_backend = True
    tensor: tshare.Tensor | None = None

    def _create(self) -> None:
        self.tensor = tshare.create(new_name(), self.size // ITEMSIZE, DTYPE)

    def _fill(self, values: Any) -> None:
        np = library("numpy")

        np.asarray(self.tensor)[:] = values

    def _send(self) -> None:
        assert self.tensor is not None
        self.link.pipe.send(self.tensor.name)

    def close(self) -> None:
        if self.tensor is None:
            return
        tensor, self.tensor = self.tensor, None
        # A name keeps the memory until the session ends.
        tensor.unlink()
        tensor.close()

    @staticmethod
    def receive(link: Link) -> tuple[Any, Callable[[], None]]:
        np = library("numpy")

        tensor = tshare.open(link.pipe.recv())
        return np.asarray(tensor), tensor.close


class TshareInPlace(_Tshare):
    label = "tshare {backend}, in place"
    includes = "sends the name; opens, maps"

    def __init__(self, link: Link, size: int) -> None:
        super().__init__(link, size)
        self._create()
        self._fill(1)

    def send(self) -> None:
        self._send()


class TshareCopied(_Tshare):
    label = "tshare {backend}, copied in"
    includes = "creates, copies in, sends the name; opens, maps"

    def send(self) -> None:
        self._create()
        self._fill(self.source)
        self._send()

    def after(self) -> None:
        self.close()


class Announcement(ABC):
    """A way to announce new data: the producer's side, with the consumer's in waiter().

    The clock runs from before announce() until the waiting function, which sleeps by
    then, has returned.
    """

    label: ClassVar[str]
    includes: ClassVar[str]
    needs: ClassVar[tuple[str, ...]] = ()
    on_backend: ClassVar[bool] = False

    def __init__(self, link: Link) -> None:
        self.link = link
        self.name: str | None = None  # passed to the consumer's waiter()

    @abstractmethod
    def announce(self) -> None: ...

    def close(self) -> None:  # noqa: B027, most have nothing to do
        """At the very end."""

    @staticmethod
    @abstractmethod
    def waiter(link: Link, name: str | None) -> Callable[[], Any]:
        """Return a function that waits for the next announcement."""


class PipeByte(Announcement):
    label = "pipe"
    includes = "a byte, os.write() and os.read()"

    def announce(self) -> None:
        os.write(self.link.pipe.fileno(), b".")

    @staticmethod
    def waiter(link: Link, name: str | None) -> Callable[[], Any]:
        fd = link.pipe.fileno()
        return lambda: os.read(fd, 1)


class SocketByte(Announcement):
    label = "Unix socketpair"
    includes = "a byte, send() and recv()"

    def announce(self) -> None:
        self.link.socket.send(b".")

    @staticmethod
    def waiter(link: Link, name: str | None) -> Callable[[], Any]:
        receive = link.socket.recv
        return lambda: receive(1)


class QueueItem(Announcement):
    label = "multiprocessing.Queue"
    includes = "put() and get() of an integer; a thread sends it"

    def announce(self) -> None:
        self.link.queue.put(1)

    @staticmethod
    def waiter(link: Link, name: str | None) -> Callable[[], Any]:
        return link.queue.get


class TorchQueueItem(Announcement):
    label = "torch.multiprocessing.Queue"
    includes = "put() and get() of a shared tensor; a thread sends it"
    needs = ("torch",)

    def __init__(self, link: Link) -> None:
        super().__init__(link)
        self.tensor = library("torch").ones(1024).share_memory_()

    def announce(self) -> None:
        self.link.queue.put(self.tensor)

    @staticmethod
    def waiter(link: Link, name: str | None) -> Callable[[], Any]:
        return link.queue.get


class _Publication(Announcement):
    on_backend = True
    spin: ClassVar[float]

    def __init__(self, link: Link) -> None:
        super().__init__(link)
        self.tensor = tshare.create(new_name(), 1024, DTYPE)
        self.region = self.tensor.region
        self.name = self.tensor.name

    def announce(self) -> None:
        self.region.publish()

    def close(self) -> None:
        self.tensor.unlink()
        self.region.close()
        self.tensor.close()

    @classmethod
    def _waiter(cls, name: str | None) -> Callable[[], Any]:
        assert name is not None
        region = tshare.open(name).region
        seen = region.generation

        def wait() -> None:
            nonlocal seen
            seen = region.wait(seen, PATIENCE, spin=cls.spin)

        return wait


class Published(_Publication):
    label = "tshare {backend}, publish() and wait()"
    includes = "the waiting process sleeps"
    spin = 0.0

    @staticmethod
    def waiter(link: Link, name: str | None) -> Callable[[], Any]:
        return Published._waiter(name)


class PublishedToSpinner(_Publication):
    label = "tshare {backend}, wait(spin=0.001)"
    includes = "the waiting process polls for 1 ms before it sleeps, and keeps a CPU busy"
    spin = 0.001

    @staticmethod
    def waiter(link: Link, name: str | None) -> Callable[[], Any]:
        return PublishedToSpinner._waiter(name)


HAND_OVERS: dict[str, type[HandOver]] = {
    kind.__name__: kind
    for kind in (
        Pickled,
        SharedMemoryCopied,
        SharedMemoryInPlace,
        TorchQueueCopied,
        TorchQueueInPlace,
        TshareCopied,
        TshareInPlace,
    )
}
ANNOUNCEMENTS: dict[str, type[Announcement]] = {
    kind.__name__: kind
    for kind in (
        PipeByte,
        SocketByte,
        QueueItem,
        TorchQueueItem,
        Published,
        PublishedToSpinner,
    )
}


def way(key: str, kind: type[HandOver] | type[Announcement]) -> Way:
    return Way(key, kind.label, kind.includes, kind.needs, kind.on_backend)
