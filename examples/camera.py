#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Looks at the frames that camera.c has a camera write, and prints what it sees.

    camera.py [--torch] NAME [COUNT]

Any number of these may run, each at its own speed. It ends after COUNT frames, or with
Ctrl-C. When the camera stops, it waits until that has been started again.
"""

import contextlib
import math
import sys

import tshare


def fourcc(number):
    return int(number).to_bytes(4, "little").decode()


def look(frame):
    """Return the mean of a frame, an array of NumPy or a tensor of PyTorch."""
    return float(frame.sum()) / math.prod(frame.shape)


def watch(region, as_array, count):
    """Look at up to count frames, until the camera stops; return how many there were."""
    frames = region["frames"]
    records = region["records"].numpy()
    kept = int(region["kept"].numpy())
    height, width = frames.shape[1:3]
    print(
        f"camera.py: {len(frames)} frames of {width}x{height} {fourcc(region['fourcc'].numpy())}",
        flush=True,
    )
    seen = late = 0
    for generation in region.generations(0):
        slot, sequence, _ = records[generation % len(records)].tolist()
        mean = look(as_array(frames[slot]))  # the memory that the camera wrote
        # The camera has the slot again from this generation on. Look before you use a result.
        if region.generation >= generation + kept:
            late += 1
            continue
        print(f"camera.py: frame {sequence}: mean {mean:.1f}", flush=True)
        seen += 1
        if seen == count:
            break
    print(f"camera.py: {seen} frames, and {late} that were overwritten meanwhile", flush=True)
    return seen


def main(arguments):
    as_array = tshare.Tensor.numpy
    if arguments[:1] == ["--torch"]:
        as_array = tshare.Tensor.torch
        del arguments[0]
    if len(arguments) not in (1, 2):
        sys.exit(__doc__)
    name = arguments[0]
    left = int(arguments[1]) if arguments[1:] else math.inf
    region = None
    while left > 0:
        # Sleeps until there is a ring of that name, at first; then until there is another one.
        region = tshare.Region.open(name, readonly=True, wait=math.inf, other_than=region)
        left -= watch(region, as_array, left)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main(sys.argv[1:])
