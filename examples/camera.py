#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A V4L2 camera fills the slots of a stream, and other programs read the frames there.
camera.c does the same. Documentation/camera.rst explains both.

    camera.py [-n SLOTS] [-4] [-k] DEVICE NAME    produce, until Ctrl-C
    camera.py NAME                                read, and print what is seen

    -n  slots, 3 to 32 (default: 8); the driver may demand more
    -4  memory below 4 GiB, for a device that has 32-bit addresses
    -k  let readers keep all frames: a slow one then slows the camera down

A frame has the fields image and fourcc, V4L2's name for the pixel format. Its sequence and
its flags are those of V4L2's buffer.
"""

import argparse
import contextlib
import ctypes
import errno
import fcntl
import math
import mmap
import os
import select
import signal
import struct
import sys

import numpy as np

import tshare

# How the pixels of a format lie in a row: the type and the number of their elements.
PIXELS = {
    b"YUYV": ("uint8", 2),
    b"UYVY": ("uint8", 2),
    b"RGB3": ("uint8", 3),
    b"BGR3": ("uint8", 3),
    b"GREY": ("uint8", 1),
    b"Y16 ": ("uint16", 1),
}

POLL_MS = 50
TIMEOUT_MS = 10000


# Of <linux/videodev2.h> and <linux/dma-buf.h>, on 64-bit machines.

CAPTURE = 1
MEMORY_MMAP, MEMORY_DMABUF = 1, 4
BUF_FLAG_ERROR, BUF_FLAG_TIMESTAMP_MASK, BUF_FLAG_TIMESTAMP_MONOTONIC = 0x40, 0xE000, 0x2000
G_FMT, REQBUFS, QUERYBUF = 0xC0D05604, 0xC0145608, 0xC0585609
QBUF, DQBUF, STREAMON = 0xC058560F, 0xC0585611, 0x40045612
DMA_BUF_SYNC, SYNC_READ, SYNC_END = 0x40086200, 1, 4


class Place(ctypes.Union):
    _fields_ = (("offset", ctypes.c_uint32), ("userptr", ctypes.c_ulong), ("fd", ctypes.c_int32))


class Buffer(ctypes.Structure):
    _fields_ = (
        ("index", ctypes.c_uint32),
        ("type", ctypes.c_uint32),
        ("bytesused", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("field", ctypes.c_uint32),
        ("seconds", ctypes.c_long),
        ("microseconds", ctypes.c_long),
        ("timecode", ctypes.c_uint32 * 4),
        ("sequence", ctypes.c_uint32),
        ("memory", ctypes.c_uint32),
        ("m", Place),
        ("length", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("request_fd", ctypes.c_int32),
    )


class Camera:
    def __init__(self, path):
        self.fd = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        form = bytearray(struct.pack("I204x", CAPTURE))
        try:
            fcntl.ioctl(self.fd, G_FMT, form)
        except OSError as error:
            sys.exit(f"camera.py: {path} is no camera with the single-planar API: {error}")
        self.width, self.height, fourcc, _, self.row, self.size = struct.unpack_from("6I", form, 8)
        self.fourcc = fourcc.to_bytes(4, "little")
        if self.fourcc not in PIXELS:
            sys.exit(f"camera.py: the pixel format {self.fourcc} isn't supported")
        dtype, self.channels = PIXELS[self.fourcc]
        self.dtype = np.dtype(dtype)
        self.pixel = self.dtype.itemsize * self.channels

    def request(self, memory, count):
        """Return the number of buffers, which is the driver's decision."""
        self.memory = memory
        request = fcntl.ioctl(self.fd, REQBUFS, struct.pack("5I", count, CAPTURE, memory, 0, 0))
        return struct.unpack_from("I", request)[0]

    def buffer(self, index=0, fd=0):
        return Buffer(index=index, type=CAPTURE, memory=self.memory, m=Place(fd=fd))

    def query(self, index):
        fcntl.ioctl(self.fd, QUERYBUF, buffer := self.buffer(index))
        return buffer

    def queue(self, index, fd=0):
        fcntl.ioctl(self.fd, QBUF, self.buffer(index, fd))

    def dequeue(self):
        """Return a buffer that the camera has filled, or None."""
        with contextlib.suppress(BlockingIOError):
            fcntl.ioctl(self.fd, DQBUF, buffer := self.buffer())
            return buffer

    def start(self):
        fcntl.ioctl(self.fd, STREAMON, struct.pack("i", CAPTURE))

    def close(self):
        """Close the node, which stops the camera."""
        os.close(self.fd)


def sync(fd, flags):
    """Have the caches of devices and processors agree; on most machines that is nothing."""
    fcntl.ioctl(fd, DMA_BUF_SYNC, struct.pack("Q", flags))


class InPlace:
    """V4L2's buffer i is slot i. Queued buffers are loans."""

    def __init__(self, camera, stream):
        self.camera, self.stream, self.loans = camera, stream, {}
        region = stream.region
        slots = region["image"]
        size = slots.strides[0]
        self.fds = [region.export(slots.byte_offset + i * size, size) for i in range(stream.slots)]
        for fd in self.fds:
            sync(fd, SYNC_READ)

    def queue(self):
        """Queue the slots that nobody holds, and return who holds the others."""
        while True:
            try:
                frame = self.stream.loan(0)
            except TimeoutError as error:
                return str(error)
            sync(self.fds[frame.slot], SYNC_READ | SYNC_END)
            self.camera.queue(frame.slot, self.fds[frame.slot])
            self.loans[frame.slot] = frame

    def take(self, buffer):
        """Return the frame that is in a buffer."""
        sync(self.fds[buffer.index], SYNC_READ)
        return self.loans.pop(buffer.index)


class Copied:
    """V4L2's buffers are the driver's own, and always queued."""

    def __init__(self, camera, stream, count):
        self.camera, self.stream = camera, stream
        self.loans = range(count)  # never fewer
        buffers = [camera.query(i) for i in range(count)]
        self.maps = [mmap.mmap(camera.fd, b.length, offset=b.m.offset) for b in buffers]
        strides = (camera.row, camera.pixel, camera.dtype.itemsize)
        shape = (camera.height, camera.width, camera.channels)
        self.images = [np.ndarray(shape, camera.dtype, m, 0, strides) for m in self.maps]
        for i in range(count):
            camera.queue(i)

    def queue(self):
        pass

    def take(self, buffer):
        """Return a frame that a buffer was copied to, or None if no slot is free."""
        try:
            frame = self.stream.loan(0)
            frame["image"].numpy()[:] = self.images[buffer.index]
        except TimeoutError:
            frame = None
        self.camera.queue(buffer.index)
        return frame


def publish(frame, buffer):
    if buffer.flags & BUF_FLAG_TIMESTAMP_MASK == BUF_FLAG_TIMESTAMP_MONOTONIC:
        frame.captured = buffer.seconds * 10**9 + buffer.microseconds * 1000
    frame.sequence = buffer.sequence
    frame.flags = buffer.flags
    frame.publish()


def run(camera, stream, buffers):
    poll = select.poll()
    poll.register(camera.fd, select.POLLIN)
    damaged = last = idle = 0
    held = buffers.queue()
    camera.start()
    print(
        f"camera.py: '{stream.name}' has {stream.slots} slots of "
        f"{camera.width}x{camera.height} {camera.fourcc.decode()}",
        flush=True,
    )
    try:
        while True:
            # Consumers give slots back meanwhile.
            idle = 0 if poll.poll(POLL_MS) else idle + POLL_MS
            if idle and idle % TIMEOUT_MS == 0:
                if buffers.loans:
                    sys.exit(f"camera.py: the camera has sent nothing for {TIMEOUT_MS // 1000} s")
                print(f"camera.py: {held}", file=sys.stderr)
            while buffer := camera.dequeue():
                last = buffer.sequence
                frame = buffers.take(buffer)
                if buffer.flags & BUF_FLAG_ERROR:
                    damaged += 1
                elif frame is not None:
                    frame.set_shape("image", (camera.height, camera.width, camera.channels))
                    publish(frame, buffer)
                del frame  # which abandons a damaged one
            held = buffers.queue()
    except KeyboardInterrupt:
        print(
            f"camera.py: {stream.newest} frames; {damaged} damaged ones left out; "
            f"the last has number {last}"
        )


def produce(options):
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.closing(Camera(options.device)) as camera:
        why, count = None, options.slots
        if not tshare.limits().dmabuf:
            why = "shared memory has no dma-bufs"
        elif camera.row % camera.pixel:
            why = f"a row of {camera.row} bytes isn't of whole pixels"
        else:
            try:
                count = camera.request(MEMORY_DMABUF, options.slots)
            except OSError as error:
                if error.errno != errno.EINVAL:
                    raise
                why = "the driver imports no dma-bufs"
        if why:
            print(f"camera.py: copies each frame: {why}", file=sys.stderr)
            rows, row = camera.height, camera.width
        else:
            # The camera may write all of its picture's size.
            rows, row = -(-camera.size // camera.row), camera.row // camera.pixel
        fields = {"image": ((rows, row, camera.channels), camera.dtype), "fourcc": ((), "uint32")}
        with tshare.Stream.create(
            options.name,
            fields,
            count,
            keep_all=options.keep_all,
            mode=0o640,
            dma32=options.dma32 and not why,
            contiguous=not why,
        ) as stream:
            stream.region["fourcc"].numpy()[:] = int.from_bytes(camera.fourcc, "little")
            if why:
                buffers = Copied(camera, stream, camera.request(MEMORY_MMAP, 4))
            else:
                buffers = InPlace(camera, stream)
            run(camera, stream, buffers)


def read(name):
    for frame in tshare.Stream.open(name, wait=math.inf):
        image = frame["image"].numpy()  # the memory that the camera wrote
        print(
            f"camera.py: frame {frame.number}, {frame.lost} missed before: "
            f"mean {image.mean():.1f}",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    slots = {"type": int, "choices": range(3, 33), "default": 8, "metavar": "SLOTS"}
    parser.add_argument("-n", dest="slots", **slots)
    parser.add_argument("-4", dest="dma32", action="store_true")
    parser.add_argument("-k", dest="keep_all", action="store_true")
    parser.add_argument("device", nargs="?")
    parser.add_argument("name")
    options = parser.parse_args()
    if options.device:
        produce(options)
    else:
        read(options.name)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
