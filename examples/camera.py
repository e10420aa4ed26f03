#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A V4L2 camera fills the slots of a stream, and other programs read the frames there.
camera.c does the same without Python. Documentation/camera.rst explains both.

    camera.py [-n SLOTS] [-4] DEVICE NAME    own the camera, or wait to be the next owner
    camera.py NAME                           read, and print what is seen

    -n  slots, 3 to 32 (default: 8); the driver may demand more
    -4  memory below 4 GiB, for a device that has 32-bit addresses

A frame has the fields image and fourcc, V4L2's name for the pixel format. Its sequence and
its flags are those of V4L2's buffer.
"""

import argparse
import contextlib
import math
import signal
import sys

import tshare


def own(options):
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    camera = tshare.Camera(
        options.device, options.name, slots=options.slots, dma32=options.dma32, mode=0o640
    )
    with camera:
        if camera.copies:
            print(f"camera.py: copies each frame: {camera.copies}", file=sys.stderr)
        owner = None
        while True:
            if camera.owner != owner:
                owner = camera.owner
                print(
                    f"camera.py: '{options.name}' has {camera.stream.slots} slots; this process "
                    f"{'owns' if owner else 'waits for'} the camera",
                    flush=True,
                )
            # Errors of the camera come so, and the death of another owner.
            camera.latest().close()


def read(name):
    for frame in tshare.Stream.open(name, wait=math.inf):
        image = frame["image"].numpy()  # the memory that the camera wrote
        print(
            f"camera.py: frame {frame.number}, {frame.lost} missed before: mean {image.mean():.1f}",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    slots = {"type": int, "choices": range(3, 33), "default": 8, "metavar": "SLOTS"}
    parser.add_argument("-n", dest="slots", **slots)
    parser.add_argument("-4", dest="dma32", action="store_true")
    parser.add_argument("device", nargs="?")
    parser.add_argument("name")
    options = parser.parse_args()
    try:
        own(options) if options.device else read(options.name)
    except OSError as error:
        sys.exit(f"camera.py: {error}")


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
