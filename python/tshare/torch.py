# SPDX-License-Identifier: MIT
"""The array interface for torch.Tensor, which has none of its own::

    import tshare.torch

    tshare.torch.enable_array_interface()

From then on NumPy, and every library that reads __array_interface__, takes a
torch.Tensor without a copy, even if PyTorch was built without NumPy. Tensors
on a GPU, tensors that require a gradient, lazily negated ones, and those of a
type that the array interface lacks, have no such attribute and behave as
before.

A method tobytes() is added for PIL.Image.fromarray(), which takes shape and
type from the interface, but not the memory.
"""

from __future__ import annotations

import ctypes
from typing import Any

import torch

from ._tshare import array_interface

__all__ = ["disable_array_interface", "enable_array_interface"]

_NAME = "__array_interface__"


def _interface(tensor: torch.Tensor) -> dict[str, Any]:
    """Return NumPy's array interface, version 3."""
    if tensor.is_neg():
        # DLPack can't express it, so a consumer would read the wrong signs.
        raise AttributeError(f"{_NAME}: the tensor is lazily negated (use resolve_neg())")
    interface = array_interface(tensor)
    # Without strides Pillow requires a buffer, which no attribute can provide.
    if interface["strides"] is None:
        size = tensor.element_size()
        interface["strides"] = tuple(stride * size for stride in tensor.stride())
    return interface


def _tobytes(tensor: torch.Tensor) -> bytes:
    """Return a copy of the elements as bytes, in C order."""
    packed = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    return ctypes.string_at(packed.data_ptr(), packed.numel() * packed.element_size())


_ATTRIBUTES = {_NAME: property(_interface), "tobytes": _tobytes}


def enable_array_interface() -> None:
    """Add __array_interface__ and tobytes() to torch.Tensor, unless it has them."""
    for name, attribute in _ATTRIBUTES.items():
        if not hasattr(torch.Tensor, name):
            setattr(torch.Tensor, name, attribute)


def disable_array_interface() -> None:
    """Remove the attributes that enable_array_interface() has added."""
    for name, attribute in _ATTRIBUTES.items():
        if torch.Tensor.__dict__.get(name) is attribute:
            delattr(torch.Tensor, name)
