# SPDX-License-Identifier: MIT
"""tshare.distributed with MPI."""

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support import hosts_are_folders, need, run

need("mpi4py")  # without MPI, which would start here

pytestmark = [pytest.mark.slow_in_guests, hosts_are_folders]

# A busy machine starts Python four times.
TIMEOUT = 300

# Each rank leaves its variable result in a file.
BEGIN = """
import json, os, sys, time
import numpy as np
from mpi4py import MPI
import tshare
from tshare import distributed
world = MPI.COMM_WORLD
rank, folder = world.rank, sys.argv[1]
def error_of(*args, **options):
    try:
        distributed.replicate(*args, **options)
    except Exception as error:
        return [type(error).__name__, getattr(error, "errno", None), str(error)]
"""
END = """
with open(f"{folder}/result{rank}", "w") as file:
    json.dump(result, file)
"""


@pytest.fixture
def mpiexec(tmp_path):
    """A function that runs code in ranks, each on the host of that number; returns the results."""

    def mpiexec(code, *hosts, status=0):
        command = [shutil.which("mpiexec", path=Path(sys.executable).parent)]
        for number, host in enumerate(hosts):
            folder = tmp_path / f"host{host}"
            folder.mkdir(mode=0o700, exist_ok=True)
            variable = f"TSHARE_SHM_DIR={folder}"
            program = [sys.executable, "-c", BEGIN + code + END, tmp_path]
            command += [*([":"] if number else []), "-n", "1", "env", variable, *program]
        # MPICH then takes every other process for one of another host's.
        env = {**os.environ, "MPIR_CVAR_ODD_EVEN_CLIQUES": "1"}
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, env=env)
        assert (done.returncode == 0) == (status == 0), done.stdout + done.stderr
        files = [tmp_path / f"result{rank}" for rank in range(len(hosts))]
        return [json.loads(file.read_text()) if file.exists() else None for file in files]

    yield mpiexec
    for host in tmp_path.glob("host*"):
        # A process that looks removes the names of killed ones.
        run("import tshare; tshare.list()", env={**os.environ, "TSHARE_SHM_DIR": str(host)})
        assert [*host.iterdir()] == []


def test_each_rank_gets_the_region_and_each_host_has_one_copy(mpiexec):
    code = """
result, keep = [], []
for src in range(world.size):
    name = f"from{src}"
    if rank == src:
        keep.append(tshare.Region.create(name, {"a": np.arange(src, src + 100_000)}))
    region = distributed.replicate(name, src, world, chunk=1 << 16)
    keep.append(region)
    right = bool((region["a"].numpy() == np.arange(src, src + 100_000)).all())
    result.append([region.readonly, right, region.id])
world.Barrier()
"""
    hosts = (0, 1, 0, 2)
    found = mpiexec(code, *hosts)
    for src in range(len(hosts)):
        assert {(*each[src][:2],) for each in found} == {(True, True)}
        ids = {(host, each[src][2]) for host, each in zip(hosts, found, strict=True)}
        assert len(ids) == len(set(hosts))


def test_each_host_gets_its_rows(mpiexec):
    code = """
whole = np.arange(70_000, dtype="int32").reshape(7, 10_000)
keep = tshare.Region.create("w", {"a": whole}) if rank == 1 else None
result = []
for dim in range(2):
    region = distributed.scatter("w", 1, world, dim=dim, chunk=8192, replace=True)
    mine = np.array_split(whole, 3, dim)[[0, 1, 0, 2][rank]]
    result.append(bool((region["a"].numpy() == mine).all()))
    if rank == 1:
        keep = tshare.Region.create("w", {"a": whole}, exist_ok=True)
world.Barrier()
"""
    assert mpiexec(code, 0, 1, 0, 2) == [[True, True]] * 4


def test_rank_fetches_what_another_gives(mpiexec):
    code = """
result = True
if rank == 2:
    keep = tshare.Region.create("w", {"a": np.arange(100_000)})
    distributed.give("w", 1, world)
elif rank == 1:
    region = distributed.fetch("w", 2, world, chunk=1 << 16)
    result = bool((region["a"].numpy() == np.arange(100_000)).all())
world.Barrier()
"""
    assert mpiexec(code, 0, 1, 2) == [True] * 3


def test_region_is_a_window(mpiexec):
    code = """
region = tshare.Region.create("w", {"a": np.full(100_000, rank)})
window = MPI.Win.Create(memoryview(region), comm=world)
found = np.empty(100_000, "int64")
other = 1 - rank
window.Lock(other)
window.Get(found, other)
window.Unlock(other)
world.Barrier()
window.Lock(other)
window.Put(np.full(100_000, 7 + rank), other)
window.Unlock(other)
world.Barrier()
result = [bool((found == other).all()), bool((region["a"].numpy() == 7 + other).all())]
window.Free()
"""
    assert mpiexec(code, 0, 1) == [[True, True]] * 2


def test_communicator_can_be_used_after_an_error_of_the_arguments(mpiexec):
    code = """
class Own(MPI.Intracomm):
    pass
part = world.Split(MPI.UNDEFINED if rank == 2 else 0)
keep = tshare.create("w", 5000) if rank == 0 else None
result = [
    error_of("w", rank % 2, world),
    error_of("unknown", 0, world),
    error_of("w", 0, part),
    error_of("w", 0, MPI.COMM_NULL),
    error_of("w", 0, MPI.Group()),
    error_of("w", 0, world, replace=True),
    error_of("w", 0, Own(world), replace=True),
]
"""
    found = mpiexec(code, 0, 1, 2)
    for rank, (differs, unknown, part, null, group, *right) in enumerate(found):
        assert differs[0] == "ValueError"
        assert differs[2] == "src: rank 1 gives 1, and rank 0 0"
        assert unknown[:2] == ["FileNotFoundError", errno.ENOENT]
        assert part is None if rank < 2 else part[0] == "ValueError"
        assert "none of its ranks" in null[2]
        assert group[0] == "TypeError"
        assert right == [None, None]


def test_late_rank_is_named_and_silence_ends_in_time(mpiexec):
    code = """
keep = tshare.create("w", 5000) if rank == 0 else None
if rank == 1:
    while not os.path.exists(f"{folder}/go"):
        time.sleep(0.01)
result = error_of("w", 0, world, timeout=1)
open(f"{folder}/go{rank}", "w")
if rank == 0:
    while not os.path.exists(f"{folder}/go2"):
        time.sleep(0.01)
    open(f"{folder}/go", "w")
"""
    first, late, third = mpiexec(code, 0, 1, 2)
    # Where the machine is busy, rank 0's answer may come too late.
    assert third[:2] == first[:2]
    assert first[:2] == ["TimeoutError", errno.ETIMEDOUT]
    assert "rank 1: has not called within 1 s" in first[2]
    assert late[0] == "TimeoutError"


def test_communicator_in_which_a_call_has_failed_is_refused(mpiexec):
    code = """
keep = tshare.create("w", 5000) if rank == 0 else None
other = world.Dup()
result = [error_of("w", 0, world, timeout=0.1) if rank == 0 else None]
if rank == 0:
    result.append(error_of("w", 0, world, timeout=0.1))
    result.append(error_of("w", 0, other))
else:
    result.append(error_of("w", 0, other))
"""
    (first, again, right), (_, other) = mpiexec(code, 0, 1)
    assert first[0] == "TimeoutError"
    assert again[0] == "ConnectionError"
    assert "Dup()" in again[2]
    assert right is None
    assert other is None


def test_child_by_fork_is_told_that_mpi_is_its_parent_s(mpiexec):
    code = """
keep = tshare.create("w", 5000) if rank == 0 else None
if not (pid := os.fork()):
    error = error_of("w", 0, world)
    os._exit(error is not None and "group: was made before fork()" in error[2])
result = [os.waitpid(pid, 0)[1] >> 8, error_of("w", 0, world)]
"""
    assert mpiexec(code, 0, 1) == [[1, None]] * 2


def test_killed_rank_leaves_no_half_region(mpiexec):
    code = """
from tshare._distributed_mpi import MpiEngine
keep = tshare.create("w", 1 << 20) if rank == 0 else None
if rank == 1:
    begin, count = MpiEngine.irecv, [0]
    def killed(self, memory, peer):
        count[0] += len(memory) == 65536
        if count[0] == 9:
            os.kill(os.getpid(), 9)
        return begin(self, memory, peer)
    MpiEngine.irecv = killed
result = error_of("w", 0, world, chunk=65536, timeout=60)
"""
    # mpiexec ends all.
    found = mpiexec(code, 0, 1, 2, status=1)
    assert found[1] is None
