#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""CuPy arrays and PyTorch tensors over the same memory of a GPU, copied from
shared memory and back.

Exits with status 77 if there is no GPU, no CuPy, or only a PyTorch without CUDA.
"""

import sys

import numpy as np

import tshare

NOT_HERE = 77


def need_gpu():
    try:
        import cupy
        import torch
    except ImportError as error:
        print(f"cupy_pytorch.py: needs a GPU and CuPy: {error}", file=sys.stderr)
        sys.exit(NOT_HERE)
    if not torch.cuda.is_available():
        print("cupy_pytorch.py: needs a GPU and CuPy: PyTorch finds no GPU", file=sys.stderr)
        sys.exit(NOT_HERE)
    return cupy, torch


def main():
    cupy, torch = need_gpu()
    shared = tshare.asarray(np.arange(6, dtype="float32").reshape(2, 3))

    # One copy, from shared memory to the GPU's. CuPy and PyTorch then share that.
    x = torch.from_dlpack(shared).cuda()
    a = cupy.from_dlpack(x)
    a += 1
    print(f"CuPy adds 1, PyTorch sees {x.tolist()}")
    x.mul_(10)
    torch.cuda.synchronize()
    print(f"PyTorch multiplies by 10, CuPy sees {a.tolist()}")
    if a.data.ptr != x.data_ptr():
        sys.exit("cupy_pytorch.py: they are not the same memory")

    # One copy back, directly into the region.
    torch.from_dlpack(shared).copy_(x)
    print(f"back in shared memory: {np.asarray(shared).tolist()}")


if __name__ == "__main__":
    main()
