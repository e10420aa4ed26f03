# SPDX-License-Identifier: MIT
import errno
import gc
import os
import pickle
import socket
import tempfile

import pytest

import tshare


def test_open_finds_shape_and_dtype(name):
    made = tshare.create(name, (3, 4), "float32")
    found = tshare.open(name)
    assert (found.shape, found.dtype, found.name) == ((3, 4), "float32", name)
    assert found.region.id == made.region.id


def test_open_shares_memory(name):
    made = tshare.create(name, 4)
    found = tshare.open(name)
    memoryview(made)[0] = 5
    memoryview(found)[1] = 6
    assert bytes(found) == bytes(made) == b"\5\6\0\0"


def test_open_gives_write_access_by_default(name):
    made = tshare.create(name, 4)
    assert not made.readonly
    assert not tshare.open(name).readonly


def test_open_readonly_gives_readonly_memory_that_others_change(name):
    made = tshare.create(name, 4)
    found = tshare.open(name, readonly=True)
    assert found.readonly
    memoryview(made)[0] = 5
    assert memoryview(found)[0] == 5
    with pytest.raises(TypeError):
        memoryview(found)[0] = 6


def test_open_of_no_name_raises_file_not_found(name):
    with pytest.raises(FileNotFoundError) as caught:
        tshare.open(name)
    assert (caught.value.errno, caught.value.filename) == (errno.ENOENT, name)
    assert name in str(caught.value)


@pytest.mark.parametrize("name", ["", "a/b", "..", "../etc/passwd", "x" * 128, "a\0b"])
def test_open_refuses_invalid_name(name):
    with pytest.raises(ValueError, match="name"):
        tshare.open(name)


@pytest.mark.parametrize("name", [None, 3, b"x"])
def test_open_refuses_a_name_that_is_not_a_str(name):
    with pytest.raises(TypeError, match="name"):
        tshare.open(name)


def test_open_refuses_unknown_arguments(name):
    with pytest.raises(TypeError, match="positional"):
        tshare.open(name, True)
    with pytest.raises(TypeError, match="mode"):
        tshare.open(name, mode=3)


def test_open_of_a_region_of_several_points_to_region(name):
    region = tshare.Region.create(name, {"a": (1, "uint8"), "b": (1, "uint8")})
    with pytest.raises(ValueError, match="2 tensors.*Region"):
        tshare.open(name)
    assert len(region) == 2


def test_open_of_a_region_of_none_points_to_region(name):
    region = tshare.Region.create(name, size=4096)
    with pytest.raises(ValueError, match="0 tensors.*Region"):
        tshare.open(name)
    assert len(region) == 0


def test_name_is_gone_after_unlink_and_memory_stays(name):
    made = tshare.create(name, 4)
    tshare.unlink(name)
    with pytest.raises(FileNotFoundError):
        tshare.open(name)
    memoryview(made)[0] = 1
    assert bytes(made)[0] == 1


def test_unlink_of_no_name_raises_file_not_found(name):
    with pytest.raises(FileNotFoundError) as caught:
        tshare.unlink(name)
    assert caught.value.filename == name


@pytest.mark.parametrize("name", ["", "a/b", "..", "x" * 128])
def test_unlink_refuses_invalid_name(name):
    with pytest.raises(ValueError, match="name"):
        tshare.unlink(name)


def test_unlink_refuses_a_name_that_is_not_a_str():
    with pytest.raises(TypeError, match="name"):
        tshare.unlink(None)


def test_tensor_unlink_of_an_unnamed_tensor_is_refused():
    with pytest.raises(ValueError, match="name"):
        tshare.create(None, 1).unlink()


def test_name_outlives_the_tensor_that_made_it(name):
    with tshare.create(name, 4) as made:
        memoryview(made).release()
    assert tshare.open(name).shape == (4,)


def test_list_returns_named_regions(name):
    made = tshare.create(name, (100, 100), "float64", mode=0o640)
    (info,) = [info for info in tshare.list() if info.name == name]
    assert info.size == made.region.size >= 80000
    assert info.mode == 0o640
    assert info.uid == os.getuid()
    assert info.gid == os.getgid()
    assert info.id == made.region.id
    assert info.lifetime == "maker"
    assert info.tensor_count == 1
    assert isinstance(info, tshare.RegionInfo)


def records(name):
    made = tshare.create(name, 4)
    return [made.region.info(), tshare.limits()]


def test_record_has_the_methods_of_a_named_tuple(name):
    for record in records(name):
        values = record._asdict()
        assert list(values) == list(record._fields)
        assert type(record)(**values) == type(record)._make(record) == record
        first = record._fields[0]
        assert record._replace(**{first: "x"}) == ("x", *record[1:])
        with pytest.raises(AttributeError):
            setattr(record, first, "x")


def test_record_arrives_in_another_process(name):
    for record in records(name):
        came = pickle.loads(pickle.dumps(record))
        assert came == record
        assert type(came) is type(record) is getattr(tshare, type(record).__name__)


def test_list_leaves_out_unnamed_regions():
    made = tshare.create(None, 4)
    assert made.region.id not in {info.id for info in tshare.list()}


def test_list_leaves_out_unlinked_regions(name):
    made = tshare.create(name, 4)
    made.unlink()
    assert name not in {info.name for info in tshare.list()}


def test_lifetime_is_reported(name):
    made = tshare.create(name, 4, lifetime="persist")
    assert made.region.info().lifetime == "persist"
    made.unlink()


def test_from_fd_takes_another_s_descriptor():
    made = tshare.create(None, (2, 3), "int16")
    found = tshare.from_fd(made.fileno())
    assert (found.shape, found.dtype) == ((2, 3), "int16")
    memoryview(made).cast("B").cast("h")[0] = 77
    assert memoryview(found)[0, 0] == 77


def test_from_fd_takes_an_object_with_fileno():
    made = tshare.create(None, 3)
    assert tshare.from_fd(made).shape == (3,)


def test_from_fd_leaves_the_descriptor_to_the_caller():
    made = tshare.create(None, 3)
    fd = os.dup(made.fileno())
    found = tshare.from_fd(fd)
    assert found.fileno() != fd
    os.close(fd)
    assert found.shape == (3,)


def test_from_fd_readonly_gives_readonly_memory():
    made = tshare.create(None, 3)
    found = tshare.from_fd(made.fileno(), readonly=True)
    assert found.readonly


def test_from_fd_of_a_readonly_descriptor_gives_readonly_memory(name):
    made = tshare.create(name, 3)
    found = tshare.from_fd(tshare.open(name, readonly=True))
    assert found.readonly
    assert not made.readonly


def test_from_fd_of_a_closed_descriptor_raises_ebadf():
    with pytest.raises(OSError, match=".") as caught:
        tshare.from_fd(1000000)
    assert caught.value.errno == errno.EBADF


def test_from_fd_refuses_a_descriptor_of_something_else():
    with tempfile.TemporaryFile() as file:
        file.write(b"x" * 8192)
        file.flush()
        with pytest.raises(ValueError, match="fd"):
            tshare.from_fd(file.fileno())
    with socket.socket() as sock, pytest.raises(ValueError, match="fd"):
        tshare.from_fd(sock.fileno())


@pytest.mark.parametrize("fd", ["3", None, 1.5])
def test_from_fd_refuses_invalid_descriptors(fd):
    with pytest.raises(TypeError):
        tshare.from_fd(fd)


def test_from_fd_refuses_a_negative_descriptor():
    with pytest.raises(ValueError, match="^fd: "):
        tshare.from_fd(-1)


def test_descriptor_is_closed_on_exec():
    assert not os.get_inheritable(tshare.create(None, 1).fileno())


def test_backend_is_the_one_requested(backend):
    assert backend in ("kmod", "shm")
    assert os.environ.get("TSHARE_BACKEND") in (None, "", backend)


def test_limits_are_those_of_the_backend(backend):
    limits = tshare.limits()
    assert isinstance(limits, tshare.Limits)
    assert limits.page_size >= 4096
    assert limits.huge_page_size >= limits.page_size
    assert limits.contiguous is limits.dmabuf is (backend == "kmod")
    assert (limits.abi_version > 0) is (backend == "kmod")
    assert 0 < limits.region_bytes_max <= limits.bytes_limit


def test_many_opens_and_closes_leak_no_descriptor(name):
    made = tshare.create(name, 4)
    # Garbage of earlier tests, which may have descriptors and would go meanwhile.
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(200):
        tshare.open(name).close()
        tshare.open(name, readonly=True)
        tshare.from_fd(made.fileno())
    assert len(os.listdir("/proc/self/fd")) == before


def test_failed_calls_leak_no_descriptor(name):
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    region = tshare.Region.create(name, {"a": (1, "uint8"), "b": (1, "uint8")})
    for _ in range(20):
        for call in (
            lambda: tshare.open(name),
            lambda: tshare.open(name + "x"),
            lambda: tshare.create(name, 1),
            lambda: tshare.create(None, -1),
            lambda: tshare.from_fd(region.fileno()),
            lambda: tshare.from_fd(0),
        ):
            with pytest.raises((ValueError, OSError)):
                call()
    # The maker's session has a descriptor for each name.
    region.unlink()
    region.close()
    assert len(os.listdir("/proc/self/fd")) == before
