# SPDX-License-Identifier: MIT
"""The array interface for torch.Tensor, which has none of its own.

    import tshare.torch

    tshare.torch.enable_array_interface()

From then on all that reads __array_interface__, NumPy first of all, takes a
torch.Tensor without a copy, and without the bridge to NumPy that PyTorch may or
may not have been built with. Tensors whose memory can't be read as it lies,
those on a GPU, those that require a gradient, and those of a type that the
array interface lacks, have no such attribute, and are met as before.

For PIL.Image.fromarray() there is a method tobytes() besides: Pillow takes the
shape and the type from the interface, but not the memory.
"""

from __future__ import annotations

import ctypes
from typing import Any

import torch

from ._tshare import array_interface

__all__ = ["disable_array_interface", "enable_array_interface"]

_NAME = "__array_interface__"


def _interface(tensor: torch.Tensor) -> dict[str, Any]:
    """NumPy's array interface, version 3."""
    if tensor.is_neg():
        # DLPack doesn't say so, and nobody would turn the signs.
        raise AttributeError(f"{_NAME}: the tensor has its negative bit set")
    interface = array_interface(tensor)
    # Without them Pillow asks for a buffer, which no method can give.
    if interface["strides"] is None:
        size = tensor.element_size()
        interface["strides"] = tuple(stride * size for stride in tensor.stride())
    return interface


def _tobytes(tensor: torch.Tensor) -> bytes:
    """A copy of the elements, in C order."""
    packed = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    return ctypes.string_at(packed.data_ptr(), packed.numel() * packed.element_size())


_ATTRIBUTES = {_NAME: property(_interface), "tobytes": _tobytes}


def enable_array_interface() -> None:
    """Give torch.Tensor __array_interface__ and tobytes(), unless it has them."""
    for name, attribute in _ATTRIBUTES.items():
        if not hasattr(torch.Tensor, name):
            setattr(torch.Tensor, name, attribute)


def disable_array_interface() -> None:
    """Take away again what enable_array_interface() gave."""
    for name, attribute in _ATTRIBUTES.items():
        if torch.Tensor.__dict__.get(name) is attribute:
            delattr(torch.Tensor, name)
