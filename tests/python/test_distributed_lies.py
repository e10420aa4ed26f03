# SPDX-License-Identifier: MIT
"""tshare.distributed with a rank that says something else than it should."""

import errno

import pytest

from support import hosts_are_folders, need

need("torch")

pytestmark = [pytest.mark.imports_torch, hosts_are_folders]

LIAR = """
from tshare._distributed_call import Call
agree, send = Call.agree, Call._send
def lie(**lies):
    Call.agree = lambda self, mine: agree(self, {key: lies.get(key, mine[key]) for key in mine})
"""


def test_length_that_no_message_has_is_an_error_of_all_at_once(start_ranks):
    code = """
kept = make() if rank == 0 else None
if rank == 1:
    def lie(self, content, peer):
        return [self.isend(self.engine.memory(bytearray([255] * 8)), peer)]
    Call._send = lie
begin = time.monotonic()
error = error_of(distributed.replicate, "w", timeout=300)
result = error, time.monotonic() - begin, len(threading.enumerate())
"""
    group = start_ranks(LIAR + code, 0, 1, 2)
    for error, took, threads in group.results(0, 2):
        assert error[0] in ("OSError", "ConnectionResetError")
        assert took < 200
        assert threads == 1
    ((error, *_),) = group.results(0)
    assert error[1] == errno.EPROTO
    assert "rank 1: announces 18446744073709551615 bytes" in error[2]


def test_rank_of_another_version_is_an_error_of_all(start_ranks):
    code = """
kept = make() if rank == 0 else None
if rank == 1:
    Call.agree = lambda self, mine: agree(self, {**mine, "more": 1})
result = error_of(distributed.replicate, "w")
"""
    first, _, third = start_ranks(LIAR + code, 0, 1, 2).results()
    assert first == third
    assert first[:2] == ["OSError", errno.EPROTO]
    assert "rank 1: gives what this version of tshare can't read" in first[2]


def test_argument_that_one_rank_alone_gives_is_an_error_of_all(start_ranks):
    code = """
kept = make() if rank == 0 else None
if rank == 2:
    check = distributed._check
    def add(given, size):
        check(given, size)
        given["dim"] = 0
    distributed._check = add
result = error_of(distributed.replicate, "w", replace=True)
"""
    for error in start_ranks(code, 0, 1, 2).results():
        assert error[0] == "ValueError"
        assert error[2] == "dim: rank 2 gives 0, and rank 0 None"


@pytest.mark.parametrize("sums", [[], [1] * 20, [1] * 21, None, 5, {"a": 1}], ids=str)
def test_sums_that_are_none_are_an_error_of_all_and_leave_the_names(start_ranks, sums):
    code = """
kept = make() if rank == 0 else None
if rank == 0:
    lie(sum=sums, sums=sums)
result = [error_of(distributed.replicate, "w", chunk=CHUNK), rank == 0 or tshare.list() == []]
Call.agree = agree
result.append(error_of(distributed.replicate, "w"))
"""
    for error, is_before, again in start_ranks(LIAR + code, 0, 1, 2, sums=sums).results():
        assert error[0] in ("OSError", "TypeError")
        assert is_before
        assert again is None
