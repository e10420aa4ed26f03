# SPDX-License-Identifier: MIT
"""Pinned regions: what PyTorch finds, and what is left behind."""

import ctypes
import errno
import os
import threading
import traceback
from pathlib import Path

import driver
from checks import check, equal, host_address, need_torch, nothing_left, refused, same, words

COUNT = 1 << 20  # words, 4 MiB

# Seconds until a kernel ends that waits for the CPU. A copy that waits for it takes so long.
PATIENCE = 20


def shared(count=COUNT):
    """Return a tensor of words, and PyTorch's view of it."""
    torch = need_torch()
    tensor = words(count)
    return tensor, torch.from_dlpack(tensor).view(torch.int32)


def runtime_error():
    """Return the error that is pending in CUDA's runtime, which PyTorch has loaded."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    paths = {line.split()[-1] for line in lines if "/libcudart.so" in line}
    assert paths, "PyTorch has not loaded libcudart.so"
    return max(ctypes.CDLL(path).cudaPeekAtLastError() for path in paths)


def works(torch):
    """Assert that PyTorch computes on the GPU."""
    equal(torch.arange(1000, device="cuda").sum().item(), 499500, "PyTorch's sum")


@check
def is_pinned():
    torch = need_torch()
    tensor, x = shared()
    with tensor.pin() as pin:
        figures = {"is_pinned_before_pytorch_starts": x.is_pinned()}
        figures |= {"context_created": pin.context_created, "piece_bytes": pin.piece_bytes}
    works(torch)
    assert not x.is_pinned(), "before: pinned"
    with tensor.pin():
        assert x.is_pinned(), "not pinned"
        assert x[COUNT - 1 :].is_pinned(), "the end: not pinned"
        with tensor.pin():
            pass
        assert x.is_pinned(), "after the second of two pins: not pinned"
    assert not x.is_pinned(), "after: pinned"
    return figures


def behind_a_kernel(torch, copy, seconds=PATIENCE):
    """Copy while a kernel runs that waits for the CPU, for some seconds, and wait for both.

    Return whether the copy's call returned before the kernel had ended.
    """
    stream = torch.cuda.Stream()
    kernels = driver.Kernels(stream.cuda_stream)
    kernels.load()
    flags = driver.Watch()
    scratch = driver.Device(64)
    with torch.cuda.stream(stream):
        kernels.watch(scratch.address, 64, flags, seconds)
        copy()
        returned = not stream.query()
        flags.stop()
        stream.synchronize()
    scratch.free()
    return returned and not flags.limit_reached


@check
def copies_are_asynchronous():
    torch = need_torch()
    tensor, x = shared()
    target = torch.zeros(COUNT, dtype=torch.int32, device="cuda")
    source = torch.arange(COUNT, 0, -1, dtype=torch.int32, device="cuda")
    torch.cuda.synchronize()
    with tensor.pin():
        assert behind_a_kernel(torch, lambda: target.copy_(x, non_blocking=True)), (
            "to the GPU: waited"
        )
        same(target.cpu().numpy(), x.numpy(), "words on the GPU")
        assert behind_a_kernel(torch, lambda: x.copy_(source, non_blocking=True)), (
            "from the GPU: waited"
        )
        same(tensor.numpy(), source.cpu().numpy(), "words in the region")
    pageable = torch.zeros(COUNT, dtype=torch.int32)
    waits = not behind_a_kernel(torch, lambda: target.copy_(pageable, non_blocking=True), 2)
    return {"pageable_memory_waits": waits}


@check
def no_error_is_left_in_the_runtime():
    torch = need_torch()
    works(torch)
    tensor, x = shared()
    cudart = torch.cuda.cudart()
    equal(int(cudart.cudaHostRegister(x.data_ptr() + 4096, 8192, 0)), 0, "cudaHostRegister()")
    with refused(errno.EBUSY, "memory that somebody else has registered"):
        tensor.pin()
    equal(runtime_error(), 0, "error after a pin that fails")
    equal(int(cudart.cudaHostUnregister(x.data_ptr() + 4096)), 0, "cudaHostUnregister()")
    with tensor.pin():
        equal(runtime_error(), 0, "error after a pin")
    equal(runtime_error(), 0, "error after the pin's end")
    works(torch)


@check
def thousand_pins_leave_nothing():
    driver.enter()
    tensor = words(COUNT)
    figures = {}

    def pin(times):
        for _ in range(times):
            tensor.pin().release()

    pin(100)
    with nothing_left(figures):
        pin(1000)
    return figures


@check
def threads_pin_at_once():
    driver.enter()
    both = words(COUNT)
    errors = []

    def pin(own):
        try:
            for _ in range(200):
                with both.pin(), own.pin():
                    pass
        except OSError as error:
            errors.append(error)

    figures = {}
    with nothing_left(figures):
        threads = [threading.Thread(target=pin, args=[words(COUNT)]) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        del threads, thread
    equal(errors, [], "errors")
    return figures


@check
def pytorch_starts_while_pinned():
    """The context that tshare has created becomes PyTorch's, too."""
    torch = need_torch()
    tensor, x = shared()
    pin = tensor.pin()
    assert pin.context_created, "there was a context before"
    target = x.to("cuda", non_blocking=True)
    torch.cuda.synchronize()
    pin.release()
    works(torch)
    same(target.cpu().numpy(), tensor.numpy(), "words on the GPU")


@check
def pytorch_starts_after_the_pin():
    torch = need_torch()
    tensor, _ = shared()
    tensor.pin().release()
    works(torch)
    with tensor.pin() as pin:
        assert not pin.context_created, "PyTorch's context was not found"
    works(torch)


@check
def forked_child_leaves_the_pin_alone():
    torch = need_torch()
    tensor, x = shared()
    with tensor.pin() as pin:
        child = os.fork()
        if not child:
            status = 1
            try:
                with refused(errno.EOPNOTSUPP, "a pin in a forked child"):
                    tensor.pin()
                with refused(errno.EOPNOTSUPP, "cuda() in a forked child"):
                    tensor.cuda()
                pin.release()
                equal(tensor.numpy()[COUNT - 1], COUNT - 1, "the last word in the child")
                tensor.numpy()[0] = 7
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        equal(os.waitpid(child, 0)[1], 0, "the child's status")
        assert x.is_pinned(), "not pinned any more"
        target = x.to("cuda", non_blocking=True)
        torch.cuda.synchronize()
        equal(target[0].item(), 7, "what the child wrote, on the GPU")
        same(target.cpu().numpy(), tensor.numpy(), "words on the GPU")
    assert not x.is_pinned(), "still pinned"


@check
def page_locked_memory_is_granted_by_dlpack():
    """As DLPack's type for pinned memory, which keeps the region pinned."""
    torch = need_torch()
    works(torch)
    tensor, x = shared()
    with tensor.pin():
        capsule = tensor.__dlpack__(max_version=(1, 0), dl_device=(3, 0))
    assert x.is_pinned(), "not pinned, while a consumer has it as such"
    del capsule
    assert not x.is_pinned(), "still pinned"
    equal(x.data_ptr(), host_address(tensor), "address")
