# SPDX-License-Identifier: MIT
"""Tensor.__array__, for the types that NumPy knows from ml_dtypes alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._tshare import Tensor, raw_interface


class _Raw:
    """The elements as unsigned integers; keeps the tensor for NumPy."""

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor
        self.__array_interface__ = raw_interface(tensor)


def _view(tensor: Tensor) -> Any:
    try:
        return np.asarray(memoryview(tensor))
    except BufferError:
        pass
    name = tensor.dtype
    try:
        import ml_dtypes
    except ImportError:
        raise TypeError(f"NumPy has no {name}, and ml_dtypes is not installed") from None
    dtype = getattr(ml_dtypes, name, None)
    # Packed elements have no strides, and are a byte each in ml_dtypes.
    if dtype is None or tensor.strides is None:
        raise TypeError(f"NumPy and ml_dtypes have no {name}")
    return np.asarray(_Raw(tensor)).view(dtype)


def as_array(tensor: Tensor, dtype: Any, copy: bool | None) -> Any:
    """An array over the tensor's memory, or a copy of it where that is asked for."""
    array = _view(tensor)
    if dtype is not None and np.dtype(dtype) != array.dtype:
        if copy is not None and not copy:
            raise ValueError(f"copy: {tensor.dtype} can't become {dtype} without one")
        return array.astype(dtype)
    return array.copy() if copy else array
