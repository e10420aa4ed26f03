# SPDX-License-Identifier: MIT
"""Batches of a DataLoader in shared memory, and the array interface for torch.Tensor.

collate() is a DataLoader's collate_fn::

    import tshare.torch

    loader = DataLoader(data, batch_size=64, num_workers=4, collate_fn=tshare.torch.collate())

torch.Tensor has no array interface of its own::

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
import operator
import os
import secrets
from collections.abc import Callable
from typing import Any, SupportsIndex

try:
    import torch
except ImportError as error:
    text = "tshare.torch: needs PyTorch 1.13.1 or later, collate() 2.9 (pip install torch)"
    raise ImportError(text) from error

from ._tshare import array_interface, limits

__all__ = ["collate", "disable_array_interface", "enable_array_interface"]

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


def _count(number: SupportsIndex | None, name: str) -> int | None:
    if number is None:
        return None
    if (count := operator.index(number)) < 1:
        raise ValueError(f"{name}: must be 1 or more, not {count}")
    return count


def collate(
    slots: SupportsIndex | None = None,
    *,
    slot_bytes: SupportsIndex | None = None,
    pin: bool = False,
) -> Callable[[list[Any]], Any]:
    """Return a collate_fn for a DataLoader, with which workers collate straight into shared slots.

    Batches are those of default_collate(), also of what was added to its default_collate_fn_map.
    The tensors of a batch lie in a slot, and may be written. It is used again when all of them, and
    all views of them, are gone. If no slot is free, as with a consumer that keeps all batches, a
    batch gets memory of its own, and the first such batch is a UserWarning.

    Use one for each DataLoader. Its memory goes with the loader and the last batch, however the
    processes end. Without workers it is default_collate().

    :param slots: Slots of all workers together: num_workers * prefetch_factor, and two more than
        batches that the consumer keeps. None for 2 * num_workers + 4.
    :param slot_bytes: Bytes of a slot; None for those of the first batch. A batch that is larger
        takes several slots side by side.
    :param pin: Page-lock the slots, so that copies to a GPU need no pin_memory. Wait for a copy
        with non_blocking=True before you drop the batch.
    :raises ImportError: PyTorch is older than 2.9.
    :raises TypeError: An argument has a wrong type.
    :raises ValueError: An argument is less than 1; in a worker: a batch exceeds all slots.
    :raises OSError: There is no shared memory; in a worker: too little.
    """
    if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 9):
        raise ImportError(f"collate: needs PyTorch 2.9 or later, and this is {torch.__version__}")
    from ._torch_collate import Collate

    # Without shared memory this raises, and not only a worker.
    limits()
    name = f"torch-{os.getpid()}-{secrets.token_hex(8)}"
    return Collate(name, _count(slots, "slots"), _count(slot_bytes, "slot_bytes"), pin)
