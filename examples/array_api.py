#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One function for the arrays of every library, by the array API standard.

NumPy, PyTorch and JAX have views of the same memory. array-api-compat finds out
which library an array belongs to, and returns that library's functions.
"""

import sys

import numpy as np
import torch
from array_api_compat import array_namespace

import tshare


def standardise(x):
    """Scale the columns to mean 0 and deviation 1, by the library that x belongs to."""
    xp = array_namespace(x)
    return (x - xp.mean(x, axis=0)) / xp.std(x, axis=0)


def views_of(t):
    views = {"NumPy": np.asarray(t), "PyTorch": torch.from_dlpack(t)}
    try:
        import jax.numpy as jnp
    except ImportError:
        print("JAX is not installed: left out")
    else:
        views["JAX"] = jnp.from_dlpack(t)
    return views


def main():
    t = tshare.asarray(np.array([[1, 10], [2, 20], [3, 60]], dtype="float32"))
    expected = standardise(np.asarray(t))
    print(f"standardised:\n{expected.round(3)}")
    for library, x in views_of(t).items():
        result = standardise(x)
        if not np.allclose(np.asarray(result), expected, atol=1e-6):
            sys.exit(f"array_api.py: {library} computes {result}")
        kind = f"{type(result).__module__.partition('.')[0]}.{type(result).__name__}"
        print(f"{library}: the same, as a {kind.replace('jaxlib.ArrayImpl', 'jax.Array')}")


if __name__ == "__main__":
    main()
