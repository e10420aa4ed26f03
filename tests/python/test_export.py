# SPDX-License-Identifier: MIT
"""Descriptors of a region or of a part of it, and names for other drivers' dma-bufs."""

import errno
import mmap
import os

import pytest

import tshare
import vivid

PAGE = mmap.PAGESIZE
needs_parts = pytest.mark.skipif(not tshare.limits().dmabuf, reason="shared memory has no dma-bufs")


@pytest.fixture
def ring():
    with tshare.Region.create(size=4 * PAGE) as region:
        yield region


@pytest.fixture
def dmabuf():
    """Another driver's dma-buf, of at least two pages."""
    if not tshare.limits().dmabuf:
        pytest.skip("shared memory has no dma-bufs")
    camera = vivid.find()
    assert camera, "there is no vivid: tests/vm/run --modprobe 'vivid allocators=1 node_types=1'"
    fd = vivid.export_buffer(camera)
    yield fd
    os.close(fd)


def test_whole_is_exported_read_only(ring):
    fd = ring.export(readonly=True)
    with tshare.Region.from_fd(fd) as region:
        os.close(fd)
        assert region.readonly
        assert region.size == ring.size
        assert region.id == ring.id


def test_argument_may_close_the_region(ring):
    class Closes:
        def __index__(self):
            ring.close()
            return 0

    fd = ring.export(Closes())
    assert ring.closed
    with tshare.Region.from_fd(fd) as region:
        os.close(fd)
        assert region.size == 4 * PAGE


@needs_parts
def test_offset_of_a_stream_s_slots_says_what_to_export(name):
    fields = {"before": (1, "uint8"), "image": ((2, PAGE), "uint8")}
    with tshare.Stream.create(name, fields, slots=3) as stream:
        slots = stream.region["image"]
        assert slots[1].byte_offset - slots.byte_offset == slots.strides[0] == 2 * PAGE
        for frame in [stream.loan(0) for _ in range(3)]:
            frame["image"][1, 7] = 40 + frame.slot
            fd = stream.region.export(frame["image"].byte_offset, 2 * PAGE)
            with mmap.mmap(fd, 2 * PAGE) as memory:
                assert memory[PAGE + 7] == 40 + frame.slot
            os.close(fd)
            assert frame["image"].byte_offset == slots[frame.slot].byte_offset


def test_descriptor_is_closed_by_exec(ring):
    fd = ring.export()
    assert not os.get_inheritable(fd)
    os.close(fd)


def test_read_only_region_is_not_exported_writable(ring):
    with tshare.Region.from_fd(ring, readonly=True) as region:
        with pytest.raises(PermissionError):
            region.export()


@needs_parts
def test_part_is_a_region_of_its_size_without_tensors():
    tensors = {"frames": ((4, PAGE), "uint8")}
    with tshare.Region.create(tensors=tensors) as ring:
        with memoryview(ring["frames"]) as frames:
            frames[2, 0] = 42
        fd = ring.export(2 * PAGE, PAGE)
        with tshare.Region.from_fd(fd) as frame:
            assert frame.size == PAGE
            assert not frame.keys()
        with mmap.mmap(fd, PAGE) as memory:
            assert memory[0] == 42
        os.close(fd)


@pytest.mark.skipif(tshare.limits().dmabuf, reason="the module has dma-bufs")
def test_part_on_shared_memory_is_eopnotsupp(ring):
    with pytest.raises(OSError, match="module tshare") as raised:
        ring.export(PAGE)
    assert raised.value.errno == errno.EOPNOTSUPP


@pytest.mark.parametrize(
    ("offset", "size"),
    [(1, None), (-PAGE, None), (0, 1), (0, 0), (4 * PAGE, None), (PAGE, 4 * PAGE)],
)
def test_part_must_be_whole_pages_inside(ring, offset, size):
    with pytest.raises(ValueError, match="offset|size"):
        ring.export(offset, size)


def test_closed_region_is_not_exported(ring):
    ring.close()
    with pytest.raises(ValueError, match="closed"):
        ring.export()


def test_dma_buf_is_opened_by_its_name(dmabuf, name):
    with mmap.mmap(dmabuf, 2 * PAGE) as memory:
        memory[PAGE] = 42
        tensors = {"frames": ((2, PAGE), "uint8")}
        with tshare.Region.create(name, tensors, dmabuf=dmabuf) as region:
            assert region.info().foreign
            assert not region.info().contiguous
            with tshare.Region.open(name) as other:
                with memoryview(other["frames"]) as frames:
                    assert frames[1, 0] == 42
                    frames[0, 0] = 43
            assert memory[0] == 43
            region.unlink()


def test_dma_buf_takes_an_array_as_its_tensor(dmabuf, name):
    with tshare.Region.create(name, {"x": bytes(range(10))}, dmabuf=dmabuf) as region:
        with mmap.mmap(dmabuf, 2 * PAGE) as memory:
            assert memory[:10] == bytes(range(10))
        region.unlink()


def test_regions_of_a_dma_buf_are_told_apart(dmabuf, name):
    with tshare.Region.create(name, dmabuf=dmabuf) as region:
        with tshare.Region.create(f"{name}-again", dmabuf=dmabuf) as again:
            assert region.info().name == name
            assert again.info().name == f"{name}-again"
            again.unlink()
        with pytest.raises(OSError, match="another driver's dma-buf") as caught:
            tshare.Region.from_fd(dmabuf)
        assert caught.value.errno == errno.EOPNOTSUPP
        region.unlink()


def test_dma_buf_has_its_own_size(dmabuf, name):
    with pytest.raises(ValueError, match="size: is the dma-buf's"):
        tshare.Region.create(name, dmabuf=dmabuf, size=PAGE)


def test_region_is_not_foreign(ring):
    assert not ring.info().foreign


@pytest.mark.skipif(tshare.limits().dmabuf, reason="the module has dma-bufs")
def test_dma_buf_on_shared_memory_is_eopnotsupp(name):
    memfd = os.memfd_create("foreign", os.MFD_CLOEXEC)
    os.ftruncate(memfd, PAGE)
    with pytest.raises(OSError, match="module tshare") as raised:
        tshare.Region.create(name, dmabuf=memfd)
    assert raised.value.errno == errno.EOPNOTSUPP
    os.close(memfd)
