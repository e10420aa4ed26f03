#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""NumPy arrays and PyTorch tensors over one memory, in one process and in two.

    numpy_pytorch.py [NAME]
"""

import multiprocessing
import sys

import numpy as np
import torch

import tshare


def from_numpy_to_pytorch():
    # Five zeros in shared memory. The array and the tensor are views of them.
    a = np.asarray(tshare.create(None, 5, "float32"))
    x = torch.from_numpy(a)
    a += 1
    print(f"NumPy adds 1, PyTorch sees {x.tolist()}")
    x[0] = 7
    print(f"PyTorch sets one to 7, NumPy sees {a.tolist()}")


def from_pytorch_to_numpy():
    x = torch.from_dlpack(tshare.create(None, 5, "float32"))
    a = x.numpy()
    x.add_(2)
    print(f"PyTorch adds 2, NumPy sees {a.tolist()}")
    a[-1] = 9
    print(f"NumPy sets one to 9, PyTorch sees {x.tolist()}")


def child(name):
    # A process needs only the name: the region has shape and type.
    t = tshare.open(name)
    a, x = np.asarray(t), torch.from_dlpack(t)
    print(f"child: opened '{name}', {t.dtype} of shape {t.shape}, holding {x.tolist()}", flush=True)
    a[0] *= 10
    x[1:].mul_(100)


def between_processes(name):
    x = torch.from_dlpack(tshare.create(name, 3, "int64"))
    x[:] = torch.tensor([1, 2, 3])
    process = multiprocessing.Process(target=child, args=(name,))
    sys.stdout.flush()
    process.start()
    process.join()
    if process.exitcode:
        sys.exit("numpy_pytorch.py: the child failed")
    print(f"parent: after the child's changes it holds {x.tolist()}")


if __name__ == "__main__":
    from_numpy_to_pytorch()
    from_pytorch_to_numpy()
    between_processes(sys.argv[1] if len(sys.argv) > 1 else "numpy-pytorch")
