# SPDX-License-Identifier: MIT
"""Times and memory to load a model's weights: one copy a host against one for each worker.

usage: weights.py MIB FILE

FILE, on a disk, is made with that size, and removed. Prints one row each, in the format of
pair.h; memory is given in sizes of the file.
"""

import json
import mmap
import multiprocessing
import os
import re
import statistics
import sys
import threading
import time
from pathlib import Path

import safetensors.torch
import torch

import tshare
from tshare import weights

sys.path.append(str(Path(__file__).resolve().parents[1] / "python"))
from support import cached_pages, empty_cache

MIB = 1 << 20
WORKERS = 4
TENSORS = 32

# As tshare_region_read() has it.
THREADS, CHUNK = 4, 4 * MIB

ROUNDS = 3

# The number of tensors of a large model.
MODEL = 96085

context = multiprocessing.get_context("fork")


def row(name, other, ours, theirs, aim):
    """Print medians and their ratio."""
    a, b = statistics.median(ours), statistics.median(theirs)
    print(f"{name} ({tshare.backend()})\t{other}\t{a:.9f}\t{b:.9f}\t{a / b:.3f}\t{aim}", flush=True)


def write(path, count, size):
    """Make a file of that many tensors, each of size bytes."""
    header = {
        f"model.layers.{i // 1500}.mlp.experts.{i % 256}.down_proj.weight_{i:06}": {
            "dtype": "BF16",
            "shape": [size // 2],
            "data_offsets": [i * size, (i + 1) * size],
        }
        for i in range(count)
    }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 4096 + 4096 - 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for i in range(count):
            file.write(i.to_bytes(8, "little") * (size // 8))
        os.fsync(file.fileno())


def timed(call):
    start = time.perf_counter()
    got = call()
    return time.perf_counter() - start, got


# From the disk


def read_to_nowhere(path, size):
    """Read the file by O_DIRECT as load() does, into one piece of memory a thread."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
    pieces = iter(range(0, size, CHUNK))

    def read():
        with mmap.mmap(-1, CHUNK) as memory:
            for at in pieces:
                os.preadv(fd, [memory], at)

    threads = [threading.Thread(target=read) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os.close(fd)


def from_disk(path, size):
    ours, theirs = [], []
    for _ in range(ROUNDS):
        empty_cache(path)
        taken, loaded = timed(lambda: weights.load(path))
        ours.append(taken)
        loaded.close()
        empty_cache(path)
        theirs.append(timed(lambda: read_to_nowhere(path, size))[0])
    row("Python: weights, from the disk", "O_DIRECT, kept nowhere", ours, theirs, 1.05)


# Several workers


def load_tshare(path):
    loaded = weights.load(path)
    return [loaded, *(tensor.torch() for tensor in loaded.values())]


def load_file(path):
    return [None, *safetensors.torch.load_file(path).values()]


def load_bytes(path):
    return [None, *safetensors.torch.load(path.read_bytes()).values()]


def memory_but(path):
    """Return what this process uses, pages of several in parts; without those of the file."""
    total, is_counted = 0, True
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if re.match("[0-9a-f]+-", line):
            is_counted = not line.endswith(str(path))
        elif line.startswith("Pss:") and is_counted:
            total += int(line.split()[1]) << 10
    return total


def work(load, path, barrier, results):
    torch.set_num_threads(1)
    barrier.wait()
    before = memory_but(path)
    barrier.wait()
    tensors = load(path)
    for tensor in tensors[1:]:
        tensor.view(torch.int64).sum()
    finished = time.perf_counter()
    barrier.wait()
    results.put((finished, memory_but(path) - before))
    barrier.wait()


def run_workers(load, path):
    """Return the seconds until all workers have read all, and the memory that they hold."""
    barrier, results = context.Barrier(WORKERS + 1), context.Queue()
    workers = [
        context.Process(target=work, args=(load, path, barrier, results)) for _ in range(WORKERS)
    ]
    for worker in workers:
        worker.start()
    barrier.wait()
    barrier.wait()
    start = time.perf_counter()
    barrier.wait()
    found = [results.get() for _ in workers]
    held = sum(memory for _, memory in found) + len(cached_pages(path)) * mmap.PAGESIZE
    barrier.wait()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    return max(finished for finished, _ in found) - start, held


def workers(path, size):
    ways = {"tshare": load_tshare, "load_file": load_file, "load(bytes)": load_bytes}
    cold, warm, held, memory = ({way: [] for way in ways} for _ in range(4))
    for _ in range(ROUNDS):
        for way, load in ways.items():
            empty_cache(path)
            taken, used = run_workers(load, path)
            cold[way].append(taken)
            memory[way].append(used / size)
    for _ in range(ROUNDS):
        for way, load in ways.items():
            path.read_bytes()
            warm[way].append(run_workers(load, path)[0])
    with weights.load(path):
        for _ in range(ROUNDS):
            for way, load in ways.items():
                held[way].append(run_workers(load, path)[0])
    what = f"Python: weights, {WORKERS} workers"
    for other in ("load_file", "load(bytes)"):
        is_aim = other == "load_file"
        row(f"{what}, cold", other, cold["tshare"], cold[other], 0.6 if is_aim else "-")
        row(f"{what}, file in the cache", other, warm["tshare"], warm[other], "-")
        row(f"{what}, loaded before", other, held["tshare"], held[other], 1.1 if is_aim else "-")
    ours = statistics.median(memory["tshare"])
    for other in ("load_file", "load(bytes)"):
        theirs = statistics.median(memory[other])
        print(
            f"{what}, memory ({tshare.backend()})\t{other}\t{ours:.2f} files\t{theirs:.2f} files"
            f"\t{ours / theirs:.3f}\t-",
            flush=True,
        )


# One more worker


def attach(path):
    for count, aim in ((1000, "1 ms"), (MODEL, "30 ms")):
        write(path, count, 16)
        ours, theirs = [], []
        with weights.load(path):
            for _ in range(30):
                taken, loaded = timed(lambda: weights.load(path))
                ours.append(taken)
                loaded.close()
            for _ in range(3):
                theirs.append(timed(lambda: load_file(path))[0])
        row(f"Python: weights, attach to {count} tensors", "load_file", ours, theirs, aim)


def main():
    size, path = int(sys.argv[1]) * MIB, Path(sys.argv[2]).resolve()
    try:
        write(path, TENSORS, size // TENSORS)
        from_disk(path, path.stat().st_size)
        workers(path, path.stat().st_size)
        attach(path)
    finally:
        path.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
