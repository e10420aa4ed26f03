# SPDX-License-Identifier: MIT
"""The array interface for torch.Tensor, which has none of its own.

    import tshare.torch

    tshare.torch.enable_array_interface()

From then on all that reads __array_interface__, NumPy first of all, takes a
torch.Tensor without a copy, and without the bridge to NumPy that PyTorch may or
may not have been built with. Tensors whose memory can't be read as it lies,
those on a GPU, those that require a gradient, and those of a type that the
array interface lacks, have no such attribute, and are met as before.
"""

from __future__ import annotations

import torch

from ._tshare import array_interface

__all__ = ["disable_array_interface", "enable_array_interface"]

_NAME = "__array_interface__"
_attribute = property(array_interface, doc="NumPy's array interface, version 3.")


def enable_array_interface() -> None:
    """Give torch.Tensor the attribute __array_interface__, unless it has one."""
    if not hasattr(torch.Tensor, _NAME):
        setattr(torch.Tensor, _NAME, _attribute)


def disable_array_interface() -> None:
    """Take it away again, if it is what enable_array_interface() gave."""
    if torch.Tensor.__dict__.get(_NAME) is _attribute:
        delattr(torch.Tensor, _NAME)
