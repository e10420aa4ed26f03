# SPDX-License-Identifier: MIT
"""Conversions that need NumPy.

They make arrays of types that NumPy has only through ml_dtypes, and tensors of objects that
only NumPy can turn into an array.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ._tshare import Tensor, asarray, raw_interface


class _Raw:
    """The elements as unsigned integers; holds a reference to the tensor for NumPy."""

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor
        self.__array_interface__ = raw_interface(tensor)


def _bits(dtype: np.dtype[Any]) -> int:
    """Bits of an element in a tensor; for packed types fewer than in NumPy."""
    import ml_dtypes

    for info in (ml_dtypes.finfo, ml_dtypes.iinfo):
        try:
            return int(info(dtype).bits)
        except ValueError:
            pass
    raise ValueError


# A tensor packs elements of less than a byte, low bits first. NumPy gives each a byte, whose
# high bits are zero.


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
        raise TypeError(f"dtype: NumPy has no {name} (install ml_dtypes)") from None
    scalar = getattr(ml_dtypes, name, None)
    if scalar is None:
        raise TypeError(f"dtype: NumPy and ml_dtypes have no {name}")
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
    """Return an array over the tensor's memory, or a copy where one is requested or needed."""
    packed = tensor.strides is None
    if packed and copy is not None and not copy:
        raise ValueError(f"copy: an array of packed {tensor.dtype} needs a copy")
    array = _unpacked(tensor) if packed else _view(tensor)
    if dtype is not None and np.dtype(dtype) != array.dtype:
        if copy is not None and not copy:
            raise ValueError(f"copy: conversion of {tensor.dtype} to {dtype} needs a copy")
        return array.astype(dtype)
    return array.copy() if copy and not packed else array


def _kind(dtype: np.dtype[Any]) -> int:
    """Return 0 for bool, 1 for integers, 2 for floats, 3 for complex; each includes the former."""
    kinds = {"b": 0, "i": 1, "u": 1, "c": 3}
    return kinds.get(dtype.kind, 1 if "int" in dtype.name else 2)


def check_mask(x: Any) -> None:
    """Refuse masked arrays; NumPy drops the mask in lists and on export by DLPack."""
    if isinstance(x, np.ma.MaskedArray):
        if x.mask is not np.ma.nomask:
            raise ValueError(
                "x: masked arrays are not supported (share x.data and x.mask, or x.filled(value))"
            )
    elif isinstance(x, (list, tuple)):
        for item in x:
            check_mask(item)


def _check_kind(x: Any) -> None:
    """Refuse what isn't one array, and would become an array of objects in NumPy."""
    if isinstance(x, Mapping):
        raise TypeError(f"x: {type(x)} is no array (share it by tshare.Region.create(name, x))")
    if hasattr(x, "state_dict"):
        raise TypeError(
            f"x: {type(x)} is no array (share it by tshare.Region.create(name, x.state_dict()))"
        )
    if hasattr(x, "toarray") and hasattr(x, "nnz"):
        raise TypeError(f"x: {type(x)} is sparse (share x.toarray(), or x.data and its indices)")


def check_dtype(x: np.ndarray[Any, Any] | np.generic, called: str = "x") -> None:
    """Refuse types other than numbers of NumPy and ml_dtypes.

    :param called: How the caller of tshare has to write x.
    """
    dtype = x.dtype
    if isinstance(x, bytes):
        return
    if dtype.kind in "mM":
        raise TypeError(f"x: unsupported dtype {dtype} (share {called}.view('int64'))")
    if dtype.names:
        raise TypeError(
            f"x: unsupported dtype {dtype} (share its fields, such as x[{dtype.names[0]!r}])"
        )
    if dtype.kind in "OSTU" or issubclass(dtype.type, np.void):
        raise TypeError(f"x: unsupported dtype {dtype} (tensors hold only numbers)")


def item(tensor: Tensor) -> Any:
    """Return the only element of a tensor as a Python number."""
    value = tensor.__array__().reshape(()).item()
    if isinstance(value, int | float | complex):
        return value
    # A scalar of ml_dtypes.
    return int(value) if "int" in tensor.dtype else float(value)


def _are_ints(array: np.ndarray[Any, Any], x: Any) -> bool:
    """Whether x has only integers. NumPy makes floats or objects of large ones."""
    if array.dtype.kind not in ("f", "O") or isinstance(x, np.ndarray):
        return False
    return all(isinstance(number, int | np.integer) for number in np.asarray(x, object).flat)


def cast(arguments: tuple[Any, str, bool]) -> np.ndarray[Any, Any]:
    """Return an array of x's elements with the type of that name, as an assignment makes it.

    Unless lossy, the type must include the kind of each number of x.
    """
    x, name, lossy = arguments
    check_mask(x)
    try:
        dtype = np.dtype(name)
    except TypeError:
        dtype = _known(name)
    if isinstance(x, np.generic) and x.dtype.char in np.typecodes["AllInteger"] + "?efd":
        x = x.item()
    if not isinstance(x, list | tuple | int | float | complex | np.ndarray):
        # NumPy may lack the type, or refuse the object.
        x = asarray(x).__array__()
    array = np.asarray(x)
    # An empty array has no kind.
    kind = _kind(array.dtype) if array.size else 0
    if _are_ints(array, x):
        array = np.asarray(x, object)
        kind = min(kind, 1)
    else:
        check_dtype(array)
    if not lossy and kind > _kind(dtype):
        raise TypeError(f"x: {array.dtype} would be changed to fit {name} (t[...] = x converts)")
    # As NumPy 2 does, this checks the range of numbers, also in lists, and not of an array's.
    if isinstance(x, np.ndarray):
        return array.astype(dtype)
    if dtype.kind in "iu" and kind in (1, 2):
        limits = np.iinfo(dtype)
        for number in (array.min(), array.max()):
            if not limits.min <= int(number) <= limits.max:
                raise OverflowError(f"x: {number} is out of range for {name}")
    return np.asarray(x, dtype)


def convert(x: Any) -> tuple[np.ndarray[Any, Any], str | None, tuple[int, ...] | None]:
    """Return an array of x's elements in native byte order, if possible over x's memory.

    The second value is the name of the elements' type if the array holds them as integers
    of the same size. The third is the shape if the array holds packed bytes.
    """
    check_mask(x)
    _check_kind(x)
    array = np.asarray(x)
    check_dtype(array, "x" if array is x else "np.asarray(x)")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if any(stride % array.itemsize for stride in array.strides):
        array = array.copy()
    # Some types of ml_dtypes have one of NumPy's kinds, but isbuiltin is 2: registered.
    if array.dtype.kind in "biufc" and array.dtype.isbuiltin != 2:
        return array, None, None
    try:
        bits = _bits(array.dtype)
    except (ImportError, ValueError):
        raise TypeError(
            f"x: unsupported dtype {array.dtype}, of the array that NumPy makes of x"
        ) from None
    if bits == 8 * array.dtype.itemsize:
        return array.view(f"u{array.dtype.itemsize}"), array.dtype.name, None
    raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return _pack(raw, bits), array.dtype.name, array.shape
