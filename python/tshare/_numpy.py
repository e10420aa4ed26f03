# SPDX-License-Identifier: MIT
"""Where NumPy is needed: arrays of what NumPy knows from ml_dtypes alone, and
tensors of what only NumPy can make an array of."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._tshare import Tensor, raw_interface


class _Raw:
    """The elements as unsigned integers; keeps the tensor for NumPy."""

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor
        self.__array_interface__ = raw_interface(tensor)


def _bits(dtype: np.dtype[Any]) -> int:
    """Bits of an element in a tensor; fewer than in NumPy for ml_dtypes' small types."""
    import ml_dtypes

    for info in (ml_dtypes.finfo, ml_dtypes.iinfo):
        try:
            return int(info(dtype).bits)
        except ValueError:
            pass
    raise ValueError


# Elements of less than a byte lie side by side in a tensor, low bits first, and
# in NumPy in a byte each, whose high bits are zero.


def _pack(array: np.ndarray[Any, Any], bits: int) -> np.ndarray[Any, Any]:
    each = np.unpackbits(array.reshape(-1, 1), axis=1, bitorder="little")
    return np.packbits(each[:, :bits], bitorder="little")


def _unpack(packed: np.ndarray[Any, Any], bits: int, count: int) -> np.ndarray[Any, Any]:
    each = np.unpackbits(packed, count=bits * count, bitorder="little").reshape(count, bits)
    return np.packbits(each, axis=1, bitorder="little").reshape(count)


def _known(name: str) -> np.dtype[Any]:
    try:
        import ml_dtypes
    except ImportError:
        raise TypeError(f"NumPy has no {name}, and ml_dtypes is not installed") from None
    scalar = getattr(ml_dtypes, name, None)
    if scalar is None:
        raise TypeError(f"NumPy and ml_dtypes have no {name}")
    dtype: np.dtype[Any] = np.dtype(scalar)
    return dtype


def _view(tensor: Tensor) -> Any:
    try:
        return np.asarray(memoryview(tensor))
    except BufferError:
        return np.asarray(_Raw(tensor)).view(_known(tensor.dtype))


def _unpacked(tensor: Tensor) -> Any:
    dtype = _known(tensor.dtype)
    count = int(np.prod(tensor.shape, dtype=np.int64))
    return _unpack(np.asarray(_Raw(tensor)), _bits(dtype), count).view(dtype).reshape(tensor.shape)


def as_array(tensor: Tensor, dtype: Any, copy: bool | None) -> Any:
    """An array over the tensor's memory, or a copy of it where one is asked for or needed."""
    packed = tensor.strides is None
    if packed and copy is not None and not copy:
        raise ValueError(f"copy: packed {tensor.dtype} can't become an array without one")
    array = _unpacked(tensor) if packed else _view(tensor)
    if dtype is not None and np.dtype(dtype) != array.dtype:
        if copy is not None and not copy:
            raise ValueError(f"copy: {tensor.dtype} can't become {dtype} without one")
        return array.astype(dtype)
    return array.copy() if copy and not packed else array


def check_mask(x: Any) -> None:
    """Refuse masks, which NumPy itself drops from what is in a list or leaves by DLPack."""
    if isinstance(x, np.ma.MaskedArray):
        if x.mask is not np.ma.nomask:
            raise ValueError(
                "x: has a mask, which a tensor can't keep: share x.data and x.mask, or "
                "x.filled(value)"
            )
    elif isinstance(x, (list, tuple)):
        for item in x:
            check_mask(item)


def check_dtype(x: np.ndarray[Any, Any] | np.generic) -> None:
    """Refuse types that are none of numbers, and none of ml_dtypes' either."""
    dtype = x.dtype
    if isinstance(x, bytes):
        return
    if dtype.kind in "mM":
        raise TypeError(f"x: tensors have no {dtype}: share x.view('int64')")
    if dtype.kind in "OSTU" or issubclass(dtype.type, np.void):
        raise TypeError(f"x: tensors have no {dtype}, only numbers")


def convert(x: Any) -> tuple[np.ndarray[Any, Any], str | None, tuple[int, ...] | None]:
    """An array of native byte order that has x's elements: where it can be, x's own memory.

    With it come the type of its elements, where the array itself has but integers
    of their size, and the shape, where it has but their bytes, packed.
    """
    check_mask(x)
    array = np.asarray(x)
    check_dtype(array)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if any(stride % array.itemsize for stride in array.strides):
        array = array.copy()
    # Some of ml_dtypes' types have a kind of NumPy's, but are registered (2) with it.
    if array.dtype.kind in "biufc" and array.dtype.isbuiltin != 2:
        return array, None, None
    try:
        bits = _bits(array.dtype)
    except (ImportError, ValueError):
        raise TypeError(
            f"x: NumPy makes it an array of {array.dtype}, which no tensor has"
        ) from None
    if bits == 8 * array.dtype.itemsize:
        return array.view(f"u{array.dtype.itemsize}"), array.dtype.name, None
    raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return _pack(raw, bits), array.dtype.name, array.shape
