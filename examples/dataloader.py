#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A PyTorch DataLoader whose workers read one data set in shared memory.

    dataloader.py [fork|spawn]... [--workers N]

Workers receive the data set's descriptor, not the data. Running workers see the
parent's changes, and nothing is sent to them.
"""

import argparse

import torch
from torch.utils.data import DataLoader, Dataset

import tshare


class Pictures(Dataset):
    """Small pictures and their labels, in shared memory."""

    def __init__(self, count):
        # The tshare.Tensor is pickled as a descriptor with any start method.
        # PyTorch's views of it are made where they are needed.
        self.pixels = tshare.create(None, (count, 8, 8), "uint8")
        self.labels = tshare.create(None, count, "int64")

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return torch.from_dlpack(self.pixels)[i], torch.from_dlpack(self.labels)[i]


def epoch(loader):
    """Return the sums of all pixels and of all labels that the workers read."""
    sums = [(int(pixels.sum()), int(labels.sum())) for pixels, labels in loader]
    return tuple(map(sum, zip(*sums, strict=True)))


def use(method, workers):
    data = Pictures(64)
    pixels, labels = torch.from_dlpack(data.pixels), torch.from_dlpack(data.labels)
    pixels[:] = 1
    labels[:] = torch.arange(len(data))

    loader = DataLoader(
        data,
        batch_size=16,
        shuffle=True,
        num_workers=workers,
        multiprocessing_context=method,
        persistent_workers=True,
    )
    print(f"{method}: {workers} workers read pixels and labels that add up to {epoch(loader)}")
    pixels[:] = 3
    labels.neg_()
    print(f"{method}: after a change by the parent, the same workers read {epoch(loader)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("method", nargs="*", help="how workers start; fork and spawn if not given")
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    for method in args.method or ["fork", "spawn"]:
        use(method, args.workers)


if __name__ == "__main__":
    main()
