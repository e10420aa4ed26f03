# SPDX-License-Identifier: MIT
"""A region on each of several machines, for the processes of torch.distributed or MPI::

    import tshare.distributed

    torch.distributed.init_process_group("gloo")
    region = tshare.distributed.replicate("weights", src=0)      # in each rank

Rank src has the region. One rank of each other host receives it, or its rows, straight into a
region of the same name, and the others there open that. torch.distributed or MPI moves the bytes:
tshare has no network code. A host is where processes see the same names, see tshare.host_id().
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import itertools
import socket
from typing import Any

from ._distributed_call import Call, Engine
from ._distributed_transfer import Split, chunks, deal, pass_on, places_of
from ._tshare import Region, host_id

__all__ = ["fetch", "give", "replicate", "scatter"]

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


_TYPES = {"name": str, "src": int, "dim": int, "replace": bool, "chunk": int, "verify": bool}

# The functions of two ranks, each with the other's.
_PAIR = {"fetch": "give", "give": "fetch"}


def _check(given: dict[str, Any], size: int) -> None:
    for key, value in given.items():
        if key in _TYPES and type(value) is not _TYPES[key]:
            raise TypeError(f"{key}: must be {_TYPES[key].__name__}, not {type(value).__name__}")
    if not 0 <= given["src"] < size:
        raise ValueError(f"src: {given['src']} is no rank of the group, which has {size}")
    if not (given["timeout"] is None or _is_limit(given["timeout"])):
        raise ValueError(f"timeout: must be a positive number or None, not {given['timeout']!r}")
    if "chunk" in given and (given["chunk"] < _PAGE or given["chunk"] % _PAGE):
        raise ValueError(f"chunk: {given['chunk']} is not a positive multiple of {_PAGE}")


def _compare(call: Call, ranks: list[Any]) -> None:
    """Raise an error if not all ranks have given the same arguments."""
    first, told = ranks[0]["given"], f"rank {call.ranks[0]}"
    needed = _PAIR.get(first["call"], first["call"])
    for number, each in enumerate(ranks[1:], 1):
        given, rank = each["given"], call.ranks[number]
        if given["call"] != needed:
            text = f"rank {rank} calls {given['call']}(), and {told} {first['call']}()"
            raise call.agreed(ValueError(f"{text}, which needs {needed}()"))
        # The giver may wait for longer.
        for key in ("name", "src") if needed in _PAIR else {**first, **given}:
            if given.get(key) != first.get(key):
                text = f"{key}: rank {rank} gives {given.get(key)!r}, and {told} {first.get(key)!r}"
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


def _check_dim(region: Region, dim: int) -> None:
    for key, tensor in region.items():
        if tensor.strides is None:
            raise ValueError(
                f"name: tensor {key!r} of {region.name!r} has packed elements, {tensor.dtype}, "
                "which can't be split (describe their bytes as uint8)"
            )
    split = Split(dim, 1)
    if not any(split.has(key, tensor.shape) for key, tensor in region.items()):
        raise ValueError(f"dim: no tensor of {region.name!r} has the dimension {dim}")


# A host


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


def _part(layout: dict[str, Any], split: Split, number: int) -> dict[str, Any]:
    """Return the layout of the rows of a host."""
    tensors = {}
    for key, (shape, dtype, *_) in layout["tensors"].items():
        rows = split.rows(key, shape, number)
        tensors[key] = [each.stop - each.start for each in rows], dtype
    return {**layout, "tensors": tensors, "size": None}


def _drop(draft: Region) -> None:
    with contextlib.suppress(OSError):
        # Now, as the engine or a traceback may hold references that keep the draft.
        if draft.info().draft:
            draft.unlink()
    draft.close()


def _leaders(ranks: list[Any], src: int) -> list[int]:
    """Return the rank that has or receives the region, for each host: the lowest one, or src."""
    leaders: dict[str, int] = {}
    for rank, each in enumerate(ranks):
        leaders.setdefault(each["host"], rank)
    leaders[ranks[src]["host"]] = src
    return list(leaders.values())


# The call


def _transfer(
    call: Call,
    whole: Region | None,
    draft: Region | None,
    leaders: list[int],
    src: int,
    split: Split | None,
    given: dict[str, Any],
) -> list[Any]:
    """Fill the draft of this host, or those of others, and return the sums of the chunks."""
    chunk, verify = given["chunk"], given["verify"]
    if split is not None and draft is not None:
        if whole is not None:
            return deal(call, whole, draft, leaders, split, chunk, verify)
        chain = [src, call.rank]
        return pass_on(call, draft, places_of(draft, chunk), chain, verify)
    memory = draft if draft is not None else whole
    assert memory is not None
    chain = [src, *(rank for rank in leaders if rank != src)]
    return pass_on(call, memory, chunks(memory.size, chunk), chain, verify)


def _wrong(found: list[int], sent: list[int], chunk: int | None) -> str | None:
    """Describe the first chunk whose sum differs from that of the source.

    Chunk is the size of all but the last; None if this host has rows of its own.
    """
    pairs = enumerate(itertools.zip_longest(found, sent))
    wrong = next((number for number, (got, right) in pairs if got != right), None)
    if wrong is None:
        return None
    place = f", from byte {wrong * chunk} on," if chunk else ""
    return f"chunk {wrong} of {len(found)}{place} differs from the source's"


def _sum(sums: list[int]) -> str:
    return hashlib.sha256(repr(sums).encode()).hexdigest()


def _compare_sums(
    call: Call, sums: list[Any], leaders: list[int], src: int, split: Split | None, chunk: int
) -> None:
    """Raise an error if a chunk of a host has another sum than that of the source."""
    mine: Any = _sum(sums)
    if call.rank == src:
        sent = sums if split is not None else [sums] * len(leaders)
        mine = [_sum(each) for each, rank in zip(sent, leaders, strict=True) if rank != src]
    ranks = call.agree({"sum": mine})
    if ranks[src]["sum"] == [ranks[rank]["sum"] for rank in leaders if rank != src]:
        return
    # Only now does each rank need all sums, which are many.
    right = call.agree({"sums": sums if call.rank == src else []})[src]["sums"]
    wrong = None
    with call.attempt():
        if call.rank in leaders and call.rank != src:
            if split is not None:
                wrong = _wrong(sums, right[leaders.index(call.rank)], None)
            else:
                wrong = _wrong(sums, right, chunk)
    # A chunk may have been handed on: all name the first host.
    for rank, each in enumerate(call.agree({"wrong": wrong})):
        if each["wrong"] is not None:
            text = f"{call.where(rank)}: {each['wrong']}"
            raise call.agreed(OSError(errno.EBADMSG, text))


def _share(call: Call, given: dict[str, Any], undo: contextlib.ExitStack) -> Region:
    """Give each host the source's region or, of two hosts and more, its rows if dim is given."""
    rank = call.rank
    whole = region = draft = layout = host = None
    with call.attempt():
        _check(given, call.engine.size)
        host = host_id()
    ranks = call.agree({"given": given, "host": host, "node": socket.gethostname()})
    _compare(call, ranks)
    name, src = given["name"], call.ranks.index(given["src"])
    with call.attempt():
        if given["call"] == "give":
            asked = ranks[1 - rank]["given"]
            given = {**given, **{key: asked[key] for key in ("replace", "chunk", "verify")}}
            _check(given, call.engine.size)
        if rank == src:
            whole = Region.open(name, readonly=True)
            undo.callback(whole.close)
            layout = _layout(whole)
            if "dim" in given:
                _check_dim(whole, given["dim"])
    layout = call.agree({"layout": layout})[src]["layout"]
    leaders = _leaders(ranks, src)
    own = next(n for n, each in enumerate(leaders) if ranks[each]["host"] == ranks[rank]["host"])
    leader = leaders[own]
    split = Split(given["dim"], len(leaders)) if "dim" in given and len(leaders) > 1 else None
    if split is not None and not given["replace"]:
        text = (
            "the name is the whole region's at the source (pass replace=True: the whole then stays "
            "for its users, without a name)"
        )
        raise call.agreed(FileExistsError(errno.EEXIST, text, name))
    with call.attempt():
        if split is not None:
            if rank == leader:
                draft = _draft(name, _part(layout, split, own), given["replace"])
                undo.callback(_drop, draft)
        elif rank == src:
            region = whole
        elif leader == src:
            region = _open(name, layout["id"])
            undo.callback(region.close)
        elif rank == leader:
            draft = _draft(name, layout, given["replace"])
            undo.callback(_drop, draft)
    call.agree({})
    sums: list[Any] = []
    if rank == leader and len(leaders) > 1:
        sums = _transfer(call, whole, draft, leaders, src, split, given)
    _compare_sums(call, sums, leaders, src, split, given["chunk"])
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
    if len(leaders) < len(ranks):
        # Until all have it: its name may go with the leader, which may end after this.
        call.agree({})
    assert region is not None
    undo.pop_all()
    if draft is not None:
        draft.close()
    if whole is not None and whole is not region:
        whole.close()
    return region


def _ranks_with(peer: object, engine: Engine) -> list[int]:
    if type(peer) is not int:
        raise TypeError(f"peer: must be int, not {type(peer).__name__}")
    if not 0 <= peer < engine.size or peer == engine.rank:
        raise ValueError(f"peer: {peer} is no other rank of the group, which has {engine.size}")
    return sorted((engine.rank, peer))


def _call(group: Any, given: dict[str, Any], peer: object = None) -> Region:
    engine, ranks = _engine(group), None
    if given["call"] in _PAIR:
        ranks = _ranks_with(peer, engine)
        given["src"] = peer if given["call"] == "fetch" else engine.rank
    limit = given["timeout"] if _is_limit(given["timeout"]) else None
    call = Call(engine, limit, ranks)
    with contextlib.ExitStack() as undo:
        try:
            return _share(call, given, undo)
        except BaseException:
            call.give_up()
            raise


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
        backend for the CPU, or was made before this process was forked; the region is a stream or a
        pool.
    :raises TypeError: An argument has a wrong type.
    :raises ConnectionError: A rank has ended.
    :raises TimeoutError: A rank is silent, or the seconds, and up to three more, have passed.
    :raises OSError: EBADMSG: a chunk that has arrived differs. ESTALE: another process has replaced
        the region meanwhile. ENOMEM or EDQUOT: a host has no room.
    """
    given = {
        "call": "replicate",
        "name": name,
        "src": src,
        "replace": replace,
        "chunk": chunk,
        "verify": verify,
        "timeout": timeout,
    }
    return _call(group, given)


def scatter(
    name: str,
    src: int = 0,
    group: Any = None,
    *,
    dim: int = 0,
    replace: bool = False,
    chunk: int = 4 << 20,
    verify: bool = True,
    timeout: float | None = None,
) -> Region:
    """Return a region of this host's rows of each tensor of a region that one rank has.

    All ranks of the group call it as replicate(), which has the other parameters and errors. Hosts
    are in the order of their lowest ranks. They get as many rows as by numpy.array_split(): the
    first ones get one more where the rows can't be divided, and the last ones none where there are
    fewer rows than hosts. A tensor without that dimension, such as a scalar, is whole on each host.
    Tensors that overlap get memory of their own.

    On each host, the source's included, the name leads to the host's rows in the end. So two hosts
    and more need replace=True: the whole region loses its name, and goes with its last user, even
    if its lifetime is persist. A job of one host keeps its region as it is.

    :param dim: Dimension whose indices the rows are; a negative one counts from a tensor's last.
    :param replace: As by replicate(), and on the source's host, too.
    :raises FileExistsError: As by replicate(). There are two hosts and more, and no replace.
    :raises ValueError: As by replicate(). No tensor has that dimension, or one has elements that
        are no whole bytes.
    :raises PermissionError: As by replicate(), and if the source's region is another user's.
    """
    given = {
        "call": "scatter",
        "name": name,
        "src": src,
        "dim": dim,
        "replace": replace,
        "chunk": chunk,
        "verify": verify,
        "timeout": timeout,
    }
    return _call(group, given)


def fetch(
    name: str,
    peer: int,
    group: Any = None,
    *,
    replace: bool = False,
    chunk: int = 4 << 20,
    verify: bool = True,
    timeout: float | None = None,
) -> Region:
    """Return a region that another rank gives, read-only: for a host that joins late.

    Only the two ranks take part: the peer calls give() with the same name. The region is received
    as by replicate(), which has the other parameters and errors, or opened if both are on one host.
    After the loss of a peer all connections of the group are closed: a group of the two limits
    that to them.

    :param peer: Rank in the group that has the region.
    :raises ValueError: As by replicate(); peer is no other rank of the group.
    """
    given = {
        "call": "fetch",
        "name": name,
        "replace": replace,
        "chunk": chunk,
        "verify": verify,
        "timeout": timeout,
    }
    return _call(group, given, peer)


def give(name: str, peer: int, group: Any = None, *, timeout: float | None = None) -> None:
    """Give a region to a rank that calls fetch(), which has the errors.

    :param name: Name of the region.
    :param peer: Rank in the group that fetches it.
    :param timeout: Seconds that the call may take, with those until the peer calls; None for the
        limit of the group, or half an hour.
    """
    given = {"call": "give", "name": name, "timeout": timeout}
    _call(group, given, peer).close()


if __name__ == "__main__":
    from tshare._distributed_command import main

    raise SystemExit(main())
