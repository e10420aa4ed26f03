#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reads a file of NumPy's (.npy) from the disk straight into shared memory, past the page cache.

    direct.py FILE [NAME]

With O_DIRECT the disk itself writes into the region: nothing is copied, and what the page
cache holds stays there. A disk reads whole blocks. So the region gets the whole file, and its
tensor "array" begins behind the file's header. With NAME other processes can open it by that
name, until Enter is pressed.
"""

import errno
import os
import sys

import numpy as np

import tshare

CHUNK = 64 << 20


def open_direct(path):
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.EINVAL:
            sys.exit(f"direct.py: {path}: the file system has no O_DIRECT")
        raise


def read_blocks(path, memory):
    """Read a file into memory that begins and ends with a block; return its size."""
    file = open_direct(path)
    try:
        at = 0
        while count := os.preadv(file, [memory[at : at + CHUNK]], at):
            at += count
            # The file ends here, and a read from such a place on is refused.
            if at % tshare.limits().page_size:
                break
        return at
    finally:
        os.close(file)


def load(path, name=None):
    """Return a region with the array that is in a file."""
    found = np.lib.format.open_memmap(path, mode="r")  # reads the header alone
    page = tshare.limits().page_size
    end = found.offset + found.nbytes
    tensors = {
        "file": ((-(-end // page) * page,), "uint8", None, 0),
        "array": (found.shape, found.dtype, found.strides, found.offset),
    }
    region = tshare.Region.create(name, tensors, draft=name is not None)
    if read_blocks(path, memoryview(region["file"])) < end:
        region.close()
        sys.exit(f"direct.py: {path} has become shorter")
    if name is not None:
        region.finish()
    return region


def main(arguments):
    if len(arguments) not in (1, 2):
        sys.exit(__doc__)
    region = load(*arguments)
    array = region["array"].numpy()
    print(f"direct.py: {array.dtype}, shape {array.shape}, mean {array.mean():.6g}", flush=True)
    if len(arguments) == 2:
        sys.stdin.readline()


if __name__ == "__main__":
    main(sys.argv[1:])
