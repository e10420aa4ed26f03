# SPDX-License-Identifier: MIT
"""Tensor.__jax_array__(), which jax.numpy.asarray() calls on objects that are no arrays."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from ._tshare import Tensor


def as_array(tensor: Tensor) -> Any:
    """Return an array over the tensor's memory.

    It is a copy if the tensor is read-only, or has a type that JAX doesn't take by DLPack.
    """
    try:
        return jnp.from_dlpack(tensor)
    except (BufferError, RuntimeError, TypeError, ValueError):
        return jnp.array(tensor.__array__())
