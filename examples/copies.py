#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Shows which expressions of NumPy, PyTorch and tshare share memory, and which copy.

Each expression is evaluated while the shared memory is all zeros. Then the memory is
filled with tens: a result that is all tens shares it.
"""

import numpy as np
import torch

import tshare

t = tshare.create(None, (4, 3), "float32")
array = np.asarray(t)
tensor = torch.from_numpy(array)

SECTIONS = {
    "From NumPy to PyTorch and back": [
        "torch.from_numpy(array)",
        "torch.as_tensor(array)",
        "torch.from_dlpack(t)",
        "tensor.numpy()",
        "np.asarray(tensor)",
        "torch.tensor(array)",
        "np.array(array)",
    ],
    "Views share, clones and selections by index don't": [
        "tensor[1:]",
        "tensor.T",
        "tensor.reshape(3, 4)",
        "tensor.detach()",
        "array[::2]",
        "tensor.clone()",
        "np.copy(array)",
        "tensor[[0, 2]]",
        "array[array < 1]",
        "tensor.T.contiguous()",
    ],
    "Operations in place keep the memory, all others take new": [
        "tensor.add_(1)",
        "np.add(array, 1, out=array)",
        "torch.add(tensor, 1, out=tensor)",
        "tensor + 1",
        "np.add(array, 1)",
    ],
    "A conversion to the same type is none": [
        "tensor.to(torch.float32)",
        "array.astype('float32', copy=False)",
        "array.astype('float32')",
        "tensor.to(torch.float64)",
    ],
    "tshare.asarray() takes memory that is in a region already as it is": [
        "tshare.asarray(array)",
        "tshare.asarray(tensor)",
        "tshare.asarray(tensor[1:].T)",
        "tshare.from_dlpack(tensor)",
        "tshare.asarray(array, copy=True)",
        "tshare.asarray(tensor.clone())",
    ],
}


def shares(expression):
    array[:] = 0
    result = eval(expression)  # one of those above
    array[:] = 10
    return bool((np.asarray(result) == 10).all())


def main():
    for title, expressions in SECTIONS.items():
        print(f"{title}:")
        for expression in expressions:
            print(f"    {'shares' if shares(expression) else 'copies'}  {expression}")

    # copy=False makes a copy an error.
    try:
        tshare.asarray(np.ones(3), copy=False)
    except BufferError as error:
        print(f"tshare.asarray(np.ones(3), copy=False): {error}")


if __name__ == "__main__":
    main()
