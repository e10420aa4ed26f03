# SPDX-License-Identifier: MIT
"""Errors with a remedy, for arrays that their library doesn't export, in place of its own."""

from __future__ import annotations

import sys
from typing import Any


def _check_torch(x: Any, torch: Any) -> None:
    if x.is_meta:
        raise BufferError(
            "x: has no memory, on the device meta (make a tensor of that form by "
            "tshare.create(name, x.shape, x.dtype))"
        )
    if x.is_nested:
        raise TypeError("x: is nested (share x.to_padded_tensor(0), or its parts, x.unbind())")
    if x.layout != torch.strided:
        raise TypeError(f"x: has the layout {x.layout} (share x.to_dense(), or its parts)")
    if x.is_quantized:
        raise TypeError("x: is quantized (share x.int_repr(), or x.dequantize())")
    if x.is_conj():
        raise BufferError("x: lazily conjugated tensors are not supported (share x.resolve_conj())")


def _check_arrow(x: Any, pa: Any) -> None:
    types, kind = pa.types, x.type
    if types.is_temporal(kind) and not types.is_interval(kind):
        raise TypeError(f"x: unsupported type {kind} (share x.view('int{kind.bit_width}'))")
    # Numbers with nulls, and a dictionary of them, are left to NumPy.
    if not types.is_primitive(kind.value_type if types.is_dictionary(kind) else kind):
        raise TypeError(f"x: unsupported type {kind} (tensors hold only numbers)")


def check_exportable(x: Any) -> None:
    """Raise an error with a remedy if x, whose DLPack methods fail, is known to need one."""
    torch, pa = sys.modules.get("torch"), sys.modules.get("pyarrow")
    if torch and isinstance(x, torch.Tensor):
        _check_torch(x, torch)
    elif pa and isinstance(x, pa.Array):
        _check_arrow(x, pa)
