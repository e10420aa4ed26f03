# SPDX-License-Identifier: MIT
"""A data set of Python's objects in workers: a list, its bytes in PyTorch's memory, tshare.Dataset.

Prints rows in the format of pair.h. usage: dataset.py [SAMPLES]

Eight forked workers read all samples, shuffled. Memory is what they and their parent have more
than without a list, by PSS, after an epoch; a "copy" is the pickles, and where each begins.
Times are those of a sample, on the clock. Medians of three rounds, each of all ways.
"""

import ctypes
import gc
import multiprocessing
import os
import pickle
import statistics
import sys
import time
from array import array

import torch
from torch.utils.data import DataLoader, Sampler

import tshare

SAMPLES = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
WORKERS = 8
ROUNDS = 3

fork = multiprocessing.get_context("fork")

KINDS = {
    "strings": lambda i: f"images/train/n{i % 1000:08}/sample-{i:09}.jpeg",
    "lists": lambda i: [i, i % 1000, float(i), i + 0.5, -i],
    "dicts": lambda i: {"id": i, "file": f"sample-{i:09}.jpeg", "label": i % 1000, "box": [i, 2]},
}


class Torch:
    """The pickles in shared tensors of PyTorch."""

    def __init__(self, samples):
        starts, pickles = array("q", [0]), bytearray()
        for sample in samples:
            pickles += pickle.dumps(sample, -1)
            starts.append(len(pickles))
        self.starts = torch.frombuffer(starts, dtype=torch.int64).clone().share_memory_()
        self.pickles = torch.frombuffer(pickles, dtype=torch.uint8).clone().share_memory_()

    def __len__(self):
        return len(self.starts) - 1

    def __getitem__(self, i):
        start, end = self.starts[i].item(), self.starts[i + 1].item()
        return pickle.loads(memoryview(self.pickles[start:end].numpy()))


class Shuffled(Sampler):
    """All numbers, as an array: PyTorch's list of them takes memory, and gives it back or not."""

    def __iter__(self):
        return iter(memoryview(torch.randperm(SAMPLES).numpy()))

    def __len__(self):
        return SAMPLES


WAYS = {"tshare": tshare.Dataset, "a list": list, "PyTorch's memory": Torch}


def pss(pid):
    with open(f"/proc/{pid}/smaps_rollup") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("Pss:"))


def give_back():
    """Give the system the memory that is free in this process."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)


def measure(way, kind, results):
    """Send the bytes that all processes have, and the seconds of a sample."""
    data = WAYS[way](kind(i) for i in range(SAMPLES)) if way else range(SAMPLES)
    give_back()
    loader = DataLoader(
        data,
        100,
        sampler=Shuffled(),
        num_workers=WORKERS,
        collate_fn=len,
        persistent_workers=True,
        multiprocessing_context="fork",
    )
    start = time.perf_counter()
    assert sum(loader) == SAMPLES
    seconds = (time.perf_counter() - start) / SAMPLES
    give_back()
    pids = [os.getpid()] + [worker.pid for worker in loader._iterator._workers]
    results.put((sum(map(pss, pids)), seconds))


def in_child(way, kind):
    results = fork.Queue()
    process = fork.Process(target=measure, args=(way, kind, results))
    process.start()
    result = results.get()
    process.join()
    return result


def compare(name, kind):
    one = sum(len(pickle.dumps(kind(i), -1)) + 8 for i in range(SAMPLES))
    results = {way: [] for way in (None, *WAYS)}
    for _ in range(ROUNDS):
        for way, result in results.items():
            result.append(in_child(way, kind))
    used, seconds = (
        {way: statistics.median(x[i] for x in result) for way, result in results.items()}
        for i in (0, 1)
    )
    title, backend = f"{SAMPLES} {name}, {WORKERS} workers", tshare.backend()
    for other in list(WAYS)[1:]:
        a, b = ((used[way] - used[None]) / one for way in ("tshare", other))
        text = f"Dataset: {title}: memory ({backend})\t{other}"
        print(f"{text}\t{a:.2f} copies\t{b:.2f} copies\t{a / b:.3f}\t-", flush=True)
        a, b = seconds["tshare"], seconds[other]
        text = f"Dataset: {title} ({backend})\t{other}"
        print(f"{text}\t{a:.9f}\t{b:.9f}\t{a / b:.3f}\t-", flush=True)


def main():
    torch.set_num_threads(1)
    for name, kind in KINDS.items():
        compare(name, kind)


if __name__ == "__main__":
    main()
