#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Opens the array that share.c made, and changes it through NumPy and PyTorch.

    build/c/examples/share numbers &       # shares 1 2 3, until Enter
    share.py [NAME]
"""

import sys

import numpy as np
import torch

import tshare


def change(t):
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


def main():
    name = sys.argv[1] if len(sys.argv) > 1 else "numbers"
    try:
        t = tshare.open(name)
    except FileNotFoundError:
        sys.exit(f"share.py: no array '{name}' is shared (start build/c/examples/share first)")
    with t:
        print(f"Python: opened '{name}': {t.dtype}, shape {t.shape}")
        change(t)


if __name__ == "__main__":
    main()
