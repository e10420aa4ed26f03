# SPDX-License-Identifier: MIT
"""Tensor.torch()"""

from __future__ import annotations

from typing import Any

from torch.utils.dlpack import from_dlpack

from ._tshare import Tensor


def _check_strides(tensor: Tensor) -> None:
    """Refuse what PyTorch would end the process for."""
    _, _, shape, strides, *_ = tensor._spec
    steps = [stride for length, stride in zip(shape, strides, strict=True) if length > 1]
    if tensor.nbytes and min(steps, default=0) < 0:
        raise BufferError(
            "torch: PyTorch has no negative strides "
            "(copy the tensor first, by tshare.asarray(t, copy=True))"
        )


def as_array(tensor: Tensor) -> Any:
    """Return a torch.Tensor over the tensor's memory."""
    _check_strides(tensor)
    return from_dlpack(tensor)
