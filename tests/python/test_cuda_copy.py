# SPDX-License-Identifier: MIT
"""Copies of tensors in a GPU's memory, on the stub of NVIDIA's driver.

What the stub calls a device's memory is the process's own, so that tests can read it.
"""

import copy
import ctypes
import errno
import gc
import itertools
import os
import pickle
import time
import weakref

import numpy as np
import pytest

import tshare
from support import (
    READ_ONLY,
    DLTensor,
    Stream,
    address,
    exchange_api,
    exported,
    imported,
    legacy,
    mapped,
    other_threads_run_during,
    versioned,
    with_stub,
)

LEGACY, PER_THREAD = 1, 2


def await_copies(stub):
    """Wait until all copies were made."""
    until = time.monotonic() + 60
    while stub.stub_busy():
        assert time.monotonic() < until
        time.sleep(0.001)


def settle(stub):
    """Wait until what nobody has any more is gone, which the library's thread may have to do."""
    gc.collect()
    await_copies(stub)
    until = time.monotonic() + 60
    while (left := stub.stub_left()) and (b"memory" in left or b"event" in left):
        assert time.monotonic() < until, left
        time.sleep(0.001)


@pytest.fixture(autouse=True)
def settled(stub):
    yield
    settle(stub)


@pytest.fixture
def stream(stub):
    stream = Stream(stub)
    yield stream
    settle(stub)
    stream.destroy()


@pytest.fixture
def other(stub):
    stream = Stream(stub)
    yield stream
    stream.destroy()


@pytest.fixture
def tensor(stub):
    tensor = tshare.create(None, (2, 3), "float32")
    tensor.numpy()[:] = np.arange(6).reshape(2, 3)
    return tensor


def data_of(g):
    return g.__cuda_array_interface__["data"][0]


def array_of(g):
    """Return what is in the device's memory, as NumPy's."""
    found = dict(g.__cuda_array_interface__)
    del found["stream"]
    return np.asarray(type("Array", (), {"__array_interface__": found})())


def test_copy_has_the_tensor_s_properties(tensor, stream):
    view = tensor[:, ::2]
    g = view.cuda(copy=True, stream=stream)
    for name in ("shape", "strides", "dtype", "ndim", "itemsize", "nbytes"):
        assert getattr(g, name) == getattr(view, name)
    assert (g.device, g.path, g.failures, g.driver_version) == ("cuda:0", "copy", {}, 13000)
    assert address(g.tensor) == address(view)
    assert g.region.id == tensor.region.id
    shown = "<tshare.CudaTensor device='cuda:0' path='copy' shape=(2, 2) dtype=float32>"
    assert repr(g) == shown


def test_context_is_reported_by_the_copy_that_created_it(stub, tensor):
    one = tensor.cuda(copy=True)
    two = tensor.cuda(copy=True)
    assert (one.context_created, two.context_created) == (True, False)


def test_copy_is_memory_of_its_own(tensor, stream):
    g = tensor.cuda(copy=True, stream=stream)
    stream.synchronize()
    assert data_of(g) not in (0, address(tensor))
    array_of(g)[:] = 7
    assert (tensor.numpy() == np.arange(6).reshape(2, 3)).all()


@pytest.mark.parametrize(
    "key",
    [..., 0, (1, 2), (slice(None), 1), slice(None, None, -1), (slice(None), slice(None, None, -2)),
     (slice(None, None, -1), slice(None, None, -1)), (slice(1, None), slice(1, 2)), None],
)  # fmt: skip
def test_copy_of_any_view_is_what_numpy_has(tensor, stream, key):
    g = tensor[key].cuda(copy=True, stream=stream)
    stream.synchronize()
    assert (array_of(g) == tensor.numpy()[key]).all()


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_copy_of_any_order_is_what_numpy_has(stub, stream, order):
    tensor = tshare.create(None, (2, 3, 4), "int16")
    tensor.numpy()[:] = np.arange(24).reshape(2, 3, 4)
    view = tshare.asarray(tensor.numpy().transpose(order)[::-1])
    g = view.cuda(copy=True, stream=stream)
    stream.synchronize()
    assert (array_of(g) == view.numpy()).all()


def test_copy_of_repeated_elements_is_what_numpy_has(stub, stream):
    tensor = tshare.create(None, 3, "int32")
    tensor.numpy()[:] = range(3)
    repeated = tshare.asarray(np.broadcast_to(tensor.numpy(), (4, 3)))
    g = repeated.cuda(copy=True, stream=stream)
    stream.synchronize()
    assert array_of(g).strides == (0, 4)
    assert (array_of(g) == [0, 1, 2]).all()


def test_view_of_a_copy_is_in_the_copy(tensor, stream):
    g = tensor.cuda(copy=True, stream=stream)
    stream.synchronize()
    array_of(g)[:] = np.arange(10, 16).reshape(2, 3)
    view = g[1, ::-2]
    assert (view.path, view.readonly) == ("copy", False)
    assert array_of(view).tolist() == [15, 13]
    assert [array_of(row)[0] for row in g] == [10, 13]


def test_view_keeps_the_copy(tensor, stream):
    view = tensor.cuda(copy=True, stream=stream)[1]
    gc.collect()
    stream.synchronize()
    assert array_of(view).tolist() == [3, 4, 5]


def test_copy_of_an_empty_tensor_takes_nothing(stub):
    g = tshare.create(None, (0, 3)).cuda(copy=True)
    assert (g.path, g.shape, data_of(g)) == ("copy", (0, 3), 0)
    assert stub.stub_calls(b"cuMemAlloc") == stub.stub_calls(b"cuDevicePrimaryCtxRetain") == 0
    assert g.__dlpack__(stream=1)


def test_copy_of_readonly_memory_may_be_written(stub, name):
    keep = tshare.create(name, (2, 3), "float32")
    g = tshare.open(name, readonly=True).cuda(copy=True)
    assert not g.readonly
    assert not g.__cuda_array_interface__["data"][1]
    assert versioned(g.__dlpack__(max_version=(1, 0))).flags & READ_ONLY == 0
    assert g.__dlpack__()
    assert "readonly" not in repr(g)
    assert g.tensor.readonly
    keep.close()


def test_device_can_be_chosen(stub, tensor):
    stub.stub_set_devices(2)
    g = tensor.cuda(1, copy=True)
    assert (g.device, g.__dlpack_device__()) == ("cuda:1", (2, 1))


# Order


def test_stream_copies_when_it_comes_to_that(tensor, stream):
    release = stream.hold()
    g = tensor.cuda(copy=True, stream=stream)
    assert not stream.is_idle()
    tensor.numpy()[0, 0] = 9
    release()
    stream.synchronize()
    assert array_of(g)[0, 0] == 9


@pytest.mark.parametrize("by_number", [True, False])
def test_consumer_s_stream_waits_for_the_copy(request, tensor, stream, by_number):
    release = stream.hold()
    # Its context is current from now on.
    other = request.getfixturevalue("other")
    g = tensor.cuda(copy=True, stream=stream)
    capsule = g.__dlpack__(stream=other.handle if by_number else other)
    assert other.waits()
    release()
    other.synchronize()
    data = legacy(capsule).dl_tensor.data
    assert list((ctypes.c_float * 6).from_address(data)) == list(range(6))


@pytest.mark.parametrize("stream_of_consumer", [None, LEGACY, PER_THREAD])
def test_default_stream_waits_for_the_copy(stub, tensor, stream, stream_of_consumer):
    g = tensor.cuda(copy=True, stream=stream)
    assert g.__dlpack__(stream=stream_of_consumer)
    assert stub.stub_calls(b"cuStreamWaitEvent") == 1


def test_consumer_without_a_stream_waits_for_nothing(stub, tensor, stream):
    g = tensor.cuda(copy=True, stream=stream)
    assert g.__dlpack__(stream=-1)
    assert stub.stub_calls(b"cuStreamWaitEvent") == 0


def test_refused_export_has_no_stream_wait(stub, tensor, stream, other):
    g = tensor.cuda(copy=True, stream=stream)
    with pytest.raises(BufferError, match="dl_device: "):
        g.__dlpack__(stream=other, dl_device=(1, 0))
    with pytest.raises(BufferError, match="copy: "):
        g.__dlpack__(stream=other, copy=True)
    assert stub.stub_calls(b"cuStreamWaitEvent") == 0


def test_array_interface_names_the_stream(tensor, stream):
    def named(given):
        return tensor.cuda(copy=True, stream=given).__cuda_array_interface__["stream"]

    assert named(None) == named(LEGACY) == LEGACY
    assert named(stream) == named(stream.handle) == stream.handle
    # The one of a thread is another one in the next thread, and the legacy one waits for each.
    assert named(PER_THREAD) == LEGACY


def test_stream_of_an_object_lasts_as_long_as_the_copy(tensor, stream):
    class Owner:
        def __cuda_stream__(self):
            return (0, stream.handle)

    owner = Owner()
    gone = weakref.ref(owner)
    g = tensor.cuda(copy=True, stream=owner)
    view = g[0]
    del owner, g
    assert gone() is not None
    del view
    assert gone() is None


def test_stream_that_is_captured_is_eopnotsupp(stub, tensor, stream):
    g = tensor.cuda(copy=True)
    stub.stub_set_capturing(ctypes.c_void_p(stream.handle), True)
    for call in (
        lambda: tensor.cuda(copy=True, stream=stream),
        lambda: g.__dlpack__(stream=stream),
    ):
        with pytest.raises(OSError, match="stream: .*captured") as caught:
            call()
        assert caught.value.errno == errno.EOPNOTSUPP


def test_stream_s_object_may_hold_the_copy(stub, tensor, stream):
    class Owner:
        def __cuda_stream__(self):
            return 0, stream.handle

    freed = stub.stub_calls(b"cuMemFree")
    owner = Owner()
    gone = weakref.ref(owner)
    owner.copy = tensor.cuda(copy=True, stream=owner)[1]
    gc.collect()
    assert data_of(owner.copy)
    del owner
    gc.collect()
    assert gone() is None
    assert stub.stub_calls(b"cuMemFree") == freed + 1


# Arguments


@pytest.mark.parametrize(
    ("stream", "error"),
    [(0, ValueError), (-1, ValueError), (True, ValueError), ("1", TypeError), (1.0, TypeError)],
)
def test_other_streams_are_refused(stub, tensor, stream, error):
    with pytest.raises(error, match="stream: "):
        tensor.cuda(copy=True, stream=stream)
    assert stub.stub_calls(None) == 0


@pytest.mark.parametrize("path", ["registered", "dmabuf"])
def test_path_of_a_copy_is_refused(stub, tensor, path):
    with pytest.raises(ValueError, match="path: "):
        tensor.cuda(path=path, copy=True)
    with pytest.raises(ValueError, match="path: .* none of"):
        tensor.cuda(path="copy")
    assert stub.stub_calls(None) == 0


@pytest.mark.parametrize("stream", [1, 2])
def test_stream_without_a_copy_is_refused(stub, tensor, stream):
    with pytest.raises(ValueError, match="stream: .*copy=True"):
        tensor.cuda(stream=stream)
    assert tensor.cuda(stream=None, copy=False).path != "copy"


def test_device_that_is_not_the_stream_s_is_refused(stub, tensor, stream):
    stub.stub_set_devices(2)
    with pytest.raises(ValueError, match="^device: the stream is of device 0, not 1"):
        tensor.cuda(1, copy=True, stream=stream)


def test_device_without_memory_left_is_enomem(stub, tensor):
    stub.stub_fail(b"cuMemAlloc", 1, 2)
    with pytest.raises(OSError, match="device 0 has no 24 bytes") as caught:
        tensor.cuda(copy=True)
    assert caught.value.errno == errno.ENOMEM
    assert stub.stub_left() is None


# Lifetimes


@pytest.mark.parametrize("order", list(itertools.permutations(["tensor", "pin", "g", "capsule"])))
def test_memory_is_given_back_in_any_order(stub, order):
    tensor = tshare.create(None, (2, 3), "float32")
    where = address(tensor)
    g = tensor.cuda(copy=True)
    things = {"tensor": tensor, "pin": tensor.pin(), "g": g, "capsule": g.__dlpack__()}
    del tensor, g
    await_copies(stub)
    for thing in order:
        assert mapped(where)
        del things[thing]
    assert not mapped(where)
    assert stub.stub_left() is None


def test_pinned_memory_stays_so_as_long_as_the_copy(stub, tensor):
    with tensor.pin():
        g = tensor.cuda(copy=True)
    assert stub.stub_registrations() == 1
    await_copies(stub)
    del g
    assert stub.stub_registrations() == 0


def test_nothing_is_pinned_for_a_copy(stub, tensor):
    g = tensor.cuda(copy=True)
    assert stub.stub_calls(b"cuMemHostRegister") == 0
    del g


def test_copy_that_nobody_has_goes_when_the_stream_has_made_it(stub, stream):
    tensor = tshare.create(None, (2, 3), "float32")
    where = address(tensor)
    release = stream.hold()
    g = tensor.cuda(copy=True, stream=stream)
    tensor.close()
    del tensor, g
    assert mapped(where)
    assert stub.stub_calls(b"cuMemFree") == 0
    release()
    until = time.monotonic() + 60
    while mapped(where):
        assert time.monotonic() < until
        time.sleep(0.001)
    assert stub.stub_calls(b"cuMemFree") == 1


def test_exit_does_not_wait_for_a_copy():
    """The stream waits for what this process would have to publish."""
    printed = with_stub(f"""
sys.path.insert(0, {os.path.dirname(__file__)!r})
from support import Stream
stream = Stream(stub)
tensor = tshare.create(None, 3)
wait = tensor.region.wait_on(stream, 0)
g = tensor.cuda(copy=True, stream=stream)
print("end")
""")
    assert printed == "end"


COPY = "tensor.cuda(copy=True)"


@pytest.mark.parametrize(
    ("function", "prepare", "call"),
    [
        ("cuMemAlloc", "", COPY),
        ("cuMemcpyHtoDAsync", "", COPY),
        ("cuStreamWaitEvent", f"g = {COPY}", "g.__dlpack__()"),
        ("cuEventQuery", f"g = {COPY}", "del g"),
        ("cuMemFree", f"g = {COPY}[0:1]", "del g"),
        ("cuMemFree", f"capsule = {COPY}.__dlpack__()", "del capsule"),
    ],
)
def test_other_threads_run_meanwhile(function, prepare, call):
    prepare += "\nwhile stub.stub_busy():\n    pass"
    assert other_threads_run_during(function, prepare, call)


def test_it_can_t_be_pickled_or_copied(tensor):
    g = tensor.cuda(copy=True)
    for send in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="send the Tensor"):
            send(g)


# The C exchange table

api = exchange_api(tshare.CudaTensor)


def test_exchange_has_the_default_stream_wait(stub, tensor, stream):
    g = tensor.cuda(copy=True, stream=stream)
    out = DLTensor()
    assert api.describe(g, out) == 0
    assert (out.data, out.device.device_type) == (data_of(g), 2)
    assert stub.stub_calls(b"cuStreamWaitEvent") == 1
    managed = exported(g, api)
    assert stub.stub_calls(b"cuStreamWaitEvent") == 2
    managed.contents.deleter(managed)


def test_export_by_the_exchange_keeps_the_copy(stub, tensor, stream):
    managed = exported(tensor.cuda(copy=True, stream=stream), api)
    stream.synchronize()
    gc.collect()
    data = managed.contents.dl_tensor.data
    assert list((ctypes.c_float * 6).from_address(data)) == list(range(6))
    managed.contents.deleter(managed)
    assert stub.stub_calls(b"cuMemFree") == 1


def test_export_comes_back_as_the_same_copy(tensor, stream):
    g = tensor.cuda(copy=True, stream=stream)
    back = imported(exported(g, api), api)
    assert (data_of(back), back.path, back.readonly) == (data_of(g), "copy", False)
    # The legacy stream waits for the copy, and lasts.
    assert back.__cuda_array_interface__["stream"] == LEGACY


def test_copy_of_readonly_memory_is_described_and_exported_as_writable(stub, name):
    keep = tshare.create(name, 3)
    g = tshare.open(name, readonly=True).cuda(copy=True)
    assert api.describe(g, DLTensor()) == 0
    managed = exported(g, api)
    assert managed.contents.flags == 0
    managed.contents.deleter(managed)
    keep.close()


# Forks


def test_child_leaves_the_parent_s_copy_alone():
    printed = with_stub("""if True:
        tensor = tshare.create(None, 3)
        g = tensor.cuda(copy=True)
        while stub.stub_busy():
            pass
        calls = stub.stub_calls(None)
        child = os.fork()
        if not child:
            for call in (lambda: tensor.cuda(copy=True), lambda: g.__dlpack__()):
                try:
                    call()
                except OSError as error:
                    print(error.errno == errno.EOPNOTSUPP)
            del g
            print(stub.stub_calls(None) - calls, flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        del g
        print(stub.stub_calls(b"cuMemFree"))
    """)
    assert printed.split() == ["True", "True", "0", "1"]


def test_errors_of_a_copy_do_not_lead_to_its_source(tensor):
    """The source hasn't what a kernel has written to the copy."""
    g = tensor.cuda(copy=True)
    for convert in (tshare.asarray, tshare.from_dlpack):
        with pytest.raises(BufferError, match="x: is a copy in a GPU's memory"):
            convert(g)
    with pytest.raises(TypeError, match="copy it back"):
        np.asarray(g)
    with pytest.raises(BufferError, match="what it was copied from is g.tensor"):
        g.__dlpack__(dl_device=(1, 0))
