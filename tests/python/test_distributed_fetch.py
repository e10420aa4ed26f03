# SPDX-License-Identifier: MIT
"""tshare.distributed.fetch() and give(), with gloo."""

import errno
import signal

import pytest

from support import hosts_are_folders, need

need("torch")

pytestmark = [pytest.mark.imports_torch, hosts_are_folders]

BEGIN = """
from tshare.distributed import fetch, give
"""


@pytest.fixture
def start(start_ranks):
    return lambda code, *hosts, **variables: start_ranks(BEGIN + code, *hosts, **variables)


@pytest.mark.parametrize("hosts", [(0, 1), (0, 1, 1), (2, 0, 1, 2)], ids=str)
@pytest.mark.parametrize("peer", [0, 1])
def test_rank_fetches_what_another_gives_while_others_do_something_else(start, hosts, peer):
    code = """
result = True
if rank == peer:
    kept = make(value=3, lifetime="users", mode=0o640)
    assert give("w", 1 - peer) is None
elif rank == 1 - peer:
    region = fetch("w", peer, chunk=CHUNK)
    info, opened = region.info(), tshare.Region.open("w")
    result = [region.readonly, is_made(region, 3), opened.id == region.id, info.mode, info.lifetime]
dist.barrier()
if rank > 1:
    # Ranks that are on a host of one of the two find the name there.
    result = [each.name for each in tshare.list()]
"""
    found = start(code, *hosts, peer=peer).results()
    assert found[1 - peer] == [True, True, True, 0o640, "users"]
    assert found[2:] == [["w"] if host in hosts[:2] else [] for host in hosts[2:]]


def test_chain_of_hosts_fetches_one_after_another(start):
    code = """
kept = make() if rank == 0 else fetch("w", rank - 1, chunk=CHUNK)
if rank + 1 < size:
    give("w", rank + 1)
result = is_made(kept)
"""
    assert start(code, 0, 1, 2, 3).results() == [True] * 4


def test_ranks_of_one_host_have_one_region(start):
    code = """
if rank == 0:
    kept = make()
    give("w", 1)
else:
    kept = fetch("w", 0)
result = kept.id
"""
    first, second = start(code, 0, 0).results()
    assert first == second


def test_ranks_are_counted_in_the_group(start):
    code = """
group = dist.new_group([1, 3])
if rank == 1:
    kept = make(value=3)
    give("w", 1, group)
elif rank == 3:
    kept = fetch("w", 0, group)
    result = is_made(kept, 3)
dist.barrier()
"""
    assert start(code, 0, 1, 2, 3).results()[3] is True


def test_mistake_is_an_error_of_both_and_the_group_goes_on(start):
    code = """
kept = [make(), make("taken")] if rank == 0 else [make("taken")]
stream = tshare.Stream.create("stream", {"a": (1, "uint8")}) if rank == 0 else None
names = sorted(each.name for each in tshare.list())
def call(name, other=None, **options):
    if rank == 0:
        return error_of(give, other or name, 1)
    return error_of(fetch, name, 0, **options)
result = {
    "name": call("w", "v"),
    "kind": call(5),
    "unknown": call("unknown"),
    "taken": call("taken"),
    "stream": call("stream"),
    "chunk": call("w", chunk=0),
    "replace": call("w", replace=1),
    "both fetch": error_of(fetch, "w", 1 - rank),
    "both give": error_of(give, "w", 1 - rank),
    "all": error_of(distributed.replicate, "w") if rank == 0 else error_of(fetch, "w", 0),
}
result["names"] = names == sorted(each.name for each in tshare.list())
result["right"] = call("w", timeout=100)
result["again"] = call("taken", replace=True)
"""
    first, second = start(code, 0, 1).results()
    for key in ("names", "right", "again"):
        assert [first.pop(key), second.pop(key)] == [key == "names" or None] * 2
    assert {key: each[0] for key, each in first.items()} == {
        key: each[0] for key, each in second.items()
    }
    kinds = {key: each[0] for key, each in first.items()}
    assert kinds.pop("unknown") == "FileNotFoundError"
    assert kinds.pop("taken") == "FileExistsError"
    assert {kinds.pop("kind"), kinds.pop("replace")} == {"TypeError"}
    assert {*kinds.values()} == {"ValueError"}
    assert second["name"][2] == "name: rank 1 gives 'w', and rank 0 'v'"
    assert second["unknown"][2].startswith("[Errno 2] rank 0 on ")
    assert "rank 1 on " in first["taken"][2]
    assert first["both fetch"][2] == "rank 1 calls fetch(), and rank 0 fetch(), which needs give()"
    assert first["both give"][2] == "rank 1 calls give(), and rank 0 give(), which needs fetch()"
    assert first["all"][2].endswith("replicate(), which needs replicate()")


LIAR = """
from tshare._distributed_call import Call
def tell(**more):
    agree = Call.agree
    def lie(self, mine):
        if "given" in mine:
            mine = {**mine, "given": {**mine["given"], **more}}
        return agree(self, mine)
    Call.agree = lie
"""


def test_giver_s_region_keeps_its_name_whatever_is_fetched(start):
    code = """
kept = make() if rank == 0 else None
if rank == 1:
    tell(dim=0, replace=True)
    result = is_made(fetch("w", 0, chunk=CHUNK))
else:
    result = error_of(give, "w", 1), [each.id for each in tshare.list()] == [kept.id]
"""
    assert start(LIAR + code, 0, 1).results() == [[None, True], True]


@pytest.mark.parametrize(
    ("key", "value"), [("chunk", 0), ("chunk", "4096"), ("verify", 1), ("replace", None)]
)
def test_giver_checks_what_the_other_asks_for(start, key, value):
    code = """
kept = make() if rank == 0 else None
if rank == 1:
    tell(**{key: value})
result = error_of(fetch, "w", 0) if rank else error_of(give, "w", 1)
result = result, rank == 0 or tshare.list() == []
"""
    for error, is_before in start(LIAR + code, 0, 1, key=key, value=value).results():
        assert error[0] in ("TypeError", "ValueError")
        assert f"{key}: " in error[2]
        assert is_before


def test_errors_name_the_rank_in_the_group(start):
    code = """
kept = make() if rank == 3 else None
if rank == 2:
    kept = make()
if rank > 1:
    result = [error_of(give, name, 2) if rank == 3 else error_of(fetch, "w", 3) for name in "wv"]
"""
    *_, (_, own), (taken, other) = start(code, 0, 1, 2, 3).results()
    assert taken[0] == "FileExistsError"
    assert "rank 2 on " in taken[2]
    assert own[2] == other[2] == "name: rank 3 gives 'v', and rank 2 'w'"


@pytest.mark.parametrize("call", ["fetch", "give"])
def test_peer_that_is_no_other_rank_is_refused_at_once(start, call):
    code = """
call = fetch if call == "fetch" else give
result = [error_of(call, "w", peer) for peer in (-1, 2, rank, "0", True, None)]
"""
    for errors in start(code, 0, 1, call=call).results():
        kinds = [error[0] for error in errors]
        assert kinds == ["ValueError"] * 3 + ["TypeError"] * 3
        assert "no other rank of the group, which has 2" in errors[0][2]


def test_giver_may_wait_for_a_late_rank(start, tmp_path):
    code = """
if rank == 0:
    kept = make()
    open(go, "w")
    give("w", 1, timeout=200)
else:
    while not os.path.exists(go):
        time.sleep(0.01)
    time.sleep(0.5)
    result = is_made(fetch("w", 0, timeout=100))
"""
    assert start(code, 0, 1, go=str(tmp_path / "go")).results()[1] is True


@pytest.mark.parametrize("call", ["fetch", "give"])
def test_silent_peer_is_an_error_that_names_it(start, call):
    code = """
kept = make() if rank == 1 else None
if rank == 1:
    call = fetch if call == "fetch" else give
    result = error_of(call, "w", 2, timeout=1)
"""
    _, error, _ = start(code, 0, 1, 2, call=call).results()
    assert error[0] == "TimeoutError"
    assert "rank 2" in error[2]


def test_other_groups_go_on_when_one_of_a_pair_has_lost_its_peer(start):
    code = """
pair = dist.new_group([0, 1])
kept = make() if rank == 0 else None
result = error_of(give, "w", 1, pair, timeout=0.5) if rank == 0 else None
region = distributed.replicate("w")
dist.barrier()
"""
    error, *others = start(code, 0, 1, 2).results()
    assert error[0] == "TimeoutError"
    assert others == [None, None]


def test_flipped_bit_is_an_error_of_both(start):
    code = """
if rank == 0:
    kept = make()
    result = [error_of(give, "w", 1), True, error_of(give, "w", 1)]
else:
    flip_a_bit(7)
    result = [error_of(fetch, "w", 0, chunk=CHUNK), tshare.list() == []]
    flip_a_bit(7)
    result.append(error_of(fetch, "w", 0, chunk=CHUNK, verify=False))
"""
    for error, is_before, unseen in start(code, 0, 1).results():
        assert error[:2] == ["OSError", errno.EBADMSG]
        assert "rank 1 on " in error[2]
        assert "chunk 6 of 20, from byte 393216 on, differs" in error[2]
        assert is_before
        assert unseen is None


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
@pytest.mark.parametrize("moment", [1, 10, 20])
@pytest.mark.parametrize("victim", [0, 1], ids=["giver", "fetcher"])
def test_lost_peer_is_an_error_and_leaves_the_name(start, victim, moment, number):
    code = """
kept = make() if rank == 0 else None
if rank == victim:
    def stop(memory):
        os.kill(os.getpid(), number)
        time.sleep(1)
    # The giver knows the chunk from its peer.
    on_chunk(moment, stop, "irecv" if rank else "isend")
if rank == 0:
    result = error_of(give, "w", 1, timeout=limit), True
else:
    result = error_of(fetch, "w", 0, chunk=CHUNK, timeout=limit), tshare.list() == []
"""
    limit = 300 if number == signal.SIGKILL else 3
    group = start(code, 0, 1, victim=victim, moment=moment, number=number, limit=limit)
    ((error, is_before),) = group.results(1 - victim)
    assert error[0] in ("ConnectionResetError", "TimeoutError")
    assert number == signal.SIGSTOP or error[0] == "ConnectionResetError"
    assert f"rank {victim} on " in error[2]
    assert is_before
