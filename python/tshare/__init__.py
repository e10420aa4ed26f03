# SPDX-License-Identifier: MIT
"""Shared memory for tensors, which processes find by name and map without a copy::

    import numpy as np
    import tshare

    t = tshare.create("frames", (8, 480, 640, 3), "uint8")   # named, zeroed
    a = np.asarray(t)                                        # no copy

    t = tshare.open("frames", readonly=True)                 # in another process

A Tensor offers the buffer protocol, the array interface and DLPack, so that
NumPy, PyTorch, JAX and others take it without a copy. The package itself needs
none of them. t.pin() page-locks the memory for copies to GPUs, and t.cuda() is the
same memory as a GPU sees it. Processes and GPUs take turns by generations: by
region.publish() and region.wait(), and by publish_on() and wait_on() on a CUDA stream.
A Stream hands frames from one process to others, which keep each as long as they need it. A
Pool keeps tensors under keys that many processes make and get. A Dataset shares a list of
Python's own objects.

Memory comes from a backend: "kmod", the kernel module, if it is available, else
"shm", POSIX shared memory. TSHARE_BACKEND=kmod or shm in the environment selects
one. The process opens one session with it, at its first use. The session's end,
and with it the process's, removes the names of regions that the process has made,
unless they were made with lifetime="persist".

Errors::

    ValueError          an argument is malformed
    TypeError           an argument has the wrong type
    BufferError         a protocol can't describe a tensor, or live views keep it open
    FileNotFoundError   no region has that name
    FileExistsError     the name is taken
    BlockingIOError     the region of that name is a draft, which is not finished
    PermissionError     access is denied
    TimeoutError        the timeout of a wait has passed
    EOFError            the producer has closed the stream, and no frame is left
    FrameLost           a frame of that number isn't there any more, or not yet
    OSError             the system refuses; errno is the one that the C library
                        documents, such as ENOMEM: the memory is unavailable
"""

from collections.abc import Mapping as _Mapping

from . import _pickling
from ._camera import Camera
from ._dataset import Dataset
from ._pickling import by_name
from ._streams import wait
from ._tshare import (
    CudaTensor,
    DType,
    Entry,
    Frame,
    FrameLost,
    Limits,
    Pin,
    Pool,
    PoolInfo,
    Region,
    RegionInfo,
    Stream,
    StreamSeat,
    StreamWait,
    Tensor,
    Watcher,
    array_interface,
    asarray,
    backend,
    create,
    from_dlpack,
    from_fd,
    host_id,
    limits,
    list,
    open,
    unlink,
    watch,
)
from ._tshare import (
    __version__ as __version__,
)

__all__ = [
    "Camera",
    "CudaTensor",
    "DType",
    "Dataset",
    "Entry",
    "Frame",
    "FrameLost",
    "Limits",
    "Pin",
    "Pool",
    "PoolInfo",
    "Region",
    "RegionInfo",
    "Stream",
    "StreamSeat",
    "StreamWait",
    "Tensor",
    "Watcher",
    "array_interface",
    "asarray",
    "backend",
    "by_name",
    "create",
    "from_dlpack",
    "from_fd",
    "host_id",
    "limits",
    "list",
    "open",
    "unlink",
    "wait",
    "watch",
]

_Mapping.register(Entry)
_Mapping.register(Frame)
_Mapping.register(Region)
_pickling.register()
