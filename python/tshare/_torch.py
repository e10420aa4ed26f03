# SPDX-License-Identifier: MIT
"""Tensor.torch()"""

from __future__ import annotations

import warnings
from typing import Any

from torch.utils.dlpack import from_dlpack

from ._tshare import Tensor

_warned = False


def _check_strides(tensor: Tensor) -> None:
    """Refuse strides with which PyTorch ends the process."""
    _, _, shape, strides, *_ = tensor._spec
    steps = [stride for length, stride in zip(shape, strides, strict=True) if length > 1]
    if tensor.nbytes and min(steps, default=0) < 0:
        raise BufferError(
            "torch: PyTorch has no negative strides "
            "(copy the tensor first, by tshare.asarray(t, copy=True))"
        )


def _warn_of_readonly(tensor: Tensor) -> None:
    """Warn once, like torch.from_numpy(), at the line that called torch()."""
    global _warned

    if _warned:
        return
    what_happens = (
        "ends the process with SIGSEGV (clone() what is to be written; "
        "python -X faulthandler shows where)"
        if tensor.region.readonly
        else "changes it for all processes (clone() what is to be written, or open it read-only)"
    )
    warnings.warn(
        f"the tensor is read-only, and PyTorch ignores that: a write to it {what_happens}",
        UserWarning,
        stacklevel=3,
    )
    _warned = True


def as_array(tensor: Tensor) -> Any:
    """Return a torch.Tensor over the tensor's memory."""
    _check_strides(tensor)
    array = from_dlpack(tensor)
    if tensor.readonly:
        _warn_of_readonly(tensor)
    return array
