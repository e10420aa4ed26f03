# SPDX-License-Identifier: MIT
"""Tensor.__jax_array__, by which jax.numpy.asarray() takes what is not an array."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from ._tshare import Tensor


def as_array(tensor: Tensor) -> Any:
    """An array over the tensor's memory; of a read-only one, or a type that DLPack can't
    bring to JAX, a copy."""
    try:
        return jnp.from_dlpack(tensor)
    except (BufferError, RuntimeError, TypeError, ValueError):
        return jnp.array(tensor.__array__())
