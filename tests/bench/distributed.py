# SPDX-License-Identifier: MIT
"""tshare.distributed.replicate() against a socket and gloo's broadcast.

Prints rows in the format of pair.h. usage: distributed.py [ROUNDS]

Hosts are folders of shared memory and, for links of some rate, network namespaces on a bridge (see
tests/python/networks.py). A transfer lasts from when all ranks begin until the last one has all.
The socket's other end receives with recv_into() in a region that is made for it, from one host to
one other, also where there are four: that is how long one link takes.
"""

import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

import networks  # noqa: E402
from ranks import Server  # noqa: E402

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 7

# The ranks' program. Each way leaves when this rank began and when it ended.
CODE = """
import socket, time
import torch
import tshare
from tshare import distributed

def receive(listener, size):
    region = tshare.Region.create("copy", {"a": (size, "uint8")}, draft=True, lifetime="users")
    view, there = memoryview(region), 0
    with listener.accept()[0] as connection:
        while there < size:
            there += connection.recv_into(view[there : there + chunk])
    region.finish()
    view.release()
    region.close()

def by_socket():
    if rank == 0:
        with socket.create_connection((address, port)) as connection, memoryview(kept) as view:
            for start in range(0, size, chunk):
                connection.sendall(view[start : start + chunk])
    elif rank == 1:
        receive(listener, size)

def by_broadcast():
    if rank == 0:
        dist.broadcast(torch.from_dlpack(kept["a"]), 0)
    else:
        with tshare.Region.create("copy", {"a": (size, "uint8")}, lifetime="users") as region:
            dist.broadcast(torch.from_dlpack(region["a"]), 0)

def by_replicate(verify):
    region = distributed.replicate("w", verify=verify, chunk=chunk)
    if rank:
        region.close()

ranks = dist.get_world_size()
ways = {
    "unverified": lambda: by_replicate(False),
    "verified": lambda: by_replicate(True),
    "socket": by_socket,
    "broadcast": by_broadcast,
}
kept = None
if rank == 0:
    kept = tshare.Region.create("w", {"a": (size, "uint8")}, lifetime="users")
    kept["a"].numpy()[:] = 7
box = [None]
if rank == 1:
    listener = socket.create_server((address, 0))
    box = [listener.getsockname()[1]]
dist.broadcast_object_list(box, 1)
port = box[0]
result = {way: [] for way in ways}
for _ in range(rounds + 1):
    for way, move in ways.items():
        dist.barrier()
        begin = time.monotonic()
        move()
        result[way].append([begin, time.monotonic()])
"""


def measure(server, work, hosts, address, size, **variables):
    """Return the median seconds of each way, without the first round."""
    folders = [work / f"host{number}" for number in range(hosts)]
    for folder in folders:
        folder.mkdir(mode=0o700)
    started = server.start(CODE, folders, work, address=address, size=size, **variables)
    found = started.results()
    started.end()
    medians = {}
    for way in found[0]:
        rounds = [[rank[way][number] for rank in found] for number in range(1, ROUNDS + 1)]
        medians[way] = statistics.median(
            max(end for _, end in each) - min(begin for begin, _ in each) for each in rounds
        )
    return medians


def rows(title, medians):
    for ours, aim in (("unverified", 1 / 0.9), ("verified", 1 / 0.85)):
        for other, name in (("socket", "recv_into()"), ("broadcast", "gloo's broadcast")):
            a, b = medians[ours], medians[other]
            goal = f"{aim:.2f}" if other == "socket" else "-"
            print(f"{title}, {ours}\t{name}\t{a:.9f}\t{b:.9f}\t{a / b:.3f}\t{goal}", flush=True)


def compare(title, hosts, megabytes, chunk=4 << 20, rate=None):
    with tempfile.TemporaryDirectory(prefix="bench-distributed-", dir="/dev/shm") as work:
        server = Server(hosts if rate else 0, rate)
        options = {"networks": range(hosts)} if rate else {}
        address = networks.address(1) if rate else "127.0.0.1"
        options.update(size=megabytes << 20, chunk=chunk, rounds=ROUNDS)
        rows(title, measure(server, Path(work), hosts, address, **options))
        server.close()


if __name__ == "__main__":
    compare("replicate 256 MiB, 2 hosts on loopback", 2, 256)
    for rate, megabytes in (("200mbit", 32), ("1gbit", 128)):
        if reason := networks.missing(rate):
            print(f"# {rate}: {reason}", file=sys.stderr)
        else:
            # There are few chunks of 4 MiB, of which each host adds the time of one.
            title = f"replicate {megabytes} MiB by 1 MiB, 4 hosts at {rate}/s"
            compare(title, 4, megabytes, 1 << 20, rate)
