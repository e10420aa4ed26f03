#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A producer writes frames into two slots in turn, a consumer reads them. Each
sleeps while it waits for the other. frames.c does the same; either side may be in
either language.

    frames.py [NAME]                     both, in two processes
    frames.py produce NAME [COUNT]
    frames.py consume NAME

Each side publishes a region of its own for the other to wait for. The region NAME
holds the slots; its generation is the number of frames written. The generation of
NAME-taken is the number of frames read.
"""

import errno
import multiprocessing
import sys

import numpy as np

import tshare

SLOTS = 2
FRAME_LEN = 1024


def wait_until(region, generation):
    """Raises OSError with EOWNERDEAD when the other side has exited."""
    now = region.generation
    while now < generation:
        now = region.wait(now)


def produce(name, count=1000, started=lambda: None):
    # In the reverse order of consume(), which then finds both or neither.
    with (
        tshare.Region.create(f"{name}-taken", size=1) as taken,
        tshare.Region.create(name, {"": ((SLOTS, FRAME_LEN), "int64")}) as region,
    ):
        slots = np.asarray(region[""])
        print(f"produce: '{name}' has {SLOTS} slots", flush=True)
        started()
        for n in range(count):
            # A slot is reused when the consumer has read its frame.
            if n >= SLOTS:
                wait_until(taken, n - SLOTS + 1)
            slots[n % SLOTS] = n
            region.publish()
        wait_until(taken, count)
        # The end of this process removes the names, too, but not at once if multiprocessing
        # started it.
        region.unlink()
        taken.unlink()
        print(f"produce: all {count} frames were taken", flush=True)


def consume(name):
    # The consumer only reads frames, and publishes the other region.
    try:
        region = tshare.Region.open(name, readonly=True)
        taken = tshare.Region.open(f"{name}-taken")
    except FileNotFoundError as error:
        sys.exit(f"frames.py: {error} (start 'frames.py produce {name}' first)")
    slots = np.asarray(region[""])
    n = 0
    try:
        while True:
            wait_until(region, n + 1)
            if not (slots[n % SLOTS] == n).all():
                sys.exit(f"frames.py: frame {n} is damaged")
            taken.publish()
            n += 1
    except OSError as error:
        if error.errno != errno.EOWNERDEAD:
            raise
    print(f"consume: took {n} frames, all of them whole; the producer has exited", flush=True)


def both(name="frames"):
    ready = multiprocessing.Event()
    producer = multiprocessing.Process(target=produce, args=(name, 1000, ready.set))
    producer.start()
    while not ready.wait(0.1):
        if not producer.is_alive():
            sys.exit("frames.py: the producer failed")
    consume(name)
    producer.join()
    sys.exit(producer.exitcode)


def main(arguments):
    match arguments:
        case ["produce", name]:
            produce(name)
        case ["produce", name, count]:
            produce(name, int(count))
        case ["consume", name]:
            consume(name)
        case [] | [_]:
            both(*arguments)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
