# SPDX-License-Identifier: MIT
"""Ranks of torch.distributed for tests: children of one process that has imported PyTorch once.

A host is a folder of shared memory and, if asked, a network namespace (networks.py). To start
PyTorch anew in each rank takes seconds.
"""

import json
import os
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path

import networks

# A busy machine may stop all ranks for a while.
PATIENCE = 120

# What code of ranks may begin with.
BEGIN = """
import os, signal, threading, time
import numpy as np
from tshare import distributed
from tshare._distributed_torch import TorchEngine

CHUNK = 1 << 16

def make(name="w", value=0, size=20 * CHUNK, **options):
    draft = tshare.Region.create(
        name, {"a": (size, "uint8")}, draft=True, exist_ok=True, **options)
    draft["a"].numpy()[:] = np.arange(size) + value
    draft.finish()
    return draft

def is_made(region, value=0):
    a = region["a"].numpy()
    return bool((a == (np.arange(a.size) + value).astype("uint8")).all())

def error_of(call, *args, **options):
    try:
        call(*args, **options)
    except Exception as error:
        return [type(error).__name__, getattr(error, "errno", None), str(error)]

def on_chunk(number, function, call="irecv", size=CHUNK):
    # Call a function when the engine is asked for the chunk of that number.
    begin, count = getattr(TorchEngine, call), [0]
    def counting(self, memory, peer):
        count[0] += memory.numel() == size
        if count[0] == number and memory.numel() == size:
            function(memory)
        return begin(self, memory, peer)
    setattr(TorchEngine, call, counting)

def flip_a_bit(number, size=CHUNK):
    # Flip a bit of the chunk of that number when it has come.
    wait, irecv, asked, count = TorchEngine.wait, TorchEngine.irecv, {}, [0]
    def remember(self, memory, peer):
        work = irecv(self, memory, peer)
        asked[id(work)] = memory
        return work
    def flip(self, work, seconds):
        wait(self, work, seconds)
        memory = asked.pop(id(work), None)
        if memory is not None and memory.numel() == size:
            count[0] += 1
            if count[0] == number:
                memory[5] ^= 64
    TorchEngine.irecv, TorchEngine.wait = remember, flip
"""


class Started:
    """Ranks that run the same code. Each leaves its variable result."""

    def __init__(self, server, folder, pids):
        self.server, self.folder, self.pids = server, folder, pids

    def results(self, *ranks):
        """Return what those ranks have left, by default all; waits for it."""
        ranks = ranks or range(len(self.pids))
        until = time.monotonic() + PATIENCE
        left = self.left()
        while missing := set(ranks) - left.keys():
            assert time.monotonic() < until, f"ranks that have left nothing: {missing}"
            time.sleep(0.01)
            left = self.left()
        return [left[rank] for rank in ranks]

    def left(self):
        """Return what ranks have left so far, by rank; fails if one has an error."""
        found = {}
        for rank in range(len(self.pids)):
            file = self.folder / f"result{rank}"
            if file.exists():
                found[rank], error = json.loads(file.read_text())
                assert error is None, error
        return found

    def end(self):
        """Kill all ranks."""
        if self.pids:
            self.server.ask({"kill": self.pids})
        self.pids = []


class Server:
    """The process whose children are the ranks."""

    def __init__(self, hosts=0, rate=None):
        """Start it, with hosts that are network namespaces, if asked, and links of that rate."""
        own = networks.OWN if hosts else []
        self.process = subprocess.Popen(
            [*own, sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        if hosts:
            self.networks = self.ask({"network": [hosts, rate]})

    def ask(self, task):
        print(json.dumps(task), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def start(self, code, hosts, folder, networks=(), **variables):
        """Run code in ranks, one for each folder in hosts, which is that rank's shared memory.

        The numbers of their hosts, if these are namespaces, are networks.
        """
        task = {"code": code, "hosts": [*map(str, hosts)], "folder": str(folder)}
        task["networks"] = [self.networks[number] for number in networks]
        return Started(self, folder, self.ask({**task, "variables": variables}))

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def leave(folder, rank, found):
    file = Path(folder, f"result{rank}")
    file.with_suffix(".new").write_text(json.dumps(found))
    file.with_suffix(".new").rename(file)


def run(task, rank):
    import torch.distributed as dist

    import tshare.distributed

    os.environ["TSHARE_SHM_DIR"] = task["hosts"][rank]
    if task["networks"]:
        networks.enter(task["networks"][rank])
        os.environ["GLOO_SOCKET_IFNAME"] = networks.INTERFACE
    size = len(task["hosts"])
    scope = {"rank": rank, "size": size, "dist": dist, "tshare": tshare, **task["variables"]}
    error = None
    try:
        if size > 1:
            store = dist.FileStore(f"{task['folder']}/store", size)
            dist.init_process_group("gloo", store=store, rank=rank, world_size=size)
            # A rank that ended before could not be connected to.
            store.set(f"connected{rank}", "")
            store.wait([f"connected{each}" for each in range(size)])
        exec(task["code"], scope)
    except Exception:
        error = traceback.format_exc()
    leave(task["folder"], rank, [scope.get("result"), error])
    # Names and connections stay until the test has looked.
    while True:
        signal.pause()


def end(pids):
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    for pid in pids:
        os.waitpid(pid, 0)


def answer(task, alive):
    if "network" in task:
        hosts = networks.make(*task["network"])
        alive.update(hosts)
        print(json.dumps(hosts), flush=True)
        return
    if "run" in task:
        print(json.dumps(networks.run(*task["run"])), flush=True)
        return
    ended = task.get("kill", [])
    end(ended)
    alive.difference_update(ended)
    pids = []
    for rank in range(len(task.get("hosts", []))):
        pids.append(os.fork())
        if not pids[-1]:
            alive.clear()
            # Nothing that a rank prints may get among the answers.
            os.dup2(2, 1)
            run(task, rank)
        alive.add(pids[-1])
    print(json.dumps(pids), flush=True)


def serve():
    import torch  # noqa: F401

    import tshare.distributed  # noqa: F401

    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    alive = set()
    try:
        for line in sys.stdin:
            answer(json.loads(line), alive)
    finally:
        # The test may have been killed.
        end(alive)


if __name__ == "__main__":
    serve()
