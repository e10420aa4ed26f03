# SPDX-License-Identifier: MIT
"""The protocol itself, as C code sees it; consumers have files of their own."""

import ctypes
import gc
import threading

import pytest

import tshare
from support import (
    IS_COPIED,
    READ_ONLY,
    DLTensor,
    LegacyDeleter,
    Versioned,
    VersionedDeleter,
    address,
    capsule_name,
    consume,
    legacy,
    mapped,
    new_capsule,
    run,
    versioned,
)

CODES = {
    "bool": (6, 8, 1),
    "int8": (0, 8, 1),
    "int64": (0, 64, 1),
    "uint8": (1, 8, 1),
    "uint16": (1, 16, 1),
    "float16": (2, 16, 1),
    "float64": (2, 64, 1),
    "complex64": (5, 64, 1),
    "complex128": (5, 128, 1),
    "bfloat16": (4, 16, 1),
    "float8_e3m4": (7, 8, 1),
    "float8_e4m3": (8, 8, 1),
    "float8_e4m3b11fnuz": (9, 8, 1),
    "float8_e4m3fn": (10, 8, 1),
    "float8_e4m3fnuz": (11, 8, 1),
    "float8_e5m2": (12, 8, 1),
    "float8_e5m2fnuz": (13, 8, 1),
    "float8_e8m0fnu": (14, 8, 1),
    "float6_e2m3fn": (15, 6, 1),
    "float6_e3m2fn": (16, 6, 1),
    "float4_e2m1fn": (17, 4, 1),
    "float4_e2m1fnx2": (17, 4, 2),
}


def test_device_is_the_cpu(tensor):
    assert tensor.__dlpack_device__() == (1, 0)


def test_without_max_version_the_capsule_is_legacy(tensor):
    assert capsule_name(tensor.__dlpack__()) == b"dltensor"
    assert capsule_name(tensor.__dlpack__(max_version=None)) == b"dltensor"
    assert capsule_name(tensor.__dlpack__(max_version=(0, 8))) == b"dltensor"


def test_from_max_version_1_the_capsule_is_versioned(tensor):
    for version in ((1, 0), (1, 3), (1, 99), (2, 0)):
        assert capsule_name(tensor.__dlpack__(max_version=version)) == b"dltensor_versioned"


def test_versioned_capsule_is_version_1_3(tensor):
    capsule = tensor.__dlpack__(max_version=(1, 0))
    managed = versioned(capsule)
    assert (managed.major, managed.minor, managed.flags) == (1, 3, 0)


@pytest.mark.parametrize("max_version", [None, (1, 0)])
def test_tensor_is_described_exactly(tensor, max_version):
    capsule = tensor.__dlpack__(max_version=max_version)
    t = (versioned if max_version else legacy)(capsule).dl_tensor
    assert t.data == address(tensor)
    assert (t.device.device_type, t.device.device_id) == (1, 0)
    assert t.ndim == 2
    assert (t.dtype.code, t.dtype.bits, t.dtype.lanes) == (2, 32, 1)
    assert t.shape[:2] == [2, 3]
    assert t.strides[:2] == [3, 1]
    assert t.byte_offset == 0


@pytest.mark.parametrize(("dtype", "code"), CODES.items())
def test_dtype_has_dlpack_s_code(dtype, code):
    tensor = tshare.create(None, 2, dtype)
    assert tensor.dtype == dtype
    capsule = tensor.__dlpack__(max_version=(1, 0))
    t = versioned(capsule).dl_tensor
    assert (t.dtype.code, t.dtype.bits, t.dtype.lanes) == code


def test_strides_count_elements():
    tensor = tshare.Region.create(None, {"t": ((2, 3), "int16", (64, 8), 16)})["t"]
    capsule = tensor.__dlpack__(max_version=(1, 0))
    t = versioned(capsule).dl_tensor
    assert t.strides[:2] == [32, 4]
    assert t.byte_offset == 0
    assert t.data == address(tensor)


def test_scalar_has_no_dimensions():
    capsule = tshare.create(None, ()).__dlpack__(max_version=(1, 0))
    assert versioned(capsule).dl_tensor.ndim == 0


@pytest.mark.parametrize("copy", [None, True])
def test_empty_tensor_has_no_data(copy):
    capsule = tshare.create(None, (0, 3)).__dlpack__(max_version=(1, 0), copy=copy)
    t = versioned(capsule).dl_tensor
    assert t.data is None
    assert t.shape[:2] == [0, 3]


def test_readonly_tensor_is_flagged(readonly):
    assert versioned(readonly.__dlpack__(max_version=(1, 0))).flags == READ_ONLY


def test_readonly_tensor_has_no_legacy_capsule(readonly):
    with pytest.raises(BufferError, match="max_version"):
        readonly.__dlpack__()


@pytest.mark.parametrize("max_version", [None, (1, 0)])
def test_copy_is_writable_memory_of_its_own(readonly, max_version):
    capsule = readonly.__dlpack__(max_version=max_version, copy=True)
    if max_version:
        assert versioned(capsule).flags == IS_COPIED
        t = versioned(capsule).dl_tensor
    else:
        t = legacy(capsule).dl_tensor
    assert t.data != address(readonly)
    assert t.strides[:2] == [3, 1]
    ctypes.c_float.from_address(t.data).value = 1.5
    assert memoryview(readonly)[0, 0] == 0


def test_copy_is_contiguous_where_the_tensor_is_not():
    region = tshare.Region.create(
        None, {"t": ((2, 3), "int16", (2, 4), 0), "flat": (6, "int16", None, 0)}
    )
    with memoryview(region["flat"]) as flat:
        for i in range(6):
            flat[i] = i
    capsule = region["t"].__dlpack__(max_version=(1, 0), copy=True)
    t = versioned(capsule).dl_tensor
    assert t.strides[:2] == [3, 1]
    assert list((ctypes.c_int16 * 6).from_address(t.data)) == [0, 2, 4, 1, 3, 5]


def test_copy_false_never_copies(tensor):
    capsule = tensor.__dlpack__(max_version=(1, 0), copy=False)
    managed = versioned(capsule)
    assert managed.flags == 0
    assert managed.dl_tensor.data == address(tensor)


def test_own_device_is_granted(tensor):
    assert tensor.__dlpack__(dl_device=(1, 0)) is not None
    assert tensor.__dlpack__(dl_device=(1, None)) is not None
    assert tensor.__dlpack__(dl_device=None) is not None


@pytest.mark.parametrize("device", [(1, 1), (2, 0), (3, 0), (13, 0), (99, 0)])
def test_other_device_is_a_buffer_error(tensor, device):
    with pytest.raises(BufferError, match="dl_device"):
        tensor.__dlpack__(dl_device=device)


@pytest.mark.parametrize("stream", [0, 1, -1, 12345])
def test_stream_is_refused_on_the_cpu(tensor, stream):
    with pytest.raises(ValueError, match="stream"):
        tensor.__dlpack__(stream=stream)


@pytest.mark.parametrize(
    "arguments",
    [{"max_version": 1}, {"max_version": (1,)}, {"max_version": ("1", "0")}, {"dl_device": 1},
     {"unknown": 1}],
)  # fmt: skip
def test_wrong_arguments_are_type_errors(tensor, arguments):
    with pytest.raises(TypeError):
        tensor.__dlpack__(**arguments)


@pytest.mark.parametrize("argument", ["max_version", "dl_device"])
@pytest.mark.parametrize(
    ("pair", "error"),
    [(("1", 0), TypeError), ((1, 0.5), TypeError), ((2**70, 0), ValueError),
     ((1, -(2**70)), ValueError)],
)  # fmt: skip
def test_errors_of_a_pair_name_the_argument(tensor, argument, pair, error):
    with pytest.raises(error, match=f"^{argument}: must be"):
        tensor.__dlpack__(**{argument: pair})


def test_arguments_are_keyword_only(tensor):
    with pytest.raises(TypeError):
        tensor.__dlpack__(None)


@pytest.mark.parametrize("arguments", [{}, {"max_version": (1, 0)}, {"copy": True}])
def test_unconsumed_capsule_releases_the_memory(arguments):
    tensor = tshare.create(None, 1 << 20)
    where = versioned(tensor.__dlpack__(max_version=(1, 0))).dl_tensor.data
    capsule = tensor.__dlpack__(**arguments)
    tensor.close()
    assert mapped(where) is (arguments != {"copy": True})
    del capsule
    gc.collect()
    assert not mapped(where)


@pytest.mark.parametrize("max_version", [None, (1, 0)])
def test_consumed_capsule_keeps_the_memory_until_the_deleter(max_version):
    tensor = tshare.create(None, 1 << 20)
    managed = consume(tensor.__dlpack__(max_version=max_version))
    where = managed.dl_tensor.data
    tensor.close()
    del tensor
    gc.collect()
    assert mapped(where)
    managed.deleter(ctypes.pointer(managed))
    assert not mapped(where)


def test_deleter_may_run_in_any_thread():
    tensor = tshare.create(None, 1 << 20)
    managed = consume(tensor.__dlpack__(max_version=(1, 0)))
    where = managed.dl_tensor.data
    del tensor
    gc.collect()
    thread = threading.Thread(target=managed.deleter, args=(ctypes.pointer(managed),))
    thread.start()
    thread.join()
    assert not mapped(where)


def test_deleter_may_run_without_the_interpreter():
    assert (
        run(
            """
            import ctypes, sys
            sys.path.insert(0, sys.argv[1])
            import support, tshare

            t = tshare.create(None, 1 << 20)
            for kwargs in {}, {"max_version": (1, 0)}, {"max_version": (1, 0), "copy": True}:
                managed = support.consume(t.__dlpack__(**kwargs))
                deleter = ctypes.cast(managed.deleter, ctypes.c_void_p).value
                callback = ctypes.CFUNCTYPE(None)
                libc = ctypes.CDLL(None)
                # int __cxa_atexit(void (*)(void *), void *, void *): after Py_Finalize().
                libc.__cxa_atexit.argtypes = [ctypes.c_void_p] * 3
                libc.__cxa_atexit(deleter, ctypes.addressof(managed), None)
            print("ok")
            """,
            __file__.rpartition("/")[0],
        )
        == "ok"
    )


def test_export_does_not_hold_close_up(tensor):
    capsule = tensor.__dlpack__()
    tensor.close()
    assert legacy(capsule).dl_tensor.ndim == 2


def test_capsule_keeps_an_exception_in_flight(tensor):
    def fail(capsule):
        raise KeyError("kept")

    with pytest.raises(KeyError, match="kept"):
        fail(tensor.__dlpack__())


class Producer:
    """A foreign tensor of three int32, which counts how often it is deleted."""

    def __init__(self, major=1, device=1, strides=(1,), byte_offset=0, flags=0, shape=(3,)):
        self.values = (ctypes.c_int32 * 8)(*range(1, 9))
        self.shape = (ctypes.c_int64 * len(shape))(*shape)
        self.strides = (ctypes.c_int64 * len(shape))(*strides) if strides else None
        self.deleted = 0
        tensor = DLTensor(
            data=ctypes.addressof(self.values),
            ndim=len(shape),
            shape=self.shape,
            strides=self.strides,
            byte_offset=byte_offset,
        )
        tensor.device.device_type = device
        tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes = 0, 32, 1
        self.managed = Versioned(
            major=major, minor=9, deleter=VersionedDeleter(self.delete), flags=flags
        )
        self.managed.dl_tensor = tensor
        self.capsule = None

    def delete(self, managed):
        self.deleted += 1

    def __dlpack_device__(self):
        return self.managed.dl_tensor.device.device_type, 0

    def __dlpack__(self, **kwargs):
        self.kwargs = kwargs
        if self.capsule is None:
            self.capsule = new_capsule(self.managed, b"dltensor_versioned")
        return self.capsule


def test_from_dlpack_copies_and_deletes():
    producer = Producer()
    t = tshare.from_dlpack(producer)
    assert memoryview(t).tolist() == [1, 2, 3]
    assert t.name is None
    assert not t.readonly
    assert producer.deleted == 1
    assert producer.kwargs["max_version"] >= (1, 0)
    assert capsule_name(producer.capsule) == b"used_dltensor_versioned"


def test_from_dlpack_refuses_a_capsule_a_second_time():
    producer = Producer()
    tshare.from_dlpack(producer)
    with pytest.raises(BufferError):
        tshare.from_dlpack(producer)
    assert producer.deleted == 1


def test_from_dlpack_honours_strides_and_byte_offset():
    assert memoryview(tshare.from_dlpack(Producer(strides=(2,)))).tolist() == [1, 3, 5]
    assert memoryview(tshare.from_dlpack(Producer(byte_offset=8))).tolist() == [3, 4, 5]
    assert memoryview(tshare.from_dlpack(Producer(strides=None))).tolist() == [1, 2, 3]
    columns = Producer(shape=(2, 3), strides=(1, 2))
    assert memoryview(tshare.from_dlpack(columns)).tolist() == [[1, 3, 5], [2, 4, 6]]


def test_from_dlpack_deletes_what_has_an_unknown_major_version():
    producer = Producer(major=2)
    with pytest.raises(BufferError, match="version"):
        tshare.from_dlpack(producer)
    assert producer.deleted == 1


@pytest.mark.parametrize("arguments", [{"device": 2}, {"flags": 4}])
def test_from_dlpack_refuses_what_it_can_not_read(arguments):
    with pytest.raises(BufferError, match="x:"):
        tshare.from_dlpack(Producer(**arguments))


def test_from_dlpack_takes_legacy_producers():
    class Old(Producer):
        def __dlpack__(self):
            import support

            self.legacy = support.Legacy(deleter=LegacyDeleter(self.delete))
            self.legacy.dl_tensor = self.managed.dl_tensor
            return new_capsule(self.legacy, b"dltensor")

    producer = Old()
    assert memoryview(tshare.from_dlpack(producer)).tolist() == [1, 2, 3]
    assert producer.deleted == 1


def test_from_dlpack_returns_a_tshare_tensor_as_it_is(tensor):
    assert tshare.from_dlpack(tensor) is tensor
    assert tshare.from_dlpack(tensor, copy=False) is tensor


def test_from_dlpack_copies_a_tshare_tensor_on_request(tensor):
    other = tshare.from_dlpack(tensor, copy=True)
    assert other.region.id != tensor.region.id
    assert (other.shape, other.dtype) == (tensor.shape, tensor.dtype)


def test_from_dlpack_copy_false_refuses_foreign_tensors():
    with pytest.raises(BufferError, match="copy"):
        tshare.from_dlpack(Producer(), copy=False)


def test_from_dlpack_takes_the_cpu_as_device():
    for device in (None, "cpu", (1, 0)):
        assert tshare.from_dlpack(Producer(), device=device).shape == (3,)
    with pytest.raises(ValueError, match="device"):
        tshare.from_dlpack(Producer(), device="cuda:0")


def test_from_dlpack_refuses_what_has_no_dlpack():
    with pytest.raises(TypeError, match="x:"):
        tshare.from_dlpack([1, 2, 3])
