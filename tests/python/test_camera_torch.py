# SPDX-License-Identifier: MIT
"""PyTorch sees a camera's frames where the camera writes them."""

import signal

import pytest

import tshare
import vivid
from support import need


@pytest.mark.skipif(not tshare.limits().dmabuf, reason="shared memory has no dma-bufs")
def test_tensor_that_was_made_once_has_all_later_frames(camera, name):
    torch = need("torch")
    process = camera("-s", "1920x1080")
    with tshare.Region.open(name, readonly=True) as region:
        frames = region["frames"].torch()
        assert isinstance(frames, torch.Tensor)
        assert frames.shape == (8, 1080, 1920, 2)
        assert frames.data_ptr() == region["frames"].numpy().ctypes.data
        vivid.expect_new_pictures(region, frames)
    del frames
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=300)
    assert process.returncode == 0
