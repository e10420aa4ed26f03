# SPDX-License-Identifier: MIT
"""multiprocessing.managers, with a SharedMemoryManager for tshare's memory::

    from tshare.managers import SharedMemoryManager

The manager's process makes the memory, so the names are removed when that process
ends or is killed. The manager ends when the process that started it ends or is killed.
Nothing has to be cleaned up, and there is no resource tracker. Everything else is as in
the standard library.
"""

from __future__ import annotations

import os
import threading
from multiprocessing import managers as _std
from multiprocessing import process, util
from multiprocessing.managers import BaseManager, BaseProxy, SyncManager, Token
from typing import TYPE_CHECKING, Any, TypeVar

from . import _tshare, shared_memory

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["BaseManager", "BaseProxy", "SharedMemoryManager", "SyncManager", "Token"]

_SLT = TypeVar("_SLT", int, float, bool, str, bytes, None)


class _SharedMemoryTracker(_std._SharedMemoryTracker):  # type: ignore[name-defined,misc]
    """The names that a server made, or that were registered with it."""

    def destroy_segment(self, segment_name: str) -> None:
        util.debug(f"Destroy segment {segment_name!r} in pid {os.getpid()}")
        self.segment_names.remove(segment_name)
        try:
            _tshare.unlink(segment_name)
        except FileNotFoundError:
            pass  # another process has unlinked it


class SharedMemoryServer(_std.SharedMemoryServer):
    """The server in the manager's process."""

    public = [*_std.SharedMemoryServer.public, "create_segment"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # The standard server's __init__() would make a tracker of its own.
        _std.Server.__init__(self, *args, **kwargs)
        # An address in the abstract namespace is bytes.
        address: Any = self.address
        if isinstance(address, bytes):
            address = os.fsdecode(address)
        # A new list: the default is one object that all trackers share.
        self.shared_memory_context = _SharedMemoryTracker(f"shm_{address}_{os.getpid()}", [])
        util.debug(f"SharedMemoryServer started by pid {os.getpid()}")

    def create_segment(self, c: Any, size: int) -> str | Exception:
        """Make memory and return its name.

        Return an error for the caller to raise: if this raised it, the caller would get a
        RemoteError.
        """
        try:
            segment = shared_memory.SharedMemory(None, create=True, size=size)
        except Exception as error:
            return error
        segment.close()
        self.shared_memory_context.register_segment(segment.name)
        return segment.name


class SharedMemoryManager(_std.SharedMemoryManager):
    """A manager whose process makes SharedMemory and ShareableList objects.

    Their names are removed when the manager's process ends. A subclass of
    multiprocessing.managers.SharedMemoryManager.
    """

    _Server = SharedMemoryServer

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # The standard manager's __init__() would start a resource tracker first.
        BaseManager.__init__(self, *args, **kwargs)
        util.debug(f"{self.__class__.__name__} created by pid {os.getpid()}")

    @classmethod
    def _run_server(cls, *args: Any, **kwargs: Any) -> None:
        threading.Thread(target=_end_with_parent, daemon=True).start()
        super()._run_server(*args, **kwargs)  # type: ignore[misc]

    def SharedMemory(self, size: int) -> shared_memory.SharedMemory:  # noqa: N802
        """Return a SharedMemory of size bytes that the manager's process has made."""
        with self._Client(self._address, authkey=self._authkey) as connection:  # type: ignore[attr-defined]
            name = _std.dispatch(connection, None, "create_segment", (size,))  # type: ignore[attr-defined]
        if isinstance(name, Exception):
            raise name
        return shared_memory.SharedMemory(name)

    def ShareableList(  # noqa: N802
        self, sequence: Iterable[_SLT] | None
    ) -> shared_memory.ShareableList[_SLT]:
        """Return a ShareableList of the sequence that the manager's process has made."""

        def memory(name: None, create: bool, size: int) -> shared_memory.SharedMemory:
            return self.SharedMemory(size)

        made: shared_memory.ShareableList[_SLT] = shared_memory.ShareableList.__new__(
            shared_memory.ShareableList
        )
        shared_memory._list_init(memory)(made, sequence)
        return made


def _end_with_parent() -> None:
    """End the server when its parent process has ended without shutting it down."""
    parent = process.parent_process()
    if parent is not None:
        parent.join()
        server = getattr(process.current_process(), "_manager_server", None)
        if server is not None:
            server.stop_event.set()
