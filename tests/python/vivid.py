# SPDX-License-Identifier: MIT
"""The camera vivid, a driver without a device, which tests/runner/run loads in a guest."""

import fcntl
import os
import struct
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# The programs that have it fill a stream.
PRODUCERS = {
    "C": (ROOT / "build/c/examples/camera",),
    "Python": (sys.executable, ROOT / "examples/camera.py"),
}

CAPTURE = 1
MMAP = 1
DMABUF = 4

G_FMT = 0xC0D05604
S_FMT = 0xC0D05605
REQBUFS = 0xC0145608
QUERYBUF = 0xC0585609
EXPBUF = 0xC0405610
S_CTRL = 0xC008561C
QUERYCTRL = 0xC0445624

BUF_FLAG_QUEUED = 0x2
BUF_FLAG_ERROR = 0x40
CTRL_FLAG_NEXT_CTRL = 0x80000000


def find():
    """Return the path of the camera's node, or None."""
    for entry in sorted(Path("/sys/class/video4linux").glob("video*")):
        if "vivid" in (entry / "name").read_text():
            return f"/dev/{entry.name}"
    return None


def set_format(path, width, height, fourcc="YUYV", row=0):
    """Set the format, which stays; row is the least length of a row in bytes."""
    with open(path, "rb+", buffering=0) as video:
        form = bytearray(struct.pack("I204x", CAPTURE))
        fcntl.ioctl(video, G_FMT, form)
        struct.pack_into("2I4s", form, 8, width, height, fourcc.encode())
        struct.pack_into("I", form, 24, row)
        fcntl.ioctl(video, S_FMT, form)
    found = struct.unpack_from("2I4s", form, 8)
    assert found == (width, height, fourcc.encode())


def press(path, label):
    """Press a button among the controls."""
    with open(path, "rb+", buffering=0) as video:
        control = bytearray(68)
        while True:
            number = struct.unpack_from("I", control)[0]
            struct.pack_into("I", control, 0, number | CTRL_FLAG_NEXT_CTRL)
            # Raises OSError after the last one.
            fcntl.ioctl(video, QUERYCTRL, control)
            if control[8:40].rstrip(b"\0") == label.encode():
                break
        fcntl.ioctl(video, S_CTRL, struct.pack("Ii", struct.unpack_from("I", control)[0], 1))


def buffer(video, index):
    """Return flags and memory of a buffer."""
    buffer = bytearray(struct.pack("4I72x", index, CAPTURE, 0, 0))
    fcntl.ioctl(video, QUERYBUF, buffer)
    return struct.unpack_from("I", buffer, 12)[0], struct.unpack_from("I", buffer, 60)[0]


def queued(path, count=8):
    """Return the numbers of the buffers that the camera may write, of those that are slots."""
    with open(path, "rb") as video:
        buffers = [buffer(video, index) for index in range(count)]
    assert {memory for _, memory in buffers} == {DMABUF}
    return {index for index, (flags, _) in enumerate(buffers) if flags & BUF_FLAG_QUEUED}


def export_buffer(path):
    """Return a dma-buf of a buffer of the driver's own."""
    with open(path, "rb+", buffering=0) as video:
        fcntl.ioctl(video, REQBUFS, struct.pack("3I8x", 1, CAPTURE, MMAP))
        flags = os.O_RDWR | os.O_CLOEXEC
        exported = fcntl.ioctl(video, EXPBUF, struct.pack("4I48x", CAPTURE, 0, 0, flags))
    return struct.unpack_from("i", exported, 16)[0]
