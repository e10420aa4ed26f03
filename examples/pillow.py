#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Pillow reads a PyTorch tensor in shared memory as a picture.

    pillow.py [FILE.png]        saves the picture to FILE.png, if given

Pillow needs __array_interface__, which torch.Tensor lacks. tshare.torch adds it, and
removes it again; NumPy is not needed.
"""

import sys

import torch
from PIL import Image

import tshare
import tshare.torch


def paint(pixels):
    """Paint red that grows to the right, green that grows downwards, and even blue."""
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
