# SPDX-License-Identifier: MIT
"""A camera that several processes open: the first one reads the device for all."""

from __future__ import annotations

import contextlib
import errno
import math
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from . import _tshare
from ._timeouts import deadline, seconds_of
from ._tshare import Frame, Region, Stream

# Of Frame.flags, beside V4L2's 32 bits: the source has no more frames, and this is none.
_ENDED = 1 << 63
_RETRY_S = 0.05
# How long a device may be busy whose owner was killed just now.
_BUSY_S = 2


class _Function:
    """A source that is called for each frame, which is copied once."""

    copies = "a function returns them"

    def __init__(self, source: Any, slots: int) -> None:
        self.call: Callable[[], Any] = source if callable(source) else source.__next__
        self.image = self._next()
        if self.image is None:
            raise EOFError("source: has no frame")
        self.fields = {"image": (self.image.shape, self.image.dtype)}
        self.options = {"slots": slots}

    def close(self) -> None:
        pass

    def _next(self) -> Any:
        import numpy as np

        try:
            image = self.call()
        except StopIteration:
            return None
        if isinstance(image, tuple):
            if len(image) != 2:
                raise ValueError(f"source: returned {len(image)} values, not (ok, array)")
            image = image[1] if image[0] else None
        if image is None:
            return None
        array = np.asarray(image)
        if array.dtype.hasobject:
            raise TypeError(f"source: must return arrays of numbers, not {type(image)!r}")
        return array

    def run(self, stream: Stream, stop: threading.Event) -> None:
        """Publish frames until stop is set; after the last one a frame says so."""
        shape, dtype = self.image.shape, self.image.dtype
        while self.image is not None and not stop.is_set():
            if (self.image.shape, self.image.dtype) != (shape, dtype):
                raise ValueError(
                    f"source: returned {self.image.dtype} {self.image.shape}, and {dtype} {shape} "
                    "before"
                )
            # Without a free slot the frame is lost, as with a device.
            with contextlib.suppress(TimeoutError), stream.loan(0) as frame:
                frame["image"].copy_from(self.image)
            self.image = self._next()
        while self.image is None and not stop.is_set():
            with contextlib.suppress(TimeoutError), stream.loan(_RETRY_S) as frame:
                frame.flags = _ENDED
                stop.set()


def _left(until: float) -> float:
    return max(until - time.monotonic(), 0.0)


def _open_source(until: float, source: Any, slots: int, dma32: bool) -> Any:
    if callable(source) or isinstance(source, Iterator):
        return _Function(source, slots)
    from ._v4l2 import V4L2

    path = os.fsdecode(f"/dev/video{source}" if isinstance(source, int) else source)
    busy_until = time.monotonic() + _BUSY_S
    while True:
        try:
            return V4L2(path, slots, dma32)
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            text = f"source: {path} is in use by another program"
            if time.monotonic() > busy_until:
                raise OSError(errno.EBUSY, text) from None
            if time.monotonic() >= until:
                raise TimeoutError(text) from None
        time.sleep(min(_RETRY_S, _left(until)))


def _left_by_the_dead(name: str) -> Region | None:
    """Return the region if its publishers have died, and a child that was forked has the name."""
    with contextlib.suppress(FileNotFoundError, BlockingIOError, PermissionError):
        region = Region.open(name, readonly=True)
        try:
            region.has_publishers()
        except OSError as error:
            if error.errno != errno.EOWNERDEAD:
                raise
            return region
    return None


class _Owner:
    """Reads the source in a thread, and publishes what it gets."""

    def __init__(
        self, claim: _tshare.Tensor, until: float, name: str, mode: int, *source: Any
    ) -> None:
        self.claim = claim
        self.error: BaseException | None = None
        self.stop = threading.Event()
        self.source: Any = None
        self.stream: Stream | None = None
        try:
            # A child by fork() holds the name, too, but is no publisher.
            claim.region.announce()
            self.source = _open_source(until, *source)
            fields, options = self.source.fields, self.source.options
            replace = _left_by_the_dead(name) is not None
            self.stream = Stream.create(name, fields, mode=mode, exist_ok=replace, **options)
        except BaseException:
            self._let_go()
            raise
        self.thread = threading.Thread(target=self._run, name=f"camera {name}", daemon=True)

    def _let_go(self) -> None:
        # The next owner opens the device when it has the claim.
        if self.source:
            self.source.close()
        if self.stream:
            self.stream.close()
        with contextlib.suppress(FileNotFoundError):
            self.claim.unlink()

    def _run(self) -> None:
        try:
            self.source.run(self.stream, self.stop)
        except BaseException as error:
            self.error = error
        self._let_go()

    def raise_error(self) -> None:
        # Its traceback leads to this object.
        error, self.error = self.error, None
        try:
            if error:
                raise error
        finally:
            del error

    def close(self) -> None:
        self.stop.set()
        if not self.thread.ident:  # it wasn't started
            self._let_go()
        elif threading.current_thread() is not self.thread:
            self.thread.join(_BUSY_S)  # a function may block


class Camera(Iterator[Frame]):
    """A camera that any number of processes open by one name, and read in place.

    The first one to open it owns the device, and publishes a stream of that name. If the owner
    releases it, exits or is killed, one of the others opens the device and goes on::

        camera = tshare.Camera("/dev/video0", "front")
        while camera.isOpened():
            ok, image = camera.read()

    read(), isOpened() and release() are those of OpenCV's VideoCapture, but for the image: it can't
    be written, has the pixel format that is set on the device, and holds a slot until it and its
    views are gone. Iterate, also by async for, to get frames with time and sequence; take() and
    latest() return them, too. Threads may share an object. A child by fork() opens its own.

    :param source: Path or number of a V4L2 device, whose frames aren't copied if the backend is
        kmod and its driver imports dma-bufs. Or a function or iterator that returns an array for
        each frame, always of one shape and dtype, or a tuple (ok, array); the owner calls it in a
        thread, and copies once. None, a false ok and StopIteration end the stream for all.
    :param name: Name of the stream, of up to 120 bytes. The region NAME.owner says that there is
        an owner.
    :param slots: Frames that there is memory for, 2 to 256; a driver may demand more.
    :param hold: Frames that this object may hold at a time; None for a quarter of the slots, at
        least 2.
    :param dma32: Demand memory below 4 GiB, for a device with 32-bit addresses.
    :param mode: Permission bits of the stream, as of Stream.create().
    :param wait: Seconds to wait for the owner's stream, here and, if a call's timeout is longer,
        when the owner changes.
    :raises FileExistsError: The name is taken by what is no camera.
    :raises EOFError: The function has no frame.
    :raises TimeoutError: An owner exists, and its stream didn't appear.
    :raises ValueError: An argument is malformed.
    :raises TypeError: source has a wrong type.
    :raises OSError: The device can't be opened. EBUSY: another program uses it. ENOTTY: it is no
        camera with the single-planar API. EOPNOTSUPP: its pixel format isn't supported. Also as
        of Stream.create() and Stream.open().
    """

    def __init__(
        self,
        source: Any,
        name: str,
        *,
        slots: int = 8,
        hold: int | None = None,
        dma32: bool = False,
        mode: int = 0o600,
        wait: float = 10.0,
    ) -> None:
        if not callable(source) and not isinstance(source, (int, str, os.PathLike, Iterator)):
            raise TypeError(
                f"source: must be a device, a function or an iterator, not {type(source)!r}"
            )
        self._name, self._hold, self._wait = name, hold, seconds_of(wait, "wait")
        self._owning = (name, mode, source, slots, dma32)
        self._lock = threading.Lock()
        self._owner: _Owner | None = None
        self._ended = self._released = False
        self._joined: int | None = None
        self._join(math.inf)

    def _join(self, until: float) -> None:
        """Own the camera if nobody does, and open its stream."""
        wait = min(self._wait, _left(until))
        no_stream = time.monotonic() + wait
        while not (self._released or self._claim(until)):
            pause = min(_RETRY_S, _left(no_stream))
            # FileNotFoundError: the owner died meanwhile.
            with contextlib.suppress(FileNotFoundError, BlockingIOError, TimeoutError):
                stream = Stream.open(self._name, hold=self._hold, wait=pause)
                # The name may still lead to the last owner's.
                if stream.region.id != self._joined:
                    self._stream, self._joined = stream, stream.region.id
                    return
                stream.close()
                time.sleep(pause)
            if time.monotonic() >= no_stream:
                raise TimeoutError(
                    f"name: {self._name!r} has an owner, but no stream for {wait:.3g} s"
                )

    def _claim(self, until: float) -> bool:
        name, mode, *source = self._owning
        try:
            # unlink() takes the name from that region alone, and create() gives it to one process.
            if (dead := _left_by_the_dead(f"{name}.owner")) is not None:
                with contextlib.suppress(FileNotFoundError):
                    dead.unlink()
            claim = _tshare.create(f"{name}.owner", (1,), "uint8")
        except (FileExistsError, PermissionError):
            return False
        owner = _Owner(claim, until, name, mode, *source)
        finalizer = weakref.finalize(self, owner.close)
        try:
            self._stream = Stream.open(name, hold=self._hold)
            # The first frame is this object's, too.
            owner.thread.start()
        except BaseException:
            finalizer()
            raise
        self._finalizer, self._owner = finalizer, owner
        return True

    @contextlib.contextmanager
    def _outliving_the_owner(self) -> Iterator[None]:
        """Go on after the errors that say that the owner has gone, or that release() was called."""
        try:
            yield
        except (EOFError, OSError, ValueError) as error:
            gone = isinstance(error, EOFError) or getattr(error, "errno", 0) == errno.EOWNERDEAD
            if not (gone or self._released):
                raise

    def _move(self, old: Stream, until: float) -> None:
        """Find the next owner's stream."""
        if not self._lock.acquire(timeout=min(_left(until), threading.TIMEOUT_MAX)):
            raise TimeoutError("timeout: another thread still waits for the next owner's stream")
        try:
            if self.isOpened() and self._stream is old:
                try:
                    if self._owner:  # it failed, or Python exits
                        self._ended = True
                        self._owner.raise_error()
                    else:
                        self._join(until)
                except EOFError:  # this object's own source has no frame
                    self._ended = True
                    raise
        finally:
            self._lock.release()
        if self._released:
            self.release()

    def _current(self) -> Stream:
        if not self.isOpened():
            raise EOFError(
                "camera: release() was called" if self._released else "camera: the source has ended"
            )
        return self._stream

    def _is_frame(self, frame: Frame) -> bool:
        # Another thread may have seen the end, and this one has taken a frame before.
        if frame.flags & _ENDED:
            self._ended = True
            return False
        return True

    def _get(self, method: Callable[[Stream, float], Frame], timeout: float | None) -> Frame:
        until = deadline(timeout)
        while True:
            stream = self._current()
            with self._outliving_the_owner():
                frame = method(stream, _left(until))
                if self._is_frame(frame):
                    return frame
            self._move(stream, until)

    def take(self, timeout: float | None = None) -> Frame:
        """Take the next frame, in order, as Stream.take() does.

        :param timeout: Seconds to wait for it. 0: don't sleep. None: no limit.
        :raises TimeoutError: No frame came in time.
        :raises EOFError: The source has ended, or release() was called.
        :raises OSError: As of Stream.take() but EOWNERDEAD, and what the source raises.
        """
        return self._get(Stream.take, timeout)

    def latest(self, timeout: float | None = None) -> Frame:
        """Take the newest frame, and pass over older ones, with the same errors."""
        return self._get(Stream.latest, timeout)

    async def take_async(self, timeout: float | None = None) -> Frame:
        """Take the next frame as take() does, in asyncio."""
        import asyncio

        until = deadline(timeout)
        while True:
            stream = self._current()
            with self._outliving_the_owner():
                frame = await stream.take_async(_left(until))
                if self._is_frame(frame):
                    return frame
            await asyncio.to_thread(self._move, stream, until)

    def read(self, timeout: float | None = None) -> tuple[bool, Any]:
        """Return (True, image) of the next frame, or (False, None) after the last one.

        The image is NumPy's view of the slot. Errors are those of take() but EOFError.
        """
        return self._image(self.take, timeout)

    def read_latest(self, timeout: float | None = None) -> tuple[bool, Any]:
        """Return (True, image) of the newest frame, or (False, None) after the last one."""
        return self._image(self.latest, timeout)

    @staticmethod
    def _image(take: Callable[[float | None], Frame], timeout: float | None) -> tuple[bool, Any]:
        try:
            return True, take(timeout)["image"].numpy()
        except EOFError:
            return False, None

    def __next__(self) -> Frame:
        try:
            return self.take()
        except EOFError:
            raise StopIteration from None

    def __aiter__(self) -> Camera:
        return self

    async def __anext__(self) -> Frame:
        try:
            return await self.take_async()
        except EOFError:
            raise StopAsyncIteration from None

    @property
    def stream(self) -> Stream:
        """The consumer of the present owner's stream."""
        return self._stream

    @property
    def copies(self) -> str | None:
        """Why each frame is copied once; None if it isn't, or if this object isn't the owner."""
        return self._owner.source.copies if self._owner else None

    @property
    def owner(self) -> bool:
        """Whether this object reads the device."""
        return self._owner is not None and self.isOpened()

    def isOpened(self) -> bool:  # noqa: N802
        """Whether frames may come: neither has the source ended, nor was release() called."""
        return not (self._ended or self._released)

    def release(self) -> None:
        """Leave the camera. If this object owns it another one goes on. Images stay as they are."""
        # Without the lock: a signal's handler may interrupt _move(), which closes what it got.
        self._released = True
        self._stream.close()
        if self._owner:
            self._finalizer()

    def __enter__(self) -> Camera:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
