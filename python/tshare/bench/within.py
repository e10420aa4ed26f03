# SPDX-License-Identifier: MIT
"""Ways to pass an array on within a process.

Each is a function of the array's size that prepares the measurement, yields what is
measured, and cleans up.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from multiprocessing import shared_memory
from typing import Any, NamedTuple

import tshare

from .measure import Loop, calls, kept

DTYPE = "float32"
ITEMSIZE = 4


@dataclass(frozen=True)
class Way:
    key: str
    label: str
    includes: str  # what the time includes
    needs: tuple[str, ...]  # libraries
    on_backend: bool  # uses tshare: there is a row for each backend


class Prepared(NamedTuple):
    loop: Loop
    once: Callable[[], Any]  # called to measure memory while its result exists
    release: Callable[[Any], None] = lambda result: None


@dataclass(frozen=True)
class Within(Way):
    prepare: Callable[[int], Generator[Prepared, None, None]]

    @contextmanager
    def prepared(self, size: int) -> Iterator[Prepared]:
        yield from self.prepare(size)


TRANSFERS: dict[str, Within] = {}
OPENINGS: dict[str, Within] = {}
EXCHANGES: dict[str, Within] = {}

_Prepare = Callable[[int], Generator[Prepared, None, None]]

_numbers = count()


def library(name: str) -> Any:
    """Import a library that may be missing; ways name it in Way.needs."""
    return importlib.import_module(name)


def name_of(pid: int, number: object) -> str:
    return f"bench-{pid}-{number}"


def new_name() -> str:
    return name_of(os.getpid(), next(_numbers))


def _way(
    group: dict[str, Within], label: str, includes: str, *needs: str, on_backend: bool = False
) -> Callable[[_Prepare], _Prepare]:
    def register(prepare: _Prepare) -> _Prepare:
        key = prepare.__name__
        group[key] = Within(key, label, includes, needs, on_backend, prepare)
        return prepare

    return register


def _called(function: Callable[[], Any]) -> Prepared:
    return Prepared(calls(function), function)


@lru_cache(maxsize=1)
def filled(size: int) -> Any:
    """Return an array in private memory, which all ways share: don't write to it."""
    np = library("numpy")

    return np.ones(size // ITEMSIZE, DTYPE)


@_way(TRANSFERS, "memcpy", "copies into memory that is mapped already")
def memcpy(size: int) -> Generator[Prepared, None, None]:
    source, target = memoryview(bytearray(size)), memoryview(bytearray(size))

    def copy() -> None:
        target[:] = source

    yield _called(copy)


@_way(TRANSFERS, "a.copy()", "allocates, copies, frees", "numpy")
def numpy_copy(size: int) -> Generator[Prepared, None, None]:
    yield _called(filled(size).copy)


@_way(TRANSFERS, "torch.tensor(a)", "allocates, copies, frees", "numpy", "torch")
def torch_tensor(size: int) -> Generator[Prepared, None, None]:
    torch = library("torch")

    array = filled(size)
    yield _called(lambda: torch.tensor(array))


@_way(TRANSFERS, "torch.as_tensor(a)", "a view of NumPy's array", "numpy", "torch")
def torch_as_tensor(size: int) -> Generator[Prepared, None, None]:
    torch = library("torch")

    array = filled(size)
    yield _called(lambda: torch.as_tensor(array))


@_way(TRANSFERS, "torch.from_numpy(a)", "a view of NumPy's array", "numpy", "torch")
def torch_from_numpy(size: int) -> Generator[Prepared, None, None]:
    torch = library("torch")

    array = filled(size)
    yield _called(lambda: torch.from_numpy(array))


@_way(TRANSFERS, "torch.from_dlpack(a)", "a view of NumPy's array", "numpy", "torch")
def torch_from_dlpack(size: int) -> Generator[Prepared, None, None]:
    torch = library("torch")

    array = filled(size)
    yield _called(lambda: torch.from_dlpack(array))


@_way(TRANSFERS, "x.numpy()", "a view of PyTorch's tensor", "numpy", "torch")
def torch_numpy(size: int) -> Generator[Prepared, None, None]:
    torch = library("torch")

    yield _called(torch.from_numpy(filled(size)).numpy)


@_way(TRANSFERS, "np.from_dlpack(x)", "a view of PyTorch's tensor", "numpy", "torch")
def numpy_from_dlpack(size: int) -> Generator[Prepared, None, None]:
    np, torch = library("numpy"), library("torch")

    tensor = torch.from_numpy(filled(size))
    yield _called(lambda: np.from_dlpack(tensor))


@contextmanager
def opened(size: int) -> Iterator[tshare.Tensor]:
    """A tensor that was opened by its name."""
    name = new_name()
    with tshare.create(name, size // ITEMSIZE, DTYPE), tshare.open(name) as tensor:
        tensor.unlink()
        yield tensor


# A tensor can't be closed while it has views: prepared functions drop theirs first.


@_way(
    TRANSFERS,
    "np.asarray(t), tshare {backend}",
    "a view of tshare's tensor",
    "numpy",
    on_backend=True,
)
def tshare_asarray(size: int) -> Generator[Prepared, None, None]:
    np = library("numpy")

    with opened(size) as tensor:
        yield _called(lambda: np.asarray(tensor))


@_way(
    TRANSFERS,
    "torch.from_dlpack(t), tshare {backend}",
    "a view of tshare's tensor",
    "torch",
    on_backend=True,
)
def tshare_from_dlpack(size: int) -> Generator[Prepared, None, None]:
    torch = library("torch")

    with opened(size) as tensor:
        yield _called(lambda: torch.from_dlpack(tensor))


# Opening: the tensor is closed when the clock has stopped. The array is dropped first,
# since the memory under it is in use until then.


def _closes(got: list[Any]) -> None:
    got.pop()
    got.pop().close()


@_way(
    OPENINGS,
    "SharedMemory + np.ndarray",
    "finds the name, maps it, notifies the resource tracker; nothing is read",
    "numpy",
)
def shared_memory_open(size: int) -> Generator[Prepared, None, None]:
    np = library("numpy")

    memory = shared_memory.SharedMemory(name=new_name(), create=True, size=size)

    def attach() -> list[Any]:
        m = shared_memory.SharedMemory(name=memory.name)
        return [m, np.ndarray(size // ITEMSIZE, DTYPE, buffer=m.buf)]

    try:
        yield Prepared(kept(attach, _closes), attach, _closes)
    finally:
        memory.close()
        memory.unlink()


@_way(
    OPENINGS,
    "tshare.open + np.asarray, {backend}",
    "finds the name, maps it, checks type and shape; nothing is read",
    "numpy",
    on_backend=True,
)
def tshare_open(size: int) -> Generator[Prepared, None, None]:
    np = library("numpy")

    name = new_name()

    def attach() -> list[Any]:
        tensor = tshare.open(name)
        return [tensor, np.asarray(tensor)]

    with tshare.create(name, size // ITEMSIZE, DTYPE) as tensor:
        try:
            yield Prepared(kept(attach, _closes), attach, _closes)
        finally:
            tensor.unlink()


# DLPack: the cost of the protocol itself, for any size.

_EXCHANGE_SIZE = 4 << 20


def _exchange(kind: type, tensor: Any) -> Prepared:
    from . import _exchange

    table = getattr(kind, "__dlpack_c_exchange_api__", None)
    if table is None:
        raise NotImplementedError(f"{kind.__module__}.{kind.__name__} has no exchange table")
    return Prepared(lambda count: _exchange.exchange(table, tensor, count), lambda: None)


@_way(
    EXCHANGES,
    "C table: tshare {backend}",
    "exports and deletes, called from C; target: 100 ns",
    on_backend=True,
)
def exchange_tshare(_: int) -> Generator[Prepared, None, None]:
    with opened(_EXCHANGE_SIZE) as tensor:
        yield _exchange(tshare.Tensor, tensor)


@_way(
    EXCHANGES,
    "C table: tshare {backend}, borrowed",
    "fills in a DLTensor without ownership, called from C",
    on_backend=True,
)
def describe_tshare(_: int) -> Generator[Prepared, None, None]:
    from . import _exchange

    table = tshare.Tensor.__dlpack_c_exchange_api__
    with opened(_EXCHANGE_SIZE) as tensor:
        yield Prepared(lambda count: _exchange.describe(table, tensor, count), lambda: None)


@_way(
    EXCHANGES,
    "C table: PyTorch",
    "exports and deletes, called from C",
    "torch",
)
def exchange_torch(_: int) -> Generator[Prepared, None, None]:
    torch = library("torch")

    yield _exchange(torch.Tensor, torch.ones(_EXCHANGE_SIZE // ITEMSIZE))


@_way(
    EXCHANGES,
    "t.__dlpack__(), tshare {backend}",
    "max_version=(1, 3); called from Python, and dropped; target: 300 ns",
    on_backend=True,
)
def dlpack_tshare(_: int) -> Generator[Prepared, None, None]:
    with opened(_EXCHANGE_SIZE) as tensor:
        yield _called(lambda: tensor.__dlpack__(max_version=(1, 3)))


@_way(EXCHANGES, "a.__dlpack__()", "NumPy's array; called from Python, and dropped", "numpy")
def dlpack_numpy(_: int) -> Generator[Prepared, None, None]:
    array = filled(_EXCHANGE_SIZE)
    yield _called(lambda: array.__dlpack__())


@_way(EXCHANGES, "x.__dlpack__()", "PyTorch's tensor; called from Python, and dropped", "torch")
def dlpack_torch(_: int) -> Generator[Prepared, None, None]:
    torch = library("torch")

    tensor = torch.ones(_EXCHANGE_SIZE // ITEMSIZE)
    yield _called(lambda: tensor.__dlpack__())
