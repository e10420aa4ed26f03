# SPDX-License-Identifier: MIT
"""Helpers for the tests: other processes, optional libraries, DLPack's structs."""

import ctypes
import errno
import importlib
import mmap
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

import tshare

NOT_SUPPORTED = errno.errorcode[errno.EOPNOTSUPP]  # it has two names

# For tests whose hosts are folders of shared memory: the module has the names of the whole machine.
hosts_are_folders = pytest.mark.skipif(
    tshare.limits().dmabuf, reason="only on shared memory can a machine act as two"
)

# The stub of NVIDIA's driver, which has the driver's file name.
STUB = Path(__file__).resolve().parents[2] / "build/c/tests/cuda-stub/libcuda.so.1"


def load_stub():
    """Load the stub of NVIDIA's driver, which the library then finds by its SONAME."""
    if not STUB.exists():
        pytest.fail(f"{STUB} does not exist: run make lib")
    stub = ctypes.CDLL(str(STUB))
    stub.stub_is_registered.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    stub.stub_is_registered.restype = ctypes.c_bool
    stub.stub_flags.argtypes = [ctypes.c_void_p]
    stub.stub_left.restype = stub.stub_complaint.restype = ctypes.c_char_p
    return stub


def rounds(count, long=None):
    """Return how many of a race's rounds to make.

    All, or a quarter with TSHARE_TEST_SHORT; long ones with TSHARE_TEST_LONG, if the test has such.
    """
    if long and "TSHARE_TEST_LONG" in os.environ:
        return long
    return (count + 3) // 4 if "TSHARE_TEST_SHORT" in os.environ else count


class Stream:
    """A stream on the stub, in a context of its own, which becomes the thread's current one."""

    def __init__(self, stub):
        self.stub, self.context, handle = stub, ctypes.c_void_p(), ctypes.c_void_p()
        assert stub.cuInit(0) == 0
        assert stub.cuCtxCreate_v2(ctypes.byref(self.context), 0, 0) == 0
        assert stub.cuStreamCreate(ctypes.byref(handle), 0) == 0
        self.handle = handle.value

    def __cuda_stream__(self):
        return 0, self.handle

    def destroy(self):
        assert self.stub.cuCtxDestroy_v2(self.context) == 0

    def is_idle(self, handle=None):
        return self.stub.cuStreamQuery(ctypes.c_void_p(handle or self.handle)) == 0

    def waits(self, handle=None):
        """Whether it still has work after a time in which it would have ended."""
        time.sleep(0.1)
        return not self.is_idle(handle)

    def synchronize(self, handle=None):
        until = time.monotonic() + 60
        while not self.is_idle(handle):
            assert time.monotonic() < until, "the stream still waits"
            time.sleep(0.001)

    def hold(self):
        """Put work on the stream that lasts until the function that is returned was called."""
        libc, handle = ctypes.CDLL(None), ctypes.c_void_p(self.handle)
        # Never freed: the stream's thread writes to it after sem_post() has returned.
        libc.malloc.restype = ctypes.c_void_p
        semaphore = ctypes.c_void_p(libc.malloc(64))
        libc.sem_init(semaphore, 0, 0)
        assert self.stub.cuLaunchHostFunc(handle, libc.sem_wait, semaphore) == 0
        return lambda: libc.sem_post(semaphore)


def need(module):
    """Import a library that a test is about.

    Where it is missing the tests fail, since they would prove nothing; unless
    TSHARE_TEST_OPTIONAL=1 says that it may be.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        if os.environ.get("TSHARE_TEST_OPTIONAL") == "1":
            pytest.skip(f"{module} is not installed", allow_module_level=True)
        raise


def version(module):
    return tuple(int(part) for part in module.__version__.split("+")[0].split(".")[:2])


def readonly_torch():
    """Import a PyTorch that takes read-only memory."""
    torch = need("torch")
    if version(torch) < (2, 9):
        pytest.skip("PyTorch before 2.9 takes no read-only memory")
    return torch


def spawn(code, *args, **options):
    """Start another Python that runs code; its arguments are sys.argv[1:]."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, args)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        **options,
    )


def run(code, *args, **options):
    """Run another Python to its end and return what it printed."""
    process = spawn(code, *args, **options)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, (process.returncode, output)
    return output.strip()


def run_in_silence(code, *args):
    """Run a program as run() does, and check that it prints no warnings."""
    process = spawn(code, *args, stderr=subprocess.PIPE)
    output, errors = process.communicate(timeout=300)
    assert (process.returncode, errors) == (0, "")
    return output.strip()


def with_stub(code, *args, **options):
    """Run a program in which the stub is loaded as stub, and return what it printed."""
    prepare = "import ctypes, errno, os, sys\nstub = ctypes.CDLL(sys.argv[1])\nimport tshare\n"
    return run(prepare + textwrap.dedent(code), STUB, *args, **options)


def other_threads_run_during(function, prepare, call):
    """Whether another thread of Python's runs while the driver's function waits for it, in C."""
    code = f"""
import threading
libc = ctypes.CDLL(None)
go = ctypes.create_string_buffer(64)
libc.sem_init(go, 0, 0)
tensor = tshare.create(None, 3)
{prepare}
before = stub.stub_calls(b"{function}")
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
print(stub.stub_calls(b"{function}") - before)
"""
    return with_stub(code) == "1"


class Device(ctypes.Structure):
    _fields_ = [("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32)]


class DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", Device),
        ("ndim", ctypes.c_int32),
        ("dtype", DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Legacy(ctypes.Structure):
    pass


LegacyDeleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(Legacy))
Legacy._fields_ = [
    ("dl_tensor", DLTensor),
    ("manager_ctx", ctypes.c_void_p),
    ("deleter", LegacyDeleter),
]


class Versioned(ctypes.Structure):
    pass


VersionedDeleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(Versioned))
Versioned._fields_ = [
    ("major", ctypes.c_uint32),
    ("minor", ctypes.c_uint32),
    ("manager_ctx", ctypes.c_void_p),
    ("deleter", VersionedDeleter),
    ("flags", ctypes.c_uint64),
    ("dl_tensor", DLTensor),
]

READ_ONLY = 1
IS_COPIED = 2

SetError = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)


class ExchangeApi(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("prev_api", ctypes.c_void_p),
        (
            "allocate",
            ctypes.CFUNCTYPE(
                ctypes.c_int,
                ctypes.POINTER(DLTensor),
                ctypes.POINTER(ctypes.POINTER(Versioned)),
                ctypes.c_void_p,
                SetError,
            ),
        ),
        (
            "from_object",
            ctypes.PYFUNCTYPE(
                ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.POINTER(Versioned))
            ),
        ),
        (
            "to_object",
            ctypes.PYFUNCTYPE(
                ctypes.c_int, ctypes.POINTER(Versioned), ctypes.POINTER(ctypes.c_void_p)
            ),
        ),
        (
            "describe",
            ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(DLTensor)),
        ),
        (
            "current_work_stream",
            ctypes.PYFUNCTYPE(
                ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p)
            ),
        ),
    ]


_api = ctypes.pythonapi
_api.PyCapsule_GetName.restype = ctypes.c_char_p
_api.PyCapsule_GetName.argtypes = [ctypes.py_object]
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


def capsule_name(capsule):
    return _api.PyCapsule_GetName(capsule)


def versioned(capsule):
    pointer = _api.PyCapsule_GetPointer(capsule, b"dltensor_versioned")
    return Versioned.from_address(pointer)


def legacy(capsule):
    return Legacy.from_address(_api.PyCapsule_GetPointer(capsule, b"dltensor"))


_consumed = [b"used_dltensor", b"used_dltensor_versioned"]


def consume(capsule):
    """Rename a capsule as a consumer does, and return its pointer."""
    old = capsule_name(capsule)
    managed = versioned(capsule) if old.endswith(b"_versioned") else legacy(capsule)
    _api.PyCapsule_SetName(capsule, _consumed[old.endswith(b"_versioned")])
    return managed


def new_capsule(managed, name):
    return _api.PyCapsule_New(ctypes.addressof(managed), name, None)


def exchange_api(kind):
    """Return the exchange table of a type."""
    pointer = _api.PyCapsule_GetPointer(kind.__dlpack_c_exchange_api__, b"dlpack_exchange_api")
    return ExchangeApi.from_address(pointer)


def exported(tensor, api=None):
    """Export a tensor by an exchange table, that of Tensor if none is given."""
    out = ctypes.POINTER(Versioned)()
    assert (api or exchange_api(tshare.Tensor)).from_object(tensor, out) == 0
    return out


def imported(managed, api=None):
    """Import what exported() has returned, which goes."""
    out = ctypes.c_void_p()
    assert (api or exchange_api(tshare.Tensor)).to_object(managed, out) == 0
    tensor = ctypes.cast(out, ctypes.py_object).value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(tensor))
    return tensor


def address(tensor):
    return tensor.__array_interface__["data"][0]


def mapped(tensor_address):
    """Whether the address lies in a mapping of this process."""
    with open("/proc/self/maps") as maps:
        for line in maps:
            low, high = (int(bound, 16) for bound in line.split()[0].split("-"))
            if low <= tensor_address < high:
                return True
    return False


def empty_cache(path):
    """Have the page cache drop a file."""
    with open(path, "rb") as file:
        os.fsync(file)
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def cached_pages(path):
    """Return the numbers of a file's pages that the page cache holds. A read would bring more."""
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        resident = (ctypes.c_ubyte * -(-len(mapped) // mmap.PAGESIZE))()
        first = ctypes.c_char.from_buffer(mapped)
        start, size = ctypes.c_void_p(ctypes.addressof(first)), ctypes.c_size_t(len(mapped))
        assert ctypes.CDLL(None).mincore(start, size, resident) == 0
        del first
    return {number for number, page in enumerate(resident) if page & 1}
