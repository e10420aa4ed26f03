# SPDX-License-Identifier: MIT
"""Shared memory for tensors.

    import numpy as np
    import tshare

    t = tshare.create("frames", (8, 480, 640, 3), "uint8")   # named, zeroed
    a = np.asarray(t)                                        # no copy

    t = tshare.open("frames", readonly=True)                 # in another process

A Tensor offers the buffer protocol, the array interface and DLPack, so that
NumPy, PyTorch, JAX and others take it without a copy; none of them is needed
here.

The process opens one session with the backend, the kernel module or POSIX
shared memory, when it first needs it; TSHARE_BACKEND=kmod or shm in the
environment forces one. Names of regions go when the session does, which is
when the process has ended, unless they were made with
lifetime="persist".

Errors: ValueError for an argument that is malformed, TypeError for one of the
wrong type, OSError for what the system refuses, with the errno that the C
library documents; so a name that is not there is FileNotFoundError, one that
is taken FileExistsError, a denied access PermissionError, and memory that is
not to be had OSError with ENOMEM. BufferError says that a protocol can't
describe a tensor, or that live views keep it open.
"""

from collections.abc import Mapping as _Mapping

from . import _pickling
from ._tshare import (
    Limits,
    Region,
    RegionInfo,
    Tensor,
    __version__,
    array_interface,
    asarray,
    backend,
    create,
    from_dlpack,
    from_fd,
    limits,
    list,
    open,
    unlink,
)

__all__ = [
    "Limits",
    "Region",
    "RegionInfo",
    "Tensor",
    "array_interface",
    "asarray",
    "backend",
    "create",
    "from_dlpack",
    "from_fd",
    "limits",
    "list",
    "open",
    "unlink",
]

_Mapping.register(Region)
_pickling.register()
