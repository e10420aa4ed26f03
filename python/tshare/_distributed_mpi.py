# SPDX-License-Identifier: MIT
"""A communicator of mpi4py as the engine of tshare.distributed."""

from __future__ import annotations

import time
from typing import Any

from mpi4py import MPI

from ._distributed_call import check_fork
from ._tshare import Region

# Apart from the messages of the program; MPI allows tags up to 32767.
_TAG = 0x7453

# Requests of failed calls. MPI may still write to their memory, which they keep.
_kept: list[Any] = []

# An attribute of communicators with such requests, which would take the messages of another call.
_FAILED = MPI.Comm.Create_keyval()


class MpiEngine:
    timeout: float | None = None

    def __init__(self, group: Any) -> None:
        check_fork(MPI)
        if group == MPI.COMM_NULL:
            raise ValueError("group: this process is none of its ranks")
        if not isinstance(group, MPI.Intracomm):
            raise TypeError(f"group: must be an intracommunicator of mpi4py, not {type(group)}")
        if MPI.Query_thread() != MPI.THREAD_MULTIPLE:
            raise ValueError("group: MPI was initialized without MPI_THREAD_MULTIPLE")
        if group.Get_attr(_FAILED):
            raise ConnectionError("group: a call has failed in it; give a Dup() of it")
        self._group = group
        self._is_closed = False
        self.rank, self.size = group.rank, group.size

    def memory(self, found: Region | bytearray) -> memoryview:
        return memoryview(found)

    def isend(self, memory: memoryview, peer: int) -> Any:
        return self._group.Isend([memory, MPI.BYTE], peer, _TAG)

    def irecv(self, memory: memoryview, peer: int) -> Any:
        return self._group.Irecv([memory, MPI.BYTE], peer, _TAG)

    def wait(self, work: Any, seconds: float) -> None:
        begin = time.monotonic()
        while not work.Test():
            passed = time.monotonic() - begin
            if self._is_closed or passed > seconds:
                raise RuntimeError("no message has come")
            # MPI moves bytes while it is asked. Other processes may need the processor for that.
            time.sleep(0 if passed < 0.01 else min(passed / 100, 0.001))

    def close(self, works: list[Any]) -> None:
        """Give up. MPI can't close connections: other ranks wait until their time has passed."""
        self._is_closed = True
        self._group.Set_attr(_FAILED, True)
        _kept.extend(works)
