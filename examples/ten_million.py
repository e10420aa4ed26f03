#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An array of ten million numbers for a child process, by its name: three ways.

    ten_million.py [plain|helper|manager]... [--count N] [--name NAME]

plain    tshare.asarray() in the parent, tshare.open() in the child
helper   the same behind two functions that know arrays and names alone
manager  as one does it with the standard library's SharedMemoryManager

In each of them the numbers are copied once, into shared memory, and never sent.
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
    # Shape and type come along with the name.
    double(np.asarray(tshare.open(name)), "plain")


def plain(array, name):
    t = tshare.asarray(array, name=name)
    run(plain_child, name)
    show(np.asarray(t), "plain")
    # It would go with this process too.
    t.unlink()


# With a helper


def share(array, name):
    """A copy of the array in shared memory, which others attach() to by its name."""
    return np.asarray(tshare.asarray(array, name=name))


def attach(name):
    """The array that was shared under that name."""
    return np.asarray(tshare.open(name))


def helper_child(name):
    double(attach(name), "helper")


def helper(array, name):
    # An array keeps the memory that it shows: nothing else is to be kept or closed.
    shared = share(array, name)
    run(helper_child, name)
    show(shared, "helper")
    tshare.unlink(name)


# With the manager: as from multiprocessing, but for the imports


def manager_child(name, shape, dtype):
    memory = SharedMemory(name)
    double(np.ndarray(shape, dtype, buffer=memory.buf), "manager")
    memory.close()


def manager(array, _):
    # The names of what it makes are its own, and are gone when the block is left.
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
