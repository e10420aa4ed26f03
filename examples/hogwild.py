#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Hogwild: processes that train one model at the same time, without a lock.

    hogwild.py [--workers N] [--steps N]

The parameters lie in a region. Each worker computes gradients of its own part of the data and
subtracts them from the parameters that all share. Two that write one element at the same time
may lose one of the steps, and the model learns all the same. Only for the CPU,
with PyTorch 2.1 or later.
"""

import argparse

import torch
import torch.multiprocessing

import tshare


def network():
    return torch.nn.Linear(8, 1)


def data(seed):
    """Return samples of a function that the model can learn exactly."""
    x = torch.randn(256, 8, generator=torch.Generator().manual_seed(seed))
    return x, x.sum(1, keepdim=True) + 0.5


def attach(region):
    """Return a model whose parameters are those in the region."""
    with torch.device("meta"):  # allocates no memory
        model = network()
    model.load_state_dict({key: t.torch() for key, t in region.items()}, assign=True)
    return model


def loss_of(model, x, y):
    return torch.nn.functional.mse_loss(model(x), y)


def train(region, worker, steps):
    torch.set_num_threads(1)
    model = attach(region)
    x, y = data(worker)
    # Its state, if it has any, is this worker's own.
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(steps):
        part = torch.randint(len(x), (32,))
        optimizer.zero_grad()
        loss_of(model, x[part], y[part]).backward()
        optimizer.step()


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--steps", type=int, default=300)
    args = parser.parse_args()

    region = tshare.Region.create(None, network().state_dict())
    # PyTorch's threads don't survive fork().
    spawn = torch.multiprocessing.get_context("spawn")
    workers = [
        spawn.Process(target=train, args=(region, i, args.steps)) for i in range(args.workers)
    ]
    for process in workers:
        process.start()
    for process in workers:
        process.join()
    with torch.no_grad():
        loss = float(loss_of(attach(region), *data(args.workers)))
    print(f"{args.workers} workers trained the same {len(region)} tensors")
    print(f"the loss for data that none of them has seen is below 0.001: {loss < 0.001}")


if __name__ == "__main__":
    main()
