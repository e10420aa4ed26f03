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
from support import READ_ONLY, STUB, address, legacy, mapped, run, versioned

PORTABLE, DEVICEMAP, READ_ONLY_MEMORY = 1, 2, 8
READ_ONLY_REGISTER = 113  # an attribute of devices


@pytest.fixture
def tensor(stub):
    return tshare.create(None, (2, 3), "float32")


@pytest.fixture
def readonly(stub, name):
    keep = tshare.create(name, (2, 3), "float32")
    yield tshare.open(name, readonly=True)
    keep.close()


def start_of(tensor):
    """Return the address of the region's first byte."""
    return address(tensor) - tensor._spec[4]


def with_stub(code, *args):
    """Run a program in which the stub is loaded as stub, and return what it printed."""
    prepare = "import ctypes, errno, os, sys\nstub = ctypes.CDLL(sys.argv[1])\nimport tshare\n"
    return run(prepare + code, STUB, *args)


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
    ("function", "call"),
    [
        ("cuMemHostRegister", "tensor.pin().release()"),
        ("cuMemHostRegister", "tensor.cuda(path='registered')"),
        ("cuMemHostUnregister", "pin.release()"),
        ("cuMemHostUnregister", "del pin"),
    ],
)
def test_other_threads_run_meanwhile(function, call):
    # The driver waits, in C, for what another thread of Python's does.
    code = f"""
import threading
libc = ctypes.CDLL(None)
go = ctypes.create_string_buffer(64)
libc.sem_init(go, 0, 0)
tensor = tshare.create(None, 3)
pin = tensor.pin() if {function == "cuMemHostUnregister"} else None
stub.stub_set_hook(b"{function}", libc.sem_wait, go)
waiting = threading.Event()

def post():
    waiting.wait()
    libc.sem_post(go)

thread = threading.Thread(target=post)
thread.start()
sys.setswitchinterval(1000)
waiting.set()
{call}
print("done")
"""
    assert with_stub(code) == "done"


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
        for send in (pickle.dumps, travel, copy.copy, copy.deepcopy):
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
