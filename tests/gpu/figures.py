# SPDX-License-Identifier: MIT
"""How fast: ratios in one run, of medians of repetitions in turn.

"A_to_B" is A's figure divided by B's: rates of what copies and reads, times of what registers.
None is a failure.
"""

import ctypes
import mmap
import shutil
import statistics
import threading
import time
from functools import partial

import driver
from checks import address_of, check, host_address

MIB, GIB = 1 << 20, 1 << 30
ROUNDS = 9

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]


def medians(candidates, rounds=ROUNDS):
    """Call functions that return seconds in turn, and return each one's median.

    The first round is for warming up.
    """
    times = {name: [] for name in candidates}
    for _ in range(rounds + 1):
        for name, measure in candidates.items():
            times[name].append(measure())
    return {name: statistics.median(found[1:]) for name, found in times.items()}


def rounded(figures):
    return {name: float(f"{value:.4g}") for name, value in figures.items()}


def new_region(nbytes):
    """Return a tensor of bytes; fewer than asked for where /dev/shm has no room."""
    import tshare

    if not tshare.limits().dmabuf:
        nbytes = min(nbytes, shutil.disk_usage("/dev/shm").free // 2 // MIB * MIB)
    return tshare.create(None, nbytes, "uint8")


def allocate(nbytes):
    """Return the address of memory that malloc() returned, and that was written to."""
    address = libc.malloc(nbytes)
    assert address, f"malloc({nbytes})"
    ctypes.memset(address, 1, nbytes)
    return address


def allocate_small_pages(nbytes):
    """Return such memory in pages of 4 KiB, as shared memory has by default."""
    memory = mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    ctypes.memset(address, 1, nbytes)
    return memory, address


def seconds(action):
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def pin_seconds(tensor):
    """Return how long pin() takes."""
    pins = []
    found = seconds(lambda: pins.append(tensor.pin()))
    pins[0].release()
    return found


@check(limit=120, recorded=True)
def copies():
    """Copies between the GPU and a pinned region, CUDA's pinned memory, and pageable memory."""
    driver.enter()
    nbytes = 512 * MIB
    tensor = new_region(nbytes)
    nbytes = tensor.nbytes
    tensor.numpy()[:] = 1
    pin = tensor.pin()
    places = {
        "region": host_address(tensor),
        "cuda": driver.Host(nbytes).address,
        "pageable": allocate(nbytes),
    }
    memory = driver.Device(nbytes)

    def timed(way, place):
        with driver.Stopwatch(None) as watch:
            way(place)
        return watch.seconds

    figures = {"bytes": nbytes}
    for name, way in (("to_gpu", memory.write), ("from_gpu", memory.read)):
        found = medians({place: partial(timed, way, places[place]) for place in places})
        figures[name] = rounded(
            {f"{place}_gb_s": nbytes / found[place] / 1e9 for place in places}
            | {
                "region_to_cuda": found["cuda"] / found["region"],
                "region_to_pageable": found["pageable"] / found["region"],
            }
        )
    pin.release()
    return figures


@check(limit=120, recorded=True)
def kernel_in_place():
    """A kernel that reads a region, or CUDA's own pinned memory, where it lies."""
    driver.enter()
    kernels = driver.Kernels()
    nbytes = 512 * MIB
    tensor = new_region(nbytes)
    nbytes = tensor.nbytes
    tensor.numpy()[:] = 1
    g = tensor.cuda(0)
    total = driver.Device(64)
    places = {"region": address_of(g), "cuda": driver.Host(nbytes).device}

    def timed(address):
        with driver.Stopwatch(None) as watch:
            kernels.sum(address, nbytes, total.address)
        return watch.seconds

    found = medians({place: partial(timed, places[place]) for place in places})
    return {"bytes": nbytes, "path": g.path} | rounded(
        {f"{place}_gb_s": nbytes / found[place] / 1e9 for place in places}
        | {"region_to_cuda": found["cuda"] / found["region"]}
    )


@check(limit=180, recorded=True)
def registering():
    """A pin of a populated region, the driver's call alone, and private memory.

    What malloc() returns may have huge pages, and the region not.
    """
    driver.enter()
    tensor = new_region(4 * GIB)
    nbytes = tensor.nbytes
    tensor.numpy()[:] = 1
    mapping, small = allocate_small_pages(nbytes)
    places = {"call": host_address(tensor), "malloc": allocate(nbytes), "malloc_4k_pages": small}

    def timed(address):
        found = seconds(lambda: driver.register(address, nbytes))
        driver.unregister(address)
        return found

    found = medians(
        {"pin": lambda: pin_seconds(tensor)}
        | {name: partial(timed, address) for name, address in places.items()},
        rounds=3,
    )
    assert len(mapping) == nbytes
    return {"bytes": nbytes} | rounded(
        {f"{name}_s": value for name, value in found.items()}
        | {
            f"{ours}_to_{other}": found[ours] / found[other]
            for ours in ("pin", "call")
            for other in ("malloc", "malloc_4k_pages")
        }
    )


@check(limit=120, recorded=True)
def pinning():
    """The time of pin(), of regions whose memory was touched before, and of others."""
    driver.enter()
    figures = {}
    for nbytes in (GIB, 4 * GIB):
        times = {"unpopulated_s": [], "populated_s": []}
        for _ in range(3):
            with new_region(nbytes) as tensor:
                for found in times.values():
                    found.append(pin_seconds(tensor))
                size = f"{tensor.nbytes}_bytes"
        figures[size] = rounded({kind: statistics.median(found) for kind, found in times.items()})
    return figures


@check(recorded=True)
def cuda_again():
    """t.cuda(0) of a region that is imported already."""
    driver.enter()
    tensor = new_region(GIB)
    keep = tensor.cuda(0)
    times = 10000

    def measure():
        def loop():
            for _ in range(times):
                tensor.cuda(0)

        return seconds(loop) / times

    found = medians({"again": measure})
    return {"path": keep.path, "again_us": float(f"{found['again'] * 1e6:.4g}")}


@check(recorded=True)
def publish_to_kernel():
    """From a publish to the first store of a kernel that waits for it, in this process.

    By a stream's wait, by a thread's wait and a launch, and by a kernel that runs meanwhile.
    """
    driver.enter()
    stream = driver.Stream()
    kernels = driver.Kernels(stream.handle)
    kernels.load()
    result = driver.Host(64)
    seen = ctypes.c_uint32.from_address(result.address)
    tensor = new_region(1 * MIB)
    region = tensor.region
    counter = region.cuda_counter(0)

    def await_store():
        while not seen.value:
            pass

    def by_stream():
        seen.value = 0
        region.wait_on(stream.handle, region.generation)
        kernels.fill(result.device, 1, 1)
        return timed()

    def by_thread():
        seen.value = 0
        generation = region.generation

        def launch():
            region.wait(generation)
            driver.enter()
            kernels.fill(result.device, 1, 1)

        thread = threading.Thread(target=launch)
        thread.start()
        found = timed()
        thread.join()
        return found

    def by_kernel():
        seen.value = 0
        kernels.wait(counter, region.generation, 10, address_of(tensor.cuda(0)), result.device)
        return timed()

    def timed():
        time.sleep(0.01)
        start = time.perf_counter()
        region.publish()
        await_store()
        found = time.perf_counter() - start
        stream.synchronize()
        return found

    found = medians({"stream": by_stream, "thread": by_thread, "kernel": by_kernel}, rounds=200)
    return rounded({f"{name}_us": value * 1e6 for name, value in found.items()})


@check(recorded=True)
def stream_calls():
    """How long publish_on() and wait_on() take."""
    driver.enter()
    stream = driver.Stream()
    region = new_region(1 * MIB).region
    times = 200

    def publishing():
        found = seconds(lambda: [region.publish_on(stream.handle) for _ in range(times)])
        stream.synchronize()
        return found / times

    def waiting():
        seen = region.generation
        found = seconds(lambda: [region.wait_on(stream.handle, seen) for _ in range(times)])
        region.publish()
        stream.synchronize()
        return found / times

    found = medians({"publish_on": publishing, "wait_on": waiting})
    return rounded({f"{name}_us": value * 1e6 for name, value in found.items()})
