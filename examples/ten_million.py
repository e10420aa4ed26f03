#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Three ways to share an array of ten million numbers with a child process by its name.

    ten_million.py [plain|helper|manager]... [--count N] [--name NAME]

plain    tshare.asarray() in the parent, tshare.open() in the child
helper   the same behind two functions, share() and attach(), that hide tshare
manager  a SharedMemoryManager, as in the standard library

Each way copies the numbers once, into shared memory, and sends none.
"""

import argparse
import multiprocessing
import sys

import numpy as np

import tshare
from tshare.managers import SharedMemoryManager
from tshare.shared_memory import SharedMemory


def double(array, kind):
    print(f"{kind}: the child sees {array.size} numbers, sum {array.sum():.0f}", flush=True)
    array *= 2


def show(array, kind):
    print(f"{kind}: the parent sees the child's, sum {array.sum():.0f}", flush=True)


def run(child, *args):
    process = multiprocessing.Process(target=child, args=args)
    process.start()
    process.join()
    if process.exitcode:
        sys.exit(f"ten_million.py: the child ended with {process.exitcode}")


# Plain


def plain_child(name):
    # The region has shape and type.
    double(np.asarray(tshare.open(name)), "plain")


def plain(array, name):
    t = tshare.asarray(array, name=name)
    run(plain_child, name)
    show(np.asarray(t), "plain")
    # The end of this process would remove the name, too.
    t.unlink()


# With a helper


def share(array, name):
    """Return a copy of the array in shared memory, to which others attach() by its name."""
    return np.asarray(tshare.asarray(array, name=name))


def attach(name):
    """Return the array that was shared under that name."""
    return np.asarray(tshare.open(name))


def helper_child(name):
    double(attach(name), "helper")


def helper(array, name):
    # The array holds the memory: nothing else has to be kept or closed.
    shared = share(array, name)
    run(helper_child, name)
    show(shared, "helper")
    tshare.unlink(name)


# With the manager: only the imports differ from the standard library's


def manager_child(name, shape, dtype):
    memory = SharedMemory(name)
    double(np.ndarray(shape, dtype, buffer=memory.buf), "manager")
    memory.close()


def manager(array, _):
    # The end of the block removes the names of all that the manager has made.
    with SharedMemoryManager() as smm:
        memory = smm.SharedMemory(size=array.nbytes)
        shared = np.ndarray(array.shape, array.dtype, buffer=memory.buf)
        shared[:] = array
        run(manager_child, memory.name, array.shape, array.dtype)
        show(shared, "manager")


def main():
    ways = {"plain": plain, "helper": helper, "manager": manager}
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("way", nargs="*", help="plain, helper, manager; all if not given")
    parser.add_argument("--count", type=int, default=10_000_000)
    parser.add_argument("--name", default="ten-million")
    args = parser.parse_args()
    for way in args.way or ways:
        if way not in ways:
            parser.error(f"there is no way '{way}'; there are: {', '.join(ways)}")
        ways[way](np.ones(args.count), args.name)


if __name__ == "__main__":
    main()
