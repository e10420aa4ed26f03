# SPDX-License-Identifier: MIT
"""Waiting for any of several streams of frames."""

from __future__ import annotations

import math
import select
import threading
import time
from collections.abc import Iterable

from ._timeouts import seconds_of
from ._tshare import Stream

_LONGEST_MS = 2**31 - 1

# The main thread runs the handlers of signals. A signal that comes just before its sleep, or that
# another thread gets, doesn't end the sleep.
_SLICE_MS = 100


def _check_streams(streams: Iterable[Stream]) -> list[Stream]:
    known = list(streams)
    if not known:
        raise ValueError("streams: is empty, so nothing would end the wait")
    for i, stream in enumerate(known):
        if not isinstance(stream, Stream):
            raise TypeError(f"streams[{i}]: must be a Stream, not {type(stream)!r}")
        if stream.role == "producer":
            raise PermissionError(
                f"streams[{i}]: is the producer of {stream.name!r}; loan() waits for a free slot"
            )
    return list(dict.fromkeys(known))


def wait(streams: Iterable[Stream], timeout: float | None = None) -> list[Stream]:
    """Wait until any of several streams has a frame to take: for several producers.

    A stream is ready, too, if take() would raise an exception at once: at its end, after its
    producer's death, or when cancel() was called. A frame can go to another thread before this
    one takes it, so use take(0) if threads share a stream::

        while streams:
            for stream in tshare.wait(streams):
                try:
                    use(stream, stream.take(0))
                except EOFError:
                    streams.remove(stream)

    :param streams: Streams that were opened.
    :param timeout: Seconds to wait. 0: don't sleep. None: no limit.
    :returns: The ready ones, in the order given, each once; none if the seconds have passed.
    :raises ValueError: There is no stream, or one is closed, maybe meanwhile.
    :raises TypeError: An argument has a wrong type.
    :raises PermissionError: A stream is a producer's.
    """
    waiting, seconds = _check_streams(streams), seconds_of(timeout)
    until = time.monotonic() + seconds
    poll, holds, longest = None, [], 0
    while True:
        ready = [stream for stream in waiting if stream._is_ready()]
        left = until - time.monotonic() if seconds else 0.0
        if ready or left <= 0:
            return ready
        if poll is None:
            poll = select.poll()
            main = threading.current_thread() is threading.main_thread()
            longest = _SLICE_MS if main else _LONGEST_MS
            for stream in waiting:
                # Keeps the descriptor, which is readable when another thread closes the stream.
                holds.append(stream._hold())
                poll.register(stream.fileno(), select.POLLIN)
        poll.poll(math.ceil(min(left * 1000, longest)))
