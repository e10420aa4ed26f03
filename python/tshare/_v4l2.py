# SPDX-License-Identifier: MIT
"""V4L2 cameras that fill the slots of a stream, by the single-planar API."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import mmap
import os
import select
import struct
import threading
import weakref
from typing import Any

from ._tshare import DType, Frame, Stream, limits

# How the pixels of a format lie in a row: the type and the number of their elements.
_PIXELS = {
    b"YUYV": ("uint8", 2),
    b"UYVY": ("uint8", 2),
    b"RGB3": ("uint8", 3),
    b"BGR3": ("uint8", 3),
    b"GREY": ("uint8", 1),
    b"Y16 ": ("uint16", 1),
}

_POLL_MS = 50
_TIMEOUT_MS = 10000
# Buffers of the driver's own, where each frame is copied.
_OWN_BUFFERS = 4

# Of <linux/videodev2.h> and <linux/dma-buf.h>, on 64-bit machines.
_CAPTURE = 1
_MMAP, _DMABUF = 1, 4
_FLAG_ERROR, _FLAG_TIME_MASK, _FLAG_TIME_MONOTONIC = 0x40, 0xE000, 0x2000
_G_FMT, _REQBUFS, _QUERYBUF = 0xC0D05604, 0xC0145608, 0xC0585609
_QBUF, _DQBUF, _STREAMON = 0xC058560F, 0xC0585611, 0x40045612
_DMA_BUF_SYNC, _SYNC_READ, _SYNC_END = 0x40086200, 1, 4


class _Place(ctypes.Union):
    _fields_ = (("offset", ctypes.c_uint32), ("userptr", ctypes.c_ulong), ("fd", ctypes.c_int32))


class _Buffer(ctypes.Structure):
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
        ("m", _Place),
        ("length", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("request_fd", ctypes.c_int32),
    )


def _sync(fd: int, flags: int) -> None:
    """Make the caches of devices and processors agree; on most machines that is nothing."""
    fcntl.ioctl(fd, _DMA_BUF_SYNC, struct.pack("Q", flags))


# Open cameras, whose nodes a child by fork() closes: it would keep the device busy.
_cameras: weakref.WeakSet[V4L2] = weakref.WeakSet()


def _close_in_child() -> None:
    for camera in _cameras:
        os.close(camera.fd)
    _cameras.clear()  # a child of this one may have other files there


os.register_at_fork(after_in_child=_close_in_child)


class V4L2:
    """A camera: buffer i is slot i of the stream, or each frame is copied once."""

    def __init__(self, path: str, slots: int, dma32: bool) -> None:
        self.path = path
        self.fd = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            self._read_format()
            self._request(slots, dma32)
        except BaseException:
            os.close(self.fd)
            raise
        _cameras.add(self)

    def close(self) -> None:
        """Close the node, which stops the camera."""
        _cameras.discard(self)
        os.close(self.fd)

    def _read_format(self) -> None:
        form = bytearray(struct.pack("I204x", _CAPTURE))
        try:
            fcntl.ioctl(self.fd, _G_FMT, form)
        except OSError as error:
            raise OSError(
                error.errno,
                f"source: {self.path} is no camera with the single-planar API: {error.strerror}",
            ) from None
        self.width, self.height, fourcc, _, self.row, self.size = struct.unpack_from("6I", form, 8)
        self.fourcc = fourcc
        name = fourcc.to_bytes(4, "little")
        if name not in _PIXELS:
            raise OSError(
                errno.EOPNOTSUPP,
                f"source: {self.path} has the pixel format {name!r}, "
                f"which isn't one of {', '.join(known.decode() for known in _PIXELS)}",
            )
        self.dtype, self.channels = _PIXELS[name]
        self.item = DType(self.dtype).itemsize

    def _request(self, slots: int, dma32: bool) -> None:
        """Settle where the frames are written: copies says why they are copied, or is None."""
        pixel = self.item * self.channels
        self.copies, count = None, slots
        if not limits().dmabuf:
            self.copies = "shared memory has no dma-bufs"
        elif self.row % pixel:
            self.copies = f"a row of {self.row} bytes isn't of whole pixels"
        else:
            try:
                count = self._request_buffers(_DMABUF, slots)
            except OSError as error:
                if error.errno != errno.EINVAL:
                    raise
                self.copies = "the driver imports no dma-bufs"
        rows, row = self.height, self.width
        if self.copies:
            self.buffers = self._request_buffers(_MMAP, _OWN_BUFFERS)
        else:
            # The camera may write all of its picture's size.
            rows, row = -(-self.size // self.row), self.row // pixel
        self.fields = {
            "image": ((rows, row, self.channels), self.dtype),
            "fourcc": ((), "uint32"),
        }
        self.options = {
            "slots": count,
            "dma32": dma32 and not self.copies,
            "contiguous": not self.copies,
        }

    def _request_buffers(self, memory: int, count: int) -> int:
        """Return the number of buffers, which is the driver's decision."""
        self.memory = memory
        request = struct.pack("5I", count, _CAPTURE, memory, 0, 0)
        answer: bytes = fcntl.ioctl(self.fd, _REQBUFS, request)
        return int(struct.unpack_from("I", answer)[0])

    def _buffer(self, index: int = 0, fd: int = 0) -> _Buffer:
        return _Buffer(index=index, type=_CAPTURE, memory=self.memory, m=_Place(fd=fd))

    def _queue(self, index: int, fd: int = 0) -> None:
        fcntl.ioctl(self.fd, _QBUF, self._buffer(index, fd))

    def _dequeue(self) -> _Buffer | None:
        """Return a buffer that the camera has filled, or None."""
        with contextlib.suppress(BlockingIOError):
            fcntl.ioctl(self.fd, _DQBUF, buffer := self._buffer())
            return buffer
        return None

    def run(self, stream: Stream, stop: threading.Event) -> None:
        """Publish frames until stop is set."""
        stream.region["fourcc"].copy_from(self.fourcc)
        slots = _Copied(self, stream) if self.copies else _InPlace(self, stream)
        with contextlib.closing(slots):
            slots.prepare()
            self._run(slots, stop)

    def _run(self, slots: _Copied | _InPlace, stop: threading.Event) -> None:
        shape = (self.height, self.width, self.channels)
        poll, idle = select.poll(), 0
        poll.register(self.fd, select.POLLIN)
        slots.queue()
        fcntl.ioctl(self.fd, _STREAMON, struct.pack("i", _CAPTURE))
        while not stop.is_set():
            # Consumers give slots back meanwhile.
            idle = 0 if poll.poll(_POLL_MS) or not slots.are_queued() else idle + _POLL_MS
            if idle >= _TIMEOUT_MS:
                raise TimeoutError(f"{self.path} has sent nothing for {_TIMEOUT_MS // 1000} s")
            while buffer := self._dequeue():
                frame = slots.take(buffer)
                if frame and not buffer.flags & _FLAG_ERROR:
                    frame.set_shape("image", shape)
                    _publish(frame, buffer)
                del frame  # abandons a damaged one
            slots.queue()


def _publish(frame: Frame, buffer: _Buffer) -> None:
    if buffer.flags & _FLAG_TIME_MASK == _FLAG_TIME_MONOTONIC:
        frame.captured = buffer.seconds * 10**9 + buffer.microseconds * 1000
    frame.sequence = buffer.sequence
    frame.flags = buffer.flags
    frame.publish()


class _InPlace:
    """The camera's buffer i is slot i. Queued buffers are loans."""

    def __init__(self, camera: V4L2, stream: Stream) -> None:
        self.camera, self.stream = camera, stream
        self.loans: dict[int, Frame] = {}
        self.fds: list[int] = []

    def prepare(self) -> None:
        """Make a dma-buf of each slot."""
        region = self.stream.region
        slots = region["image"]
        assert slots.strides is not None
        size = slots.strides[0]
        for i in range(self.stream.slots):
            self.fds.append(region.export(slots.byte_offset + i * size, size))
            _sync(self.fds[i], _SYNC_READ)

    def are_queued(self) -> bool:
        return bool(self.loans)

    def queue(self) -> None:
        """Queue the slots that nobody holds."""
        with contextlib.suppress(TimeoutError):
            while True:
                frame = self.stream.loan(0)
                _sync(self.fds[frame.slot], _SYNC_READ | _SYNC_END)
                self.camera._queue(frame.slot, self.fds[frame.slot])
                self.loans[frame.slot] = frame

    def take(self, buffer: _Buffer) -> Frame:
        """Return the frame that is in a buffer."""
        _sync(self.fds[buffer.index], _SYNC_READ)
        return self.loans.pop(buffer.index)

    def close(self) -> None:
        for fd in self.fds:
            os.close(fd)


class _Copied:
    """The camera's buffers are the driver's own, and always queued."""

    def __init__(self, camera: V4L2, stream: Stream) -> None:
        self.camera, self.stream = camera, stream
        self.images: list[Any] = []

    def prepare(self) -> None:
        """Map the buffers, and queue them."""
        import numpy as np

        camera = self.camera
        strides = (camera.row, camera.item * camera.channels, camera.item)
        shape = (camera.height, camera.width, camera.channels)
        for i in range(camera.buffers):
            fcntl.ioctl(camera.fd, _QUERYBUF, buffer := camera._buffer(i))
            memory = mmap.mmap(camera.fd, buffer.length, offset=buffer.m.offset)
            memory.madvise(mmap.MADV_DONTFORK)  # it would keep the node open
            self.images.append(np.ndarray(shape, camera.dtype, memory, 0, strides))
            camera._queue(i)

    def close(self) -> None:
        self.images.clear()

    def are_queued(self) -> bool:
        return True

    def queue(self) -> None:
        pass

    def take(self, buffer: _Buffer) -> Frame | None:
        """Return a frame that a buffer was copied to, or None if no slot is free."""
        try:
            frame = self.stream.loan(0)
            frame["image"].copy_from(self.images[buffer.index])
        except TimeoutError:
            frame = None
        self.camera._queue(buffer.index)
        return frame
