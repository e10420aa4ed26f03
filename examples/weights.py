#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One set of weights for many processes that compute with it.

    weights.py [--name NAME] [--layers N] [--workers N]

One region holds the whole state_dict, with one name and one descriptor, however
many tensors there are. Workers open it read-only, so that none can damage it.
Needs PyTorch 2.9, the first version that takes read-only tensors.
"""

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor

import torch
import torch.multiprocessing

import tshare


def network(layers):
    return torch.nn.Sequential(*(torch.nn.Linear(16, 16) for _ in range(layers)))


# In a worker


def attach(name, layers):
    """Make this worker's model, which uses the weights in shared memory."""
    global model
    with torch.device("meta"):  # allocates no memory
        model = network(layers)
    region = tshare.Region.open(name, readonly=True)
    weights = {key: torch.from_dlpack(tensor) for key, tensor in region.items()}
    model.load_state_dict(weights, assign=True)


def infer(x):
    with torch.no_grad():
        return model(torch.tensor(x)).tolist()


# In the parent


def opening_times(name):
    """Return the microseconds to open a region of one tensor, and one of all; the best time."""

    def best(name):
        times = []
        for _ in range(20):
            start = time.perf_counter()
            tshare.Region.open(name, readonly=True).close()
            times.append(time.perf_counter() - start)
        return min(times) * 1e6

    with tshare.Region.create(name + "-one", {"weight": ((16, 16), "float32")}):
        return best(name + "-one"), best(name)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--name", default="weights")
    parser.add_argument("--layers", type=int, default=500)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 9):
        sys.exit(f"weights.py: needs PyTorch 2.9 or later; this is {torch.__version__}")

    torch.manual_seed(0)
    trained = network(args.layers)
    weights = {key: tensor.detach() for key, tensor in trained.state_dict().items()}
    region = tshare.Region.create(args.name, weights)
    print(f"one region holds {len(region)} tensors in {region.size} bytes")
    one, all = opening_times(args.name)
    print(f"opening a region of 1 tensor takes {one:.0f} µs, one of {len(region)} {all:.0f} µs")

    # PyTorch's threads don't survive fork().
    spawn = torch.multiprocessing.get_context("spawn")
    batches = [[float(i)] * 16 for i in range(8)]
    with ProcessPoolExecutor(
        args.workers, mp_context=spawn, initializer=attach, initargs=(args.name, args.layers)
    ) as pool:
        results = list(pool.map(infer, batches))
    with torch.no_grad():
        expected = trained(torch.tensor(batches))
    print(f"the workers' results are ours: {torch.allclose(torch.tensor(results), expected)}")
    region.unlink()


if __name__ == "__main__":
    main()
