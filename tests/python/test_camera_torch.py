# SPDX-License-Identifier: MIT
"""PyTorch sees a camera's frames where the camera writes them."""

import signal

import pytest

import tshare
import vivid
from support import need


@pytest.mark.skipif(not tshare.limits().dmabuf, reason="shared memory has no dma-bufs")
def test_tensor_is_the_memory_that_the_camera_wrote(camera, device, name):
    torch = need("torch")
    vivid.set_format(device, 1920, 1080)
    process = camera()
    with tshare.Stream.open(name) as stream:
        slots = stream.region["image"].numpy()
        for _ in range(3):
            frame = stream.take()
            image = frame["image"].torch()
            assert isinstance(image, torch.Tensor)
            assert image.shape == (1080, 1920, 2)
            assert image.data_ptr() == slots[frame.slot].ctypes.data
            assert image.any()
        del image, frame, slots
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=300)
    assert process.returncode == 0
