#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A hundred frames a second, from one process to others, as stream_producer.c and
stream_consumer.c do it; either side may be in either language.

    stream.py produce NAME     until it is interrupted
    stream.py consume NAME     until the stream ends
"""

import itertools
import math
import sys
import time

import tshare


def produce(name):
    fields = {"image": ((480, 640), "uint8")}
    stream = tshare.Stream.create(name, fields, keep_all=True)
    try:
        for n in itertools.count(1):
            with stream.loan() as frame:
                frame["image"].numpy()[:] = n % 256
            time.sleep(0.01)
    except KeyboardInterrupt:
        # Consumers that are slower get 5 seconds for what is left.
        try:
            stream.close(drain=5)
        except TimeoutError as error:
            print(error, file=sys.stderr)


def consume(name):
    # It may be started first.
    for frame in tshare.Stream.open(name, keep_all=True, wait=math.inf):
        image = frame["image"].numpy()
        print(f"frame {frame.number} is {image[0, 0]}, {frame.lost} were lost", flush=True)
    print("the stream has ended")


match sys.argv[1:]:
    case ["produce", name]:
        produce(name)
    case ["consume", name]:
        consume(name)
    case _:
        sys.exit(__doc__)
