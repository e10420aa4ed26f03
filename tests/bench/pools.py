# SPDX-License-Identifier: MIT
"""Pools of tensors against other ways to keep arrays under keys for several processes, in Python.

Prints rows in the format of pair.h. usage: pools.py [ROUNDS]

The ring has its arrays in SharedMemory, and the keys with the places of the arrays in a
multiprocessing Manager's dict, which one process serves. The copy goes into private memory that
was touched before. Each way uses as much memory in turn, so that no memory is in a cache.
"""

import gc
import itertools
import multiprocessing
import statistics
import sys
import time
from multiprocessing import shared_memory

import numpy as np

import tshare

NBYTES = 6 << 20
ENTRIES = 40
ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 100


class Pool:
    repeats = 200

    def __init__(self):
        self.pool = tshare.Pool.create("bench-pools", ENTRIES * NBYTES)

    def put(self, key, array):
        self.pool.put(key, {"pixels": array}).close()

    def get_array(self, key):
        return self.pool.get(key)["pixels"].numpy()


class Dict:
    title = "a dict in a Manager"
    repeats = 1

    def __init__(self, manager):
        self.dict = manager.dict()
        self.keys = []

    def put(self, key, array):
        self.dict[key] = array
        self.keys.append(key)
        if len(self.keys) > ENTRIES:
            del self.dict[self.keys.pop(0)]

    def get_array(self, key):
        return self.dict.get(key)


class Ring(Dict):
    title = "a ring in SharedMemory, with that dict"

    def __init__(self, manager):
        super().__init__(manager)
        self.memory = shared_memory.SharedMemory(create=True, size=ENTRIES * NBYTES)
        self.memory.unlink()
        self.slots = np.ndarray((ENTRIES, NBYTES), "uint8", buffer=self.memory.buf)
        self.places = itertools.cycle(range(ENTRIES))

    def put(self, key, array):
        place = next(self.places)
        np.copyto(self.slots[place], array)
        super().put(key, place)

    def get_array(self, key):
        return self.slots[self.dict.get(key)]


class Copy:
    title = "a copy into resident memory"
    repeats = 1

    def __init__(self):
        self.slots = np.ones((ENTRIES, NBYTES), "uint8")
        self.places = itertools.cycle(range(ENTRIES))

    def put(self, key, array):
        self.place = next(self.places)
        np.copyto(self.slots[self.place], array)

    def get_array(self, key):
        return self.slots[self.place]


def row(title, other, ours, theirs, aim=None):
    a, b = map(statistics.median, (ours, theirs))
    print(f"{title}\t{other}\t{a:.9f}\t{b:.9f}\t{a / b:.3f}\t{aim or '-'}", flush=True)


def seconds(call, repeats=1):
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


def compare(ours, others, array):
    """Times to put an array, and to get it: of ours and of each other way."""
    ways = [ours, *others]
    puts = [[] for _ in ways]
    gets = [[] for _ in ways]
    # The memory of all is touched before the times count.
    for i in range(-2 * ENTRIES, ROUNDS):
        for way, put, get in zip(ways, puts, gets, strict=True):
            key = f"{id(others)} {i}"
            # Each finds the source alike in the caches.
            array.max()
            put.append(seconds(lambda way=way, key=key: way.put(key, array)))
            get.append(seconds(lambda way=way, key=key: way.get_array(key), way.repeats))
    return [t[-ROUNDS:] for t in puts], [t[-ROUNDS:] for t in gets]


def main():
    gc.disable()
    array = np.random.default_rng(1).integers(0, 256, NBYTES, "uint8")
    pool = Pool()
    backend = tshare.backend()
    puts, gets = compare(pool, [Copy()], array)
    row(f"Python: Pool.put, 6 MiB ({backend})", Copy.title, *puts, 1.1)
    row(f"Python: Pool.get, to array ({backend})", "3 us", gets[0], [3e-6], 1.0)
    with multiprocessing.Manager() as manager:
        others = [Dict(manager), Ring(manager)]
        puts, gets = compare(pool, others, array)
        for i, other in enumerate(others, 1):
            row(f"Python: Pool.put, 6 MiB ({backend})", other.title, puts[0], puts[i])
            row(f"Python: Pool.get, to array ({backend})", other.title, gets[0], gets[i])


if __name__ == "__main__":
    main()
