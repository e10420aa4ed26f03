#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Looks at the packets that packets.c has the kernel put into a region, and prints what it sees.

    packets.py NAME [COUNT]

Any number of these may run, each at its own speed. It ends after COUNT packets, with the
program that receives them, or with Ctrl-C.
"""

import contextlib
import math
import sys

import tshare


def describe(packet):
    """Return what the Ethernet header of a packet says."""
    header = packet[:14].tobytes()
    target, source = header[:6].hex(":"), header[6:12].hex(":")
    return f"{len(packet)} bytes from {source} to {target}, type {header[12:].hex()}"


def watch(region, count):
    """Look at up to count packets, until no more can come."""
    packets, records = region["packets"].numpy(), region["records"].numpy()
    kept = int(region["kept"].numpy())
    seen = missed = last = 0
    for newest in region.generations(0):
        for generation in range(last + 1, newest + 1):
            chunk, offset, length = records[generation % len(records)].tolist()
            text = describe(packets[chunk, offset : offset + length])  # where the kernel wrote
            # The kernel has the chunk again from this generation on. Look before you use a result.
            if region.generation >= generation + kept:
                missed += 1
                continue
            print(f"packets.py: {text}", flush=True)
            seen += 1
            if seen == count:
                break
        last = newest
        if seen == count:
            break
    print(f"packets.py: {seen} packets, and {missed} that were overwritten", flush=True)


def main(arguments):
    if len(arguments) not in (1, 2):
        sys.exit(__doc__)
    count = int(arguments[1]) if arguments[1:] else math.inf
    # Sleeps until the first packet has come.
    with tshare.Region.open(arguments[0], readonly=True, wait=math.inf) as region:
        watch(region, count)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main(sys.argv[1:])
