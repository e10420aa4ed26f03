# SPDX-License-Identifier: MIT
"""Read-only regions: whatever a GPU tries, their bytes stay.

A kernel that writes to such a region may take its process's context along. So another process
tries it, and what it finds is recorded: the hardware decides.
"""

import errno
import json
from pathlib import Path

import driver
from checks import Other, check, equal, same, unused_name, words

COUNT = 1 << 16  # words

TRY = """
import json
import os
import sys
sys.path.insert(0, sys.argv[1])
import readonly
print(json.dumps(getattr(readonly, sys.argv[2])(*sys.argv[3:])), flush=True)
# Without a context that works, the driver may complain at the end.
os._exit(0)
"""


def outcome(action):
    """Return "ok" or the error of what may fail."""
    try:
        action()
    except (driver.CudaError, OSError) as error:
        return str(error)
    return "ok"


def try_kernel(name, path):
    """Have kernels read and write a region that is opened read-only."""
    import tshare
    from checks import address_of

    driver.enter()
    kernels = driver.Kernels()
    kernels.load()
    try:
        g = tshare.open(name, readonly=True).cuda(0, path=path)
    except OSError as error:
        return {"import": str(error)}
    found = {"import": "ok"}
    total = driver.Device(64)

    def read():
        total.write(bytes(64))
        kernels.sum(address_of(g), g.nbytes, total.address)
        found["sum"] = total.number()

    def write():
        kernels.fill(address_of(g), 1, 0xBAD)
        driver.synchronize()

    found["read"] = outcome(read)
    found["write"] = outcome(write)
    return found


def try_copy(name):
    """Have the driver copy from and to a region that is opened read-only, and pinned."""
    import tshare
    from checks import host_address

    driver.enter()
    tensor = tshare.open(name, readonly=True)
    try:
        pin = tensor.pin()
    except OSError as error:
        return {"pin": str(error)}
    found = {"pin": "ok", "readonly": pin.readonly}
    memory = driver.Device(tensor.nbytes)

    def copy(way):
        way(host_address(tensor))
        driver.synchronize()

    found["from"] = outcome(lambda: copy(memory.write))
    # What is copied to the region is other than what is there.
    memory.write(bytes(tensor.nbytes))
    found["to"] = outcome(lambda: copy(memory.read))
    return found


def untouched(attempt, *arguments):
    """Have another process make an attempt on a read-only region, and assert that it stays."""
    name = unused_name("readonly")
    tensor = words(COUNT, name)
    wanted = tensor.numpy().copy()
    other = Other(TRY, Path(__file__).parent, attempt, name, *arguments)
    output, _ = other.process.communicate()
    status = other.process.returncode
    same(tensor.numpy(), wanted, "words of the read-only region")
    # A signal may be the driver's answer, too.
    assert status <= 0, f"the other process has ended with exit status {status}"
    lines = output.splitlines()
    found = json.loads(lines[-1]) if lines else {"exit_status": status}
    if "sum" in found:
        equal(found["sum"], int(wanted.sum(dtype="uint64")), "the sum that a kernel finds")
    figures = {"read_only_host_register": driver.attribute("read_only_host_register")}
    return figures | found


@check
def mark():
    """The first path that works says that the memory is read-only."""
    import tshare

    name = unused_name("mark")
    keep = words(COUNT, name)
    driver.enter()
    try:
        g = tshare.open(name, readonly=True).cuda(0)
    except OSError as error:
        equal(error.errno, errno.EOPNOTSUPP, f"{error}: errno")
        return {"import": str(error)}
    assert g.readonly, "not marked as read-only"
    assert g.__cuda_array_interface__["data"][1], "the array interface lacks the mark"
    assert not keep.cuda(0).readonly, "the writable tensor is marked as read-only"
    return {"path": g.path, "failures": g.failures}


@check
def kernel_on_dmabuf():
    found = untouched("try_kernel", "dmabuf")
    assert found.get("import") != "ok", "CUDA was given a read-only dma-buf"
    return found


@check
def kernel_on_registered():
    return untouched("try_kernel", "registered")


@check
def kernel_on_pageable():
    return untouched("try_kernel", "pageable")


@check
def copies():
    return untouched("try_copy")
