# SPDX-License-Identifier: MIT
import array
import ctypes
import datetime
import gc
import sys
import warnings
import weakref

import pytest

import tshare
from support import (
    IS_COPIED,
    READ_ONLY,
    Versioned,
    VersionedDeleter,
    address,
    need,
    new_capsule,
    run,
    versioned,
)

FORMATS = {
    "b": "int8", "B": "uint8", "h": "int16", "H": "uint16", "i": "int32", "I": "uint32",
    "l": "int64", "L": "uint64", "q": "int64", "Q": "uint64", "f": "float32", "d": "float64",
}  # fmt: skip


def values(tensor):
    return memoryview(tensor).tolist()


class Interface:
    """An object that has only the array interface."""

    def __init__(self, **interface):
        self.__array_interface__ = interface


class OnGpu:
    """A tensor of a GPU, of which only __dlpack_device__() may be called."""

    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, **_):
        raise AssertionError("it was asked for its memory")

    def __array__(self, *_):
        raise AssertionError("it was asked for an array")


class Producer:
    """An object that has only DLPack, in the form that the test sets."""

    def __init__(self, shape=(2, 3), strides=None, *, flags=0, major=1, device=(1, 0)):
        self.data = (ctypes.c_int32 * 100)(*range(100))
        self.shape = (ctypes.c_int64 * len(shape))(*shape)
        self.strides = (ctypes.c_int64 * len(shape))(*strides) if strides else None
        self.flags, self.major, self.device = flags, major, device
        self.deleted = 0
        self.asked = []

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        self.asked.append((max_version, dl_device, copy))

        def delete(_):
            self.deleted += 1

        self.managed = Versioned(major=self.major, minor=9, flags=self.flags)
        self.managed.deleter = self.deleter = VersionedDeleter(delete)
        tensor = self.managed.dl_tensor
        tensor.data = ctypes.addressof(self.data)
        tensor.device.device_type = self.device[0]
        tensor.ndim = len(self.shape)
        tensor.dtype.bits, tensor.dtype.lanes = 32, 1
        tensor.shape = self.shape
        if self.strides:
            tensor.strides = self.strides
        return new_capsule(self.managed, b"dltensor_versioned")


# Objects that are taken


@pytest.mark.parametrize("code", FORMATS)
def test_arrays_of_the_standard_library_are_taken(code):
    t = tshare.asarray(array.array(code, [1, 2, 3]))
    assert t.dtype == FORMATS[code]
    assert values(t) == [1, 2, 3]


def test_bytes_are_taken():
    assert values(tshare.asarray(b"abc")) == [97, 98, 99]


def test_ctypes_arrays_are_taken():
    t = tshare.asarray(((ctypes.c_int16 * 2) * 3)((1, 2), (3, 4), (5, 6)))
    assert (t.dtype, t.shape) == ("int16", (3, 2))
    assert values(t) == [[1, 2], [3, 4], [5, 6]]


@pytest.mark.parametrize("step", [2, -1, -3])
def test_strided_memoryviews_are_taken(step):
    view = memoryview(array.array("i", range(10)))[::step]
    t = tshare.asarray(view)
    assert values(t) == view.tolist()
    assert t.strides == (4,)


def test_ctypes_structures_of_the_other_byte_order_are_not_taken_for_native():
    numbers = (ctypes.c_int32.__ctype_be__ * 2)(1, 2)
    try:
        assert values(tshare.asarray(numbers)) == [1, 2]
    except (BufferError, TypeError):
        pass


def test_empty_buffers_are_taken():
    t = tshare.asarray(array.array("d"))
    assert (t.dtype, t.shape, t.nbytes) == ("float64", (0,), 0)


class Pair(tuple):
    """A subclass of tuple, as torch.Size is."""


TUPLES = {
    "none": (),
    "one": (7,),
    "three": (1, 2, 3),
    "nested": ((1, 2, 3),),
    "subclass": Pair((7,)),
}


@pytest.mark.parametrize("kind", [*TUPLES, "torch.Size"])
def test_tuples_are_arrays(kind):
    np = need("numpy")
    x = need("torch").Size([3]) if kind == "torch.Size" else TUPLES[kind]
    expected = np.asarray(x)
    t = tshare.asarray(x)
    assert (t.dtype, t.shape) == (expected.dtype.name, expected.shape)
    assert t.numpy().tolist() == expected.tolist()
    t = tshare.create(None, expected.shape, t.dtype)
    t.copy_from(x)
    assert t.numpy().tolist() == expected.tolist()
    t = tshare.Region.create(None, {"x": [x]})["x"]
    assert t.numpy().tolist() == [expected.tolist()]


@pytest.mark.parametrize("x", TUPLES.values(), ids=TUPLES)
def test_tuples_have_no_dlpack(x):
    with pytest.raises(TypeError, match="has no __dlpack__"):
        tshare.from_dlpack(x)
    with pytest.raises(AttributeError, match="has no __dlpack__"):
        tshare.array_interface(x)


def test_interface_is_taken():
    numbers = array.array("i", range(6))
    where = (numbers.buffer_info()[0], False)
    t = tshare.asarray(Interface(shape=(2, 3), typestr="<i4", data=where, version=3))
    assert values(t) == [[0, 1, 2], [3, 4, 5]]


def test_interface_s_strides_are_bytes():
    numbers = array.array("i", range(6))
    last = (numbers.buffer_info()[0] + 20, False)
    backwards = Interface(shape=(3,), typestr="<i4", data=last, strides=(-8,), version=3)
    assert values(tshare.asarray(backwards)) == [5, 3, 1]


def test_interface_s_data_may_be_a_buffer():
    x = Interface(shape=(2,), typestr="|u1", data=b"abcd", offset=1, version=3)
    assert bytes(tshare.asarray(x)) == b"bc"


@pytest.mark.parametrize(
    "change",
    [
        {"shape": None},
        {"shape": [2]},
        {"shape": (2,) * 40},
        {"shape": ("2",)},
        {"shape": (-1,)},
        {"typestr": None},
        {"typestr": "<U4"},
        {"typestr": "|V4"},
        {"typestr": "<f16"},
        {"strides": (4, 4)},
        {"strides": [4]},
        {"data": (None, False)},
        {"data": 5},
        {"mask": True},
    ],
)
def test_broken_interface_is_refused(change):
    memory = array.array("i", range(100))
    where = (memory.buffer_info()[0], False)
    interface = {"shape": (2,), "typestr": "<i4", "data": where, "version": 3, **change}
    with pytest.raises((BufferError, TypeError, ValueError)):
        tshare.asarray(Interface(**interface))


class Unsaid:
    """An object that computes its __array_interface__."""

    def __init__(self, interface, dtype=None):
        self.interface, self.type = interface, dtype

    @property
    def __array_interface__(self):
        return self.interface

    @property
    def dtype(self):
        self.interface.clear()
        gc.collect()
        return self.type


@pytest.mark.parametrize(
    "change",
    [
        {"shape": (200,)},
        {"shape": (1 << 40,)},
        {"offset": -1},
        {"offset": 4},
        {"offset": 2, "shape": (2,)},
        {"strides": (-1,)},
        {"strides": (2,)},
        {"data": (0, False)},
    ],
)
def test_interface_beyond_its_own_data_is_refused(change):
    interface = {"shape": (3,), "typestr": "|u1", "data": b"abc", "version": 3}
    assert bytes(tshare.asarray(Interface(**interface))) == b"abc"
    with pytest.raises((BufferError, TypeError)):
        tshare.asarray(Interface(**interface | change))


def test_interface_that_changes_while_it_is_read_does_no_harm():
    interface = {"shape": (2,) * 3, "typestr": "|V2", "strides": (8, 4, 2), "data": bytes(16)}
    t = tshare.asarray(Unsaid(interface, "bfloat16"))
    assert (t.dtype, t.shape) == ("bfloat16", (2, 2, 2))


@pytest.mark.parametrize(("typestr", "dtype"), [("|V0", "int4"), ("|V", "int4"), ("", "int4")])
def test_elements_without_bytes_are_refused(typestr, dtype):
    interface = {"shape": (2,), "typestr": typestr, "strides": (1,), "data": bytes(16)}
    with pytest.raises((BufferError, TypeError)):
        tshare.asarray(Unsaid(interface, dtype))


@pytest.mark.parametrize("size", [0, 2, 3, 8, 33])
def test_unions_are_not_taken_for_bytes(size):
    class Union(ctypes.Union):
        _fields_ = [("bytes", ctypes.c_char * size)] if size else []

    with pytest.raises((BufferError, TypeError)):
        tshare.asarray(memoryview((Union * 3)()), copy=False)


@pytest.mark.parametrize("wrong", ["shape", "data", "offset", "negative", "huge", "bits"])
def test_senseless_dlpack_is_refused(wrong):
    class Wrong(Producer):
        def __dlpack__(self, **keywords):
            capsule = super().__dlpack__(**keywords)
            tensor = self.managed.dl_tensor
            if wrong == "shape":
                tensor.shape = None
            elif wrong in ("data", "offset"):
                tensor.data = None
                tensor.byte_offset = 8 * (wrong == "offset")
            elif wrong == "negative":
                tensor.shape[0] = -1
            elif wrong == "huge":
                tensor.shape[0] = tensor.shape[1] = 1 << 62
            else:
                tensor.dtype.bits = 0
            return capsule

    for function in (tshare.from_dlpack, tshare.asarray, tshare.array_interface):
        x = Wrong()
        with pytest.raises((BufferError, AttributeError, TypeError)):
            function(x)
        assert x.deleted >= 1


def test_array_interface_of_a_copy_would_dangle():
    x = Producer(flags=IS_COPIED)
    with pytest.raises(AttributeError, match="copy"):
        tshare.array_interface(x)
    assert x.deleted == 1


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, MemoryError, OSError])
def test_errors_unrelated_to_the_array_are_passed_on(error):
    class Interrupted(Interface):
        def __dlpack__(self, **_):
            raise error(5, "why")

    x = Interrupted(shape=(3,), typestr="|u1", data=b"abc", version=3)
    with pytest.raises(error) as caught:
        tshare.asarray(x)
    assert caught.value.args == (5, "why")
    with pytest.raises(error) as caught:
        tshare.Region.create(None, {"a": x})
    assert caught.value.args == (5, "why")


def test_interrupt_of_an_interface_s_dtype_is_passed_on():
    class Interrupted(Interface):
        @property
        def dtype(self):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tshare.asarray(Interrupted(shape=(2,), typestr="|V2", data=bytes(4), version=3))


def test_mapping_whose_items_are_not_pairs_is_refused():
    class Odd:
        def __init__(self, *items):
            self.items = lambda: list(items)

    for item in (["a", ((3,), "uint8")], ("a",), "ab", None):
        with pytest.raises(TypeError, match="pairs"):
            tshare.Region.create(None, Odd(item))


def test_non_arrays_are_refused():
    with pytest.raises(TypeError, match="x: "):
        tshare.asarray(object())
    with pytest.raises(TypeError, match="'x'"):
        tshare.asarray()


def test_tensor_of_a_gpu_is_refused_before_it_is_touched():
    for function in (tshare.asarray, tshare.from_dlpack):
        with pytest.raises(BufferError, match=r"\.cpu\(\)"):
            function(OnGpu())


def test_device_cpu_asks_another_device_for_a_copy():
    x = Producer(device=(1, 0))
    x.__class__ = type("Far", (Producer,), {"__dlpack_device__": lambda _: (2, 0)})
    assert values(tshare.from_dlpack(x, device="cpu")) == [[0, 1, 2], [3, 4, 5]]
    assert x.asked == [((1, 3), (1, 0), None)]


# Arguments for producers

FUNCTIONS = [tshare.asarray, tshare.from_dlpack, lambda x: tshare.from_dlpack(x, device="cpu")]


class Refuses(Producer):
    """Raises for each keyword that isn't None but the version, as TensorFlow does."""

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if dl_device is not None or copy or stream is not None:
            raise RuntimeError("no DLPack export with that")
        return super().__dlpack__(max_version=max_version, copy=copy)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_producer_on_the_cpu_gets_no_device_argument(function):
    x = Refuses()
    assert values(function(x)) == [[0, 1, 2], [3, 4, 5]]
    assert x.asked == [((1, 3), None, None)]
    assert tshare.array_interface(x)["shape"] == (2, 3)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("type", [1, 3, 13])
def test_device_id_may_be_none(function, type):
    """Paddle has none for the CPU."""
    x = Producer(device=(type, None))
    assert values(function(x)) == [[0, 1, 2], [3, 4, 5]]
    assert tshare.array_interface(x)["shape"] == (2, 3)


def test_device_may_be_that_of_another_library():
    for device in ("cpu", (1, 0), (1, None)):
        assert values(tshare.from_dlpack(Producer(), device=device)) == [[0, 1, 2], [3, 4, 5]]
    for device in ((2, 0), (1, 1), (1, "0"), "cuda", 1):
        with pytest.raises((TypeError, ValueError)):
            tshare.from_dlpack(Producer(), device=device)


@pytest.mark.parametrize("device", [None, 1, (1,), (1, 0, 0), ("cpu", 0), (None, None)])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_invalid_device_is_a_type_error(function, device):
    x = Producer()
    x.__class__ = type("Odd", (Producer,), {"__dlpack_device__": lambda _: device})
    with pytest.raises(TypeError):
        function(x)


# DLPack


def test_strides_of_dlpack_count_elements():
    t = tshare.asarray(Producer((3, 2), (1, 10)))
    assert values(t) == [[0, 10], [1, 11], [2, 12]]


def test_missing_strides_of_dlpack_mean_c_order():
    assert values(tshare.asarray(Producer((2, 2)))) == [[0, 1], [2, 3]]


@pytest.mark.parametrize("function", [tshare.asarray, tshare.from_dlpack])
def test_deleter_is_called_once(function):
    x = Producer()
    t = function(x)
    assert x.deleted == 1
    del t
    gc.collect()
    assert x.deleted == 1


@pytest.mark.parametrize(
    "wrong", [{"major": 2}, {"flags": 4}, {"device": (2, 0)}, {"shape": (1,) * 33}]
)
def test_refused_dlpack_tensor_is_deleted_too(wrong):
    x = Producer(**wrong)
    x.__class__ = type("Near", (Producer,), {"__dlpack_device__": lambda _: (1, 0)})
    with pytest.raises(BufferError):
        tshare.from_dlpack(x)
    assert x.deleted == 1


def test_array_interface_never_asks_for_a_copy():
    x = Producer()
    assert tshare.array_interface(x)["data"] == (ctypes.addressof(x.data), False)
    assert x.asked == [((1, 3), None, False)]
    assert x.deleted == 1


def test_array_interface_is_read_only():
    x = Producer(flags=READ_ONLY)
    assert tshare.array_interface(x)["data"][1]


def test_array_interface_has_strides_in_bytes_where_they_are_needed():
    assert tshare.array_interface(Producer())["strides"] is None
    x = Producer((3, 2), (1, 10))
    assert tshare.array_interface(x)["strides"] == (4, 40)
    assert tshare.array_interface(x)["shape"] == (3, 2)
    assert tshare.array_interface(x)["typestr"] == "<i4"
    assert tshare.array_interface(x)["version"] == 3


@pytest.mark.parametrize("x", [OnGpu(), object(), Producer(major=2)])
def test_array_interface_of_what_has_none_is_an_attribute_error(x):
    with pytest.raises(AttributeError, match="__array_interface__"):
        tshare.array_interface(x)


def test_array_interface_of_a_tensor_is_its_own():
    t = tshare.create(None, (2, 3), "float32")
    assert tshare.array_interface(t) == t.__array_interface__


def test_nothing_needs_numpy_but_what_only_numpy_understands():
    code = """
        import array, sys

        sys.modules["numpy"] = None
        import tshare

        t = tshare.asarray(array.array("i", [1, 2, 3]))
        assert tshare.array_interface(t)["shape"] == (3,)
        assert tshare.from_dlpack(tshare.asarray(memoryview(t)[::2])).shape == (2,)
        assert tshare.Region.create(None, {"a": t, "b": b"bc"})["b"].shape == (2,)
        try:
            tshare.asarray([1, 2])
        except TypeError as error:
            print(error)
    """
    assert "NumPy, which might make an array of it, is not installed" in run(code)


# Copies and views


def test_copy_is_of_its_own():
    there = bytearray(b"abc")
    t = tshare.asarray(there)
    there[0] = 0
    assert bytes(t) == b"abc"
    t.close()
    there.clear()  # which a held buffer would refuse


def test_nothing_holds_the_source():
    class Numbers(array.array):
        pass

    x = Numbers("i", [1])
    gone = weakref.ref(x)
    tshare.asarray(x)
    before = sys.getrefcount(x)
    tshare.asarray(x)
    assert sys.getrefcount(x) == before
    del x
    assert gone() is None


def test_tensor_is_returned_as_it_is():
    t = tshare.create(None, 3)
    assert tshare.asarray(t) is t
    assert tshare.asarray(t, copy=False) is t
    assert tshare.from_dlpack(t) is t


def test_tensor_of_that_name_is_returned_as_it_is(name):
    t = tshare.create(name, 3)
    assert tshare.asarray(t, name) is t


def test_views_of_a_region_stay_in_it():
    t = tshare.create(None, 10, "int32")
    view = memoryview(t)[2:8:2]
    w = tshare.asarray(view)
    assert (w.shape, w.strides) == ((3,), (8,))
    assert address(w) == address(t) + 8
    assert w.region.id == t.region.id
    memoryview(w)[1] = 7
    assert values(t)[4] == 7


def test_wrapped_view_keeps_the_memory():
    t = tshare.create(None, 10, "int32")
    memoryview(t)[9] = 5
    w = tshare.asarray(memoryview(t)[::-1])
    t.close()
    del t
    assert values(w)[0] == 5


def test_readonly_view_of_a_writable_region_stays_readonly():
    t = tshare.create(None, 4)
    w = tshare.asarray(memoryview(t).toreadonly())
    assert w.readonly
    assert address(w) == address(t)
    assert memoryview(w).readonly
    with pytest.raises(BufferError):
        w.__dlpack__()


def test_views_of_a_named_region_are_that_name_s(name):
    t = tshare.create(name, 10)
    w = tshare.asarray(memoryview(t)[5:], name)
    assert address(w) == address(t) + 5


def test_another_name_makes_a_copy(new_name):
    t = tshare.create(new_name(), 4)
    other = new_name()
    w = tshare.asarray(t, other)
    assert w.name == other
    assert address(w) != address(t)
    assert tshare.open(other).shape == (4,)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "bool"])
def test_name_of_a_type_is_taken_by_keyword_alone(dtype):
    """numpy.asarray() has the type in the name's place."""
    text = f"^name: {dtype!r} is the name of a type, and asarray\\(\\) doesn't convert "
    with pytest.raises(TypeError, match=text):
        tshare.asarray(b"abc", dtype)
    with pytest.raises(BufferError, match=f"^x: is outside of the region {dtype!r}"):
        tshare.asarray(b"abc", name=dtype, copy=False)


def test_copy_true_copies_shared_memory(name):
    t = tshare.create(name, 4)
    assert address(tshare.asarray(t, copy=True)) != address(t)
    with pytest.raises(FileExistsError):
        tshare.asarray(t, name, copy=True)


def test_copy_false_refuses_to_copy(new_name):
    for x in (b"abc", [1, 2], Producer()):
        with pytest.raises(BufferError, match="copy"):
            tshare.asarray(x, copy=False)
    t = tshare.create(new_name(), 4)
    with pytest.raises(BufferError, match="copy"):
        tshare.asarray(t, new_name(), copy=False)


def test_removed_name_does_not_match(name):
    t = tshare.create(name, 3)
    view = memoryview(t)
    t.unlink()
    made = tshare.asarray(view, name)
    assert made.region.id != t.region.id
    assert tshare.open(name).region.id == made.region.id
    with pytest.raises(FileExistsError):
        tshare.asarray(t, name)


def test_tensor_among_others_is_not_what_the_name_opens(name):
    region = tshare.Region.create(name, {"a": b"abc", "b": b"def"})
    with pytest.raises(FileExistsError):
        tshare.asarray(region["a"], name)


def test_closed_tensor_is_refused():
    t = tshare.create(None, 3)
    t.close()
    with pytest.raises(ValueError, match="closed"):
        tshare.asarray(t)


# Names and options


def test_copy_can_be_opened_by_its_name(name):
    keep = tshare.asarray(array.array("d", [1.5, 2.5]), name)
    assert values(tshare.open(name)) == [1.5, 2.5]
    assert keep.name == name


def test_taken_name_is_refused(name):
    keep = tshare.create(name, 3)
    with pytest.raises(FileExistsError):
        tshare.asarray(b"abc", name)
    assert bytes(keep) == bytes(3)


def test_options_are_create_s(name):
    t = tshare.asarray(b"abc", name, mode=0o640, lifetime="persist")
    info = t.region.info()
    assert info.mode == 0o640
    assert info.lifetime == "persist"
    with pytest.raises(ValueError, match="mode"):
        tshare.asarray(b"abc", mode=0o7777)
    with pytest.raises(TypeError, match="name"):
        tshare.asarray(b"abc", 5)


def test_dlpack_of_a_copy_is_not_flagged_as_copied():
    capsule = tshare.asarray(b"abc").__dlpack__(max_version=(1, 0))
    assert not versioned(capsule).flags & IS_COPIED


# Regions of arrays


def test_region_takes_arrays_and_descriptions():
    region = tshare.Region.create(
        None,
        {
            "weights": array.array("f", [1, 2, 3]),
            "biases": ((2,), "float64"),
            "bytes": b"abc",
            "copied": tshare.asarray(b"xyz"),
        },
    )
    assert {key: (t.shape, t.dtype) for key, t in region.items()} == {
        "weights": ((3,), "float32"),
        "biases": ((2,), "float64"),
        "bytes": ((3,), "uint8"),
        "copied": ((3,), "uint8"),
    }
    assert values(region["weights"]) == [1, 2, 3]
    assert values(region["biases"]) == [0, 0]
    assert bytes(region["bytes"]) == b"abc"
    assert bytes(region["copied"]) == b"xyz"


def test_region_s_copies_are_contiguous():
    region = tshare.Region.create(None, {"x": Producer((3, 2), (1, 10))})
    assert values(region["x"]) == [[0, 10], [1, 11], [2, 12]]
    assert region["x"].strides == (8, 4)


def test_region_releases_its_sources():
    x = Producer()
    region = tshare.Region.create(None, {"x": x, "y": bytearray(3)})
    assert x.deleted == 1
    assert len(region) == 2


def test_region_names_the_array_that_it_refuses(name):
    with pytest.raises(TypeError, match="'bad'"):
        tshare.Region.create(name, {"good": b"abc", "bad": object()})
    with pytest.raises(BufferError, match="'far'"):
        tshare.Region.create(name, {"far": OnGpu()})
    with pytest.raises(FileNotFoundError):
        tshare.Region.open(name)


def test_tensors_of_one_region_are_one_mapping_and_one_descriptor():
    region = tshare.Region.create(None, {f"t{i}": array.array("i", [i]) for i in range(1000)})
    tensors = list(region.values())
    assert len({t.fileno() for t in tensors}) == 1
    assert max(map(address, tensors)) - min(map(address, tensors)) < region.size
    assert [values(t)[0] for t in tensors] == list(range(1000))


class HasArray:
    """An object that has only __array__()."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array


NUMPY_VIEWS = {
    "whole": lambda array: array,
    "slice": lambda array: array[1:3, ::2],
    "transposed": lambda array: array.T,
    "reversed": lambda array: array[::-1],
}


@pytest.mark.parametrize("dtype", ["float32", "bool", "complex64", "bfloat16", "float8_e5m2"])
@pytest.mark.parametrize("view", list(NUMPY_VIEWS))
def test_array_of_an_object_in_a_region_is_not_copied(dtype, view):
    np = need("numpy")
    need("ml_dtypes")
    t = tshare.create(None, (4, 6), dtype)
    array = NUMPY_VIEWS[view](np.asarray(t))
    for copy in (None, False):
        same = tshare.asarray(HasArray(array), copy=copy)
        assert (same.dtype, same.shape, same.strides) == (dtype, array.shape, array.strides)
        assert same.region.id == t.region.id
    assert np.asarray(same).ctypes.data == array.ctypes.data
    assert tshare.asarray(HasArray(array), copy=True).region.id != t.region.id
    array.flags.writeable = False
    assert tshare.asarray(HasArray(array)).readonly


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", ">i4"])
def test_array_of_an_object_elsewhere_is_copied(dtype):
    np = need("numpy")
    need("ml_dtypes")
    array = np.arange(12).reshape(3, 4).astype(np.dtype(dtype))[:, ::-2]
    t = tshare.asarray(HasArray(array))
    assert np.asarray(t).tolist() == array.tolist()
    with pytest.raises(BufferError, match="outside of shared memory"):
        tshare.asarray(HasArray(array), copy=False)


def test_packed_types_of_an_object_are_copied():
    np, ml_dtypes = need("numpy"), need("ml_dtypes")
    array = np.arange(8).reshape(2, 4).astype(ml_dtypes.int4)[:, ::2]
    t = tshare.asarray(HasArray(array))
    assert (t.dtype, t.shape) == ("int4", (2, 2))
    assert np.asarray(t).tolist() == array.tolist()


@pytest.mark.parametrize("holder", ["Series", "DataFrame"])
def test_pandas_over_a_region_is_no_copy(holder):
    np, pd = need("numpy"), need("pandas")
    t = tshare.create(None, (4, 3) if holder == "DataFrame" else 4, "float64")
    held = getattr(pd, holder)(np.asarray(t), copy=False)
    same = tshare.asarray(held, copy=False)
    assert (same.shape, same.strides, same.region.id) == (t.shape, t.strides, t.region.id)


def test_xarray_over_a_region_is_no_copy():
    np, xr = need("numpy"), need("xarray")
    t = tshare.create(None, (4, 3), "float32")
    held = xr.DataArray(np.asarray(t), dims=("x", "y"))[1:].T
    same = tshare.asarray(held, copy=False)
    assert (same.shape, same.strides, same.region.id) == ((3, 3), (4, 12), t.region.id)


def test_polars_over_a_region_is_no_copy():
    np, pl = need("numpy"), need("polars")
    t = tshare.create(None, 1000, "uint8")
    held = pl.Series("x", np.asarray(t))
    same = tshare.asarray(held, copy=False)
    assert (same.shape, same.region.id, same.readonly) == ((1000,), t.region.id, True)


WAYS = [
    tshare.asarray,
    tshare.from_dlpack,
    lambda x: tshare.Region.create(None, {"x": x}),
    lambda x: tshare.create(None, 2).copy_from(x),
    lambda x: tshare.asarray([x, x]),
    lambda x: tshare.asarray([(x,)]),
]


@pytest.mark.parametrize("way", WAYS)
def test_mask_is_refused(way):
    np = need("numpy")
    for mask in ([True, False], [False, False]):
        with pytest.raises(ValueError, match="masked arrays are not supported"):
            way(np.ma.array([1, 2], mask=mask, dtype="uint8"))
    with pytest.raises(ValueError, match="masked arrays are not supported"):
        way(np.ma.masked)


@pytest.mark.parametrize("way", WAYS)
def test_masked_array_without_a_mask_is_an_array(way):
    np = need("numpy")
    way(np.ma.array([1, 2], dtype="uint8"))


# Types without a buffer in NumPy, and buffers of bytes, text, records or objects.
OTHERS = {
    "a date": lambda np: np.datetime64("2026-01-01"),
    "a difference": lambda np: np.timedelta64(5, "s"),
    "dates": lambda np: np.array(["2026-01-01"], "M8[s]"),
    "no dates": lambda np: np.array([], "M8[s]"),
    "differences": lambda np: np.array([5], "m8[s]"),
    "a record": lambda np: np.array([(1, 2)], "i4,f4")[0],
    "records": lambda np: np.array([(1, 2)], "i4,f4"),
    "records of bytes": lambda np: np.array([(1,)], [("a", "u1")]),
    "void": lambda np: np.array([b"a"], "V1"),
    "bytes": lambda np: np.array([b"a"]),
    "text": lambda np: np.array(["a"]),
    "a text": lambda np: np.str_("a"),
    "objects": lambda np: np.array([None]),
}


@pytest.mark.parametrize("kind", list(OTHERS))
def test_other_types_of_numpy_s_are_refused(kind):
    np = need("numpy")
    x = OTHERS[kind](np)
    for each in (x, [x, x], HasArray(np.asarray(x))):
        with pytest.raises(TypeError, match="x: unsupported dtype "):
            tshare.asarray(each)
    with pytest.raises(TypeError, match="tensors: 'x': unsupported dtype "):
        tshare.Region.create(None, {"x": x})


def test_numpy_s_bytes_are_bytes():
    assert values(tshare.asarray(need("numpy").bytes_(b"ab"))) == [97, 98]


class Module:
    """An object that has its tensors in state_dict(), as PyTorch's modules."""

    def state_dict(self):
        return {}


DATE = datetime.date(2026, 1, 1)


def quantized(torch):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.quantize_per_tensor(torch.eye(3), 0.1, 0, torch.qint8)


def nested(torch):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.nested.nested_tensor([torch.eye(2), torch.eye(3)])


@pytest.mark.parametrize(
    ("make", "remedy"),
    [
        (lambda: {"a": 1}, r"Region\.create\(name, x\)"),
        (Module, r"x\.state_dict\(\)"),
        (lambda: need("scipy.sparse").eye(3), r"x\.toarray\(\)"),
        (lambda: need("numpy").zeros(2, "f4,i4"), r"x\['f0'\]"),
        (lambda: need("numpy").array(["2026-01-01"], "M8[D]"), r"share x\.view\('int64'\)"),
        (lambda: need("torch").eye(3).to_sparse(), r"x\.to_dense\(\)"),
        (lambda: quantized(need("torch")), r"x\.int_repr\(\)"),
        (lambda: nested(need("torch")), r"x\.unbind\(\)"),
        (lambda: need("pyarrow").array([DATE]), r"x\.view\('int32'\)"),
        (lambda: need("pyarrow").array([DATE]).cast("timestamp[s]"), r"x\.view\('int64'\)"),
        (lambda: need("pyarrow").array(["a"]), "only numbers"),
        (lambda: need("pyarrow").array(["a"]).dictionary_encode(), "only numbers"),
        (lambda: need("pandas").Series([DATE], dtype="M8[s]"), r"np\.asarray\(x\)\.view"),
        (lambda: need("polars").Series([DATE]), r"np\.asarray\(x\)\.view"),
    ],
)
def test_what_is_not_one_array_is_refused_with_a_remedy(make, remedy):
    x = make()
    with pytest.raises(TypeError, match=f"^x: .*{remedy}"):
        tshare.asarray(x)


def test_remedies_name_the_tensor_of_a_region():
    dates = need("pyarrow").array([DATE])
    with pytest.raises(TypeError, match=r"^tensors: 'day': unsupported .*x\.view"):
        tshare.Region.create(None, {"day": dates})


def test_remedy_for_dates_of_arrow_shares_their_memory():
    dates = need("pyarrow").array([DATE, DATE])
    assert values(tshare.asarray(dates.view("int32"))) == [20454, 20454]


def test_conjugated_tensor_is_refused_with_a_remedy():
    x = need("torch").ones(2, dtype=need("torch").complex64).conj()
    with pytest.raises(BufferError, match=r"^x: .*x\.resolve_conj\(\)"):
        tshare.from_dlpack(x)


@pytest.mark.parametrize(
    "take",
    [
        tshare.asarray,
        tshare.from_dlpack,
        lambda x: tshare.from_dlpack(x, device="cpu"),
        lambda x: tshare.create(None, 3, "float32").copy_from(x),
    ],
)
def test_tensor_without_memory_is_refused_with_a_remedy(take):
    x = need("torch").empty(3, device="meta")
    with pytest.raises(BufferError, match=r"^x: .* meta .*tshare\.create\(name, x\.shape"):
        take(x)
    with tshare.create(None, x.shape, x.dtype) as t:
        assert (t.shape, t.dtype) == ((3,), "float32")


def test_region_of_a_module_names_the_remedy():
    with pytest.raises(TypeError, match=r"^tensors: .*state_dict\(\)"):
        tshare.Region.create(None, Module())


def test_create_without_a_name_names_the_remedy():
    with pytest.raises(TypeError, match=r"^name: .*create\(None, shape, dtype\)"):
        tshare.create((10,), "f4")


def test_create_without_a_type_makes_bytes():
    assert tshare.create(None, 3).dtype == "uint8"
    assert '"uint8"' in tshare.create.__doc__.partition(":param dtype")[2]
