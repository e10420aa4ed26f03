# SPDX-License-Identifier: MIT
"""t.cuda(0, copy=True): tensors in the GPU's own memory."""

import errno

import driver
from checks import address_of, check, equal, need_torch, nothing_left, refused, same, words

COUNT = 1 << 20  # words, 4 MiB

# Seconds until a kernel ends that nobody stops. A copy that waits for it takes so long.
PATIENCE = 20


def ready():
    """Return the kernels, on the default stream of a context that is current."""
    driver.enter()
    return driver.Kernels()


def elements_of(g):
    """Return what is on the device, with the strides that it has there, as NumPy's array."""
    import numpy as np

    steps = [(length - 1) * stride for length, stride in zip(g.shape, g.strides, strict=True)]
    below = -sum(step for step in steps if step < 0)
    above = sum(step for step in steps if step > 0) + g.itemsize
    found = np.empty(below + above, "uint8")
    driver.synchronize()
    driver.call(
        "cuMemcpyDtoHAsync_v2", found.ctypes.data, address_of(g) - below, found.nbytes, None
    )
    driver.synchronize()
    return np.ndarray(g.shape, g.dtype, found, below, g.strides)


def is_pinned(tensor):
    try:
        tensor.__dlpack__(dl_device=(3, 0))
    except BufferError:
        return False
    return True


def behind_a_kernel(stream, copy, seconds=PATIENCE):
    """Copy while a kernel runs on a stream that waits for the CPU, and return both results.

    The first is whether the call returned before the kernel had ended.
    """
    kernels = driver.Kernels(stream.handle)
    kernels.load()
    flags = driver.Watch()
    scratch = driver.Device(64)
    kernels.watch(scratch.address, 64, flags, seconds)
    made = copy()
    returned = not stream.idle()
    flags.stop()
    stream.synchronize()
    scratch.free()
    return returned and not flags.limit_reached, made


@check
def strides():
    """Copies of all kinds of views have NumPy's elements, and are not the region's memory."""
    import numpy as np

    import tshare

    ready()
    stream = driver.Stream()
    tensor = tshare.create(None, (64, 96), "uint32")
    tensor.numpy()[:] = np.arange(64 * 96, dtype="uint32").reshape(64, 96)
    views = [
        tensor,
        tensor[3:40:2, 5::3],
        tensor[::-1, ::-2],
        tensor[:, 7],
        tensor[63:, 95:],
        tshare.asarray(tensor.numpy().T),
        tshare.asarray(np.broadcast_to(tensor.numpy()[5], (10, 96))),
    ]
    for place, view in enumerate(views):
        for handle in (None, 1, 2, stream.handle):
            g = view.cuda(0, copy=True, stream=handle)
            same(elements_of(g), view.numpy(), f"view {place} on stream {handle}: words")
            same(elements_of(g[1:]), view.numpy()[1:], f"view {place}: words of a view")
    tensor.numpy()[:] = 0
    same(elements_of(g), np.broadcast_to(np.arange(480, 576), (10, 96)), "words after a change")


@check
def pinned_memory_is_copied_asynchronously():
    ready()
    stream = driver.Stream()
    tensor = words(COUNT)

    def copy():
        return tensor.cuda(0, copy=True, stream=stream.handle)

    with tensor.pin():
        returned, g = behind_a_kernel(stream, copy)
    assert returned, "the call waited for the kernel before it"
    same(elements_of(g), tensor.numpy(), "words")
    del g
    waits, g = behind_a_kernel(stream, copy, 2)
    same(elements_of(g), tensor.numpy(), "words of memory that is not pinned")
    return {"pageable_memory_waits": not waits}


@check
def other_streams_wait():
    """A kernel on another stream finds the elements, though the copy is held up."""
    ready()
    stream, other = driver.Stream(), driver.Stream()
    tensor = words(COUNT)
    kernels = driver.Kernels(other.handle)
    kernels.load()

    def copy():
        g = tensor.cuda(0, copy=True, stream=stream.handle)
        assert g.__dlpack__(stream=other.handle)
        kernels.add(address_of(g), (1, COUNT), (0, 4), 5)
        assert not other.idle(), "the other stream did not wait"
        return g

    with tensor.pin():
        _, g = behind_a_kernel(stream, copy)
        other.synchronize()
        same(elements_of(g), tensor.numpy() + 5, "words")


@check
def pin_may_go_before_the_copy():
    ready()
    stream = driver.Stream()
    tensor = words(COUNT)

    def copy():
        with tensor.pin():
            return tensor.cuda(0, copy=True, stream=stream.handle)

    _, g = behind_a_kernel(stream, copy)
    same(elements_of(g), tensor.numpy(), "words")
    assert is_pinned(tensor), "the copy did not keep the region pinned"
    del g
    assert not is_pinned(tensor), "still pinned"


@check
def context_is_created():
    tensor = words(COUNT)
    g = tensor.cuda(0, copy=True)
    assert g.context_created, "there was a context before"
    driver.enter()
    same(elements_of(g), tensor.numpy(), "words")


@check
def full_memory_is_enomem():
    ready()
    tensor = words(64 << 20)
    hoard, size = [], driver.free_memory()
    while size > 1 << 20:
        try:
            hoard.append(driver.Device(size))
        except driver.CudaError:
            size //= 2
    with refused(errno.ENOMEM, "a copy without memory left"):
        tensor.cuda(0, copy=True)
    for device in hoard:
        device.free()
    same(elements_of(tensor.cuda(0, copy=True)), tensor.numpy(), "words")


@check
def reset_leaves_others_their_memory():
    """A copy that a reset has taken along frees nothing of what came to its address."""
    import numpy as np

    ready()
    tensor = words(COUNT)
    g = tensor.cuda(0, copy=True)
    where = address_of(g)
    driver.call("cuDevicePrimaryCtxReset_v2", 0)
    driver.enter()
    others = [driver.Device(4 * COUNT) for _ in range(8)]
    for device in others:
        device.write(np.full(COUNT, 7, "uint32").ctypes.data)
        driver.synchronize()
    del g
    found = np.empty(COUNT, "uint32")
    for device in others:
        device.read(found.ctypes.data)
        driver.synchronize()
        same(found, np.full(COUNT, 7), "words of others")
    return {"same_address": where in [device.address for device in others]}


@check
def thousand_copies_leave_nothing():
    ready()
    tensor = words(COUNT)
    figures = {}

    def copy(times):
        for _ in range(times):
            tensor.cuda(0, copy=True)

    copy(100)
    with nothing_left(figures):
        copy(1000)
    return figures


@check
def torch_takes_it_on_its_stream():
    torch = need_torch()
    stream = torch.cuda.Stream()
    tensor = words(COUNT)
    handle = stream if hasattr(stream, "__cuda_stream__") else stream.cuda_stream
    with tensor.pin(), torch.cuda.stream(stream):
        g = tensor.cuda(0, copy=True, stream=handle)
        x = torch.from_dlpack(g).view(torch.int32)
        equal(x.data_ptr(), address_of(g), "address")
        x += 1
        del g
        same(x.cpu().numpy(), tensor.numpy() + 1, "words")
