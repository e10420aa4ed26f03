# SPDX-License-Identifier: MIT
import gc

import pytest

import tshare
from support import address, mapped, need, run, version

torch = need("torch")

VERSIONED = version(torch) >= (2, 9)

DTYPES = ["int8", "int16", "int32", "int64", "uint8", "float16", "bfloat16", "float32",
          "float64", "complex64", "complex128"]  # fmt: skip
NEWER = ["bool", "uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
         "float8_e5m2fnuz", "float8_e8m0fnu"]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES + (NEWER if VERSIONED else []))
def test_from_dlpack_shares_memory_and_dtype(dtype):
    t = tshare.create(None, (2, 3), dtype)
    x = torch.from_dlpack(t)
    assert x.dtype == getattr(torch, dtype)
    assert x.shape == (2, 3)
    x.view(torch.uint8)[1, 1] = 1
    assert torch.from_dlpack(t).view(torch.uint8)[1, 1] == 1


def test_from_dlpack_is_the_same_address():
    t = tshare.create(None, (2, 3), "float32")
    assert torch.from_dlpack(t).data_ptr() == address(t)


def test_from_dlpack_sees_what_others_write(name):
    x = torch.from_dlpack(tshare.create(name, 4, "int32"))
    y = torch.from_dlpack(tshare.open(name))
    x += 3
    assert y.tolist() == [3] * 4
    y[0] = 9
    assert x[0] == 9


def test_from_dlpack_of_strided_tensor_has_its_strides():
    t = tshare.Region.create(None, {"t": ((2, 3), "int16", (2, 64))})["t"]
    x = torch.from_dlpack(t)
    assert x.stride() == (1, 32)
    assert x.data_ptr() == address(t)


def test_from_dlpack_of_scalars():
    assert torch.from_dlpack(tshare.create(None, (), "float32")).shape == ()


def test_default_collate_takes_views_as_pytorch_s_tensors():
    t = tshare.create(None, (2, 3), "uint8")
    collate = torch.utils.data.default_collate
    assert collate([view.torch() for view in t]).shape == (2, 3)
    with pytest.raises(TypeError, match="default_collate"):
        collate([*t])


def test_from_dlpack_of_empty_tensors():
    if not VERSIONED:
        pytest.skip("PyTorch 1.13 never deletes a tensor without data")
    assert torch.from_dlpack(tshare.create(None, (0, 3), "float32")).shape == (0, 3)


def test_tensor_outlives_a_closed_one():
    t = tshare.create(None, 1 << 20)
    x = torch.from_dlpack(t)
    t.close()
    del t
    gc.collect()
    x[-1] = 5
    assert x[-1] == 5
    where = x.data_ptr()
    del x
    gc.collect()
    assert not mapped(where)


def test_view_of_a_tensor_keeps_the_memory():
    y = torch.from_dlpack(tshare.create(None, (1024, 1024)))[1:].T
    gc.collect()
    y.fill_(2)
    assert int(y.sum()) == 2 * 1023 * 1024


def test_readonly_tensor_is_taken_by_versions_that_have_the_flag(name):
    keep = tshare.create(name, 4)
    t = tshare.open(name, readonly=True)
    if VERSIONED:
        assert torch.from_dlpack(t).tolist() == [0] * 4
    else:
        with pytest.raises(BufferError, match="max_version"):
            torch.from_dlpack(t)
    assert not keep.closed


def test_copy_is_granted_to_versions_that_have_the_argument():
    t = tshare.create(None, 4)
    if not VERSIONED:
        with pytest.raises(TypeError):
            torch.from_dlpack(t, copy=True)
        return
    assert torch.from_dlpack(t, copy=True).data_ptr() != address(t)
    assert torch.from_dlpack(t, copy=False).data_ptr() == address(t)
    assert torch.from_dlpack(t, device="cpu").data_ptr() == address(t)


def test_as_tensor_and_frombuffer_share_memory():
    t = tshare.create(None, (2, 3), "int32")
    if VERSIONED:
        assert torch.as_tensor(t).data_ptr() == address(t)
        assert torch.as_tensor(t).shape == (2, 3)
    x = torch.frombuffer(t, dtype=torch.int32)
    assert x.data_ptr() == address(t)


@pytest.mark.parametrize("dtype", DTYPES + (NEWER if VERSIONED else ["bool"]))
def test_create_takes_pytorch_s_types_and_sizes(dtype):
    t = tshare.create(None, torch.zeros(2, 3).shape, getattr(torch, dtype))
    assert (t.shape, t.dtype) == ((2, 3), dtype)


def test_create_refuses_quantised_types():
    with pytest.raises(ValueError, match="dtype"):
        tshare.create(None, 1, torch.quint8)


def test_from_dlpack_copies_tensors():
    for source in (
        torch.arange(12.0).reshape(3, 4),
        torch.arange(24, dtype=torch.int16).reshape(4, 6)[::2].T,
        torch.arange(4, dtype=torch.bfloat16),
        torch.tensor(5.0),
    ):
        t = tshare.from_dlpack(source)
        x = torch.from_dlpack(t)
        assert x.dtype == source.dtype
        assert torch.equal(x, source)
        assert x.data_ptr() != source.data_ptr()


@pytest.fixture
def array_interface():
    tshare_torch = need("tshare.torch")
    tshare_torch.enable_array_interface()
    yield
    tshare_torch.disable_array_interface()
    assert not hasattr(torch.Tensor, "__array_interface__")
    assert not hasattr(torch.Tensor, "tobytes")


def test_pillow_takes_tensors_that_have_an_array_interface(array_interface):
    image = need("PIL.Image")
    x = torch.arange(24, dtype=torch.uint8).reshape(2, 4, 3)
    for pixels in (x, x.transpose(0, 1), x[:, ::2], x[..., 0]):
        picture = image.fromarray(pixels)
        assert picture.size == (pixels.shape[1], pixels.shape[0])
        assert list(picture.tobytes()) == pixels.flatten().tolist()


def test_tensor_without_memory_has_no_array_interface(array_interface):
    assert hasattr(torch.zeros(3), "__array_interface__")
    assert not hasattr(torch.zeros(3, device="meta"), "__array_interface__")
    assert not hasattr(torch.zeros(3, requires_grad=True), "__array_interface__")


def test_interpreter_ends_with_live_tensors():
    assert (
        run(
            """
            import torch, tshare

            t = tshare.create(None, 1000)
            torch.kept = torch.from_dlpack(t)
            print("ok")
            """
        )
        == "ok"
    )


def test_negated_views_are_refused():
    z = torch.tensor([1 + 2j, 3 - 4j])
    if not hasattr(z, "is_neg"):
        pytest.skip("this PyTorch has no lazy negation")
    x = z.conj().imag
    t = tshare.create(None, 2, "float32")
    for take in (
        tshare.asarray,
        tshare.from_dlpack,
        t.copy_from,
        lambda x: tshare.Region.create(None, {"x": x}),
    ):
        with pytest.raises(BufferError, match="resolve_neg"):
            take(x)
    assert tshare.asarray(x.resolve_neg()).torch().tolist() == [-2, 4]


def test_collate_refuses_an_old_pytorch_by_its_version(monkeypatch):
    tshare_torch = need("tshare.torch")
    if VERSIONED:
        monkeypatch.setattr(torch, "__version__", "2.8.1+cpu")
    with pytest.raises(ImportError, match=r"needs PyTorch 2\.9 or later") as error:
        tshare_torch.collate()
    assert str(error.value).endswith(torch.__version__)


def test_package_for_pytorch_names_it_where_it_is_missing():
    code = """
        import sys
        sys.modules["torch"] = None
        try:
            import tshare.torch
        except ImportError as error:
            print(error)
    """
    assert run(code).startswith("tshare.torch: needs PyTorch 1.13.1 or later")
