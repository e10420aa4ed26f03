# SPDX-License-Identifier: MIT
"""NVIDIA's driver, by ctypes: what the checks use of it, and nothing of tshare.

Device 0 alone, in its primary context, which PyTorch and others use, too.
"""

import contextlib
import ctypes
import functools
from ctypes import byref, c_char_p, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p

import kernels

NOT_READY = 600

DEVICE_ATTRIBUTES = {
    "can_map_host_memory": 19,
    "unified_addressing": 41,
    "host_native_atomic": 86,
    "pageable_memory_access": 88,
    "can_use_host_pointer_for_registered_mem": 91,
    "host_register": 99,
    "pageable_memory_access_uses_host_page_tables": 100,
    "read_only_host_register": 113,
    "stream_64_bit_memory_operations": 122,
    "dma_buf": 124,
    "ipc_event": 125,
    "host_alloc_dma_buf": 146,
    "only_partial_host_atomic": 147,
    "dma_buf_mmap": 152,
}

# Functions by the names of their symbols, with the types of their parameters.
_FUNCTIONS = {
    "cuInit": [c_uint],
    "cuDriverGetVersion": [c_void_p],
    "cuGetErrorName": [c_int, c_void_p],
    "cuDeviceGetCount": [c_void_p],
    "cuDeviceGetName": [c_char_p, c_int, c_int],
    "cuDeviceGetAttribute": [c_void_p, c_int, c_int],
    "cuDevicePrimaryCtxRetain": [c_void_p, c_int],
    "cuDevicePrimaryCtxReset_v2": [c_int],
    "cuCtxSetCurrent": [c_void_p],
    "cuCtxSynchronize": [],
    "cuMemGetInfo_v2": [c_void_p, c_void_p],
    "cuModuleLoadData": [c_void_p, c_char_p],
    "cuModuleGetFunction": [c_void_p, c_void_p, c_char_p],
    "cuLaunchKernel": [c_void_p, *[c_uint] * 7, c_void_p, c_void_p, c_void_p],
    "cuStreamCreate": [c_void_p, c_uint],
    "cuStreamQuery": [c_void_p],
    "cuStreamSynchronize": [c_void_p],
    "cuStreamBeginCapture_v2": [c_void_p, c_int],
    "cuStreamEndCapture": [c_void_p, c_void_p],
    "cuGraphDestroy": [c_void_p],
    "cuEventCreate": [c_void_p, c_uint],
    "cuEventDestroy_v2": [c_void_p],
    "cuEventRecord": [c_void_p, c_void_p],
    "cuEventSynchronize": [c_void_p],
    "cuEventElapsedTime": [c_void_p, c_void_p, c_void_p],
    "cuMemAlloc_v2": [c_void_p, c_size_t],
    "cuMemFree_v2": [c_uint64],
    "cuMemHostAlloc": [c_void_p, c_size_t, c_uint],
    "cuMemFreeHost": [c_void_p],
    "cuMemHostRegister_v2": [c_void_p, c_size_t, c_uint],
    "cuMemHostUnregister": [c_void_p],
    "cuMemHostGetDevicePointer_v2": [c_void_p, c_void_p, c_uint],
    "cuMemcpyHtoDAsync_v2": [c_uint64, c_void_p, c_size_t, c_void_p],
    "cuMemcpyDtoHAsync_v2": [c_void_p, c_uint64, c_size_t, c_void_p],
    "cuMemGetHandleForAddressRange": [c_void_p, c_uint64, c_size_t, c_int, c_uint64],
    "cuImportExternalMemory": [c_void_p, c_void_p],
    "cuExternalMemoryGetMappedBuffer": [c_void_p, c_void_p, c_void_p],
    "cuDestroyExternalMemory": [c_void_p],
}

_PORTABLE, _DEVICEMAP = 1, 2
_DMABUF_FD = 9
_GLOBAL = 0


class CudaError(Exception):
    """A call of the driver's has failed."""

    def __init__(self, function, result):
        self.result = result
        super().__init__(f"{function}: {error_name(result)}")


class NoGpuError(Exception):
    """There is no GPU, or no driver."""


# The descriptor is in a union of 16 bytes, at offset 8.
class _ExternalMemory(ctypes.Structure):
    _fields_ = [
        ("type", c_int),
        ("fd", c_uint64),
        ("unused", c_uint64),
        ("size", c_uint64),
        ("flags", c_uint),
        ("reserved", c_uint * 16),
    ]


class _Buffer(ctypes.Structure):
    _fields_ = [
        ("offset", c_uint64),
        ("size", c_uint64),
        ("flags", c_uint),
        ("reserved", c_uint * 16),
    ]


@functools.cache
def _library():
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise NoGpuError(f"no NVIDIA driver: {error}") from None


@functools.cache
def _function(name):
    function = getattr(_library(), name)
    function.argtypes = _FUNCTIONS[name]
    function.restype = c_int
    return function


def error_name(result):
    name = c_char_p()
    if _function("cuGetErrorName")(result, byref(name)) or not name.value:
        return f"CUDA error {result}"
    return name.value.decode()


def call(name, *arguments):
    """Call a function of the driver's, which must succeed."""
    result = _function(name)(*arguments)
    if result:
        raise CudaError(name, result)


def attempt(name, *arguments):
    """Call a function of the driver's, and return its CUresult."""
    return _function(name)(*arguments)


def _value(kind, name, *arguments):
    """Call a function that stores a value by its first parameter, and return that."""
    value = kind()
    call(name, byref(value), *arguments)
    return value.value


# Devices


def need_gpu():
    """Raise NoGpuError unless there is a device."""
    result = attempt("cuInit", 0)
    if result:
        raise NoGpuError(f"the driver can't be started: {error_name(result)}")
    if not _value(c_int, "cuDeviceGetCount"):
        raise NoGpuError("the driver has no device")


def version():
    return _value(c_int, "cuDriverGetVersion")


def device_name():
    name = ctypes.create_string_buffer(100)
    call("cuDeviceGetName", name, len(name), 0)
    return name.value.decode()


def attribute(name):
    """Return an attribute of the device, None for one that the driver doesn't know."""
    value = c_int()
    result = attempt("cuDeviceGetAttribute", byref(value), DEVICE_ATTRIBUTES[name], 0)
    return None if result else value.value


def enter():
    """Make the device's primary context current in this thread, for good."""
    call("cuInit", 0)
    context = _value(c_void_p, "cuDevicePrimaryCtxRetain", 0)
    call("cuCtxSetCurrent", context)


def synchronize():
    call("cuCtxSynchronize")


def free_memory():
    """Return the bytes of the device's memory that are free."""
    free, total = c_size_t(), c_size_t()
    call("cuMemGetInfo_v2", byref(free), byref(total))
    return free.value


# Kernels


class Kernels:
    """The kernels of kernels.py, on a stream: None for the default one, else its handle."""

    BLOCKS, THREADS = 1024, 256

    def __init__(self, stream=None):
        self._stream = stream
        self._module = _value(c_void_p, "cuModuleLoadData", kernels.PTX.encode())

    def _launch(self, name, *arguments, blocks=BLOCKS, threads=THREADS):
        function = _value(c_void_p, "cuModuleGetFunction", self._module, name.encode())
        pointers = (c_void_p * len(arguments))(*(ctypes.addressof(a) for a in arguments))
        call(
            "cuLaunchKernel", function, blocks, 1, 1, threads, 1, 1, 0, self._stream, pointers,
            None,
        )  # fmt: skip

    def load(self):
        """Make the driver load all that is loaded by the first launch of each kernel."""
        with Device(64) as scratch:
            at = scratch.address
            self.fill(at, 0, 0)
            self.add(at, (0, 0), (0, 0), 0)
            self.sum(at, 0, at)
            self._launch("watch", *map(c_uint64, (at, 0, at, 0, at + 8, at + 16)))
            self.wait(at, 0, 0, at, at + 8)
            self.publish(at, at + 8, 0)
            synchronize()

    def fill(self, address, count, value):
        """Store value, value + 1, ... in words."""
        self._launch("fill", c_uint64(address), c_uint64(count), ctypes.c_uint32(value))

    def add(self, address, shape, strides, value):
        """Add value to each word of a matrix, with strides in bytes."""
        self._launch(
            "add", c_uint64(address), *map(c_uint64, shape), *map(c_uint64, strides),
            ctypes.c_uint32(value),
        )  # fmt: skip

    def sum(self, address, nbytes, total):
        """Add the words' sum to the 64-bit number at the device address total."""
        self._launch("sum", c_uint64(address), c_uint64(nbytes // 16), c_uint64(total))

    def watch(self, address, nbytes, flags, seconds):
        """Read words again and again until flags.stop() or the time is over."""
        self._launch(
            "watch", c_uint64(address), c_uint64(nbytes // 4), c_uint64(flags.device),
            c_uint64(int(seconds * 1e9)), c_uint64(flags.device + 8), c_uint64(flags.device + 16),
            blocks=1,
        )  # fmt: skip

    def wait(self, counter, seen, seconds, data, result):
        """Wait until a counter is above seen, and store it and a word of data."""
        self._launch(
            "await", *map(c_uint64, (counter, seen, int(seconds * 1e9), data, result)),
            blocks=1, threads=1,
        )  # fmt: skip

    def publish(self, counter, data, value):
        """Store a value in a word of data, and add one to a counter."""
        self._launch(
            "publish", c_uint64(counter), c_uint64(data), ctypes.c_uint32(value),
            blocks=1, threads=1,
        )  # fmt: skip


class Watch:
    """What the kernel "watch" and the CPU tell each other, in memory that both see."""

    def __init__(self):
        self._memory = Host(64)
        self.device = self._memory.device

    def _word(self, place):
        return ctypes.c_uint32.from_address(self._memory.address + place)

    def stop(self):
        self._word(0).value = 1

    @property
    def rounds(self):
        return self._word(8).value

    @property
    def limit_reached(self):
        return bool(self._word(16).value)


# Streams and events


class Stream:
    """A stream that doesn't wait for the default one."""

    NON_BLOCKING = 1

    def __init__(self):
        self.handle = _value(c_void_p, "cuStreamCreate", self.NON_BLOCKING)

    def idle(self):
        """Whether all that was put on it has ended."""
        result = attempt("cuStreamQuery", self.handle)
        if result not in (0, NOT_READY):
            raise CudaError("cuStreamQuery", result)
        return not result

    def synchronize(self):
        call("cuStreamSynchronize", self.handle)

    @contextlib.contextmanager
    def captured(self):
        """Capture what is put on it, in the mode that forbids most to all threads."""
        call("cuStreamBeginCapture_v2", self.handle, _GLOBAL)
        try:
            yield
        finally:
            graph = c_void_p()
            call("cuStreamEndCapture", self.handle, byref(graph))
        call("cuGraphDestroy", graph)


class Stopwatch:
    """Measures what a stream does in a with block, by the device's clock: seconds."""

    def __init__(self, stream):
        self._stream = stream
        self._events = [_value(c_void_p, "cuEventCreate", 0) for _ in range(2)]

    def __enter__(self):
        call("cuEventRecord", self._events[0], self._stream)
        return self

    def __exit__(self, kind, error, traceback):
        if error is None:
            call("cuEventRecord", self._events[1], self._stream)
            call("cuEventSynchronize", self._events[1])
            milliseconds = _value(c_float, "cuEventElapsedTime", *self._events)
            self.seconds = milliseconds / 1e3
        for event in self._events:
            call("cuEventDestroy_v2", event)


# Memory


class Device:
    """Memory of the device."""

    def __init__(self, nbytes):
        self.nbytes = nbytes
        self.address = _value(c_uint64, "cuMemAlloc_v2", nbytes)

    def write(self, host, nbytes=None, stream=None):
        """Copy from memory of the host, asynchronously where that is pinned."""
        call("cuMemcpyHtoDAsync_v2", self.address, host, nbytes or self.nbytes, stream)

    def read(self, host, nbytes=None, stream=None):
        call("cuMemcpyDtoHAsync_v2", host, self.address, nbytes or self.nbytes, stream)

    def number(self):
        """Return its first 64-bit number, and set that to 0."""
        value = c_uint64()
        self.read(byref(value), 8)
        synchronize()
        self.write(byref(c_uint64()), 8)
        synchronize()
        return value.value

    def free(self):
        call("cuMemFree_v2", self.address)

    def __enter__(self):
        self.write(bytes(self.nbytes))
        synchronize()
        return self

    def __exit__(self, kind, error, traceback):
        # An error of a kernel's takes the context, and with it the memory.
        if error is None:
            self.free()


class Host:
    """Pinned memory that the driver has allocated, as cudaHostAlloc() does; all zeros."""

    def __init__(self, nbytes):
        self.nbytes = nbytes
        self.address = _value(c_void_p, "cuMemHostAlloc", nbytes, _PORTABLE | _DEVICEMAP)
        ctypes.memset(self.address, 0, nbytes)
        self.device = _value(c_uint64, "cuMemHostGetDevicePointer_v2", self.address, 0)

    def numbers(self, count):
        """Return its first 64-bit numbers."""
        return list((c_uint64 * count).from_address(self.address))

    def free(self):
        call("cuMemFreeHost", self.address)


def register(address, nbytes):
    call("cuMemHostRegister_v2", address, nbytes, _PORTABLE | _DEVICEMAP)


def unregister(address):
    call("cuMemHostUnregister", address)


# External memory


def export_dmabuf(address, nbytes):
    """Return the descriptor of a dma-buf of memory that has a device address."""
    return _value(c_int, "cuMemGetHandleForAddressRange", address, nbytes, 1, 0)


class Dmabuf:
    """A dma-buf, imported as external memory."""

    def __init__(self, fd, nbytes):
        handle = _ExternalMemory(type=_DMABUF_FD, fd=fd, size=nbytes)
        self._memory = _value(c_void_p, "cuImportExternalMemory", byref(handle))
        try:
            buffer = _Buffer(size=nbytes)
            self.address = _value(
                c_uint64, "cuExternalMemoryGetMappedBuffer", self._memory, byref(buffer)
            )
        except CudaError:
            call("cuDestroyExternalMemory", self._memory)
            raise

    def release(self):
        call("cuMemFree_v2", self.address)
        call("cuDestroyExternalMemory", self._memory)
