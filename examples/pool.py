#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Gets the pictures of some keys from a pool, and makes those that it doesn't have. Waits for
Enter then. pool.c does the same in C, and each finds what the other has made.

    pool.py NAME KEY...
"""

import sys

import numpy as np

import tshare


def look_at(pool, key):
    what, entry = "found", pool.get(key)
    if entry is None:
        what, entry = "made", pool.put(key, {"pixels": np.full((480, 640), len(key), "u1")})
    print(f"{what} '{key}', its pixels are {entry['pixels'].numpy()[0, 0]}")


if len(sys.argv) < 3:
    sys.exit(__doc__)
# The pool goes with the last process that has it open.
with tshare.Pool.create(sys.argv[1], 64 << 20, lifetime="users", exist_ok=True) as pool:
    for key in sys.argv[2:]:
        look_at(pool, key)
    print("waiting for Enter", flush=True)
    sys.stdin.readline()
