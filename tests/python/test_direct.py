# SPDX-License-Identifier: MIT
"""examples/direct.py reads a file into a region, and the page cache has no part in it.

In the virtual machine the file is on an NVMe disk, which writes into the region itself.
"""

import errno
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import tshare
from support import cached_pages, empty_cache, need

PROGRAM = Path(__file__).resolve().parents[2] / "examples/direct.py"

TIMEOUT = 300


@pytest.fixture
def save(disk, name):
    """A function that saves an array, of which nothing is in the page cache then."""
    np = need("numpy")
    path = disk / f"{name}.npy"

    def save(array):
        np.save(path, array)
        empty_cache(path)
        return path

    yield save
    path.unlink(missing_ok=True)


@pytest.fixture(scope="module")
def load():
    """The program's function, called here: to start Python and NumPy again takes long."""
    need("numpy")
    return runpy.run_path(str(PROGRAM))["load"]


# Files that end with a page, inside one, and inside the first one; one that takes two reads.
@pytest.mark.parametrize("count", [8192 - 128, 1001, 3, 70_000_000])
def test_region_has_the_bytes_of_the_file(save, load, count):
    array = need("numpy").arange(count, dtype="uint8")
    path = save(array)
    with load(path) as region:
        assert (region["array"].numpy() == array).all()
        file = region["file"].numpy()
        assert file[: path.stat().st_size].tobytes() == path.read_bytes()
        assert not file[path.stat().st_size :].any()


def test_order_of_the_elements_is_kept(save, load):
    np = need("numpy")
    array = np.asfortranarray(np.arange(6, dtype="int16").reshape(2, 3))
    with load(save(array)) as region:
        assert region["array"].strides == array.strides
        assert (region["array"].numpy() == array).all()


def test_page_cache_stays_empty(save, load):
    path = save(need("numpy").ones((1024, 1024), dtype="float32"))
    if 512 in cached_pages(path):
        pytest.skip("the file system keeps all files in memory")
    load(path).close()
    assert 512 not in cached_pages(path)
    path.read_bytes()
    assert 512 in cached_pages(path)


def test_other_processes_open_it_by_its_name(save, start, name):
    path = save(need("numpy").ones((1024, 1024), dtype="float32"))
    process = start(sys.executable, PROGRAM, path, name, stdin=subprocess.PIPE)
    with tshare.Region.open(name, readonly=True, wait=TIMEOUT) as region:
        assert region["array"].numpy().all()
    output, errors = process.communicate("\n", timeout=TIMEOUT)
    assert (process.returncode, errors) == (0, "")
    assert output == "direct.py: float32, shape (1024, 1024), mean 1\n"


def test_file_that_becomes_shorter_leaves_no_name(save, load, name, monkeypatch):
    path = save(need("numpy").zeros(100_000))
    monkeypatch.setitem(load.__globals__, "read_blocks", lambda path, memory: 8192)
    with pytest.raises(SystemExit, match="has become shorter"):
        load(path, name)
    with pytest.raises(FileNotFoundError):
        tshare.Region.open(name)


def test_what_is_no_array_is_an_error(disk, load):
    path = disk / "text"
    path.write_bytes(b"no array")
    with pytest.raises(ValueError, match="magic string"):
        load(path)


def test_file_system_without_direct_reads_is_named(load, monkeypatch):
    def refuse(path, flags):
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(SystemExit, match=r"^direct.py: some.npy: the file system has no O_DIRECT$"):
        load.__globals__["open_direct"]("some.npy")
