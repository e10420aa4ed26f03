# SPDX-License-Identifier: MIT
"""t[...], T, iteration, assignment, copy_from(), numpy() and torch()."""

import itertools
import signal
import subprocess
import sys
import warnings

import pytest

import tshare
from support import need, readonly_torch, run, spawn, version

np = need("numpy")
torch = need("torch")

SHAPE = (4, 5, 6)


@pytest.fixture
def t():
    tensor = tshare.create(None, SHAPE, "int32")
    np.asarray(tensor)[:] = np.arange(120).reshape(SHAPE)
    return tensor


def same(view, array):
    """Whether a Tensor is the view of the memory that an array is."""
    there = view.__array_interface__["data"][0], view.shape
    if there != (array.__array_interface__["data"][0] if array.size else there[0], array.shape):
        return False
    return isinstance(view, tshare.Tensor) and (np.asarray(view) == array).all()


def view_of(array, key):
    """Return array[key], as an array without dimensions where NumPy returns a scalar."""
    key = key if isinstance(key, tuple) else (key,)
    return array[key if Ellipsis in key else (*key, ...)]


KEYS = [
    0,
    -1,
    np.int64(2),
    slice(None),
    slice(1, 3),
    slice(None, None, 2),
    slice(None, None, -1),
    slice(10, -10, -3),
    slice(3, 1),
    slice(2**80, None),
    slice(None, None, 2**62),
    slice(None, None, -(2**80)),
    Ellipsis,
    None,
    (),
    (1, 2),
    (1, 2, 3),
    (-4, -5, -6),
    (slice(1, None, 2), 3),
    (Ellipsis, 0),
    (Ellipsis, None),
    (0, Ellipsis, 0),
    (0, 1, 2, Ellipsis),
    (None, Ellipsis, None, 1),
    (slice(None, None, -2), None, slice(4, None, -3), slice(1, -1)),
]


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_index_is_the_view_that_numpy_makes(t, key):
    assert same(t[key], view_of(np.asarray(t), key))


def test_index_of_a_view_is_a_view(t):
    array = np.asarray(t)
    for first, second in itertools.product(KEYS, [0, slice(None, None, -1), Ellipsis, None]):
        once = view_of(array, first)
        if not (once.shape or second in [..., None]) or (second == 0 and not once.shape[0]):
            with pytest.raises(IndexError):
                t[first][second]
        else:
            assert same(t[first][second], view_of(once, second))


def test_view_writes_the_tensor_s_memory(t):
    np.asarray(t[1, ::2])[:] = -7
    assert (np.asarray(t)[1] == -7).sum() == 18
    assert (np.asarray(t) == -7).sum() == 18


def test_view_lives_without_the_tensor(t):
    view = t[1]
    t.close()
    assert np.asarray(view)[0, 0] == 30
    with pytest.raises(ValueError, match="closed"):
        t[0]


def test_view_of_a_readonly_tensor_is_readonly(name):
    tshare.create(name, 4)
    view = tshare.open(name, readonly=True)[1:]
    assert view.readonly
    assert not np.asarray(view).flags.writeable


def test_readonly_view_of_writable_memory_has_readonly_views(t):
    array = np.asarray(t)
    array.flags.writeable = False
    view = tshare.asarray(array)
    assert view.readonly
    assert view[0].readonly


def test_view_keeps_its_region_and_type(name):
    t = tshare.create(name, (2, 3), "float16")
    assert t[1].dtype == "float16"
    assert t[1].region.id == t.region.id
    assert t[1].name == name


def test_element_is_a_tensor_without_dimensions():
    t = tshare.asarray(np.array([1.5, 2.5]))
    assert (t[1].shape, t[1].ndim, t[1].nbytes) == ((), 0, 8)
    assert np.asarray(t[1]) == 2.5
    assert np.asarray(t[1][...]) == 2.5
    assert t[1][None].shape == (1,)
    with pytest.raises(IndexError):
        t[1][0]


@pytest.mark.parametrize("key", [4, -5, 2**80, (0, 0, 0, 0), (0, 5), (Ellipsis, Ellipsis)])
def test_index_out_of_range_is_an_index_error(t, key):
    with pytest.raises(IndexError):
        t[key]


def test_index_beyond_the_dimensions_that_there_can_be_is_an_index_error(t):
    with pytest.raises(IndexError, match="more than"):
        t[(None,) * 30]


@pytest.mark.parametrize(
    "key",
    ["x", b"x", 1.0, True, [0, 1], np.array([0, 1]), np.array([True] * 4), (0, [1]), object()],
    ids=repr,
)
def test_index_by_what_makes_copies_is_a_type_error(t, key):
    with pytest.raises(TypeError, match=r"t\.numpy\(\)"):
        t[key]


def test_error_of_an_index_is_passed_on(t):
    class Odd:
        def __index__(self):
            raise RuntimeError("odd")

    with pytest.raises(TypeError, match="^index: "):
        t[Odd()]
    with pytest.raises(RuntimeError, match="odd"):
        t[Odd() : 3]
    with pytest.raises(ValueError, match="zero"):
        t[::0]


def test_index_may_close_the_tensor(t):
    class Closes:
        def __index__(self):
            t.close()
            return 1

    assert np.asarray(t[Closes()])[0, 0] == 30
    assert t.closed


def test_packed_elements_have_views_that_begin_with_a_byte():
    t = tshare.create(None, (4, 4), "float4_e2m1fn")
    assert t[1].shape == (4,)
    assert t[:, 2:].shape == (4, 2)
    with pytest.raises(BufferError, match="byte"):
        t[0, 1:]


def test_elements_are_not_deleted(t):
    with pytest.raises(TypeError, match="deletion"):
        del t[0]


def test_t_is_the_view_with_dimensions_in_reverse(t):
    assert same(t.T, np.asarray(t).T)
    assert same(t[0, ::-2].T, np.asarray(t)[0, ::-2].T)
    assert t[0, 0, 0].T.shape == ()


# Assignment


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_assignment_is_numpy_s(t, key):
    expected = np.asarray(t).copy()
    t[key] = 7.9
    expected[key] = 7.9
    assert (np.asarray(t) == expected).all()


VALUES = [
    0,
    -1,
    2.75,
    True,
    np.float64(1.25),
    [1, 2, 3],
    (1.5, 2, True),
    [[1], [2]],
    np.arange(3),
    np.arange(6, dtype=">f8").reshape(2, 3),
    torch.tensor([1.5, 2, 3]),
    torch.tensor([1, 2, 3], dtype=torch.bfloat16),
    memoryview(np.arange(3)),
]
FITS = ["int8", "int64", "float16", "float32", "float64", "complex64", "complex128", "bool"]


@pytest.mark.parametrize("value", VALUES, ids=repr)
@pytest.mark.parametrize("dtype", [*FITS, "bfloat16", "float8_e5m2"])
def test_assignment_converts_as_numpy_does(dtype, value):
    if dtype not in FITS or getattr(value, "dtype", None) is torch.bfloat16:
        need("ml_dtypes")
    t = tshare.create(None, (2, 3), dtype)
    t[...] = value
    if isinstance(value, torch.Tensor):
        value = value.to(torch.float32).numpy()
    expected = np.zeros((2, 3), np.asarray(t).dtype)
    expected[...] = value
    assert np.asarray(t).tolist() == expected.tolist()


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint32", "int32", "int64", "uint64"])
def test_assignment_and_copy_from_take_what_is_in_the_type_s_range(dtype):
    t, limits = tshare.create(None, 2, dtype), np.iinfo(dtype)
    for set_to in (t.copy_from, lambda x: t.__setitem__(0, x), lambda x: t.copy_from([x, 0])):
        for value in (int(limits.min), int(limits.max)):
            set_to(value)
            assert t[0].item() == value
        for value in (int(limits.min) - 1, int(limits.max) + 1, 2**70):
            with pytest.raises(OverflowError, match=f"^x: {value} is out of range for {dtype}$"):
                set_to(value)
    assert t[0].item() == limits.max


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32"])
def test_assignment_of_numpy_s_scalars_checks_their_range(dtype):
    t, limits = tshare.create(None, 2, dtype), np.iinfo(dtype)
    for value in (np.int64(limits.max), np.float64(limits.max), np.uint64(limits.max)):
        t[0] = 0
        t[0] = value
        assert t[0].item() == limits.max
    for value in (limits.max + 1, limits.min - 1):
        for x in (np.int64(value), np.float64(value), [np.float64(value), 0.0]):
            with pytest.raises(OverflowError, match=rf"^x: {value}(\.0)? is out of range for"):
                t[:] = x
    for x in (np.float16("inf"), np.float32("inf")):
        with pytest.raises(OverflowError, match="infinity"):
            t[0] = x
    with pytest.raises(ValueError, match="NaN"):
        t[0] = np.float64("nan")
    assert t[0].item() == limits.max


def test_assignment_of_what_has_no_number_of_the_type_is_numpy_s_error():
    t = tshare.create(None, 2, "int32")
    with pytest.raises(ValueError, match="NaN"):
        t[0] = float("nan")
    for value in (1j, "x", None, {}):
        with pytest.raises(TypeError):
            t[0] = value
    with pytest.raises(ValueError, match=r"^x: shape \(3,\)"):
        t[:] = [1, 2, 3]
    assert t.numpy().tolist() == [0, 0]


def test_assignment_to_readonly_memory_is_a_permission_error(name):
    keep = tshare.create(name, 4)
    for value in (1, [1, 2, 3, 4], b"abcd", 1.5):
        with pytest.raises(PermissionError, match="read-only"):
            tshare.open(name, readonly=True)[:] = value
    assert bytes(keep) == bytes(4)


def test_assignment_of_overlapping_memory(t):
    expected = np.asarray(t).copy()
    t[1:] = t[:-1]
    expected[1:] = expected[:-1].copy()
    assert (np.asarray(t) == expected).all()


def test_numbers_need_no_numpy():
    code = """
        import sys, tshare
        sys.modules["numpy"] = None
        t = tshare.create(None, 3, "float32")
        t[0] = 1
        t[1:].copy_from(2.5)
        assert [x.item() for x in t] == [1, 2.5, 2.5]
        try:
            t[:] = [1, 2, 3]
        except TypeError as error:
            assert "NumPy" in str(error)
            print("ok")
    """
    assert run(code) == "ok"


# Iteration


def test_iteration_yields_as_many_views_as_len_returns(t):
    views = list(t)
    assert len(views) == len(t) == 4
    for view, row in zip(views, np.asarray(t), strict=True):
        assert same(view, row)
    first, *_ = t
    assert same(first, np.asarray(t)[0])


def test_tensor_without_dimensions_is_not_iterated():
    with pytest.raises(TypeError, match="dimensions"):
        iter(tshare.create(None, ()))


def test_closed_tensor_is_not_iterated(t):
    t.close()
    with pytest.raises(ValueError, match="closed"):
        iter(t)


def test_in_is_a_type_error(t):
    with pytest.raises(TypeError, match=r"t\.numpy\(\)"):
        3 in t  # noqa: B015


# copy_from()


def test_copy_from_copies_any_array(t):
    array = np.arange(120, dtype="int32").reshape(SHAPE) * 3
    for x in (array, np.asfortranarray(array), array[::-1], memoryview(array), array.tolist()):
        np.asarray(t)[:] = 0
        if isinstance(x, list):
            x = np.array(x, "int32")
        assert t.copy_from(x) is None
        assert (np.asarray(t) == np.asarray(x)).all()


def test_copy_from_fills_only_the_view(t):
    t[1:3, ::2].copy_from(np.full((2, 3, 6), -1, "int32"))
    expected = np.arange(120).reshape(SHAPE)
    expected[1:3, ::2] = -1
    assert (np.asarray(t) == expected).all()


@pytest.mark.parametrize("shape", [(), (1,), (6,), (5, 1), (1, 1, 6), (4, 1, 1)])
def test_copy_from_broadcasts(t, shape):
    x = np.arange(1, 1 + np.prod(shape, dtype=int), dtype="int32").reshape(shape)
    t.copy_from(x)
    assert (np.asarray(t) == np.broadcast_to(x, SHAPE)).all()


@pytest.mark.parametrize("shape", [(5,), (4, 5), (1, 4, 5, 6), (0,), (4, 5, 0)])
def test_copy_from_another_shape_is_a_value_error(t, shape):
    with pytest.raises(ValueError, match=r"shape .* \(4, 5, 6\)"):
        t.copy_from(np.zeros(shape, "int32"))


def test_copy_from_another_type_is_a_type_error(t):
    with pytest.raises(TypeError, match="float32.*int32"):
        t.copy_from(np.zeros(SHAPE, "float32"))
    with pytest.raises(TypeError):
        t.copy_from(object())


@pytest.mark.parametrize(
    ("dtype", "x"),
    [("bool", 1), ("int32", 1.0), ("float32", 1j), ("int8", [1.5]), ("float16", [1j]),
     ("bool", [1]), ("bfloat16", 1j), ("int4", [1.0])],
)  # fmt: skip
def test_copy_from_numbers_of_another_kind_is_a_type_error(dtype, x):
    if dtype in ("bfloat16", "int4"):
        need("ml_dtypes")
    t = tshare.create(None, 1, dtype)
    with pytest.raises(TypeError, match=f"would be changed to fit {dtype}"):
        t.copy_from(x)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "complex64", "float64"])
@pytest.mark.parametrize("x", [True, 3, [[1, 2]], (0, True)], ids=repr)
def test_copy_from_numbers_takes_the_tensor_s_type(dtype, x):
    if dtype == "bfloat16":
        need("ml_dtypes")
    t = tshare.create(None, (2, 2), dtype)
    t.copy_from(x)
    assert (t.numpy() == np.asarray(x)).all()


def test_copy_from_nothing_into_nothing():
    t = tshare.create(None, (0, 3), "int32")
    t.copy_from(np.zeros((0, 3), "int32"))
    t.copy_from(np.zeros(3, "int32"))


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize(
    ("to", "of"),
    [
        (slice(1, None), slice(None, -1)),
        (slice(None, -1), slice(1, None)),
        (slice(None), slice(None, None, -1)),
        (slice(None), slice(None)),
        (slice(None), slice(2, 3)),
        (slice(None, None, -2), slice(None, None, 2)),
    ],
)
def test_copy_from_the_same_memory_is_as_if_it_were_elsewhere(t, to, of, again):
    expected = np.arange(120).reshape(SHAPE)
    expected[to] = expected[of].copy()
    # Through a second mapping of the memory, too.
    source = tshare.from_fd(t.fileno()) if again else t
    t[to].copy_from(source[of])
    assert (np.asarray(t) == expected).all()


def test_copy_from_a_neighbour_in_the_region():
    with tshare.Region.create(None, {"a": np.arange(5), "b": ((5,), "int64")}) as region:
        region["b"].copy_from(region["a"][::-1])
        assert np.asarray(region["b"]).tolist() == [4, 3, 2, 1, 0]


def test_copy_from_into_a_readonly_tensor_is_a_permission_error(name):
    tshare.create(name, 4)
    with pytest.raises(PermissionError, match="read-only"):
        tshare.open(name, readonly=True).copy_from(b"abcd")


def test_copy_from_into_a_closed_tensor_is_a_value_error(t):
    t.close()
    with pytest.raises(ValueError, match="closed"):
        t.copy_from(b"")


def test_packed_elements_are_copied():
    t = tshare.create(None, (2, 4), "int4")
    x = tshare.create(None, (2, 4), "int4")
    t.copy_from(x)
    with pytest.raises(ValueError, match="packed"):
        t.copy_from(tshare.create(None, 4, "int4"))


# numpy() and torch()


def test_numpy_is_the_array_over_the_memory(t):
    array = t.numpy()
    assert type(array) is np.ndarray
    assert array.__array_interface__["data"] == t.__array_interface__["data"]
    assert (array.shape, array.dtype) == (SHAPE, np.int32)


def test_numpy_of_what_numpy_can_have_a_copy_of_only_is_a_value_error():
    with pytest.raises(ValueError, match="copy"):
        tshare.create(None, 4, "int4").numpy()


def test_torch_is_the_tensor_over_the_memory(t):
    tensor = t.torch()
    assert type(tensor) is torch.Tensor
    assert tensor.data_ptr() == t.__array_interface__["data"][0]
    assert (tuple(tensor.shape), tensor.dtype) == (SHAPE, torch.int32)
    assert tshare.create(None, 3, "bfloat16").torch().dtype == torch.bfloat16


@pytest.mark.parametrize("key", [slice(None, None, -1), (slice(1), slice(None, None, -2))])
def test_torch_of_negative_strides_names_the_remedy(t, key):
    view = t[key]
    with pytest.raises(BufferError, match="^torch: .* negative strides"):
        view.torch()
    copy = tshare.asarray(view, copy=True).torch()
    assert copy.tolist() == view.numpy().tolist()


@pytest.mark.parametrize("key", [(slice(None, None, -1), slice(0)), slice(None, 0, -4)])
def test_torch_takes_negative_strides_that_are_never_followed(t, key):
    if t[key].size == 0 and version(torch) < (2, 0):
        pytest.skip("PyTorch 1.13 never deletes a tensor without data")
    assert t[key].torch().tolist() == t[key].numpy().tolist()


def test_torch_of_packed_elements_with_negative_strides_is_refused():
    t = tshare.create(None, (4, 4), "float4_e2m1fn")
    with pytest.raises(BufferError, match="negative strides"):
        t[::-1].torch()


WARNS = """
import sys, tshare
t = tshare.open(sys.argv[1], readonly=True)
t.torch()
t.torch(); x = t[1:].torch()
print(x.tolist())
"""


def test_torch_of_a_readonly_tensor_warns_once_where_it_is_called(name):
    readonly_torch()
    keep = tshare.create(name, 3)
    process = spawn(WARNS, name, stderr=subprocess.PIPE)
    output, errors = process.communicate(timeout=300)
    assert (output, process.returncode) == ("[0, 0]\n", 0)
    assert errors.count("Warning") == 1
    assert "<string>:4: UserWarning: the tensor is read-only" in errors
    assert not keep.closed


def test_faulthandler_names_the_line_that_writes_to_readonly_memory(name):
    readonly_torch()
    keep = tshare.create(name, 3)
    code = f"import tshare\nx = tshare.open({name!r}, readonly=True).torch()\nx[1] = 5"
    command = [sys.executable, "-X", "faulthandler", "-c", code]
    process = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=300)
    assert process.returncode == -signal.SIGSEGV
    assert "Fatal Python error: Segmentation fault" in process.stderr
    assert 'File "<string>", line 3' in process.stderr
    assert bytes(keep) == bytes(3)


def test_torch_of_a_readonly_tensor(name):
    tshare.create(name, 4)
    t = tshare.open(name, readonly=True)
    if version(torch) >= (2, 9):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert t.torch().tolist() == [0] * 4
    else:
        with pytest.raises(BufferError, match="read-only"):
            t.torch()


def test_views_of_a_closed_tensor_are_refused(t):
    t.close()
    for use in (t.numpy, t.torch):
        with pytest.raises(ValueError, match="closed"):
            use()
