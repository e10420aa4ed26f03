# SPDX-License-Identifier: MIT
"""Weights on a disk, which are read past the page cache; and who has the memory, and how.

In the virtual machine the file is on an NVMe disk.
"""

import os
import re
import tempfile
from pathlib import Path

import pytest

from checkpoint import content, save
from support import cached_pages, empty_cache, run, spawn
from tshare import weights

MIB = 1 << 20

# The last tensor ends inside a page.
TENSORS = {"x": ("U8", (5 * MIB,)), "y": ("U8", (5001,))}


@pytest.fixture
def path(disk, name):
    """A file on a disk, of which nothing is in the page cache."""
    path = save(disk / f"{name}.safetensors", TENSORS)
    empty_cache(path)
    if cached_pages(path):
        path.unlink()
        pytest.skip("the file system keeps all files in memory")
    yield path
    path.unlink()


@pytest.mark.parametrize("only", [None, ["y"]])
def test_page_cache_stays_empty(path, name, only):
    with weights.load(path, name, only=only) as loaded:
        for key in loaded:
            assert bytes(loaded[key]) == content(*TENSORS[key])
    assert not cached_pages(path)


def test_long_header_leaves_the_page_cache_empty(disk, path, name):
    tensors = {f"layer.{i}": ("U8", (1,), b"x") for i in range(20_000)}
    save(path, tensors)
    empty_cache(path)
    with weights.load(path, name) as loaded:
        assert len(loaded) == len(tensors)
    assert not cached_pages(path)


def test_page_cache_is_used_where_it_has_the_file(path, name):
    path.read_bytes()
    with weights.load(path, name) as loaded:
        assert bytes(loaded["y"]) == content(*TENSORS["y"])
    assert cached_pages(path)


def smaps(address, field):
    """Return a figure of the mapping that an address lies in, in bytes."""
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if bounds := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
            inside = int(bounds[1], 16) <= address < int(bounds[2], 16)
        elif inside and line.startswith(f"{field}:"):
            return int(line.split()[1]) << 10
    raise AssertionError(f"no mapping at {address:#x} with {field}")


def test_mapping_has_entries_of_2_mib(path, name, backend):
    if backend == "shm":
        pytest.skip("shared memory has no entries of 2 MiB")
    with weights.load(path, name), weights.open(name) as loaded:
        assert bytes(loaded["x"]) == content(*TENSORS["x"])
        address = loaded["x"].__array_interface__["data"][0]
        assert smaps(address, "FilePmdMapped") >= 4 * MIB


# The users tshare-a and tshare-b of tests/vm/run; both may use the device.
LOADER, READER = 64101, 64102

# What is imported before the user changes may be in a folder that only root may read.
USER = """
    import os, sys
    import tshare, tshare._nested
    from tshare import weights

    groups = [os.stat("/dev/tshare").st_gid] if os.path.exists("/dev/tshare") else []
    uid = int(sys.argv[1])
    os.setgroups(groups)
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)

    counts = []
    loaded = weights.load(sys.argv[2], mode=0o644, progress=lambda *n: counts.append(n))
    print(loaded.region.name, loaded.region.id, bool(counts), flush=True)
"""


@pytest.fixture
def shared_path():
    """A file that every user may read, and that one of them owns."""
    if os.geteuid():
        pytest.skip("needs root, to be two users")
    with tempfile.TemporaryDirectory(prefix="weights-", dir="/var/tmp") as folder:
        os.chmod(folder, 0o755)
        path = save(Path(folder) / "model.safetensors", TENSORS)
        os.chown(path, LOADER, LOADER)
        path.chmod(0o644)
        yield path


def test_another_user_reads_what_one_has_loaded_and_can_not_write(shared_path):
    loader = spawn(USER + "    sys.stdin.readline()\n", LOADER, shared_path)
    name, number, has_read = loader.stdout.readline().split()
    assert has_read == "True"
    attempts = """
    print(bytes(loaded["y"]) == bytes(i % 251 for i in range(5001)), loaded["x"].readonly)
    for attempt in (
        lambda: tshare.Region.open(loaded.region.name),
        lambda: tshare.unlink(loaded.region.name),
        lambda: memoryview(loaded["y"]).__setitem__(0, 1),
    ):
        try:
            attempt()
        except (PermissionError, TypeError) as error:
            print(type(error).__name__)
    """
    lines = run(USER + attempts, READER, shared_path).splitlines()
    assert lines[0].split() == [name, number, "False"]
    assert lines[1:] == ["True True", "PermissionError", "PermissionError", "TypeError"]
    loader.communicate("\n", timeout=300)
    assert loader.returncode == 0
