# SPDX-License-Identifier: MIT
"""A group of torch.distributed as the engine of tshare.distributed."""

from __future__ import annotations

import contextlib
import warnings
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from ._distributed_call import check_fork
from ._tshare import Region

# Apart from the messages of the program.
_TAG = 0x7453
_TAG_NEVER_SENT = 0x7454

_REMEDY = "make one in all ranks by torch.distributed.new_group(backend='gloo')"


class TorchEngine:
    def __init__(self, group: Any) -> None:
        if not (dist.is_available() and dist.is_initialized()):
            raise ValueError(
                "group: torch.distributed is not initialized (run torchrun, and "
                "torch.distributed.init_process_group('gloo'))"
            )
        # All other groups end with this one.
        check_fork(dist.group.WORLD)
        self._group: Any = dist.group.WORLD if group is None else group
        if self._group is dist.GroupMember.NON_GROUP_MEMBER:
            raise ValueError("group: this process is none of its ranks")
        if not isinstance(self._group, dist.ProcessGroup):
            raise TypeError(
                "group: must be a group of torch.distributed or a communicator of mpi4py, "
                f"not {type(group)}"
            )
        limit = getattr(getattr(self._backend(), "options", None), "_timeout", None)
        self.timeout = limit.total_seconds() if limit else None
        self.rank, self.size = self._group.rank(), self._group.size()

    def _backend(self) -> Any:
        # Before PyTorch 2.0 a group is its only backend.
        if not hasattr(self._group, "_get_backend"):
            return self._group
        try:
            return self._group._get_backend(torch.device("cpu"))
        except RuntimeError:
            raise ValueError(f"group: has no backend for the CPU ({_REMEDY})") from None

    def memory(self, found: Region | bytearray) -> torch.Tensor:
        # frombuffer() keeps this object alone, which keeps the memory, also of a closed region.
        view = memoryview(found)
        if not view.readonly:
            return torch.frombuffer(view, dtype=torch.uint8)
        # The source's memory, which is only sent. Not for all: threads share the filters.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return torch.frombuffer(view, dtype=torch.uint8)

    def isend(self, memory: torch.Tensor, peer: int) -> Any:
        return self._group.send([memory], peer, _TAG)

    def irecv(self, memory: torch.Tensor, peer: int) -> Any:
        return self._group.recv([memory], peer, _TAG)

    def wait(self, work: Any, seconds: float) -> None:
        work.wait(timedelta(seconds=seconds))

    def close(self, works: list[Any]) -> None:
        """Close the group's connections, so that ranks that wait for this one don't wait longer.

        gloo has no other way: a wait that times out closes all, if its own wasn't closed before.
        """
        for peer in (peer for peer in range(self.size) if peer != self.rank):
            with contextlib.suppress(RuntimeError):
                never = torch.empty(1, dtype=torch.uint8)
                work = self._group.recv([never], peer, _TAG_NEVER_SENT)
                work.wait(timedelta(milliseconds=1))
