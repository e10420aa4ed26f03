# SPDX-License-Identifier: MIT
"""tshare.distributed between two machines, each of which has a kernel and a /dev/tshare of its own.

usage: machines.py RANK

Runs on both at once, where one network interface joins them: see tests/runner/run. Prints TAP. A
check may fail on one machine alone.
"""

import os
import subprocess
import sys
import time
import traceback
from datetime import timedelta

import torch.distributed as dist

import tshare.distributed
from ranks import BEGIN

RANK = int(sys.argv[1])
ADDRESSES = ["10.11.12.1", "10.11.12.2"]
INTERFACE = next(name for name in os.listdir("/sys/class/net") if name != "lo")

# Emulated machines on a busy one import PyTorch minutes apart.
PATIENCE = timedelta(minutes=10)

scope = {"tshare": tshare}
exec(BEGIN, scope)
make, is_made, error_of, on_chunk = map(scope.get, ("make", "is_made", "error_of", "on_chunk"))
replicate, CHUNK = tshare.distributed.replicate, scope["CHUNK"]


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def each(value):
    """Return the values of both machines."""
    found = [None, None]
    dist.all_gather_object(found, value)
    return found


def machines_are_hosts():
    ids = each(tshare.host_id())
    assert ids[0] != ids[1], ids


def device_takes_from_the_other_machines_device():
    for src in (0, 1):
        kept = make(f"from{src}", src, mode=0o640) if RANK == src else None
        region = replicate(f"from{src}", src, chunk=CHUNK)
        del kept
        assert is_made(region, src)
        assert region.info().mode == 0o640


def readers_keep_their_version_when_the_next_takes_the_name():
    kept = make("weights", 1) if RANK == 0 else None
    first = replicate("weights", chunk=CHUNK)
    dist.barrier()
    if RANK == 0:
        kept = make("weights", 2)
    second = replicate("weights", replace=True, chunk=CHUNK)
    del kept
    assert is_made(first, 1)
    assert is_made(second, 2)
    assert is_made(tshare.Region.open("weights", readonly=True, other_than=first), 2)


def shared_memory_and_the_device_take_from_each_other():
    for src in (0, 1):
        kept = make(f"mixed{src}", src) if RANK == src else None
        region = replicate(f"mixed{src}", src, chunk=CHUNK)
        del kept
        assert is_made(region, src)


def name_is_as_before_when_the_link_is_lost():
    def lose(_):
        ip("link", "set", INTERFACE, "down")

    kept = make("lost") if RANK == 0 else None
    if RANK == 1:
        on_chunk(5, lose)
    begun = time.monotonic()
    error = error_of(replicate, "lost", chunk=CHUNK, timeout=10)
    lasted = time.monotonic() - begun
    del kept
    if RANK == 1:
        assert "lost" not in [info.name for info in tshare.list()]
        ip("link", "set", INTERFACE, "up")
    assert error, "replicate() has returned"
    assert error[0] in ("TimeoutError", "ConnectionError", "ConnectionResetError"), error
    # The group's own limit is half an hour.
    assert lasted < 60, lasted


# With the backend of each machine.
CHECKS = [
    (machines_are_hosts, ("kmod", "kmod")),
    (device_takes_from_the_other_machines_device, ("kmod", "kmod")),
    (readers_keep_their_version_when_the_next_takes_the_name, ("kmod", "kmod")),
    (shared_memory_and_the_device_take_from_each_other, ("kmod", "shm")),
    (name_is_as_before_when_the_link_is_lost, ("kmod", "kmod")),
]


def run(number):
    check, backends = CHECKS[number]
    os.environ["TSHARE_BACKEND"] = backends[RANK]
    store = dist.TCPStore(ADDRESSES[0], 29500 + number, 2, RANK == 0, PATIENCE)
    dist.init_process_group("gloo", store=store, rank=RANK, world_size=2)
    assert tshare.backend() == backends[RANK]
    check()


def main():
    for words in (
        ("link", "set", "lo", "up"),
        ("addr", "add", f"{ADDRESSES[RANK]}/24", "dev", INTERFACE),
        ("link", "set", INTERFACE, "up"),
    ):
        ip(*words)
    os.environ["GLOO_SOCKET_IFNAME"] = INTERFACE
    print(f"1..{len(CHECKS)}", flush=True)
    failed = 0
    for number, (check, _) in enumerate(CHECKS):
        pid = os.fork()
        if not pid:
            try:
                run(number)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        failed += status != 0
        print(f"{'not ' * (status != 0)}ok {number + 1} - {check.__name__}", flush=True)
    return failed > 0


if __name__ == "__main__":
    raise SystemExit(main())
