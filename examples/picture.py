#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Passes a picture from one process to another as a tensor.

    picture.py put PICTURE NAME    decodes PICTURE directly into a tensor NAME,
                                   prints its SHA-256, and waits for Enter
    picture.py get NAME            opens it read-only as a PyTorch tensor, and
                                   prints that tensor's SHA-256
"""

import hashlib
import sys
import time


def put(path, name):
    import numpy as np
    from PIL import Image

    import tshare

    with Image.open(path) as picture:
        picture = picture.convert("RGB")
        width, height = picture.size
        t = tshare.create(name, (height, width, 3), "uint8")
        pixels = np.asarray(t)
        pixels[:] = picture
        # The picture's own bytes, not the tensor's: the other side must match them.
        digest = hashlib.sha256(picture.tobytes()).hexdigest()
    print(f"put: decoded {path.rsplit('/', 1)[-1]} into '{name}', {t.dtype}, shape {t.shape}")
    print(f"put: sha256 {digest}", flush=True)
    sys.stdin.readline()


def get(name):
    import torch

    import tshare

    start = time.perf_counter()
    t = tshare.open(name, readonly=True)
    x = torch.from_dlpack(t)
    elapsed = time.perf_counter() - start
    print(f"get: opened '{name}' as a {x.dtype} tensor of {tuple(x.shape)}")
    print(f"get: {t.nbytes / 1e6:.1f} MB, without a copy, in {elapsed * 1e3:.2f} ms")
    digest = hashlib.sha256(x.numpy()).hexdigest()
    print(f"get: mean colour {x.float().mean(dim=(0, 1)).round().int().tolist()}")
    print(f"get: sha256 {digest}")


def main(arguments):
    match arguments:
        case ["put", path, name]:
            put(path, name)
        case ["get", name]:
            get(name)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
