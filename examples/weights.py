#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One set of weights for many processes that compute with it.

    weights.py [--layers N] [--workers N]

Saves a network as a file of safetensors. Each worker loads that: the first one reads the
file into shared memory, and all have this memory, read-only, so that none can damage it.
Needs safetensors, to save the file, and PyTorch 2.9, the first version that takes
read-only tensors.
"""

import argparse
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import torch
import torch.multiprocessing
from safetensors.torch import save_file

import tshare.weights


def network(layers):
    return torch.nn.Sequential(*(torch.nn.Linear(16, 16) for _ in range(layers)))


# In a worker


def attach(path, layers):
    """Make this worker's model, which uses the weights in shared memory."""
    global model, weights
    with torch.device("meta"):  # allocates no memory
        model = network(layers)
    weights = tshare.weights.load(path)
    tshare.weights.assign(model, weights)


def infer(x):
    """Return what the model makes of x, and the region that its weights are in."""
    with torch.no_grad():
        return model(torch.tensor(x)).tolist(), weights.region.id


# In the parent


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--layers", type=int, default=500)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 9):
        sys.exit(f"weights.py: needs PyTorch 2.9 or later; this is {torch.__version__}")

    torch.manual_seed(0)
    trained = network(args.layers)
    batches = [[float(i)] * 16 for i in range(8)]
    with tempfile.TemporaryDirectory(prefix="weights-") as folder:
        path = Path(folder) / "model.safetensors"
        save_file(trained.state_dict(), path)
        # PyTorch's threads don't survive fork().
        spawn = torch.multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(
            args.workers, mp_context=spawn, initializer=attach, initargs=(path, args.layers)
        ) as pool:
            results, regions = zip(*pool.map(infer, batches), strict=True)
        print(f"one region holds {len(trained.state_dict())} tensors")
    with torch.no_grad():
        expected = trained(torch.tensor(batches))
    print(f"the workers have one copy: {len(set(regions)) == 1}")
    print(f"the workers' results are ours: {torch.allclose(torch.tensor(results), expected)}")


if __name__ == "__main__":
    main()
