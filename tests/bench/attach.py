# SPDX-License-Identifier: MIT
"""Times to open an array by its name, in Python.

Prints one row each, in the format of pair.h.
"""

import os
import resource
import statistics
import time
from multiprocessing import shared_memory

import numpy as np
import torch

import tshare
from tshare.bench import _attach

SHAPE = (1024, 1024)
NAME = "bench-attach-py"
MANY = 1000

# The number of tensors of a large model, with names like that model's.
MODEL = 96085


def pair(row, other, ours, theirs, rounds, aim, release=None):
    """Times both in turn. Results go to release(), whose time does not count."""
    times = ([], [])
    for i in range(-rounds // 10, rounds):
        for function, taken in zip((ours, theirs), times, strict=True):
            start = time.perf_counter()
            got = function()
            elapsed = time.perf_counter() - start
            if release:
                release(got)
            if i >= 0:
                taken.append(elapsed)
            # Freed here, so that it isn't part of the other's time.
            del got
    a, b = map(statistics.median, times)
    print(f"{row}\t{other}\t{a:.9f}\t{b:.9f}\t{a / b:.3f}\t{aim or '-'}", flush=True)


def many(backend):
    """A region of many tensors against as many SharedMemory, and against a region of one."""
    # SharedMemory needs two descriptors for each tensor.
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    one = tshare.Region.create(f"{NAME}-one", {"t0": (16, "float32")})
    region = tshare.Region.create(f"{NAME}-many", {f"t{i}": (16, "float32") for i in range(MANY)})
    memories = [shared_memory.SharedMemory(create=True, size=64) for _ in range(MANY)]

    def open_region():
        return [np.asarray(t) for t in tshare.Region.open(region.name).values()]

    def open_shared_memory():
        opened = [shared_memory.SharedMemory(memory.name) for memory in memories]
        return opened, [np.ndarray(16, "float32", buffer=m.buf) for m in opened]

    def release(got):
        if isinstance(got, tuple):
            opened, arrays = got
            arrays.clear()
            for memory in opened:
                memory.close()

    pair(
        f"Python: {MANY} tensors as arrays ({backend})",
        f"{MANY} SharedMemory + np.ndarray",
        open_region,
        open_shared_memory,
        20,
        None,
        release,
    )
    pair(
        f"Python: open a region of {MANY} tensors ({backend})",
        "a region of one tensor",
        lambda: tshare.Region.open(region.name),
        lambda: tshare.Region.open(one.name),
        200,
        2.0,
    )
    model(backend, one)
    for memory in memories:
        memory.close()
        memory.unlink()


def model(backend, one):
    """A region of as many tensors as a large model has, against a region of one."""
    keys = [
        f"model.layers.{i // 1500}.mlp.experts.{i % 256}.down_proj.weight_scale_{i:06}"
        for i in range(MODEL)
    ]
    specs = {key: ((2, 4, 2)[: 2 + i % 2], "bfloat16") for i, key in enumerate(keys)}
    region = tshare.Region.create(f"{NAME}-model", specs)
    ways = {
        f"open {MODEL} tensors": lambda name, key: tshare.Region.open(name),
        "and take one by its name": lambda name, key: tshare.Region.open(name)[key],
        "and list their names": lambda name, key: [*tshare.Region.open(name)],
    }
    for way, use in ways.items():
        pair(
            f"Python: {way} ({backend})",
            "a region of one tensor",
            lambda use=use: use(region.name, keys[-1]),
            lambda use=use: use(one.name, "t0"),
            30,
            None,
        )


def main():
    backend = tshare.backend()
    tensor = tshare.create(NAME, SHAPE, "float32")
    memory = shared_memory.SharedMemory(name=NAME, create=True, size=tensor.nbytes)

    def open_tshare():
        t = tshare.open(NAME)
        return [t, np.asarray(t)]

    def open_shared_memory():
        m = shared_memory.SharedMemory(name=NAME)
        return [m, np.ndarray(SHAPE, "float32", buffer=m.buf)]

    def release(got):
        got.pop()
        got.pop().close()

    def use(attach):
        got = attach()
        got[1][0, 0]
        release(got)

    other = "SharedMemory + np.ndarray"
    pair(
        f"Python: open + np.asarray ({backend})",
        other,
        open_tshare,
        open_shared_memory,
        2000,
        0.35,
        release,
    )
    pair(
        f"Python: the same, read and closed ({backend})",
        other,
        lambda: use(open_tshare),
        lambda: use(open_shared_memory),
        2000,
        None,
    )

    # As the library has it, which then walks the same path.
    directory = os.open(os.environ.get("TSHARE_SHM_DIR", "/dev/shm"), os.O_PATH | os.O_CLOEXEC)
    path = f"tshare.{NAME}/region" if backend == "shm" else NAME
    pair(
        f"Python: the same, read and closed ({backend})",
        "bare openat + fstat + mmap in C",
        lambda: use(open_tshare),
        lambda: _attach.bare(directory, path, tensor.nbytes),
        5000,
        1.3,
    )
    os.close(directory)

    array = np.asarray(tensor)
    pair(
        f"Python: torch.from_dlpack(t) ({backend})",
        "from_dlpack(NumPy array)",
        lambda: torch.from_dlpack(tensor),
        lambda: torch.from_dlpack(array),
        5000,
        1.0,
    )
    memory.close()
    memory.unlink()
    many(backend)


if __name__ == "__main__":
    main()
