# SPDX-License-Identifier: MIT
"""tshare.distributed.replicate(), with gloo."""

import errno
import signal
import socket

import pytest

from support import hosts_are_folders, need

need("torch")

pytestmark = [pytest.mark.imports_torch, hosts_are_folders]


@pytest.mark.parametrize(
    "hosts", [(0, 0), (0, 1), (0, 0, 1, 1), (1, 0, 0, 2), (0, 1, 2, 3), (0, 1, 0, 1, 2)], ids=str
)
def test_each_rank_gets_the_region_and_each_host_has_one_copy(start_ranks, hosts):
    code = """
result = []
for src in range(size):
    if rank == src:
        kept = make(f"from{src}", src)
    region = distributed.replicate(f"from{src}", src, chunk=CHUNK)
    result.append([region.name, region.readonly, is_made(region, src), region.id])
    dist.barrier()
"""
    found = start_ranks(code, *hosts).results()
    for src in range(len(hosts)):
        assert {(*each[src][:3],) for each in found} == {(f"from{src}", True, True)}
        ids = {(host, each[src][3]) for host, each in zip(hosts, found, strict=True)}
        assert len(ids) == len(set(hosts))


def test_engine_keeps_the_memory_of_a_closed_region(start_ranks):
    code = """
region = tshare.Region.create(None, {"a": (4, "uint8")})
memory = TorchEngine.memory(None, region)
region.close()
memory[0] = 7
result = int(memory[0])
"""
    assert start_ranks(code, 0).results() == [7]


def test_one_rank_gets_its_own_region(start_ranks):
    code = """
store = dist.HashStore()
dist.init_process_group("gloo", store=store, rank=0, world_size=1)
kept = make()
tshare._distributed_transfer.zlib = None     # no sums for nobody
result = distributed.replicate("w").id == kept.id
"""
    assert start_ranks(code, 0).results() == [True]


@pytest.mark.parametrize("ends", ["alike", "with an error", "late"])
def test_no_thread_outlives_the_call(start_ranks, ends):
    # At Python's end it would abort the process, in PyTorch.
    code = f"""
from tshare._distributed_call import Call
hear = Call._hear
def slowly(self, heard):
    hear(self, heard)
    time.sleep(0.3)
Call._hear = slowly
kept = make() if rank == 0 and {ends == "alike"} else None
error = None
if rank == 0 or {ends != "late"}:
    error = error_of(distributed.replicate, "w", timeout={1 if ends == "late" else None})
result = [error is None, len(threading.enumerate())]
"""
    assert start_ranks(code, 0, 1).results(0) == [[ends == "alike", 1]]


def test_leader_may_end_when_it_has_its_region(start_ranks):
    code = """
kept = make() if rank == 0 else None
if rank == 2:
    open_region = distributed._open
    def slowly(*args):
        time.sleep(0.3)
        return open_region(*args)
    distributed._open = slowly
region = distributed.replicate("w")
result = is_made(region)
if rank == 1:
    region.close()
    tshare.unlink("w")
"""
    assert start_ranks(code, 0, 1, 1).results() == [True] * 3


def test_any_tensors_arrive(start_ranks):
    code = """
CHUNK = 1 << 16
tensors = {
    "one": {"x": (1, "uint8")},
    "less": {"x": (CHUNK - 1, "uint8")},
    "chunk": {"x": (CHUNK, "uint8")},
    "more": {"x": (CHUNK + 1, "uint8")},
    "many": {f"x{i}": ((i, 3), "int16") for i in range(1000)},
    "types": {
        "bfloat16": ((3, 5), "bfloat16"),
        "float4": ((4, 6), "float4_e2m1fn"),
        "bool": ((), "bool"),
        "empty": ((0, 7), "float64"),
        "columns": ((3, 2), "int32", (4, 12), 4096),
        "e\\u00e4\\udcff": (3, "complex64"),
    },
}
keep = []
rng = np.random.default_rng(7)
result = []
for name, specs in [*tensors.items(), ("none", {})]:
    if rank == 0:
        keep.append(tshare.Region.create(name, specs, size=None if specs else 8192, draft=True))
        memoryview(keep[-1])[:] = rng.bytes(keep[-1].size)
        keep[-1].finish()
    region = distributed.replicate(name, chunk=CHUNK)
    keep.append(region)
    specs = [(key, x.dtype, x.shape, x.strides, x.byte_offset) for key, x in region.items()]
    result.append([name, repr(specs), bytes(region).hex()])
"""
    one, other = start_ranks(code, 0, 1).results()
    assert one == other
    assert len(one) == 7


def test_collectives_work_in_place(start_ranks):
    code = """
region = tshare.Region.create(f"grad{rank}", {"grad": np.full(100_000, rank + 1.0)})
dist.all_reduce(region["grad"].torch())
result = bool((region["grad"].numpy() == 6).all())
dist.barrier()
"""
    assert start_ranks(code, 0, 0, 1).results() == [True] * 3


def test_ranks_of_a_host_read_their_rows_of_one_data_set(start_ranks):
    code = """
import torch
import warnings
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

kept = tshare.Region.create("data", {"x": np.arange(40).reshape(20, 2)}) if rank == 0 else None
region = distributed.replicate("data")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")     # the tensor is read-only
    rows = TensorDataset(torch.from_numpy(region["x"].numpy()))
assert rows.tensors[0].data_ptr() == region["x"].numpy().ctypes.data
loader = DataLoader(rows, batch_size=5, sampler=DistributedSampler(rows))
result = [int(row[0]) // 2 for (batch,) in loader for row in batch]
dist.barrier()
"""
    found = start_ranks(code, 0, 0, 1, 1).results()
    assert sorted(row for rows in found for row in rows) == [*range(20)]


@pytest.mark.parametrize("lifetime", ["maker", "users", "persist"])
def test_copy_has_mode_and_lifetime_of_the_source(start_ranks, lifetime):
    code = """
if rank == 0:
    kept = make(lifetime=lifetime, mode=0o640)
region = distributed.replicate("w")
info = region.info()
result = [info.mode, info.lifetime, info.name]
if lifetime == "persist":
    dist.barrier()
    region.unlink()
"""
    assert start_ranks(code, 0, 1, lifetime=lifetime).results() == [[0o640, lifetime, "w"]] * 2


def test_rank_that_is_a_leader_may_close_its_region(start_ranks):
    code = """
kept = make() if rank == 0 else None
region = distributed.replicate("w")
dist.barrier()
region.close()
dist.barrier()
result = is_made(tshare.Region.open("w"))
"""
    assert start_ranks(code, 0, 1, 1).results() == [True] * 3


def test_replace_swaps_versions_and_old_ones_stay_with_their_users(start_ranks):
    code = """
kept = make() if rank == 0 else None
first = distributed.replicate("w", chunk=CHUNK)
if rank == 0:
    kept = make(value=5)
second = distributed.replicate("w", chunk=CHUNK, replace=True)
now = tshare.Region.open("w", other_than=first)
result = [is_made(first), is_made(second, 5), now.id == second.id]
"""
    assert start_ranks(code, 0, 1, 1).results() == [[True] * 3] * 3


def test_results_of_readers_belong_to_one_version_each(start_ranks):
    readers = start_ranks(
        """
region, result = None, []
while 30 not in result:
    region = tshare.Region.open("w", readonly=True, wait=60, other_than=region)
    values = set()
    for _ in range(3):
        values |= set(np.unique(region["a"].numpy()).tolist())
    assert len(values) == 1, values
    result += values
""",
        1,
    )
    code = """
for version in range(1, 31):
    if rank == 0:
        kept = tshare.asarray(np.full(20 * CHUNK, version, "uint8"), "w", exist_ok=True)
        region = tshare.Region.create("w", {"a": kept}, exist_ok=True)
    region = distributed.replicate("w", chunk=CHUNK, replace=True)
"""
    group = start_ranks(code, 0, 1, 1)
    group.results()
    (seen,) = readers.results()
    assert seen == sorted(set(seen))


def test_receiving_takes_no_private_memory(start_ranks):
    code = """
size = 128 << 20
if rank == 0:
    kept = tshare.Region.create("w", {"a": (size, "uint8")})
    kept["a"].numpy()[:] = 1

def private():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon:"))

if rank == 0:
    small = make("small")
distributed.replicate("small")
most, wait = [private()], TorchEngine.wait
before = most[0]
def measured(self, work, seconds):
    wait(self, work, seconds)
    most[0] = max(most[0], private())
TorchEngine.wait = measured
region = distributed.replicate("w")
assert region["a"].numpy().min() == 1
result = most[0] - before
"""
    assert max(start_ranks(code, 0, 1, 2).results()) < 8 << 10


BREAK = """
kept = make() if rank == src else None
if rank == victim:
    def stop(memory):
        os.kill(os.getpid(), number)
        time.sleep(1)
    on_chunk(moment, stop, "isend" if rank == src else "irecv")
begin = time.monotonic()
result = [error_of(distributed.replicate, "w", src, chunk=CHUNK, timeout=limit)]
result += [time.monotonic() - begin, tshare.list() == [] or rank == src]
"""


@pytest.mark.parametrize("moment", [1, 11, 20])
@pytest.mark.parametrize("victim", [1, 3, 0], ids=["source", "middle", "end"])
def test_killed_rank_is_an_error_of_all_others(start_ranks, victim, moment):
    variables = {"src": 1, "victim": victim, "moment": moment, "number": signal.SIGKILL}
    # The chain is 1, 2, 3, 0.
    others = [rank for rank in (1, 2, 3, 0) if rank != victim]
    group = start_ranks(BREAK, 0, 1, 2, 3, **variables, limit=300)
    for error, took, is_before in group.results(*others):
        assert error[:2] == ["ConnectionResetError", errno.ECONNRESET]
        assert took < 200
        assert is_before


@pytest.mark.parametrize("victim", [1, 3, 0], ids=["source", "middle", "end"])
def test_stopped_rank_is_an_error_of_all_others_in_time(start_ranks, victim):
    variables = {"src": 1, "victim": victim, "moment": 11, "number": signal.SIGSTOP}
    others = [rank for rank in (1, 2, 3, 0) if rank != victim]
    group = start_ranks(BREAK, 0, 1, 2, 3, **variables, limit=2)
    found = group.results(*others)
    for error, _, is_before in found:
        assert error[0] in ("TimeoutError", "ConnectionResetError")
        assert is_before
    # Where the machine is busy, the time may have passed before the rank stops.
    if victim not in group.left():
        assert any(error[0] == "TimeoutError" for error, _, _ in found)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_rank_that_only_opens_is_missed_too(start_ranks, number):
    code = """
kept = make() if rank == 0 else None
if rank == 2:
    os.kill(os.getpid(), number)
result = error_of(distributed.replicate, "w", timeout=limit), tshare.list() == [] or rank == 0
"""
    limit = 300 if number == signal.SIGKILL else 5
    found = start_ranks(code, 0, 1, 1, number=number, limit=limit).results(0, 1)
    for error, is_before in found:
        assert error[0] in ("TimeoutError", "ConnectionResetError")
        assert is_before
    assert "rank 2: " in found[0][0][2]


def test_late_rank_is_named_in_all(start_ranks, tmp_path):
    code = """
kept = make() if rank == 0 else None
if rank == 1:
    while not os.path.exists(go):
        time.sleep(0.01)
result = error_of(distributed.replicate, "w", timeout=1)
if rank == 0:
    open(go, "w")
"""
    first, late, third = start_ranks(code, 0, 1, 2, go=str(tmp_path / "go")).results()
    assert first[0] == "TimeoutError"
    assert "rank 1: has not called within 1 s" in first[2]
    # Where the machine is busy, the connection may be closed before the answer is read, or the
    # third have waited longer than rank 0.
    assert third[0] in ("TimeoutError", "ConnectionResetError")
    assert late[0] == "ConnectionResetError"


def test_dead_rank_is_told_of_before_late_ones_call(start_ranks, tmp_path):
    code = """
kept = make() if rank == 0 else None
if rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
if rank == 2:
    while not os.path.exists(go):
        time.sleep(0.01)
result = error_of(distributed.replicate, "w", timeout=300)
if rank == 0:
    open(go, "w")
"""
    for error in start_ranks(code, 0, 1, 2, 3, go=str(tmp_path / "go")).results(0, 2, 3):
        assert error[0] == "ConnectionResetError"


def test_unexpected_error_of_a_rank_is_one_of_all(start_ranks):
    code = """
kept = make() if rank == 0 else None
draft = distributed._draft
def wrong(*args):
    raise KeyError("wrong")
if rank == 1:
    distributed._draft = wrong
result = [error_of(distributed.replicate, "w")]
distributed._draft = draft
result.append(error_of(distributed.replicate, "w"))
"""
    (first, right), (own, _), third = start_ranks(code, 0, 1, 2).results()
    assert own[0] == "KeyError"
    assert first[0] == "RuntimeError"
    assert first[2].startswith("rank 1 on ")
    assert first[2].endswith(": KeyError('wrong')")
    assert third == [first, None]
    assert right is None


def test_messages_of_any_length_arrive_and_short_ones_in_one_piece(start_ranks):
    code = """
from tshare._distributed_call import _FRAME_BYTES, Call
call, found, pieces = Call(TorchEngine(None), None), [], []
isend = Call.isend
def counting(self, *args):
    pieces[-1] += 1
    return isend(self, *args)
Call.isend = counting
# Of a rank's message, and of the answer, which has all three.
lengths = [0, *range(320, 340), *range(_FRAME_BYTES - 12, _FRAME_BYTES + 2), 99999]
for length in lengths:
    pieces.append(0)
    found.append(call.exchange(str(rank) * length))
result = found, lengths, pieces
"""
    for rank, (found, lengths, pieces) in enumerate(start_ranks(code, 0, 1, 2).results()):
        assert found == [[str(each) * length for each in range(3)] for length in lengths]
        count = 1 if rank else 2
        assert [pieces[0], pieces[-1]] == [count, 2 * count]


def test_threads_keep_their_filters_of_warnings(start_ranks):
    code = """
import warnings
catch, warnings.catch_warnings = warnings.catch_warnings, None
result = TorchEngine.memory(None, bytearray(b"ab")).tolist()
warnings.catch_warnings = catch
warnings.simplefilter("error")
TorchEngine.memory(None, b"ab")
"""
    assert start_ranks(code, 0).results() == [[97, 98]]


def test_limit_is_that_of_the_group_without_another(start_ranks):
    code = """
import datetime
from tshare._distributed_call import Call
group = dist.new_group(timeout=datetime.timedelta(seconds=777))
result = [Call(TorchEngine(group), own).limit for own in (None, 5)]
"""
    assert start_ranks(code, 0, 1).results() == [[777, 5]] * 2


def test_region_that_is_replaced_meanwhile_is_an_error_of_all(start_ranks):
    code = """
kept = make() if rank == 0 else None
if rank == 1:
    open_region = distributed._open
    def late(*args):
        global kept
        kept = make(value=1)
        return open_region(*args)
    distributed._open = late
result = error_of(distributed.replicate, "w")
"""
    for error in start_ranks(code, 0, 0, 1).results():
        assert error[:2] == ["OSError", errno.ESTALE]


def test_flipped_bit_is_an_error_that_names_host_and_chunk(start_ranks):
    code = """
kept = make() if rank == 0 else None
if rank == 1:
    # The chunk before that is still there when the engine is asked for one more.
    whole, memory = TorchEngine.memory, None
    def remember(self, found):
        global memory
        held = whole(self, found)
        if isinstance(found, tshare.Region):
            memory = held
        return held
    TorchEngine.memory = remember
    wait, count = TorchEngine.wait, [0]
    def flip(self, work, seconds):
        wait(self, work, seconds)
        if memory is not None and not count[0]:
            count[0] = 1
            memory[5] ^= 64
    TorchEngine.wait = flip
result = [error_of(distributed.replicate, "w", chunk=CHUNK), tshare.list() == [] or rank == 0]
if rank == 1:
    memory, count[0] = None, 0
result.append(is_made(distributed.replicate("w", chunk=CHUNK, verify=False)))
"""
    found = start_ranks(code, 0, 1, 2).results()
    assert [is_right for *_, is_right in found] == [True, False, False]
    for error, is_before, _ in found:
        assert error[:2] == ["OSError", errno.EBADMSG]
        assert "rank 1 on " in error[2]
        assert "chunk 0 of 20, from byte 0 on, differs" in error[2]
        assert is_before


def test_group_can_be_used_after_an_error_of_the_arguments(start_ranks):
    code = """
kept = make() if rank == 0 else None
other = tshare.create("taken", 1) if rank == 2 else None
if rank == 0:
    make("taken")
    stream = tshare.Stream.create("stream", {"a": (1, "uint8")})
    pool = tshare.Pool.create("pool", size=1 << 16)
call = distributed.replicate
result = {
    "differs": error_of(call, "w", chunk=CHUNK if rank == 1 else 4096),
    "name": error_of(call, ["w"]),
    "name of one": error_of(call, 5 if rank == 2 else "w"),
    "src": error_of(call, "w", 3),
    "src as text": error_of(call, "w", "0"),
    "chunk of none": error_of(call, "w", chunk=0),
    "chunk": error_of(call, "w", chunk=4097),
    "timeout": error_of(call, "w", timeout=-1),
    "verify": error_of(call, "w", verify=1),
    "unknown": error_of(call, "unknown", 1),
    "taken": error_of(call, "taken"),
    "stream": error_of(call, "stream"),
    "pool": error_of(call, "pool"),
    "right": error_of(call, "w"),
}
"""
    found = start_ranks(code, 0, 1, 2).results()
    assert [each.pop("right") for each in found] == [None] * 3
    kinds = {key: {each[key][0] for each in found} for key in found[0]}
    assert {key for key, kind in kinds.items() if kind == {"TypeError"}} == {
        *("name", "name of one", "src as text", "verify")
    }
    assert {key for key, kind in kinds.items() if kind == {"FileExistsError"}} == {"taken"}
    assert {key for key, kind in kinds.items() if kind == {"FileNotFoundError"}} == {"unknown"}
    assert sum(kind == {"ValueError"} for kind in kinds.values()) == 7
    texts = {key: each[2] for key, each in found[1].items()}
    assert texts["differs"] == "chunk: rank 1 gives 65536, and rank 0 4096"
    own = socket.gethostname()
    assert texts["name of one"] == f"rank 2 on {own}: name: must be str, not int"
    assert "src: 3 is no rank" in texts["src"]
    assert "chunk: 0 is not a positive multiple of 4096" in texts["chunk of none"]
    assert "rank 2 on " in texts["taken"]
    assert "timeout: must be a positive number" in texts["timeout"]


def test_lack_of_room_on_a_host_is_an_error_of_all_that_names_it(start_ranks):
    code = """
import resource
kept = make() if rank == 0 else None
if rank == 2:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
result = error_of(distributed.replicate, "w"), rank == 0 or tshare.list() == []
"""
    *others, own = start_ranks(code, 0, 1, 2).results()
    for error, is_before in (*others, own):
        assert error[:2] == own[0][:2]
        assert is_before
    assert own[0][0] == "OSError"
    assert all("rank 2 on " in error[2] for error, _ in others)


def test_host_that_is_unknown_is_an_error_of_all(start_ranks):
    code = """
def unknown():
    raise OSError(2, "/proc is gone")
kept = make() if rank == 0 else None
if rank == 1:
    distributed.host_id = unknown
result = error_of(distributed.replicate, "w"), error_of(distributed.replicate, "w")
"""
    first, second = start_ranks(code, 0, 1).results()
    assert [each[0] for each in (*first, *second)] == ["FileNotFoundError"] * 4
    assert "/proc is gone" in first[1][2]


def test_process_without_a_group_is_told_how_to_make_one():
    from tshare import distributed

    with pytest.raises(ValueError, match="^group: torch.distributed is not initialized .*torchrun"):
        distributed.replicate("w")


FORKED = """
import json
def in_child(function):
    reader, writer = os.pipe()
    if not (pid := os.fork()):
        # Nobody else ends it if the test fails.
        signal.alarm(100)
        os.write(writer, json.dumps(function()).encode())
        os._exit(0)
    os.close(writer)
    with open(reader) as file:
        found = json.loads(file.read())
    os.waitpid(pid, 0)
    return found
"""


def test_child_by_fork_is_told_that_the_group_is_its_parent_s(start_ranks):
    code = """
part = dist.new_group([0, 1])
kept = make() if rank == 0 else None
def replicate():
    return [error_of(distributed.replicate, "w", 0, group) for group in (None, part)]
result = [in_child(replicate), error_of(distributed.replicate, "w", 0, part)]
"""
    for errors, right in start_ranks(FORKED + code, 0, 1).results():
        assert [error[0] for error in errors] == ["ValueError"] * 2
        assert "group: was made before fork() and works in the parent alone" in errors[0][2]
        assert right is None


def test_child_by_fork_may_make_a_group(start_ranks):
    code = """
def replicate():
    kept = make()
    if size > 1:
        dist.destroy_process_group()
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    return error_of(distributed.replicate, "w")
result = in_child(replicate)
dist.barrier()
"""
    assert start_ranks(FORKED + code, 0, 1).results() == [None, None]


def test_group_without_a_backend_for_the_cpu_is_told_how_to_make_one(start_ranks):
    code = """
import torch
if not hasattr(dist.group.WORLD, "_get_backend"):
    result = None
else:
    group = dist.new_group(backend="cuda:gloo")
    kept = make() if rank == 0 else None
    result = [error_of(distributed.replicate, "w", 0, group),
              error_of(distributed.replicate, "w", 0, dist.new_group(backend="gloo"))]
"""
    found = start_ranks(code, 0, 1).results()
    if found[0] is None:
        pytest.skip("before PyTorch 2.0 a group has one backend")
    for wrong, right in found:
        assert right is None
        assert wrong[0] == "ValueError"
        assert "new_group(backend='gloo')" in wrong[2]


def test_group_may_be_a_part_of_the_ranks_in_which_src_is_counted(start_ranks):
    code = """
group = dist.new_group([1, 3])
if rank == 1:
    kept = make(value=3)
result = error_of(distributed.replicate, "w", 0, group)
if rank in (1, 3):
    result = is_made(tshare.Region.open("w"), 3)
dist.barrier()
"""
    one, two, three, four = start_ranks(code, 0, 1, 2, 3).results()
    assert one == three
    assert one[0] == "ValueError"
    assert "none of its ranks" in one[2]
    assert two
    assert four


def test_group_that_is_something_else_is_a_type_error(start_ranks):
    code = 'result = error_of(distributed.replicate, "w", 0, "gloo")'
    for error in start_ranks(code, 0, 1).results():
        assert error[0] == "TypeError"
        assert "group: must be a group of torch.distributed" in error[2]
