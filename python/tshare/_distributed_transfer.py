# SPDX-License-Identifier: MIT
"""Moves the bytes of a call of tshare.distributed: along a chain of hosts, or rows to each of them.

Ranks here have a region already, in which they receive or from which they send.
"""

from __future__ import annotations

import itertools
import math
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

from ._safetensors import METADATA
from ._tshare import Region

if TYPE_CHECKING:
    from ._distributed_call import Call
    from ._tshare import Tensor

# Chunks that a rank has asked its predecessor for, or is handing on, at a time.
_IN_FLIGHT = 4


class _Sums:
    """Computes the CRC-32 of chunks, in a thread beside the transfer."""

    def __init__(self, is_wanted: bool) -> None:
        self._is_wanted = is_wanted
        self._thread = ThreadPoolExecutor(1)

    def __enter__(self) -> _Sums:
        return self

    def __exit__(self, kind: object, *error: object) -> None:
        self._thread.shutdown(cancel_futures=kind is not None)

    def add(self, sums: list[Future[int]], region: Region, place: slice) -> None:
        def compute() -> int:
            with memoryview(region) as whole, whole[place] as chunk:
                return zlib.crc32(chunk)

        if self._is_wanted:
            sums.append(self._thread.submit(compute))


# All bytes


def chunks(size: int, chunk: int) -> list[slice]:
    return [slice(start, min(start + chunk, size)) for start in range(0, size, chunk)]


def pass_on(
    call: Call, region: Region, places: list[slice], chain: list[int], verify: bool
) -> list[int]:
    """Receive the chunks from the predecessor in the chain, and send them to the successor.

    Return the CRC-32 of each chunk, if it is wanted.
    """
    own = chain.index(call.rank)
    before = chain[own - 1] if own else None
    after = chain[own + 1] if own + 1 < len(chain) else None
    memory = call.engine.memory(region)
    coming = iter(places)
    receives: deque[Any] = deque()
    sends: deque[Any] = deque()
    sums: list[Future[int]] = []
    with _Sums(verify) as beside:
        for place in places:
            if before is not None:
                for wanted in itertools.islice(coming, _IN_FLIGHT - len(receives)):
                    receives.append(call.irecv(memory[wanted], before))
                call.wait(receives.popleft(), before)
            beside.add(sums, region, place)
            if after is not None:
                if len(sends) == _IN_FLIGHT:
                    call.wait(sends.popleft(), after)
                sends.append(call.isend(memory[place], after))
        for work in sends:
            call.wait(work, chain[own + 1])
        return [each.result() for each in sums]


# Rows


class Split(NamedTuple):
    """How the tensors of a region are split among hosts."""

    dim: int
    hosts: int

    def has(self, key: str, shape: Sequence[int]) -> bool:
        """Return whether a tensor is split; what tshare.weights notes is not."""
        return key != METADATA and -len(shape) <= self.dim < len(shape)

    def rows(self, key: str, shape: Sequence[int], number: int) -> tuple[slice, ...]:
        """Return the index of a host's rows, which are as many as by numpy.array_split().

        Each host gets all of a tensor that isn't split.
        """
        index = [slice(0, length) for length in shape]
        if self.has(key, shape):
            least, more = divmod(shape[self.dim], self.hosts)
            start = number * least + min(number, more)
            index[self.dim] = slice(start, start + least + (number < more))
        return tuple(index)


def cut(
    shape: tuple[int, ...], itemsize: int, most: int, outer: tuple[slice, ...] = ()
) -> Iterator[tuple[slice, ...]]:
    """Cut a tensor into parts of at most that many bytes, each in one piece if the tensor is."""
    row = math.prod(shape[1:]) * itemsize
    if math.prod(shape) * itemsize <= most:
        if all(shape):
            yield outer
    elif row > most:
        for i in range(shape[0]):
            yield from cut(shape[1:], itemsize, most, (*outer, slice(i, i + 1)))
    else:
        for start in range(0, shape[0], most // row):
            yield *outer, slice(start, min(start + most // row, shape[0]))


def parts_of(tensors: Region, chunk: int) -> Iterator[tuple[str, tuple[slice, ...], slice]]:
    """Cut a region's tensors into parts, in the order in which they are sent.

    Return the tensor's key, the index of the part, and where that lies.
    """
    for key, tensor in tensors.items():
        for index in cut(tensor.shape, tensor.itemsize, chunk):
            part = tensor[index]
            yield key, index, slice(part.byte_offset, part.byte_offset + part.nbytes)


def places_of(tensors: Region, chunk: int) -> list[slice]:
    """Return where the parts of a region's tensors lie."""
    return [place for *_, place in parts_of(tensors, chunk)]


def _is_in_one_piece(tensor: Tensor) -> bool:
    step = tensor.itemsize
    assert tensor.strides is not None
    for length, stride in zip(reversed(tensor.shape), reversed(tensor.strides), strict=True):
        if length != 1 and stride != step:
            return False
        step *= length
    return True


def _in_one_piece(region: Region, part: Tensor) -> tuple[Region, slice]:
    """Return a region where a part lies in one piece, and its place there."""
    if not _is_in_one_piece(part):
        region = Region.create(None, {"part": (part.shape, part.dtype)})
        region["part"].copy_from(part)
        part = region["part"]
    return region, slice(part.byte_offset, part.byte_offset + part.nbytes)


def deal(
    call: Call,
    region: Region,
    own: Region,
    hosts: list[int],
    split: Split,
    chunk: int,
    verify: bool,
) -> list[list[int]]:
    """Send each host its rows, and copy this host's to its own region.

    Return the CRC-32s of each host's chunks. The hosts get chunks in turn, so that all links are
    used.
    """

    def parts(number: int) -> Iterator[Tensor]:
        for key, tensor in region.items():
            mine = tensor[split.rows(key, tensor.shape, number)]
            for index in cut(mine.shape, mine.itemsize, chunk):
                yield mine[index]

    sends: list[deque[Any]] = [deque() for _ in hosts]
    sums: list[list[Future[int]]] = [[] for _ in hosts]
    others = [number for number, rank in enumerate(hosts) if rank != call.rank]
    with _Sums(verify) as beside:
        for turn in itertools.zip_longest(*map(parts, others)):
            for number, part in zip(others, turn, strict=True):
                if part is None:
                    continue
                if len(sends[number]) == _IN_FLIGHT:
                    call.wait(sends[number].popleft(), hosts[number])
                held, place = _in_one_piece(region, part)
                beside.add(sums[number], held, place)
                sends[number].append(call.isend(call.engine.memory(held)[place], hosts[number]))
        for key, tensor in region.items():
            index = split.rows(key, tensor.shape, hosts.index(call.rank))
            own[key].copy_from(tensor[index])
        for number, works in enumerate(sends):
            for work in works:
                call.wait(work, hosts[number])
        return [[each.result() for each in those] for those in sums]
