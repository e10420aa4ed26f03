# SPDX-License-Identifier: MIT
"""External memory: whose dma-bufs the driver imports. Recorded, since that is up to it.

Each is tried by the driver alone, without tshare, with whatever exporters the machine has.
"""

import ctypes
import fcntl
import glob
import mmap
import os
import struct

import driver
from checks import SkipError, address_of, check, host_address, words

NBYTES = 4 << 20
PAGE = -mmap.PAGESIZE

UDMABUF_CREATE = 0x40187542
UDMABUF_CLOEXEC = 1
DMA_HEAP_ALLOC = 0xC0184800
DMA_BUF_SYNC = 0x40086200
SYNC_READ_START, SYNC_READ_END = 1, 5


def try_import(fd, address=None):
    """Import a dma-buf, and have a kernel write to it; address is where the CPU sees it."""
    import numpy as np

    kernels = driver.Kernels()
    try:
        imported = driver.Dmabuf(fd, NBYTES)
    except driver.CudaError as error:
        return {"import": str(error)}
    found = {"import": "ok"}
    try:
        kernels.fill(imported.address, NBYTES // 4, 3)
        driver.synchronize()
    except driver.CudaError as error:
        return found | {"write": str(error)}
    found["write"] = "ok"
    if address:
        seen = np.ctypeslib.as_array((ctypes.c_uint32 * (NBYTES // 4)).from_address(address))
        found["seen"] = bool((seen == np.arange(3, 3 + NBYTES // 4, dtype="uint32")).all())
    imported.release()
    return found


def open_device(path):
    try:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise SkipError(f"{path}: {error.strerror}") from None


def map_shared(fd):
    """Map a descriptor, and return the mapping and its address."""
    mapping = mmap.mmap(fd, NBYTES)
    return mapping, ctypes.addressof(ctypes.c_char.from_buffer(mapping))


@check(recorded=True)
def udmabuf():
    device = open_device("/dev/udmabuf")
    memory = os.memfd_create("udmabuf", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    os.ftruncate(memory, NBYTES)
    fcntl.fcntl(memory, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
    driver.enter()
    fd = fcntl.ioctl(device, UDMABUF_CREATE, struct.pack("IIQQ", memory, 1, 0, NBYTES))
    mapping, address = map_shared(memory)
    return try_import(fd, address)


@check(recorded=True)
def dma_heaps():
    heaps = sorted(glob.glob("/dev/dma_heap/*"))
    if not heaps:
        raise SkipError("there is no /dev/dma_heap")
    driver.enter()
    found = {}
    for heap in heaps:
        asked = bytearray(struct.pack("QIIQ", NBYTES, 0, os.O_RDWR | os.O_CLOEXEC, 0))
        fcntl.ioctl(open_device(heap), DMA_HEAP_ALLOC, asked)
        fd = struct.unpack("QIIQ", asked)[1]
        mapping, address = map_shared(fd)
        fcntl.ioctl(fd, DMA_BUF_SYNC, struct.pack("Q", SYNC_READ_START))
        found[heap] = try_import(fd, address)
        fcntl.ioctl(fd, DMA_BUF_SYNC, struct.pack("Q", SYNC_READ_END))
    return found


def export(address):
    try:
        return driver.export_dmabuf(address, NBYTES)
    except driver.CudaError as error:
        return str(error)


@check(recorded=True)
def cuda_s_own():
    """Dma-bufs that CUDA exports: of its memory on either side, and of a pinned region."""
    driver.enter()
    host, device = driver.Host(NBYTES), driver.Device(NBYTES)
    tensor = words(NBYTES // 4)
    pin = tensor.pin()
    sources = {
        "host": (host.device, host.address),
        "device": (device.address, None),
        "pinned_region": (address_of(tensor.cuda(0)) & PAGE, host_address(tensor) & PAGE),
    }
    found = {}
    for name, (address, seen_at) in sources.items():
        fd = export(address)
        found[name] = {"export": fd} if isinstance(fd, str) else try_import(fd, seen_at)
    pin.release()
    return found
