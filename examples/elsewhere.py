#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The errors for tensors that are not in the CPU's memory.

tshare never copies such a tensor silently: the error names the call that copies it.
Runs without a GPU, too: a class stands in for a library that has one.
"""

import numpy as np
import torch

import tshare


class OnGPU:
    """A GPU tensor as DLPack describes it: device type kDLCUDA, device id 0."""

    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, **options):
        raise AssertionError("tshare must not export what it can't use")

    def cpu(self):
        return np.arange(3.0)


def attempt(what, function):
    try:
        print(f"{what}: {function()}")
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError) as error:
        print(f"{what}: {type(error).__name__}: {error}")


def in_gpu_memory(x):
    attempt("to shared memory", lambda: tshare.asarray(x))
    attempt("to an array interface", lambda: tshare.array_interface(x))
    # The remedy that the error names:
    attempt("to shared memory by .cpu()", lambda: np.asarray(tshare.asarray(x.cpu())))


def main():
    print("A GPU tensor, as DLPack describes it")
    in_gpu_memory(OnGPU())

    print("A tensor without memory, on PyTorch's device 'meta'")
    attempt("to shared memory", lambda: tshare.asarray(torch.empty(3, device="meta")))

    print("A tensor that requires a gradient")
    weight = torch.ones(3, requires_grad=True)
    attempt("to shared memory", lambda: tshare.asarray(weight))
    attempt("to shared memory by .detach()", lambda: np.asarray(tshare.asarray(weight.detach())))

    if torch.cuda.is_available():
        print(f"A tensor on {torch.cuda.get_device_name(0)}")
        x = torch.arange(3.0, device="cuda")
        attempt("to NumPy", lambda: np.asarray(x))
        in_gpu_memory(x)
    else:
        print("There is no GPU that PyTorch can use: left out")


if __name__ == "__main__":
    main()
