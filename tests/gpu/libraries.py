# SPDX-License-Identifier: MIT
"""What libraries make of t.cuda(0): the same address, and results like NumPy's."""

import driver
from checks import (
    address_of,
    check,
    equal,
    host_address,
    mapped,
    need,
    need_torch,
    same,
    unused_name,
)

SHAPE = (100, 200)


def matrix(name=None):
    """Return a tensor of floats that are integers, so that sums are exact."""
    import numpy as np

    import tshare

    tensor = tshare.create(name, SHAPE, "float32")
    tensor.numpy()[:] = np.arange(SHAPE[0] * SHAPE[1]).reshape(SHAPE)
    return tensor


# Views, and what is computed of each.
KEYS = (..., (slice(2, None, 3), slice(None, None, 2)), 5)


def try_library(take, address, to_numpy, synchronize):
    """Compare a library's arrays over a tensor and its views, both ways, with NumPy's.

    take(g): the library's array. address(x): its address. to_numpy(x): a copy in NumPy.
    """
    tensor = matrix()
    for key in KEYS:
        g = tensor.cuda(0)[key]
        array = tensor.numpy()[key]
        x = take(g)
        equal(address(x), address_of(g), f"{key}: address")
        equal(tuple(x.shape), g.shape, f"{key}: shape")
        same(to_numpy(x * 2 + 1), array * 2 + 1, f"{key}: results")
        wanted = array + 7
        x += 7
        synchronize()
        same(array, wanted, f"{key}: elements that the library changed")
        array[...] = wanted + 1
        same(to_numpy(x), array, f"{key}: elements that NumPy changed")


@check
def torch_from_dlpack():
    torch = need_torch()
    try_library(
        torch.from_dlpack, lambda x: x.data_ptr(), lambda x: x.cpu().numpy(),
        torch.cuda.synchronize,
    )  # fmt: skip
    equal(torch.from_dlpack(matrix().cuda(0)).device, torch.device("cuda", 0), "device")


@check
def torch_as_tensor():
    torch = need_torch()
    try_library(
        lambda g: torch.as_tensor(g, device="cuda:0"), lambda x: x.data_ptr(),
        lambda x: x.cpu().numpy(), torch.cuda.synchronize,
    )  # fmt: skip


@check
def torch_keeps_the_memory():
    torch = need_torch()
    tensor = matrix()
    where = host_address(tensor)
    x = torch.from_dlpack(tensor.cuda(0))
    tensor.close()
    del tensor
    equal((x + 0).sum().item(), float(sum(range(SHAPE[0] * SHAPE[1]))), "PyTorch's sum")
    assert mapped(where), "unmapped"
    del x
    assert not mapped(where), "still mapped"


@check
def torch_refuses_readonly_array_interface():
    import tshare

    torch = need_torch()
    name = unused_name("torch")
    keep = matrix(name)
    try:
        g = tshare.open(name, readonly=True).cuda(0)
    except OSError as error:
        return {"import": str(error)}
    try:
        torch.as_tensor(g, device="cuda:0")
    except TypeError as error:
        return {"refusal": str(error)}
    finally:
        keep.close()
    raise AssertionError("PyTorch has taken a read-only array interface")


@check
def torch_s_pinned_view_is_found():
    """asarray() takes PyTorch's view of a pinned tensor as the region's own memory."""
    import tshare

    torch = need_torch()
    tensor = matrix()
    with tensor.pin():
        torch.cuda.init()
        x = torch.from_dlpack(tensor)
        assert x.is_pinned(), "not pinned"
        figures = {"dlpack_device": [int(part) for part in x.__dlpack_device__()]}
        for take in (tshare.asarray, tshare.from_dlpack):
            found = take(x[3:])
            equal(host_address(found), host_address(tensor[3:]), "address")
            equal(found.region.id, tensor.region.id, "region")
    return figures


@check
def torch_computes_with_own_memory():
    """In one operation, and copies between the two on the device."""
    torch = need_torch()
    tensor = matrix()
    array = tensor.numpy()
    x = torch.from_dlpack(tensor.cuda(0))
    own = torch.ones(SHAPE, device="cuda")
    wanted = array + 1
    torch.add(x, own, out=x)
    torch.cuda.synchronize()
    same(array, wanted, "elements of the sum")
    own.copy_(x)
    same(own.cpu().numpy(), wanted, "the copy's elements")
    x.copy_(own * 2)
    torch.cuda.synchronize()
    same(array, wanted * 2, "elements that were copied back")


@check
def torch_dtypes():
    """Types that the array interface lacks go by DLPack."""
    import tshare

    torch = need_torch()
    for name in ("bfloat16", "float8_e4m3fn", "bool", "int8", "complex64", "float64"):
        tensor = tshare.create(None, 64, name)
        x = torch.from_dlpack(tensor.cuda(0))
        equal(x.dtype, getattr(torch, name), f"{name}: type")
        x.view(torch.uint8).fill_(1)
        torch.cuda.synchronize()
        seen = tensor.torch().view(torch.uint8)
        assert bool((seen == 1).all()), f"{name}: bytes {seen}"


def try_cupy(take):
    cupy = need("cupy")
    try_library(take(cupy), lambda x: x.data.ptr, cupy.asnumpy, cupy.cuda.runtime.deviceSynchronize)


@check
def cupy_from_dlpack():
    try_cupy(lambda cupy: cupy.from_dlpack)


@check
def cupy_asarray():
    try_cupy(lambda cupy: cupy.asarray)


@check
def cupy_kernel():
    """A kernel of CuPy's own, compiled for the purpose, takes the array as any other."""
    cupy = need("cupy")
    tensor = matrix()
    wanted = tensor.numpy() * 3
    triple = cupy.ElementwiseKernel("float32 x", "float32 y", "y = 3 * x", "triple")
    x = cupy.asarray(tensor.cuda(0))
    triple(x, x)
    cupy.cuda.runtime.deviceSynchronize()
    same(tensor.numpy(), wanted, "elements that the kernel changed")


@check(recorded=True)
def jax_from_dlpack():
    """Whether JAX takes memory of the host as a device's."""
    jax = need("jax")
    tensor = matrix()
    g = tensor.cuda(0)
    try:
        x = jax.dlpack.from_dlpack(g)
    except Exception as error:  # of a type that differs from version to version
        return {"refusal": f"{type(error).__name__}: {error}"}
    result = (x * 2 + 1).block_until_ready()
    figures = {
        "same_address": x.unsafe_buffer_pointer() == address_of(g),
        "device": str(x.device),
        "memory": x.sharding.memory_kind,
    }
    same(result, tensor.numpy() * 2 + 1, "results")
    tensor.numpy()[:] = 5
    figures["sees_changes"] = bool((x + 0 == 5).all())
    return figures


@check
def numba_as_cuda_array():
    cuda = need("numba.cuda")
    tensor = matrix()
    array = tensor.numpy()

    @cuda.jit
    def add(x, value):
        row, column = cuda.grid(2)
        if row < x.shape[0] and column < x.shape[1]:
            x[row, column] += value

    for key in KEYS[:2]:
        view = array[key]
        g = tensor.cuda(0)[key]
        x = cuda.as_cuda_array(g)
        equal(x.device_ctypes_pointer.value, address_of(g), f"{key}: address")
        equal((x.shape, x.strides), (g.shape, g.strides), f"{key}: shape and strides")
        wanted = view + 7
        add[(13, 25), (8, 8)](x, 7)
        cuda.synchronize()
        same(view, wanted, f"{key}: elements that the kernel changed")
        view[...] = wanted + 1
        same(x.copy_to_host(), view, f"{key}: elements that NumPy changed")


@check
def cuda_core_strided_memory_view():
    view_type = need("cuda.core.utils").StridedMemoryView
    driver.enter()
    tensor = matrix()
    for key in KEYS:
        g = tensor.cuda(0)[key]
        for take in (view_type.from_dlpack, view_type.from_cuda_array_interface):
            view = take(g, stream_ptr=-1)
            equal(view.ptr, address_of(g), f"{key}: address")
            equal(view.shape, g.shape, f"{key}: shape")
            assert view.is_device_accessible, f"{key}: not accessible for the device"
            assert not view.readonly, f"{key}: read-only"
