#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reads a region of another machine one-sidedly, by NVIDIA's NIXL (pip install nixl).

    peer_read.py give NAME [HOST]       lets one peer read the region; listens on the address HOST
    peer_read.py read NAME HOST PORT    makes a region of that name, and fills it by one read

The giver prints the port, and waits. Each side registers its region as a whole: to register 1,000
tensors in one call took 125 times as long, 0.25 ms and not 0.002 ms, without RDMA, and the reader
got 44 kB about them, not 455 bytes. UCX moves the bytes, by RDMA if it can. Nothing is encrypted:
use a network that you trust.
"""

import contextlib
import json
import os
import socket
import sys
import time

import numpy as np

import tshare

# Without this a process can crash at its exit: NIXL's wheel has its own libnl, and these modules of
# UCX load the system's beside it, which then unregisters at the wheel's what it has refused.
os.environ.setdefault("UCX_MODULES", "^efa,rdmacm")

from nixl._api import nixl_agent, nixl_agent_config  # noqa: E402


@contextlib.contextmanager
def registered(agent, region):
    """Register a region's memory, and give its place as NIXL takes it."""
    address = np.frombuffer(region, "uint8").ctypes.data
    memory = agent.register_memory([(address, region.size, 0, "")], "DRAM")
    yield address, region.size, 0
    agent.deregister_memory(memory)


def give(agent, name, host="127.0.0.1"):
    # Not read-only: NIXL registers memory for writing, too, which RDMA would refuse.
    region = tshare.Region.open(name)
    tensors = {key: (x.shape, x.dtype, x.strides, x.byte_offset) for key, x in region.items()}
    with registered(agent, region) as place, socket.create_server((host, 0)) as server:
        print(f"port {server.getsockname()[1]}", flush=True)
        with server.accept()[0] as reader, reader.makefile("rw") as stream:
            offer = [agent.get_agent_metadata().hex(), place, tensors]
            print(json.dumps(offer), file=stream, flush=True)
            stream.read()  # until the reader has closed the connection


def fill(agent, here, giver, there):
    """Read the giver's memory into ours."""
    giver = agent.add_remote_agent(bytes.fromhex(giver))
    places = (agent.get_xfer_descs([place], "DRAM") for place in (here, there))
    transfer = agent.initialize_xfer("READ", *places, giver)
    state = agent.transfer(transfer)
    while state == "PROC":
        time.sleep(0.001)
        state = agent.check_xfer_state(transfer)
    agent.release_xfer_handle(transfer)
    agent.remove_remote_agent(giver)
    if state != "DONE":
        raise ConnectionError("the giver's region could not be read")


def read(agent, name, host, port):
    with socket.create_connection((host, int(port))) as peer, peer.makefile() as stream:
        giver, there, tensors = json.loads(stream.readline())
        tensors = {key: tuple(x) for key, x in tensors.items()}
        draft = tshare.Region.create(name, tensors, size=there[1], draft=True)
        with registered(agent, draft) as here:
            fill(agent, here, giver, tuple(there))
    draft.finish()
    print(f"{name}: {draft.size} bytes, waiting for Enter", flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    if sys.argv[1:2] not in (["give"], ["read"]):
        sys.exit(__doc__)
    agent = nixl_agent(sys.argv[1], nixl_agent_config(backends=["UCX"]))
    {"give": give, "read": read}[sys.argv[1]](agent, *sys.argv[2:])
