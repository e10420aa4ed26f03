# SPDX-License-Identifier: MIT
"""A region on each of several machines, for the processes of torch.distributed or MPI::

    import tshare.distributed

    torch.distributed.init_process_group("gloo")
    region = tshare.distributed.replicate("weights", src=0)      # in each rank

Rank src has the region. One rank of each other host receives it, straight into a region of the
same name, and the others there open that. torch.distributed or MPI moves the bytes: tshare has no
network code. A host is where processes see the same names, see tshare.host_id().
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import socket
import zlib
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from ._distributed_call import Call, Engine
from ._tshare import Region, host_id

__all__ = ["replicate"]

# Chunks that a rank has asked its predecessor for, or is handing on, at a time.
_IN_FLIGHT = 4

# The unit of chunk, so that chunks begin at pages.
_PAGE = 4096


def _engine(group: Any) -> Engine:
    if any(kind.__module__.partition(".")[0] == "mpi4py" for kind in type(group).__mro__):
        from ._distributed_mpi import MpiEngine

        return MpiEngine(group)
    from ._distributed_torch import TorchEngine

    return TorchEngine(group)


# The source


def _is_limit(timeout: object) -> bool:
    return type(timeout) in (int, float) and timeout > 0  # type: ignore[operator]


_TYPES = {"name": str, "src": int, "replace": bool, "chunk": int, "verify": bool}


def _check(given: dict[str, Any], size: int) -> None:
    for key, kind in _TYPES.items():
        if type(given[key]) is not kind:
            raise TypeError(f"{key}: must be {kind.__name__}, not {type(given[key]).__name__}")
    if not 0 <= given["src"] < size:
        raise ValueError(f"src: {given['src']} is no rank of the group, which has {size}")
    if not (given["timeout"] is None or _is_limit(given["timeout"])):
        raise ValueError(f"timeout: must be a positive number or None, not {given['timeout']!r}")
    if given["chunk"] < _PAGE or given["chunk"] % _PAGE:
        raise ValueError(f"chunk: {given['chunk']} is not a positive multiple of {_PAGE}")


def _compare(call: Call, ranks: list[Any]) -> None:
    """Raise an error if not all ranks have given the same arguments."""
    first = ranks[0]["given"]
    for rank, each in enumerate(ranks):
        for key, value in each["given"].items():
            if value != first[key]:
                text = f"{key}: rank {rank} gives {value!r}, and rank 0 {first[key]!r}"
                raise call.agreed(ValueError(text))


def _layout(region: Region) -> dict[str, Any]:
    """Return what another host makes a region of."""
    for kind in ("stream", "pool"):
        if f".{kind}" in region:
            raise ValueError(f"name: {region.name!r} is a {kind}, which changes all the time")
    info = region.info()
    return {
        "id": info.id,
        "size": info.size,
        "mode": info.mode,
        "lifetime": info.lifetime,
        "tensors": {
            key: (tensor.shape, tensor.dtype, tensor.strides, tensor.byte_offset)
            for key, tensor in region.items()
        },
    }


# Transfer


def _places(size: int, chunk: int) -> list[slice]:
    return [slice(start, min(start + chunk, size)) for start in range(0, size, chunk)]


def _pass_on(
    call: Call, memory: Any, places: list[slice], chain: list[int], arrived: Callable[[slice], Any]
) -> None:
    """Receive the chunks from the predecessor in the chain, and send them to the successor."""
    own = chain.index(call.engine.rank)
    before = chain[own - 1] if own else None
    after = chain[own + 1] if own + 1 < len(chain) else None
    coming = iter(places)
    receives: deque[Any] = deque()
    sends: deque[Any] = deque()
    for place in places:
        if before is not None:
            for wanted in itertools.islice(coming, _IN_FLIGHT - len(receives)):
                receives.append(call.irecv(memory[wanted], before))
            call.wait(receives.popleft(), before)
        arrived(place)
        if after is not None:
            if len(sends) == _IN_FLIGHT:
                call.wait(sends.popleft(), after)
            sends.append(call.isend(memory[place], after))
    for work in sends:
        call.wait(work, chain[own + 1])


def _transfer(
    call: Call, region: Region, places: list[slice], chain: list[int], verify: bool
) -> list[int]:
    """Fill the region of this host, and return the CRC-32 of each chunk, if it is wanted."""
    sums: list[Future[int]] = []
    with memoryview(region) as view, ThreadPoolExecutor(1) as beside:

        def compute(place: slice) -> int:
            return zlib.crc32(view[place])

        def arrived(place: slice) -> None:
            if verify:
                sums.append(beside.submit(compute, place))

        try:
            _pass_on(call, call.engine.memory(region), places, chain, arrived)
        except BaseException:
            beside.shutdown(cancel_futures=True)
            raise
        return [each.result() for each in sums]


def _compare_sums(call: Call, ranks: list[Any], chain: list[int], places: list[slice]) -> None:
    for rank in chain[1:]:
        pairs = zip(ranks[rank]["sums"], ranks[chain[0]]["sums"], strict=True)
        wrong = [number for number, (found, sent) in enumerate(pairs) if found != sent]
        if wrong:
            place = places[wrong[0]]
            text = (
                f"{call.where(rank)}: chunk {wrong[0]}, bytes {place.start} to {place.stop}, "
                "differs from the source's"
            )
            raise call.agreed(OSError(errno.EBADMSG, text))


# The call


def _open(name: str, id: int) -> Region:
    """Open the region of this host, which another rank has filled or found."""
    region = Region.open(name, readonly=True)
    if region.id != id:
        region.close()
        raise OSError(errno.ESTALE, "the name leads to another region by now", name)
    return region


def _draft(name: str, layout: dict[str, Any], replace: bool) -> Region:
    return Region.create(
        name,
        {key: tuple(spec) for key, spec in layout["tensors"].items()},
        size=layout["size"],
        mode=layout["mode"],
        lifetime=layout["lifetime"],
        draft=True,
        exist_ok=replace,
    )


def _drop(draft: Region) -> None:
    with contextlib.suppress(OSError):
        # Now, as the engine or a traceback may hold references that keep the draft.
        if draft.info().draft:
            draft.unlink()
    draft.close()


def _chain(ranks: list[Any], src: int) -> list[int]:
    """Return the ranks through which the bytes go: the source, and the lowest of each host."""
    leaders = {ranks[src]["host"]: src}
    for rank, each in enumerate(ranks):
        leaders.setdefault(each["host"], rank)
    return list(leaders.values())


def _replicate(call: Call, given: dict[str, Any], undo: contextlib.ExitStack) -> Region:
    name, src, rank = given["name"], given["src"], call.engine.rank
    region = draft = layout = host = None
    with call.attempt():
        _check(given, call.engine.size)
        host = host_id()
    ranks = call.agree({"given": given, "host": host, "node": socket.gethostname()})
    _compare(call, ranks)
    with call.attempt():
        if rank == src:
            region = Region.open(name, readonly=True)
            undo.callback(region.close)
            layout = _layout(region)
    layout = call.agree({"layout": layout})[src]["layout"]
    chain = _chain(ranks, src)
    leader = next(each for each in chain if ranks[each]["host"] == ranks[rank]["host"])
    with call.attempt():
        if leader == src != rank:
            region = _open(name, layout["id"])
            undo.callback(region.close)
        elif leader == rank != src:
            draft = _draft(name, layout, given["replace"])
            undo.callback(_drop, draft)
    call.agree({})
    places = _places(layout["size"], given["chunk"])
    sums: list[int] = []
    if rank == leader and len(chain) > 1:
        memory = draft if draft is not None else region
        assert memory is not None
        sums = _transfer(call, memory, places, chain, given["verify"])
    _compare_sums(call, call.agree({"sums": sums}), chain, places)
    with call.attempt():
        if draft is not None:
            region = Region.from_fd(draft, readonly=True)
            undo.callback(region.close)
            draft.finish(replace=given["replace"])
    finished = call.agree({"id": None if region is None else region.id})
    with call.attempt():
        if region is None:
            region = _open(name, finished[leader]["id"])
            undo.callback(region.close)
    # Until all have it: its name may go with the leader, which may end after this.
    call.agree({})
    assert region is not None
    undo.pop_all()
    if draft is not None:
        draft.close()
    return region


def replicate(
    name: str,
    src: int = 0,
    group: Any = None,
    *,
    replace: bool = False,
    chunk: int = 4 << 20,
    verify: bool = True,
    timeout: float | None = None,
) -> Region:
    """Return a region that one rank has, read-only, in each rank: one copy a host.

    All ranks of the group call it with the same arguments, one call at a time: calls of two threads
    need two groups. On each host but the source's the lowest rank receives the region, and gives it
    the source's name, mode and lifetime when all hosts have all of it. The hosts form a chain, in
    which each hands on what it has while more comes. The memory must not be written meanwhile.

    All ranks raise an error of one of them. Names are then as before, or, after an error of the
    last step, lead to the complete region. If a rank has ended or is silent, the connections of the
    group are closed, and it can't be used any more.

    :param name: Name of the region, at the source and everywhere.
    :param src: Rank in the group that has the region.
    :param group: A group of torch.distributed whose backend sends the CPU's tensors, such as gloo,
        or an intracommunicator of mpi4py; None for torch.distributed's default group.
    :param replace: Replace regions of the same user that have the name on other hosts, in one step.
        Their users keep them.
    :param chunk: Bytes that are sent at a time, a multiple of 4096.
    :param verify: Compare the CRC-32 of each chunk with the source's.
    :param timeout: Seconds that the call may take; None for the limit of the group, or half an
        hour.
    :raises FileNotFoundError: The source has no region of that name.
    :raises FileExistsError: The name is taken on another host, by a draft or without replace.
    :raises PermissionError: The name is another user's on another host, or the mode is denied.
    :raises ValueError: An argument is malformed, or not the same in all ranks; the group has no
        backend for the CPU; the region is a stream or a pool.
    :raises TypeError: An argument has a wrong type.
    :raises ConnectionError: A rank has ended.
    :raises TimeoutError: A rank is silent, or the seconds, and up to three more, have passed.
    :raises OSError: EBADMSG: a chunk that has arrived differs. ESTALE: another process has replaced
        the region meanwhile. ENOMEM, EDQUOT or ENOSPC: a host has no room.
    """
    given = {
        "name": name,
        "src": src,
        "replace": replace,
        "chunk": chunk,
        "verify": verify,
        "timeout": timeout,
    }
    limit = timeout if _is_limit(timeout) else None
    call = Call(_engine(group), limit)
    with contextlib.ExitStack() as undo:
        try:
            return _replicate(call, given, undo)
        except BaseException:
            call.give_up()
            raise


if __name__ == "__main__":
    from tshare._distributed_command import main

    raise SystemExit(main())
