#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One copy of some tensors on each of several machines.

    torchrun --nnodes N --node-rank I --master-addr HOST --nproc-per-node P replicate.py [NAME]
    mpiexec -n P replicate.py --mpi [NAME]

The first process has the tensors. On each machine one process receives them, straight into a
region, and the others open that. tshare itself moves nothing between machines: gloo, one of
torch.distributed's backends, does so, or MPI.
"""

import argparse
import os

import numpy as np

import tshare

# Seconds that a process waits for the one that receives.
PATIENCE = 600


class Gloo:
    """The processes that torchrun has started."""

    def __init__(self):
        import torch
        import torch.distributed as dist

        self.torch, self.dist = torch, dist
        dist.init_process_group("gloo")
        self.rank = dist.get_rank()
        self.receives = os.environ["LOCAL_RANK"] == "0"
        each = int(os.environ["LOCAL_WORLD_SIZE"])
        self.receivers = dist.new_group(list(range(0, dist.get_world_size(), each)))

    def send_object(self, x):
        box = [x]
        self.dist.broadcast_object_list(box, src=0, group=self.receivers)
        return box[0]

    def send(self, tensor):
        # Bytes, as gloo has not all types of PyTorch's.
        data = tensor.torch().reshape(-1).view(self.torch.uint8)
        self.dist.broadcast(data, src=0, group=self.receivers)

    def end(self):
        self.dist.barrier()
        self.dist.destroy_process_group()


class MPI:
    """The processes that mpiexec has started."""

    def __init__(self):
        from mpi4py import MPI

        self.byte, self.world = MPI.BYTE, MPI.COMM_WORLD
        self.rank = self.world.rank
        self.receives = self.world.Split_type(MPI.COMM_TYPE_SHARED).rank == 0
        self.receivers = self.world.Split(0 if self.receives else MPI.UNDEFINED)

    def send_object(self, x):
        return self.receivers.bcast(x)

    def send(self, tensor):
        self.receivers.Bcast([tensor.numpy(), self.byte])

    def end(self):
        self.world.Barrier()


def replicate(processes, name, tensors):
    """Return this machine's region of the tensors, which are those of rank 0."""
    if not processes.receives:
        return tshare.Region.open(name, readonly=True, wait=PATIENCE)
    first = processes.rank == 0
    specs = processes.send_object(
        {key: (x.shape, str(x.dtype)) for key, x in tensors.items()} if first else None
    )
    # Nobody can open a draft. So the others wait until all of it is here.
    region = tshare.Region.create(name, specs, draft=True)
    for key in specs:
        if first:
            region[key].copy_from(tensors[key])
        processes.send(region[key])
    region.finish()
    return region


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("name", nargs="?", default="replicated")
    parser.add_argument("--mpi", action="store_true", help="started by mpiexec, not by torchrun")
    args = parser.parse_args()

    processes = MPI() if args.mpi else Gloo()
    tensors = None
    if processes.rank == 0:
        tensors = {"weight": np.arange(12, dtype="float32").reshape(3, 4), "bias": np.ones(4)}
    with replicate(processes, args.name, tensors) as region:
        sums = ", ".join(f"{key} {region[key].numpy().sum():g}" for key in region)
        what = "received" if processes.receives else "opened"
        print(f"rank {processes.rank} {what} tensors with the sums {sums}\n", end="", flush=True)
        # The name is the receiver's, and goes with it.
        processes.end()


if __name__ == "__main__":
    main()
