#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Opens the array that share.c made, and changes it through NumPy and PyTorch."""

import sys

import numpy as np
import torch

import tshare

name = sys.argv[1] if len(sys.argv) > 1 else "numbers"

with tshare.open(name) as t:
    print(f"Python: opened '{name}': {t.dtype}, shape {t.shape}")

    a = np.asarray(t)
    print(f"Python: NumPy sees     {a}")
    a[0] = 7

    x = torch.from_dlpack(t)
    print(f"Python: PyTorch sees   {x}")
    x[1:] = torch.tensor([8, 9])

    print(f"Python: NumPy sees now {a}")
    same = a.ctypes.data == x.data_ptr()
    print(f"Python: both at the same address: {'yes' if same else 'no'}")
    if not same or a.tolist() != [7, 8, 9]:
        sys.exit("Python: NumPy and PyTorch don't see the same memory")
    del a, x
