#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Passes tensors of several libraries to exchange.c, which depends on none of them.

    exchange.py [EXCHANGE.SO]
"""

import ctypes
import sys
from pathlib import Path

import numpy as np
import torch

import tshare

BUILT = Path(__file__).resolve().parent.parent / "build/c/examples/exchange.so"

REASONS = {
    -2: "its table is of an unknown version",
    -3: "it is not in the CPU's memory",
    -4: "its elements are neither float32 nor float64",
}


def load(path):
    if not Path(path).exists():
        sys.exit(f"exchange.py: {path} does not exist; 'make lib' builds it from exchange.c")
    # PyDLL holds the GIL during calls, which the table's functions need, and
    # raises the exception that they set.
    library = ctypes.PyDLL(str(path))
    library.sum_elements.argtypes = [
        ctypes.c_void_p,
        ctypes.py_object,
        ctypes.POINTER(ctypes.c_double),
    ]
    return library


get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
get_pointer.restype = ctypes.c_void_p
get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


def table_of(x):
    """Return the exchange table of x's type, or None. It is valid for ever."""
    capsule = getattr(type(x), "__dlpack_c_exchange_api__", None)
    return None if capsule is None else get_pointer(capsule, b"dlpack_exchange_api")


def total(library, x):
    result = ctypes.c_double()
    error = library.sum_elements(table_of(x), x, result)
    if error:
        raise TypeError(f"{type(x).__name__}: {REASONS[error]}")
    return result.value


def main():
    library = load(sys.argv[1] if len(sys.argv) > 1 else BUILT)

    t = tshare.asarray(np.arange(12, dtype="float32").reshape(3, 4))
    x = torch.from_dlpack(t)
    tensors = {
        "tshare.Tensor": t,
        "torch.Tensor over the same memory": x,
        "its second column, strided": x[:, 1],
        "torch.Tensor of float64": x.double() / 2,
        "numpy.ndarray": np.asarray(t),
    }
    for what, tensor in tensors.items():
        if table_of(tensor) is None:
            print(f"{what}: this {type(tensor).__module__} has no exchange table")
        else:
            print(f"{what}: the elements add up to {total(library, tensor):g}")

    try:
        total(library, tshare.create(None, 3, "int32"))
    except TypeError as error:
        print(error)


if __name__ == "__main__":
    main()
