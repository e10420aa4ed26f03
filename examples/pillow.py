#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Pillow reads a PyTorch tensor, which is in shared memory, as a picture.

    pillow.py [FILE.png]        where to save it; nowhere if not given

A torch.Tensor has no __array_interface__, which is what Pillow asks for; tshare
gives it one for as long as one likes, without NumPy.
"""

import sys

import torch
from PIL import Image

import tshare
import tshare.torch


def paint(pixels):
    """Red grows to the right, green downwards; blue is everywhere."""
    height, width, _ = pixels.shape
    pixels[..., 0] = torch.linspace(0, 255, width)
    pixels[..., 1] = torch.linspace(0, 255, height)[:, None]
    pixels[..., 2] = 128


def main():
    pixels = torch.from_dlpack(tshare.create(None, (48, 64, 3), "uint8"))
    paint(pixels)

    tshare.torch.enable_array_interface()
    picture = Image.fromarray(pixels)
    print(f"Pillow: {picture.mode}, {picture.width} x {picture.height}")
    for place in (0, 0), (63, 0), (0, 47), (63, 47):
        print(f"Pillow: the pixel at {place} is {picture.getpixel(place)}")
    if len(sys.argv) > 1:
        picture.save(sys.argv[1])

    tshare.torch.disable_array_interface()
    has = "still has" if hasattr(pixels, "__array_interface__") else "has no longer"
    print(f"PyTorch: a tensor {has} an array interface")


if __name__ == "__main__":
    main()
