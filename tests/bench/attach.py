# SPDX-License-Identifier: MIT
"""Python's ways to an array that another process named, and to its tensor.

Prints one row each, in the format of pair.h.
"""

import statistics
import time
from multiprocessing import shared_memory

import numpy as np
import torch

import tshare

SHAPE = (1024, 1024)
NAME = "bench-attach-py"


def pair(row, other, ours, theirs, rounds, aim):
    times = ([], [])
    for i in range(-rounds // 10, rounds):
        for function, taken in zip((ours, theirs), times):
            start = time.perf_counter()
            function()
            elapsed = time.perf_counter() - start
            if i >= 0:
                taken.append(elapsed)
    a, b = map(statistics.median, times)
    print(f"{row}\t{other}\t{a:.9f}\t{b:.9f}\t{a / b:.3f}\t{aim:.2f}", flush=True)


def main():
    backend = tshare.backend()
    tensor = tshare.create(NAME, SHAPE, "float32")
    memory = shared_memory.SharedMemory(name=NAME, create=True, size=tensor.nbytes)

    def open_tshare():
        t = tshare.open(NAME)
        np.asarray(t)[0, 0]

    def open_shared_memory():
        m = shared_memory.SharedMemory(name=NAME)
        a = np.ndarray(SHAPE, "float32", buffer=m.buf)
        a[0, 0]
        del a
        m.close()

    pair(
        f"Python: open + np.asarray ({backend})",
        "SharedMemory + np.ndarray",
        open_tshare,
        open_shared_memory,
        2000,
        0.35,
    )

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


if __name__ == "__main__":
    main()
