# SPDX-License-Identifier: MIT
import pytest

import tshare
from support import need

np = need("numpy")
ml_dtypes = need("ml_dtypes")

DTYPES = ["bfloat16", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn",
          "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
def test_create_takes_the_type(dtype):
    scalar = getattr(ml_dtypes, dtype)
    assert tshare.create(None, 1, scalar).dtype == dtype
    assert tshare.create(None, 1, np.dtype(scalar)).dtype == dtype


@pytest.mark.parametrize("dtype", DTYPES)
def test_asarray_shares_memory(dtype):
    t = tshare.create(None, (2, 3), dtype)
    a = np.asarray(t)
    assert a.dtype == getattr(ml_dtypes, dtype)
    assert a.shape == (2, 3)
    a[1, 2] = 2
    assert float(np.asarray(t)[1, 2]) == 2


def test_array_of_a_closed_tensor_does_not_dangle():
    t = tshare.create(None, 1 << 20, "bfloat16")
    a = np.asarray(t)
    t.close()
    del t
    a[-1] = 2
    assert a[-1] == 2


def test_readonly_array_is_readonly(name):
    keep = tshare.create(name, 4, "bfloat16")
    assert not np.asarray(tshare.open(name, readonly=True)).flags.writeable
    assert np.asarray(keep).flags.writeable


def test_array_converts_and_copies_on_request():
    t = tshare.create(None, 3, "bfloat16")
    np.asarray(t)[:] = 1.5
    assert np.array(t, dtype="float32").tolist() == [1.5] * 3
    assert not np.shares_memory(np.array(t), np.asarray(t))
    with pytest.raises(ValueError, match="copy"):
        t.__array__("float32", copy=False)
