# SPDX-License-Identifier: MIT
"""A region's memory as a whole: its bytes, and files that are read into it."""

import _thread
import errno
import os
import sys
import threading

import pytest

import tshare

SIZE = 9_000_000


@pytest.fixture(scope="module")
def content():
    return os.urandom(SIZE)


@pytest.fixture
def path(tmp_path, content):
    path = tmp_path / "content"
    path.write_bytes(content)
    return path


def region_of(size):
    return tshare.Region.create(None, size=size)


def test_memoryview_of_a_region_is_all_its_bytes():
    region = tshare.Region.create(None, {"x": (4, "uint8", None, 100)}, size=10_000)
    with memoryview(region) as view:
        assert (view.nbytes, view.format, view.ndim) == (region.size, "B", 1)
        assert not view.readonly
        view[100:104] = b"abcd"
    assert bytes(region["x"]) == b"abcd"


def test_memoryview_of_a_readonly_region_is_readonly(name):
    with tshare.create(name, 4):
        with memoryview(tshare.Region.open(name, readonly=True)) as view:
            assert view.readonly
            with pytest.raises(TypeError):
                view[0] = 1


def test_memoryview_keeps_the_memory_of_a_closed_region():
    region = region_of(4096)
    view = memoryview(region)
    view[7] = 7
    region.close()
    assert view[7] == 7
    with pytest.raises(ValueError, match="closed"):
        memoryview(region)
    view.release()


@pytest.mark.parametrize("direct", [False, True])
@pytest.mark.parametrize(
    ("file_offset", "offset", "length"),
    [(0, 0, SIZE), (4096, 8192, 5_000_000), (5, 7, 1001), (SIZE, 0, 0)],
)
def test_read_brings_that_part(path, content, direct, file_offset, offset, length):
    region = region_of(SIZE + 10_000)
    with open(path, "rb") as file:
        assert region.read(file, file_offset, offset, length, direct=direct) is None
        assert file.tell() == 0
    with memoryview(region) as view:
        assert view[offset : offset + length] == content[file_offset : file_offset + length]
        assert not any(view[:offset])
        assert not any(view[offset + length :][:10_000])


def test_read_fills_the_region_if_no_length_is_given(path, content):
    region = region_of(1 << 20)
    with open(path, "rb") as file:
        region.read(file.fileno(), offset=4096, threads=2)
    assert bytes(region)[4096:] == content[: region.size - 4096]


@pytest.mark.parametrize(
    ("arguments", "options", "error", "text"),
    [
        ((0, 0, 1 << 40), {}, ValueError, "^length: "),
        ((0, 1 << 40), {}, ValueError, "^offset: "),
        ((-1,), {}, ValueError, "^file_offset: "),
        (("0",), {}, TypeError, "^file_offset: "),
        ((), {"threads": 0}, ValueError, "^threads: "),
        ((), {"threads": 65}, ValueError, "^threads: "),
        ((), {"progress": 5}, TypeError, "^progress: must be callable"),
        ((0, 0, SIZE + 1), {}, OSError, "length: the file ends before byte"),
        ((0, 0, SIZE + 1), {"direct": True}, OSError, "length: the file ends before byte"),
    ],
)
def test_read_names_the_argument_that_is_wrong(path, arguments, options, error, text):
    region = region_of(SIZE + 4096)
    with open(path, "rb") as file, pytest.raises(error, match=text):
        region.read(file, *arguments, **options)


def test_read_of_a_shorter_file_is_enodata(path):
    with open(path, "rb") as file, pytest.raises(OSError, match="length: ") as caught:
        region_of(SIZE + 4096).read(file)
    assert caught.value.errno == errno.ENODATA


@pytest.mark.parametrize(
    ("arguments", "size"),
    [
        ({"tensors": {"x": (1000, "uint8")}}, 1000),
        ({"tensors": {"x": (1000, "uint8", None, 8192)}, "size": 1 << 20}, 9192),
        ({"tensors": {"x": (5, "int16", None, 64), "none": ((0, 3), "int8", None, 2048)}}, 74),
        ({"tensors": {"x": ((2, 3), "int16", (64, 4))}}, 74),
        ({"tensors": {}, "size": 1000}, 1000),
    ],
)
def test_read_takes_a_file_of_the_tensors_bytes(tmp_path, arguments, size):
    region = tshare.Region.create(None, **arguments)
    content = os.urandom(size + 100)
    (path := tmp_path / "file").write_bytes(content[:size])
    with open(path, "r+b") as file:
        region.read(file)
        assert bytes(region)[: size + 100] == content[:size] + bytes(100)
        path.write_bytes(b"head" + content[7:size])
        region.read(file, 4, 7)
        assert bytes(region)[: size + 100] == content[:size] + bytes(100)


def test_read_of_a_file_without_the_last_tensor_s_bytes_is_enodata(tmp_path):
    region = tshare.Region.create(None, {"x": (1000, "uint8")})
    (path := tmp_path / "file").write_bytes(bytes(999))
    with open(path, "rb") as file, pytest.raises(OSError, match="length: ") as caught:
        region.read(file)
    assert caught.value.errno == errno.ENODATA


def test_read_into_a_readonly_region_is_a_permission_error(path, name):
    with tshare.create(name, 4), open(path, "rb") as file:
        with pytest.raises(PermissionError, match="region: is read-only"):
            tshare.Region.open(name, readonly=True).read(file, length=1)


def test_read_of_what_is_no_file_names_the_descriptor(tmp_path):
    region = region_of(1)
    with open(tmp_path / "new", "wb") as file, pytest.raises(OSError, match="fd: ") as caught:
        region.read(file, length=1)
    assert caught.value.errno == errno.EBADF
    with pytest.raises(TypeError, match="^fd: "):
        region.read(None)
    with pytest.raises(TypeError, match="fd"):
        region.read()


def test_read_into_a_closed_region_is_a_value_error(path):
    region = region_of(SIZE)
    region.close()
    with open(path, "rb") as file, pytest.raises(ValueError, match="closed"):
        region.read(file)


def test_progress_counts_up_to_the_length(path):
    counts = []
    with open(path, "rb") as file:
        region_of(SIZE).read(file, length=SIZE, progress=counts.append)
    assert counts == sorted(counts)
    assert counts[-1] == SIZE


def test_what_progress_raises_ends_the_read(path):
    def fail(done):
        raise RuntimeError("enough")

    with open(path, "rb") as file, pytest.raises(RuntimeError, match="enough"):
        region_of(SIZE).read(file, length=SIZE, progress=fail)


def test_progress_may_close_the_region(path, content):
    region = region_of(SIZE)
    with open(path, "rb") as file, memoryview(region) as view:
        region.read(file, length=SIZE, progress=lambda done: region.close())
        assert view[:SIZE] == content
    assert region.closed


def test_ctrl_c_ends_a_read(path):
    def interrupt(done):
        # Python's handler runs when the main thread looks for signals the next time.
        _thread.interrupt_main()

    region = region_of(SIZE)
    with open(path, "rb") as file, pytest.raises(KeyboardInterrupt):
        region.read(file, length=SIZE, progress=interrupt, threads=1)


def test_other_threads_run_during_a_read(path):
    go, ran = threading.Event(), threading.Event()

    def run():
        go.wait()
        ran.set()

    thread = threading.Thread(target=run)
    thread.start()
    region = region_of(SIZE)
    interval = sys.getswitchinterval()
    # From here on only a call that releases the GIL lets the other thread run.
    sys.setswitchinterval(1000)
    try:
        with open(path, "rb") as file:
            go.set()
            for _ in range(1000):
                region.read(file, length=SIZE)
                if ran.is_set():
                    break
            assert ran.is_set()
    finally:
        sys.setswitchinterval(interval)
        thread.join()
