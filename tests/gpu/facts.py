# SPDX-License-Identifier: MIT
"""What the machine is: recorded, so that the other results can be read."""

import glob
import importlib.metadata
import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import driver
from checks import SkipError, check

PACKAGES = (
    "numpy",
    "torch",
    "cupy-cuda13x",
    "jax",
    "jaxlib",
    "numba",
    "numba-cuda",
    "cuda-core",
    "cuda-bindings",
    "setuptools",
)

FILES = (
    "/proc/driver/nvidia/version",
    "/proc/driver/nvidia/params",
    "/sys/module/nvidia_uvm/parameters/uvm_disable_hmm",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/kernel/mm/transparent_hugepage/shmem_enabled",
    "/proc/sys/vm/max_map_count",
)

DEVICES = ("/dev/tshare", "/dev/udmabuf", "/dev/dma_heap/*", "/dev/nvidia*")


@check(recorded=True)
def gpu():
    """The driver and the device's attributes; None for one that the driver doesn't know."""
    return {
        "driver_version": driver.version(),
        "device": driver.device_name(),
        "attributes": {name: driver.attribute(name) for name in driver.DEVICE_ATTRIBUTES},
    }


@check(recorded=True)
def machine():
    def text(path):
        try:
            return Path(path).read_text().strip()
        except OSError as error:
            return error.strerror

    def version(package):
        try:
            return importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            return None

    meminfo = dict(line.split(":") for line in text("/proc/meminfo").splitlines())
    return {
        "kernel": platform.release(),
        "cpus": os.cpu_count(),
        "memory": meminfo["MemTotal"].strip(),
        "shm_free_bytes": shutil.disk_usage("/dev/shm").free if os.path.isdir("/dev/shm") else 0,
        "python": sys.version,
        "packages": {package: version(package) for package in PACKAGES},
        "files": {path: text(path) for path in FILES},
        "devices": [path for pattern in DEVICES for path in sorted(glob.glob(pattern))],
    }


@check
def info():
    """The command reports the driver that the checks see."""
    shown = subprocess.run([sys.executable, "-m", "tshare", "info", "--json"], capture_output=True)
    if b"neither in this package nor in PATH" in shown.stderr:
        raise SkipError("the package was built without the command: it needs libsmartcols-dev")
    assert not shown.returncode, shown.stderr
    found = json.loads(shown.stdout)
    assert str(driver.version()) in json.dumps(found["cuda"]), f"info: {found}"
    return {"info": found}
