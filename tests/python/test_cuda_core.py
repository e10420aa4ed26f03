# SPDX-License-Identifier: MIT
"""A library of NVIDIA's takes tensors as a GPU sees them, on the stub of its driver."""

import ctypes

import numpy as np
import pytest

from support import Stream, need

pytestmark = pytest.mark.usefixtures("stub")

StridedMemoryView = need("cuda.core.utils").StridedMemoryView


def by_array_interface(g, stream):
    return StridedMemoryView.from_cuda_array_interface(g, stream_ptr=stream)


def by_dlpack(g, stream):
    return StridedMemoryView.from_dlpack(g, stream_ptr=stream)


both = pytest.mark.parametrize("take", [by_array_interface, by_dlpack])


@both
@pytest.mark.parametrize("stream", [-1, 1, 2])
def test_it_sees_the_memory(tensor, take, stream):
    g = tensor.cuda()[:, ::2]
    view = take(g, stream)
    assert view.ptr == g.__cuda_array_interface__["data"][0]
    assert (view.shape, view.strides, str(view.dtype)) == ((2, 2), (3, 2), "float32")
    assert (view.device_id, view.is_device_accessible, view.readonly) == (0, True, False)


@both
def test_it_sees_that_memory_is_readonly(readonly, take):
    assert take(readonly.cuda(), 1).readonly


@both
def test_it_keeps_the_memory(stub, tensor, take):
    view = take(tensor.cuda(), 1)
    tensor.close()
    assert stub.stub_left() is not None
    del view
    assert stub.stub_left() is None


@both
def test_its_stream_waits_for_a_copy(stub, tensor, take):
    np.asarray(tensor)[...] = [[0, 1, 2], [3, 4, 5]]
    stream, other = Stream(stub), ctypes.c_void_p()
    assert stub.cuStreamCreate(ctypes.byref(other), 0) == 0
    let_go = stream.hold()
    g = tensor.cuda(copy=True, stream=stream)
    view = take(g, other.value)
    assert stream.waits(other.value)
    let_go()
    stream.synchronize(other.value)
    elements = np.ctypeslib.as_array((ctypes.c_float * 6).from_address(view.ptr))
    np.testing.assert_array_equal(elements.reshape(2, 3), np.asarray(tensor))
    del g, view
    stream.destroy()
