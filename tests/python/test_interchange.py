# SPDX-License-Identifier: MIT
"""From every library into a region and back, for every type that both have."""

import functools
import importlib

import pytest

import tshare
from support import address, need, run, version

np = need("numpy")

NUMPY = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
         "float16", "float32", "float64", "complex64", "complex128"]  # fmt: skip
EIGHT_BITS = ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
              "float8_e8m0fnu"]  # fmt: skip
ML_DTYPES = ["bfloat16", *EIGHT_BITS, "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz",
             "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn", "int2", "int4", "uint2",
             "uint4"]  # fmt: skip

LAYOUTS = {
    "C": lambda a: a,
    "Fortran": lambda a: a.T.copy().T if hasattr(a, "T") else a,
    "transposed": lambda a: a.T,
    "every second": lambda a: a[:, ::2],
    "a column": lambda a: a[:, 1],
    "an element": lambda a: a[1, 2],
    "nothing": lambda a: a[:, :0],
}


@functools.lru_cache(None)
def torch():
    return need("torch")


def torch_tensor(dtype):
    if not hasattr(torch(), dtype):
        pytest.skip(f"this PyTorch has no {dtype}")
    bits = torch().arange(1, 13, dtype=torch().uint8)
    kind = getattr(torch(), dtype)
    if dtype in EIGHT_BITS:
        return bits.view(kind).reshape(3, 4)
    return bits.to(kind).reshape(3, 4)


def same(a, b):
    """Whether two of PyTorch's tensors have the same elements, of whichever type."""
    if a.dtype in [getattr(torch(), name, None) for name in EIGHT_BITS]:
        a, b = a.contiguous().view(torch().uint8), b.contiguous().view(torch().uint8)
    return torch().equal(a, b)


# NumPy


def numpy_array(dtype):
    if dtype in NUMPY:
        return np.arange(1, 13).astype(dtype).reshape(3, 4)
    ml_dtypes = need("ml_dtypes")
    return np.arange(12).astype("uint8").reshape(3, 4).astype(getattr(ml_dtypes, dtype))


def same_bytes(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", NUMPY + ML_DTYPES)
def test_numpy_s_arrays_come_and_go(dtype, layout):
    a = np.asarray(LAYOUTS[layout](numpy_array(dtype)))
    t = tshare.asarray(a)
    assert t.dtype == dtype
    assert t.shape == a.shape
    assert same_bytes(np.asarray(t), a)


@pytest.mark.parametrize("step", [-1, -2, 3])
def test_numpy_s_backward_arrays_are_taken(step):
    a = np.arange(10)[::step]
    assert np.asarray(tshare.asarray(a)).tolist() == a.tolist()


def test_numpy_s_broadcast_arrays_are_taken():
    a = np.broadcast_to(np.arange(3), (4, 3))
    t = tshare.asarray(a)
    assert np.array_equal(np.asarray(t), a)
    assert np.asarray(t).flags.writeable


def test_numpy_s_readonly_arrays_are_copied_to_writable_ones():
    a = np.arange(3)
    a.flags.writeable = False
    assert not tshare.asarray(a).readonly


@pytest.mark.parametrize("dtype", [">i4", ">f8", ">c8"])
def test_numpy_s_arrays_of_the_other_byte_order_are_turned_over(dtype):
    a = np.array([1, 2], dtype)
    assert np.asarray(tshare.asarray(a)).tolist() == a.tolist()
    with pytest.raises(BufferError, match="copy"):
        tshare.asarray(a, copy=False)


def test_a_field_of_numpy_s_records_is_taken():
    records = np.zeros(3, [("flag", "i1"), ("value", "f4")])
    records["value"] = [1, 2, 3]
    t = tshare.asarray(records["value"])
    assert (t.dtype, np.asarray(t).tolist()) == ("float32", [1, 2, 3])


@pytest.mark.parametrize("scalar", [1, 2.5, True, 1j, np.float32(3), np.array(7)])
def test_scalars_are_tensors_without_dimensions(scalar):
    t = tshare.asarray(scalar)
    assert t.shape == ()
    assert np.asarray(t).item() == scalar
    assert np.asarray(t).dtype == np.asarray(scalar).dtype


@pytest.mark.parametrize("nested", [[1, 2, 3], [[1.5], [2.5]], range(4), [True, False], [1j]])
def test_lists_are_what_numpy_makes_of_them(nested):
    t = tshare.asarray(nested)
    assert np.asarray(t).dtype == np.asarray(nested).dtype
    assert np.asarray(t).tolist() == np.asarray(nested).tolist()


@pytest.mark.parametrize(
    "wrong",
    ["text", ["a"], [[1], [1, 2]], [object()], {1, 2}, None, np.array(["1970"], "M8[s]"),
     np.zeros(1, "i4,f4"), np.array([1], "O"), np.array([1], "longdouble")],
)  # fmt: skip
def test_what_no_tensor_can_have_is_refused(wrong):
    with pytest.raises((TypeError, ValueError, BufferError)):
        tshare.asarray(wrong)


def test_views_of_a_region_come_back_without_a_copy():
    t = tshare.create(None, (3, 4), "int32")
    a = np.asarray(t)
    for view in (a, a.T, a[1:], a[::2, ::-1], a[1, 2:], a[:, 1], a.view("uint16"), a.reshape(-1)):
        back = tshare.asarray(view)
        assert np.shares_memory(np.asarray(back), a)
        assert np.asarray(back).strides == view.strides
        assert address(back) == view.__array_interface__["data"][0]
        assert same_bytes(np.asarray(back), view)


def test_readonly_view_comes_back_readonly():
    t = tshare.create(None, 3)
    a = np.asarray(t)
    a.flags.writeable = False
    back = tshare.asarray(a)
    assert back.readonly
    assert address(back) == address(t)


@pytest.mark.parametrize("dtype", NUMPY)
def test_array_interface_is_numpy_s_own(dtype):
    a = numpy_array(dtype)
    if version(np) < (1, 25) and dtype == "bool":
        pytest.skip("this numpy doesn't export bool as DLPack")
    for view in (a, a.T, a[:, ::2]):
        ours, theirs = tshare.array_interface(view), view.__array_interface__
        assert {key: theirs[key] for key in ours} == ours


@pytest.mark.parametrize("layout", LAYOUTS)
def test_mapping_of_arrays_becomes_a_region(layout, name):
    a = np.asarray(LAYOUTS[layout](numpy_array("float32")))
    keep = tshare.Region.create(name, {"a": a, "b": ((2,), "int8")})
    assert same_bytes(np.asarray(tshare.Region.open(name)["a"]), a)
    assert keep["b"].shape == (2,)


# PyTorch


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [*NUMPY, "bfloat16", *EIGHT_BITS])
def test_torch_s_tensors_come_and_go(dtype, layout):
    if layout == "Fortran":
        layout = "transposed"
    x = LAYOUTS[layout](torch_tensor(dtype))
    t = tshare.asarray(x)
    assert t.dtype == dtype
    assert t.shape == tuple(x.shape)
    if layout == "nothing" and version(torch()) < (2, 0):
        pytest.skip("PyTorch 1.13 never deletes a tensor without data")
    try:
        back = torch().from_dlpack(t)
    except (RuntimeError, BufferError):
        if version(torch()) >= (2, 0):
            raise
        back = torch().from_numpy(np.asarray(t))
    assert back.dtype == x.dtype
    assert same(back, x)


def test_torch_s_packed_float4_comes_and_goes():
    if not hasattr(torch(), "float4_e2m1fn_x2"):
        pytest.skip("this PyTorch has no float4")
    bits = torch().arange(1, 7, dtype=torch().uint8).reshape(2, 3)
    x = bits.view(torch().float4_e2m1fn_x2)
    t = tshare.asarray(x)
    assert (t.dtype, t.shape, t.nbytes) == ("float4_e2m1fnx2", (2, 3), 6)
    back = torch().from_dlpack(t)
    assert back.dtype == torch().float4_e2m1fn_x2
    assert torch().equal(back.view(torch().uint8), bits)


def test_views_of_torch_come_back_without_a_copy():
    t = tshare.create(None, (3, 4), "float32")
    x = torch().from_dlpack(t)
    for view in (x, x.t(), x[1:], x[:, ::2], x[1, 2], x.view(-1)):
        back = tshare.from_dlpack(view)
        assert address(back) == view.data_ptr()
        assert back.shape == tuple(view.shape)
        back.close()


def test_tensor_that_requires_a_gradient_is_refused_with_torch_s_advice():
    x = torch().ones(2, requires_grad=True)
    for function in (tshare.asarray, tshare.from_dlpack):
        with pytest.raises((BufferError, RuntimeError), match="detach"):
            function(x)
    with pytest.raises(AttributeError):
        tshare.array_interface(x)


@pytest.mark.parametrize("kind", ["meta", "sparse", "conjugated"])
def test_tensor_without_memory_of_its_own_is_refused(kind):
    if kind == "meta":
        x = torch().ones(2, device="meta")
    elif kind == "sparse":
        x = torch().eye(3).to_sparse()
    else:
        x = torch().ones(2, dtype=torch().complex64).conj()
    if version(torch()) >= (2, 0):
        with pytest.raises(AttributeError):
            tshare.array_interface(x)
    if kind != "conjugated":
        with pytest.raises(Exception, match=".") as caught:
            tshare.asarray(x)
        assert isinstance(caught.value, (BufferError, TypeError, ValueError, RuntimeError))


@pytest.mark.parametrize("dtype", NUMPY)
def test_array_interface_of_a_torch_tensor(dtype):
    x = torch_tensor(dtype)
    if dtype == "bool" and version(torch()) < (2, 0):
        pytest.skip("this torch doesn't export bool as DLPack")
    interface = tshare.array_interface(x.t())
    assert interface["data"] == (x.data_ptr(), False)
    assert interface["shape"] == (4, 3)
    assert interface["strides"] == (x.element_size(), 4 * x.element_size())
    assert np.dtype(interface["typestr"]) == np.dtype(dtype)


def test_array_interface_has_no_bfloat16():
    with pytest.raises(AttributeError, match="bfloat16"):
        tshare.array_interface(torch_tensor("bfloat16"))


@pytest.fixture
def enabled():
    torch()
    module = importlib.import_module("tshare.torch")
    module.enable_array_interface()
    yield
    module.disable_array_interface()


def test_torch_s_tensors_have_the_interface_on_request(enabled):
    x = torch().arange(3.0)
    assert x.__array_interface__["data"][0] == x.data_ptr()
    np.asarray(x)[0] = 5
    assert x[0] == 5


def test_interface_is_absent_where_the_memory_can_t_be_read(enabled):
    for x in (
        torch().ones(2, requires_grad=True),
        torch().ones(2, dtype=torch().bfloat16),
        torch().eye(3).to_sparse(),
    ):
        assert not hasattr(x, "__array_interface__")


def test_negated_views_have_no_interface(enabled):
    z = torch().tensor([1 + 2j, 3 - 4j])
    if not hasattr(z, "is_neg"):
        pytest.skip("this PyTorch has no lazy negation")
    assert not hasattr(z.conj().imag, "__array_interface__")
    assert np.frombuffer(z.conj().tobytes(), "complex64").tolist() == [1 - 2j, 3 + 4j]
    assert np.frombuffer(z.conj().imag.tobytes(), "float32").tolist() == [-2, 4]


def test_tensors_without_the_interface_are_met_as_before(enabled):
    with pytest.raises(RuntimeError, match="detach"):
        np.asarray(torch().ones(2, requires_grad=True))


def test_interface_is_removed_on_request():
    torch()
    module = importlib.import_module("tshare.torch")
    module.disable_array_interface()
    before = hasattr(torch().Tensor, "__array_interface__")
    module.enable_array_interface()
    module.enable_array_interface()
    module.disable_array_interface()
    assert hasattr(torch().Tensor, "__array_interface__") == before
    module.disable_array_interface()


@pytest.mark.imports_torch
def test_torch_s_tensors_have_an_interface_without_numpy():
    torch()
    code = """
        import sys, warnings

        warnings.simplefilter("ignore")
        sys.modules["numpy"] = None
        import torch
        import tshare

        x = torch.arange(6.0).reshape(2, 3)
        interface = tshare.array_interface(x)
        assert interface["data"] == (x.data_ptr(), False)
        print(interface["shape"], tshare.asarray(x).shape)
    """
    assert run(code) == "(2, 3) (2, 3)"


# JAX


@pytest.mark.parametrize("dtype", ["int32", "float32", "bfloat16", "complex64", "float8_e4m3fn"])
def test_jax_s_arrays_come_and_go(dtype):
    jnp = need("jax.numpy")
    x = jnp.arange(12).astype(dtype).reshape(3, 4)
    t = tshare.asarray(x)
    assert (t.dtype, t.shape) == (dtype, (3, 4))
    back = jnp.asarray(t)
    assert back.dtype == x.dtype
    assert np.array_equal(np.asarray(back), np.asarray(x))


def test_jax_s_asarray_takes_what_its_from_dlpack_refuses(name):
    jnp = need("jax.numpy")
    keep = tshare.asarray(np.arange(3, dtype="float32"), name)
    assert jnp.asarray(tshare.open(name, readonly=True)).tolist() == [0, 1, 2]
    ml_dtypes = need("ml_dtypes")
    four = np.array([1, 0.5], ml_dtypes.float4_e2m1fn)
    assert np.array_equal(np.asarray(jnp.asarray(tshare.asarray(four))), four)
    assert not keep.closed


def test_jax_s_array_is_a_copy():
    jnp = need("jax.numpy")
    t = tshare.asarray(np.arange(3, dtype="float32"))
    x = jnp.array(t)
    np.asarray(t)[:] = 7
    assert x.tolist() == [0, 1, 2]


# The array API


@pytest.mark.parametrize("library", ["numpy", "torch", "jax.numpy"])
def test_array_api_compat_takes_views_of_one_tensor(library):
    need("array_api_compat")
    from array_api_compat import array_namespace

    arrays = need(library)
    t = tshare.asarray(np.arange(6, dtype="float32").reshape(2, 3))
    x = arrays.from_dlpack(t)
    xp = array_namespace(x)
    assert float(xp.sum(x)) == 15
    assert xp.from_dlpack(t).shape == (2, 3)
    back = tshare.asarray(xp.permute_dims(x, (1, 0)))
    assert np.asarray(back).tolist() == [[0, 3], [1, 4], [2, 5]]


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_from_dlpack_of_the_array_api_takes_device_and_copy(library):
    arrays = need(library)
    if version(arrays) < (2, 1):
        pytest.skip(f"{library}.from_dlpack() has no copy here")
    t = tshare.asarray(np.arange(3, dtype="float32"))
    kept = arrays.from_dlpack(t, device="cpu", copy=False)
    copied = arrays.from_dlpack(t, device="cpu", copy=True)
    np.asarray(t)[:] = 7
    assert kept.tolist() == [7, 7, 7]
    assert copied.tolist() == [0, 1, 2]
