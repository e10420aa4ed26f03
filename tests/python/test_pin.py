# SPDX-License-Identifier: MIT
"""Pins, on the stub of NVIDIA's driver."""

import copy
import errno
import itertools
import os
import pickle
import threading
import weakref

import numpy as np
import pytest

import tshare
from support import (
    READ_ONLY,
    address,
    legacy,
    mapped,
    other_threads_run_during,
    run,
    versioned,
    with_stub,
)

pytestmark = pytest.mark.usefixtures("stub")

PORTABLE, DEVICEMAP, READ_ONLY_MEMORY = 1, 2, 8
READ_ONLY_REGISTER = 113  # an attribute of devices


def start_of(tensor):
    """Return the address of the region's first byte."""
    return address(tensor) - tensor._spec[4]


def test_pin_registers_the_whole_region(stub, tensor):
    with tensor.region.pin():
        assert stub.stub_is_registered(start_of(tensor), tensor.region.size)
        assert stub.stub_flags(address(tensor)) == PORTABLE | DEVICEMAP
    assert stub.stub_registrations() == 0


def test_tensor_pins_its_region(stub):
    region = tshare.Region.create(None, {"a": (5000, "uint8"), "b": (5000, "uint8")})
    with region["b"].pin() as pin:
        assert stub.stub_is_registered(start_of(region["a"]), region.size)
        assert pin.region.id == region.id


def test_empty_tensor_pins_its_region(stub):
    empty = tshare.create(None, (0, 3))
    with empty.pin():
        assert stub.stub_is_registered(start_of(empty), empty.region.size)


def test_region_is_registered_once_however_many_pins(stub, tensor):
    first, second = tensor.pin(), tensor.region.pin()
    first.release()
    assert stub.stub_registrations() == 1
    second.release()
    assert stub.stub_registrations() == 0
    assert stub.stub_calls(b"cuMemHostRegister") == 1


def test_pin_says_what_it_is(tensor):
    with tensor.pin() as pin:
        assert pin.device == "cuda:0"
        assert pin.driver_version == 13000
        assert pin.piece_bytes == tensor.region.size
        assert (pin.readonly, pin.context_created, pin.released) == (False, True, False)
        assert pin.region.id == tensor.region.id
        assert repr(pin) == f"<tshare.Pin device='cuda:0' region={tensor.region!r}>"
        with tensor.pin() as other:
            assert not other.context_created


def test_released_pin_has_nothing_but_that(tensor):
    pin = tensor.pin()
    pin.release()
    pin.release()
    assert pin.released
    assert repr(pin) == "<tshare.Pin released>"
    names = ("region", "device", "readonly", "piece_bytes", "driver_version", "context_created")
    for name in names:
        with pytest.raises(ValueError, match="pin is released"):
            getattr(pin, name)
    with pytest.raises(ValueError, match="pin is released"):
        pin.__enter__()


def test_with_block_releases_after_an_error(stub, tensor):
    with pytest.raises(KeyError), tensor.pin():
        raise KeyError
    assert stub.stub_registrations() == 0


def test_pin_that_is_gone_is_released(stub, tensor):
    pin = tensor.pin()
    reference = weakref.ref(pin)
    del pin
    assert reference() is None
    assert stub.stub_registrations() == 0


@pytest.mark.parametrize("order", list(itertools.permutations(["tensor", "region", "pin"])))
def test_memory_is_unlocked_before_it_is_unmapped_in_any_order(stub, order):
    tensor = tshare.create(None, (2, 3), "float32")
    region = tensor.region
    where = start_of(tensor)
    things = {"tensor": tensor, "region": region, "pin": region.pin()}
    del tensor, region
    for thing in order:
        assert mapped(where)
        assert stub.stub_registrations() == ("pin" in things)
        del things[thing]
    assert not mapped(where)
    assert stub.stub_registrations() == 0


def test_pin_outlives_close(stub, tensor):
    region = tensor.region
    with region.pin() as pin:
        where, size = start_of(tensor), region.size
        tensor.close()
        region.close()
        assert stub.stub_is_registered(where, size)
        assert pin.region.size == size


def test_closed_region_and_tensor_are_refused(stub, tensor):
    region = tensor.region
    tensor.close()
    region.close()
    with pytest.raises(ValueError, match="tensor is closed"):
        tensor.pin()
    with pytest.raises(ValueError, match="region is closed"):
        region.pin()
    assert stub.stub_calls(b"cuMemHostRegister") == 0


@pytest.mark.parametrize("device", [1, "cuda:1", np.int64(1)])
def test_device_is_a_number_or_a_name(stub, tensor, device):
    stub.stub_set_devices(2)
    with tensor.pin(device) as pin:
        assert pin.device == "cuda:1"
    with tensor.region.pin(device=device) as pin:
        assert pin.device == "cuda:1"


@pytest.mark.parametrize(
    ("device", "error", "what"),
    [
        (-1, ValueError, "device: must be between 0"),
        (1, ValueError, "device: there is no device 1 of 1"),
        (99, ValueError, "device: there is no device 99 of 1"),
        (2**40, ValueError, "device: must be between 0"),
        ("cuda", ValueError, "device: must be .* not 'cuda'"),
        ("cuda:-1", ValueError, "device: must be"),
        ("cuda: 0", ValueError, "device: must be"),
        ("cuda:00", ValueError, "device: must be"),
        ("cuda:0x", ValueError, "device: must be"),
        ("cuda:99999999999", ValueError, "device: must be"),
        ("\ud800", ValueError, "device: must be"),
        ("", ValueError, "device: must be"),
        (True, TypeError, "device: must be a number or 'cuda:' and a number, not True"),
        (0.0, TypeError, "device: must be a number .*, not <class 'float'>"),
    ],
)
def test_other_devices_are_refused(stub, tensor, device, error, what):
    for pin in (tensor.pin, tensor.region.pin, tensor.cuda):
        with pytest.raises(error, match=what):
            pin(device)
    assert stub.stub_calls(b"cuMemHostRegister") == 0


@pytest.mark.parametrize("of", [lambda t: t, lambda t: t.region], ids=["tensor", "region"])
def test_device_may_close_what_is_pinned(stub, of):
    pinned = of(tshare.create(None, (2, 3)))

    class Closes:
        def __index__(self):
            pinned.close()
            return 0

    with pinned.pin(Closes()) as pin:
        assert pinned.closed
        assert stub.stub_registrations() == 1
        assert pin.region.size


def test_readonly_memory_is_registered_as_such(stub, readonly):
    with readonly.pin() as pin:
        assert pin.readonly
        assert stub.stub_flags(address(readonly)) == PORTABLE | DEVICEMAP | READ_ONLY_MEMORY


def test_readonly_memory_is_refused_where_devices_would_write(stub, readonly):
    stub.stub_set_attribute(-1, READ_ONLY_REGISTER, 0)
    with pytest.raises(OSError, match="read-only") as caught:
        readonly.pin()
    assert caught.value.errno == errno.EOPNOTSUPP
    assert stub.stub_calls(b"cuMemHostRegister") == 0


@pytest.mark.parametrize(
    ("result", "number", "what"),
    [
        (712, errno.EBUSY, "registered by another"),
        (2, errno.ENOMEM, "out of memory"),
        (999, errno.EIO, "CUDA_ERROR_UNKNOWN"),
    ],
)
def test_refusal_of_the_driver_has_an_errno(stub, tensor, result, number, what):
    stub.stub_fail(b"cuMemHostRegister", 1, result)
    with pytest.raises(OSError, match=what) as caught:
        tensor.pin()
    assert caught.value.errno == number
    assert stub.stub_left() is None
    tensor.pin().release()


def test_without_a_driver_the_error_says_what_is_missing(tmp_path):
    (tmp_path / "libcuda.so.1").write_text("text")
    code = """
        import tshare
        tensor = tshare.create(None, 3)
        for pin in (tensor.pin, tensor.region.pin, tensor.cuda):
            try:
                pin()
            except OSError as error:
                print(error.errno, error.strerror)
    """
    printed = run(code, env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}).splitlines()
    assert len(printed) == 3
    for line in printed:
        assert line.startswith(f"{errno.EOPNOTSUPP} CUDA: no NVIDIA driver: ")


def test_forked_child_leaves_the_parent_s_pin_alone():
    printed = with_stub("""if True:
        tensor = tshare.create(None, 3)
        pin = tensor.pin()
        child = os.fork()
        if not child:
            for call in (tensor.pin, tensor.cuda):
                try:
                    call()
                except OSError as error:
                    print(error.errno == errno.EOPNOTSUPP)
            try:
                tensor.__dlpack__(dl_device=(3, 0))
            except BufferError:
                print("not pinned")
            pin.release()
            print(stub.stub_registrations(), flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        print(stub.stub_registrations())
        pin.release()
        print(stub.stub_registrations())
    """)
    assert printed.split() == ["True", "True", "not", "pinned", "1", "1", "0"]


@pytest.mark.parametrize(
    ("function", "prepare", "call"),
    [
        ("cuMemHostRegister", "", "tensor.pin().release()"),
        ("cuMemHostRegister", "", "tensor.cuda(path='registered')"),
        ("cuMemHostUnregister", "pin = tensor.pin()", "pin.release()"),
        ("cuMemHostUnregister", "pin = tensor.pin()", "del pin"),
    ],
)
def test_other_threads_run_meanwhile(function, prepare, call):
    assert other_threads_run_during(function, prepare, call)


SUPPORT = f"""
sys.path.insert(0, {os.path.dirname(__file__)!r})
from support import exchange_api, exported, imported
"""

HOLDERS = f"""
import numpy as np
{SUPPORT}

def waited(region):
    try:
        region.wait(0, timeout=0)
    except TimeoutError:
        return region

def page_locked(tensor, **asked):
    with tensor.pin():
        return tensor.__dlpack__(dl_device=(3, 0), **asked)

class Consumer:
    # Calls the deleter as a library does that holds the GIL.
    def __init__(self, tensor):
        self.managed = exported(tensor, exchange_api(type(tensor)))
        where = ctypes.cast(self.managed.contents.deleter, ctypes.c_void_p).value
        self.delete = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(where)

    def __del__(self):
        self.delete(self.managed)
"""


@pytest.mark.parametrize(
    "holder",
    [
        "tensor",
        "tensor[1:]",
        "tensor.region",
        "waited(tensor.region)",
        "tensor.cuda()",
        "tensor.__dlpack__()",
        "tensor.__dlpack__(max_version=(1, 0))",
        "tensor.cuda().__dlpack__()",
        "tensor.cuda().__dlpack__(max_version=(1, 0))",
        "imported(exported(tensor))",
        "Consumer(tensor)",
        "Consumer(tensor.cuda())",
        "memoryview(tensor)",
        "np.asarray(tensor)",
        "np.from_dlpack(tensor)",
    ],
)
def test_other_threads_run_while_the_last_reference_goes(holder):
    prepare = f"{HOLDERS}\ntensor.cuda(path='registered')\nholder = {holder}\ndel tensor"
    assert other_threads_run_during("cuMemHostUnregister", prepare, "del holder")


@pytest.mark.parametrize("asked", ["", "max_version=(1, 0)"])
def test_other_threads_run_while_the_last_export_of_page_locked_memory_goes(asked):
    prepare = f"{HOLDERS}\nholder = page_locked(tensor, {asked})\ndel tensor"
    assert other_threads_run_during("cuMemHostUnregister", prepare, "del holder")


@pytest.mark.parametrize(
    "delete",
    [
        # ctypes has released the GIL, which the other thread takes.
        "managed.contents.deleter(managed)",
        # In a thread that Python doesn't know.
        "libc.pthread_create(ctypes.byref(thread), None, managed.contents.deleter, managed)\n"
        "libc.pthread_join(thread, None)",
    ],
    ids=["python", "foreign"],
)
def test_deleter_of_registered_memory_needs_no_gil(delete):
    code = f"""
import threading
{SUPPORT}

def spin():
    while True:
        pass

libc, thread = ctypes.CDLL(None), ctypes.c_void_p()
libc.pthread_join.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
tensor = tshare.create(None, 3)
tensor.cuda(path="registered")
managed = exported(tensor)
del tensor
threading.Thread(target=spin, daemon=True).start()
{delete}
print(stub.stub_registrations())
"""
    assert with_stub(code) == "0"


def test_deleter_of_registered_memory_needs_no_interpreter():
    code = f"""
{SUPPORT}
tensor = tshare.create(None, 3)
tensor.cuda(path="registered")
managed = exported(tensor)
del tensor
libc = ctypes.CDLL(None)

def after_finalize(function, argument):
    libc.__cxa_atexit.argtypes = [ctypes.c_void_p] * 3
    libc.__cxa_atexit(ctypes.cast(function, ctypes.c_void_p), argument, None)

# The second is called first. It succeeds, or the first one makes the program fail.
after_finalize(libc._exit, 1)
after_finalize(managed.contents.deleter, ctypes.addressof(managed.contents))
stub.stub_set_hook(b"cuMemHostUnregister", libc._exit, 0)
print(stub.stub_registrations(), flush=True)
"""
    assert with_stub(code) == "1"


def test_threads_that_pin_at_once_share_a_registration(stub, tensor):
    barrier = threading.Barrier(8)
    pins = []

    def pin():
        barrier.wait()
        pins.append(tensor.pin())

    threads = [threading.Thread(target=pin) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(pins) == 8
    assert stub.stub_calls(b"cuMemHostRegister") == 1
    threads = [threading.Thread(target=pin.release) for pin in pins]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stub.stub_registrations() == 0


def test_pin_can_t_be_pickled_or_copied_or_made(tensor, travel):
    with tensor.pin() as pin:
        for send in (pickle.dumps, travel, copy.copy, copy.deepcopy, type(pin).__reduce__):
            with pytest.raises(TypeError, match="send the Tensor"):
                send(pin)
        with pytest.raises(TypeError):
            type(pin)()


# What consumers are told


def test_tensor_stays_the_cpu_s_while_pinned(tensor):
    with tensor.pin():
        assert tensor.__dlpack_device__() == (1, 0)
        assert tensor.device == "cpu"
        capsule = tensor.__dlpack__(max_version=(1, 0))
        assert versioned(capsule).dl_tensor.device.device_type == 1


@pytest.mark.parametrize("max_version", [None, (1, 0)])
def test_page_locked_memory_is_granted_while_pinned(tensor, max_version):
    with tensor.pin():
        capsule = tensor.__dlpack__(max_version=max_version, dl_device=(3, 0))
        t = (versioned if max_version else legacy)(capsule).dl_tensor
        assert (t.device.device_type, t.device.device_id) == (3, 0)
        assert t.data == address(tensor)
        assert (t.shape[:2], t.strides[:2]) == ([2, 3], [3, 1])
        del t, capsule


def test_page_locked_memory_is_refused_unless_pinned(tensor):
    other = tshare.create(None, 3)
    with other.pin(), pytest.raises(BufferError, match=r"dl_device: \(3, 0\).*t\.pin\(\)"):
        tensor.__dlpack__(dl_device=(3, 0))
    with tensor.pin():
        with pytest.raises(BufferError, match="dl_device"):
            tensor.__dlpack__(dl_device=(3, 1))
        with pytest.raises(BufferError, match="copy"):
            tensor.__dlpack__(dl_device=(3, 0), copy=True)
    with pytest.raises(BufferError, match="dl_device"):
        tensor.__dlpack__(dl_device=(3, 0))


def test_consumer_of_page_locked_memory_keeps_it_so(stub, tensor):
    with tensor.pin():
        capsule = tensor.__dlpack__(max_version=(1, 0), dl_device=(3, 0))
    where = versioned(capsule).dl_tensor.data
    tensor.close()
    assert stub.stub_registrations() == 1
    assert mapped(where)
    del capsule
    assert stub.stub_registrations() == 0


def test_readonly_page_locked_memory_is_flagged(readonly):
    with readonly.pin():
        capsule = readonly.__dlpack__(max_version=(1, 0), dl_device=(3, 0))
        assert versioned(capsule).flags == READ_ONLY
        with pytest.raises(BufferError, match="max_version"):
            readonly.__dlpack__(dl_device=(3, 0))
        del capsule


class PageLocked:
    """A pinned tensor as PyTorch has it: page-locked by its device, the CPU's by its capsule."""

    def __init__(self, tensor, **asked):
        self.tensor, self.asked = tensor, asked

    def __dlpack_device__(self):
        return 3, 0

    def __dlpack__(self, **given):
        return self.tensor.__dlpack__(**{**given, **self.asked})


def test_numpy_takes_page_locked_memory(tensor):
    with tensor.pin():
        array = np.from_dlpack(PageLocked(tensor, dl_device=(3, 0)))
    np.asarray(tensor)[1, 2] = 7
    assert array[1, 2] == 7


@pytest.mark.parametrize("asked", [{}, {"dl_device": (3, 0)}])
@pytest.mark.parametrize("take", [tshare.asarray, tshare.from_dlpack])
def test_pinned_view_is_found_in_its_region(tensor, take, asked):
    with tensor.pin():
        found = take(PageLocked(tensor, **asked))
    assert address(found) == address(tensor)
