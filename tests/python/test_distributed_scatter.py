# SPDX-License-Identifier: MIT
"""tshare.distributed.scatter(), with gloo."""

import errno
import itertools
import math
import signal

import numpy as np
import pytest

from support import hosts_are_folders, need

need("torch")

from tshare._distributed_transfer import Split, cut  # noqa: E402

pytestmark = [pytest.mark.imports_torch, hosts_are_folders]

# The tensor "a" of a region has LINES rows of WIDTH bytes, some of them more than a chunk.
BEGIN = """
import functools
scatter = functools.partial(distributed.scatter, replace=True)
LINES, WIDTH = 37, 5000
whole = np.arange(LINES * WIDTH, dtype="uint32").astype("uint8").reshape(LINES, WIDTH)

def make(name="w", **options):
    return tshare.Region.create(name, {"a": whole}, **options)

def parts(count, dim=0):
    return np.array_split(whole, count, dim)
"""


@pytest.fixture
def start(start_ranks):
    return lambda code, *hosts, **variables: start_ranks(BEGIN + code, *hosts, **variables)


@pytest.mark.parametrize(
    "hosts",
    [(0,), (0, 0), (0, 1), (0, 1, 1), (1, 0, 0, 2), (0, 1, 2, 3), (0, 1, 0, 1, 2), (0, 0, 0, 1)],
    ids=str,
)
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_each_host_gets_its_rows(start, hosts, dim):
    code = """
if size == 1:
    store = dist.HashStore()
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
result = []
order = [*dict.fromkeys(numbers)]
for src in range(size):
    if rank == src:
        kept = make(f"from{src}")
    region = scatter(f"from{src}", src, dim=dim, chunk=4096)
    mine = parts(len(order), dim)[order.index(numbers[rank])]
    right = region["a"].shape == mine.shape and (region["a"].numpy() == mine).all()
    opened = tshare.Region.open(f"from{src}")
    result.append([region.name, region.readonly, bool(right), opened.id == region.id, region.id])
    dist.barrier()
"""
    found = start(code, *hosts, dim=dim, numbers=hosts).results()
    for src in range(len(hosts)):
        assert {(*each[src][:4],) for each in found} == {(f"from{src}", True, True, True)}
        ids = {(host, each[src][4]) for host, each in zip(hosts, found, strict=True)}
        assert len(ids) == len(set(hosts))


def test_any_tensors_are_split(start):
    need("ml_dtypes")
    code = """
import ml_dtypes
rng = np.random.default_rng(3)
tensors = {
    "e\\u00e4": rng.random((7, 3, 2)),
    "scalar": np.array(5.0),
    "vector": np.arange(5, dtype="int16"),
    "short": np.arange(2, dtype="int64"),
    "none": np.empty((0, 4), "float32"),
    "narrow": np.empty((4, 0), "float32"),
    "long": np.arange(20000, dtype="complex64"),
    "deep": rng.integers(0, 99, (4, 2, 3000), "uint16"),
    "columns": np.arange(12.0).reshape(3, 4).T,
    "far": np.arange(30.0).reshape(5, 6)[:, ::2],
    "back": np.arange(8, dtype="uint8")[::-1],
    "brain": rng.random((6, 5)).astype(ml_dtypes.bfloat16),
    "eight": rng.random((6, 5)).astype(ml_dtypes.float8_e4m3fn),
    "bool": rng.random(9) < 0.5,
    "__metadata__": np.frombuffer(b"{}", "uint8"),
}
result = []
for dim in range(3):
    if rank == 0:
        kept = tshare.Region.create(f"w{dim}", tensors)
    region = scatter(f"w{dim}", dim=dim, chunk=4096)
    for key, x in tensors.items():
        is_split = x.ndim > dim and key != "__metadata__"
        mine = np.array_split(x, size, dim)[rank] if is_split else x
        found = region[key]
        same = np.asarray(found).tobytes() == mine.tobytes()
        result.append([dim, key, same, found.shape == mine.shape, found.dtype == x.dtype])
    assert [*region] == [*tensors]
"""
    for found in start(code, 0, 1, 2).results():
        assert [each for each in found if each[2:] != [True] * 3] == []
        assert len(found) == 45


def test_strided_tensors_are_split(start):
    code = """
specs = {
    "columns": ((9, 2000), "int32", (4, 36), 0),
    "gaps": ((9, 1000), "int16", (4000, 2), 1 << 17),
    "twice": ((9, 600), "uint8", (0, 1), 1 << 18),
    "same": ((9, 600), "uint8", (0, 1), 1 << 18),
}
if rank == 0:
    kept = tshare.Region.create("w", specs)
    memoryview(kept)[:] = np.random.default_rng(5).bytes(kept.size)
    values = {key: x.numpy().tolist() for key, x in kept.items()}
box = [values if rank == 0 else None]
dist.broadcast_object_list(box)
region = scatter("w", chunk=4096)
result = [
    region[key].numpy().tolist() == np.array_split(np.array(box[0][key]), size)[rank].tolist()
    for key in specs]
"""
    assert start(code, 0, 1).results() == [[True] * 4] * 2


def test_whole_region_stays_with_its_users_and_rows_have_its_mode_and_lifetime(start):
    code = """
if rank == 0:
    kept = make(lifetime="users", mode=0o640)
    before = kept.id
first = scatter("w")
info = first.info()
result = [info.mode, info.lifetime, rank > 0 or bool((kept["a"].numpy() == whole).all())]
if rank == 0:
    kept = make(exist_ok=True)
second = scatter("w")
result.append(second.id != first.id)
"""
    assert start(code, 0, 1, 1).results() == [[0o640, "users", True, True]] * 3


@pytest.mark.parametrize("lifetime", ["maker", "persist"])
def test_name_of_the_whole_region_is_only_replaced_if_asked(start, lifetime):
    code = """
kept = make(lifetime=lifetime) if rank == 1 else None
result = [error_of(distributed.scatter, "w", 1)]
result.append([each.id for each in tshare.list()] == ([kept.id] if rank == 1 else []))
region = scatter("w", 1)
result.append([each.id for each in tshare.list()] == [region.id])
if lifetime == "persist":
    dist.barrier()
    region.unlink()
"""
    for error, is_before, is_replaced in start(code, 0, 1, 2, lifetime=lifetime).results():
        assert error[:2] == ["FileExistsError", errno.EEXIST]
        assert "the name is the whole region's at the source (pass replace=True" in error[2]
        assert is_before
        assert is_replaced


def test_one_host_keeps_its_region(start):
    code = """
kept = make() if rank == 1 else None
result = distributed.scatter("w", 1).id
if rank == 1:
    assert kept.id == result
"""
    first, second = start(code, 0, 0).results()
    assert first == second


def test_mistake_of_a_rank_is_an_error_of_all_and_leaves_the_names(start):
    code = """
kept = [make(), tshare.Region.create("none", size=4096)] if rank == 0 else []
if rank == 0:
    kept.append(tshare.Region.create("packed", {"p": ((4, 4), "float4_e2m1fn")}))
    kept.append(tshare.Region.create("scalar", {"s": ((), "int32")}))
    kept.append(tshare.Region.create("notes", {"__metadata__": np.zeros(9, "uint8")}))
    kept.append(make("taken"))
if rank == 2:
    kept.append(make("taken", draft=True))
names = sorted(each.name for each in tshare.list())
result = {
    "differs": error_of(scatter, "w", dim=rank),
    "kind": error_of(scatter, "w", dim=0.0),
    "far": error_of(scatter, "w", dim=2),
    "far below": error_of(scatter, "w", dim=-3),
    "none": error_of(scatter, "none"),
    "packed": error_of(scatter, "packed"),
    "scalar": error_of(scatter, "scalar"),
    "notes": error_of(scatter, "notes"),
    "unknown": error_of(scatter, "unknown"),
    "taken": error_of(scatter, "taken"),
    "call": error_of(scatter if rank else distributed.replicate, "w"),
}
result["names"] = names == sorted(each.name for each in tshare.list())
result["whole"] = rank != 0 or [each.id for each in kept] == [
    tshare.Region.open(each.name).id for each in kept]
result["right"] = error_of(scatter, "w")
"""
    found = start(code, 0, 1, 2).results()
    assert [each.pop("names") and each.pop("whole") for each in found] == [True] * 3
    assert [each.pop("right") for each in found] == [None] * 3
    kinds = {key: {each[key][0] for each in found} for key in found[0]}
    assert kinds.pop("kind") == {"TypeError"}
    assert kinds.pop("unknown") == {"FileNotFoundError"}
    assert kinds.pop("taken") == {"FileExistsError"}
    assert set.union(*kinds.values()) == {"ValueError"}
    texts = {key: each[2] for key, each in found[1].items()}
    assert texts["differs"] == "dim: rank 1 gives 1, and rank 0 0"
    assert "dim: no tensor of 'w' has the dimension 2" in texts["far"]
    assert "dim: no tensor of 'w' has the dimension -3" in texts["far below"]
    assert "'p' of 'packed' has packed elements, float4_e2m1fn" in texts["packed"]
    assert "rank 2 on " in texts["taken"]
    assert texts["call"] == (
        "rank 1 calls scatter(), and rank 0 replicate(), which needs replicate()"
    )


@pytest.mark.parametrize(("hosts", "rounds"), [((0, 1, 2), 5), ((0, 1, 1), 6)], ids=str)
def test_ranks_agree_no_more_often_than_needed(start, hosts, rounds):
    code = """
from tshare._distributed_call import Call
agree, count = Call.agree, [0]
def counting(self, mine):
    count[0] += 1
    return agree(self, mine)
Call.agree = counting
result = []
for verify in True, False:
    for call in distributed.replicate, scatter:
        if rank == 1:
            kept = make(exist_ok=True)
        call("w", src=1, chunk=4096, verify=verify, replace=True).close()
        result.append(count[0])
        count[0] = 0
"""
    assert start(code, *hosts).results() == [[rounds] * 4] * 3


def test_flipped_bit_is_an_error_that_names_host_and_chunk(start):
    code = """
kept = make() if rank == 1 else None
if rank == 2:
    flip_a_bit(3, 4096)
before = sorted((each.name, each.id) for each in tshare.list())
result = [error_of(scatter, "w", 1, chunk=4096)]
result.append(before == sorted((each.name, each.id) for each in tshare.list()))
if rank == 2:
    flip_a_bit(3, 4096)
result.append(error_of(scatter, "w", 1, chunk=4096, verify=False))
"""
    for error, is_before, unseen in start(code, 0, 1, 2).results():
        assert error[:2] == ["OSError", errno.EBADMSG]
        assert "rank 2 on " in error[2]
        # Of 12 rows, each in two.
        assert "chunk 4 of 24 differs" in error[2]
        assert is_before
        assert unseen is None


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
@pytest.mark.parametrize("victim", [1, 0, 3], ids=["source", "leader", "opener"])
def test_lost_rank_is_an_error_of_all_others(start, victim, number):
    code = """
kept = make() if rank == 1 else None
if rank == victim:
    count, call = [0], "isend" if rank == 1 else "irecv"
    begin = getattr(TorchEngine, call)
    def counting(self, memory, peer):
        count[0] += 1
        # Messages of the agreements before, and some chunks.
        if count[0] == 15 or rank == 3:
            os.kill(os.getpid(), number)
            time.sleep(1)
        return begin(self, memory, peer)
    setattr(TorchEngine, call, counting)
before = sorted((each.name, each.id) for each in tshare.list())
result = [error_of(scatter, "w", 1, chunk=4096, timeout=limit)]
# Rank 2 drops its draft when it has its own error.
result.append(rank == 3 or before == sorted((each.name, each.id) for each in tshare.list()))
"""
    limit = 300 if number == signal.SIGKILL else 3
    others = [rank for rank in range(4) if rank != victim]
    group = start(code, 0, 1, 2, 2, victim=victim, number=number, limit=limit)
    for error, is_before in group.results(*others):
        assert error[0] in ("ConnectionResetError", "TimeoutError")
        assert number == signal.SIGSTOP or error[0] == "ConnectionResetError"
        assert is_before


def test_source_in_one_piece_is_sent_where_it_lies(start):
    code = """
create, made = tshare.Region.create, []
class Watching:
    @staticmethod
    def create(*args, **options):
        made.append(args[0])
        return create(*args, **options)
kept = make() if rank == 0 else None
tshare._distributed_transfer.Region = Watching
scatter("w")
if rank == 0:
    assert made == []
    kept = make(exist_ok=True)
scatter("w", dim=1)
result = made == [None] * len(made), len(made) > 0
"""
    assert start(code, 0, 1).results() == [[True, True], [True, False]]


@pytest.mark.parametrize("most", [8, 24, 100, 1 << 20])
@pytest.mark.parametrize("shape", [(), (0,), (5,), (3, 4), (2, 0, 3), (7, 1, 3), (2, 3, 2, 2)])
def test_parts_have_all_elements_once_in_their_order(shape, most):
    whole = np.arange(math.prod(shape)).reshape(shape)
    parts = [whole[index] for index in cut(shape, 8, most)]
    assert all(0 < part.nbytes <= most for part in parts)
    assert all(part.flags.c_contiguous for part in parts)
    assert [*itertools.chain(*(part.ravel() for part in parts))] == [*whole.ravel()]
    # As many as possible of whole rows.
    if shape == (5,) and most == 24:
        assert [part.size for part in parts] == [3, 2]


@pytest.mark.parametrize("length", range(8))
@pytest.mark.parametrize("count", range(1, 6))
def test_rows_are_those_of_array_split(length, count):
    whole = np.arange(length * 2).reshape(length, 2)
    split = Split(0, count)
    found = [whole[split.rows("a", whole.shape, number)].tolist() for number in range(count)]
    assert found == [part.tolist() for part in np.array_split(whole, count)]
