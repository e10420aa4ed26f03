# SPDX-License-Identifier: MIT
"""What the checks are made of: their list, skips, other processes, what is left behind."""

import contextlib
import gc
import importlib
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

GROUPS = (
    "facts",
    "pin",
    "imports",
    "streams",
    "copies",
    "readonly",
    "libraries",
    "named",
    "external",
    "figures",
    "sanitizer",
)


class SkipError(Exception):
    """The check can't be made here, for the reason that is its text."""


class Check:
    def __init__(self, function, limit, recorded):
        self.name = f"{function.__module__}.{function.__name__}"
        self.function = function
        self.limit = limit
        self.recorded = recorded


_found = []


def check(function=None, *, limit=90, recorded=False):
    """Decorate a check: a function that raises if the check fails, and may return figures.

    A recorded check has no right answer. Its process is killed after limit seconds, which is a
    failure.
    """

    def add(function):
        _found.append(Check(function, limit, recorded))
        return function

    return add(function) if function else add


def load():
    """Return all checks, by name."""
    for group in GROUPS:
        importlib.import_module(group)
    return {check.name: check for check in _found}


def need(module):
    """Import a library that a check is about, or skip the check."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise SkipError(f"{module} can't be imported: {error}") from None


def need_torch():
    """Import PyTorch, or skip the check; that starts no CUDA."""
    torch = need("torch")
    if not torch.version.cuda:
        raise SkipError("PyTorch was built without CUDA")
    return torch


def equal(found, wanted, what):
    assert found == wanted, f"{what}: {found!r} in place of {wanted!r}"


def same(found, wanted, what):
    """Assert that two arrays have the same elements."""
    import numpy as np

    different = np.flatnonzero(np.asarray(found).ravel() != np.asarray(wanted).ravel())
    assert not different.size, f"{what}: {different.size} differ, the first is {different[0]}"


@contextlib.contextmanager
def refused(number, what):
    """Assert that a with block raises OSError with an errno."""
    try:
        yield
    except OSError as error:
        equal(error.errno, number, f"{what}: {error}: errno")
    else:
        raise AssertionError(f"{what} was not refused")


# Memory


def words(count, name=None):
    """Return a tensor of 32-bit words, 0, 1, 2, ..."""
    import numpy as np

    import tshare

    tensor = tshare.create(name, count, "uint32")
    np.asarray(tensor)[:] = np.arange(count, dtype="uint32")
    return tensor


def address_of(g):
    """Return the device's address of a CudaTensor."""
    return g.__cuda_array_interface__["data"][0]


def host_address(tensor):
    return tensor.__array_interface__["data"][0]


def mapped(address):
    """Whether the address lies in a mapping of this process."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        low, high = (int(bound, 16) for bound in line.split()[0].split("-"))
        if low <= address < high:
            return True
    return False


# Names of regions are this process's, and those of processes that it has started.
def unused_name(what):
    return f"tshare-gpu-{os.getpid()}-{what}"


# Other processes


class Other:
    """Another Python that runs code; its arguments are sys.argv[1:]."""

    def __init__(self, code, *arguments):
        self.process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def hear(self):
        """Return its next line."""
        line = self.process.stdout.readline()
        assert line, f"the other process has ended: {self.process.wait()}"
        return line.strip()

    def say(self, line=""):
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        """Wait for its end, which must be a success, and return what it printed."""
        output, _ = self.process.communicate()
        equal(self.process.returncode, 0, f"the other process printed {output!r}; its status")
        return output.strip()


# What is left behind


def _pinned_pages():
    """Return how many pages are pinned by anybody: None where the kernel doesn't count them."""
    counters = dict(line.split() for line in Path("/proc/vmstat").read_text().splitlines())
    if "nr_foll_pin_acquired" not in counters:
        return None
    return int(counters["nr_foll_pin_acquired"]) - int(counters["nr_foll_pin_released"])


def _state():
    import driver

    gc.collect()
    driver.synchronize()
    status = Path("/proc/self/status").read_text()
    return {
        "descriptors": len(os.listdir("/proc/self/fd")),
        "mappings": len(Path("/proc/self/maps").read_text().splitlines()),
        "threads": int(re.search(r"^Threads:\s+(\d+)", status, re.M)[1]),
        "resident_kib": int(re.search(r"^VmRSS:\s+(\d+)", status, re.M)[1]),
        "pinned_pages": _pinned_pages(),
        "gpu_free_bytes": driver.free_memory(),
    }


@contextlib.contextmanager
def nothing_left(figures):
    """Assert that a with block leaves nothing; what changed is in the figures.

    A few mappings, and memory of the process and of the GPU, may be the driver's pools, which
    don't grow with the number of rounds.
    """
    before = _state()
    yield
    after = _state()
    for key, value in after.items():
        figures[f"more_{key}"] = None if value is None else value - before[key]
    equal(figures["more_descriptors"], 0, "descriptors left")
    assert (figures["more_pinned_pages"] or 0) <= 0, f"pinned pages left: {figures}"
    assert figures["more_mappings"] < 50, f"mappings left: {figures}"
    assert figures["more_gpu_free_bytes"] > -(16 << 20), f"memory of the GPU left: {figures}"
    assert figures["more_resident_kib"] < 64 << 10, f"memory left: {figures}"
