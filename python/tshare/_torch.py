# SPDX-License-Identifier: MIT
"""Tensor.torch()"""

from __future__ import annotations

from typing import Any

from torch.utils.dlpack import from_dlpack

from ._tshare import Tensor


def as_array(tensor: Tensor) -> Any:
    """Return a torch.Tensor over the tensor's memory."""
    return from_dlpack(tensor)
