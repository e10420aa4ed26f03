#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Batches that worker processes fill in place, and a loop that trains on them.

    batches.py [--workers N] [--batches N]

A region is a ring of batches. A worker is sent the number of a free one, writes its samples
there, and returns the number; the samples themselves are never sent. The loop gives a batch
back when it is done with it, so at most as many are on their way as the ring holds.
"""

import argparse
from collections import deque
from concurrent.futures import ProcessPoolExecutor

import numpy as np

import tshare

SLOTS, SAMPLES, WIDTH = 4, 32, 1024


# In a worker


def start(region):
    """Keep the ring, which arrives by its descriptor, not as a copy."""
    global x, y
    x, y = region["x"].numpy(), region["y"].numpy()


def fill(slot, batch):
    """Stand in for reading and decoding the samples of a batch; return what was made of it."""
    x[slot] = np.random.default_rng(batch).random((SAMPLES, WIDTH), "float32")
    y[slot] = np.arange(batch * SAMPLES, (batch + 1) * SAMPLES)
    return slot, batch


# In the parent


def batches(pool, count):
    """Yield the slot and the number of each batch, in order, while the next ones are filled."""
    free, filled = deque(range(SLOTS)), deque()
    for batch in range(count):
        if not free:
            slot, done = filled.popleft().result()
            yield slot, done
            free.append(slot)
        filled.append(pool.submit(fill, free.popleft(), batch))
    for future in filled:
        yield future.result()


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batches", type=int, default=20)
    args = parser.parse_args()

    ring = tshare.Region.create(
        None, {"x": ((SLOTS, SAMPLES, WIDTH), "float32"), "y": ((SLOTS, SAMPLES), "int64")}
    )
    x, y = ring["x"].numpy(), ring["y"].numpy()
    seen, right = 0, True
    with ProcessPoolExecutor(args.workers, initializer=start, initargs=(ring,)) as pool:
        for slot, batch in batches(pool, args.batches):
            expected = np.random.default_rng(batch).random((SAMPLES, WIDTH), "float32")
            right &= np.array_equal(x[slot], expected) and int(y[slot][0]) == batch * SAMPLES
            seen += len(y[slot])
    print(f"{args.workers} workers filled {args.batches} batches, {seen} samples")
    print(f"each batch was there whole, and in order: {right}")


if __name__ == "__main__":
    main()
