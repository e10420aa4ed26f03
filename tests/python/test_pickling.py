# SPDX-License-Identifier: MIT
import multiprocessing
from multiprocessing import forkserver, resource_sharer, resource_tracker

import pytest

import tshare


@pytest.fixture(scope="module", autouse=True)
def helpers():
    # Processes that are started once, and cost descriptors.
    resource_tracker.ensure_running()
    forkserver.ensure_running()


@pytest.fixture(params=["spawn", "forkserver"])
def context(request):
    yield multiprocessing.get_context(request.param)
    # Ends the thread that serves descriptors, which has some of its own.
    resource_sharer.stop()


def write(tensor, value):
    with memoryview(tensor) as view:
        view[0] = value
    tensor.close()


def look(tensor, answers):
    answers.put((tensor.shape, tensor.dtype, tensor.readonly))


def work(tensors, answers):
    tensor = tensors.get(timeout=300)
    write(tensor, 9)
    answers.put(True)


def fill(region):
    for value, tensor in enumerate(region.values(), 1):
        write(tensor, value)


def join(process):
    process.join(300)
    assert process.exitcode == 0
    process.close()


def close(queue):
    queue.close()
    queue.join_thread()


def test_tensor_travels_as_an_argument(context):
    t = tshare.create(None, 4)
    process = context.Process(target=write, args=(t, 7))
    process.start()
    join(process)
    assert bytes(t)[0] == 7


def test_tensor_travels_through_a_queue(context):
    t = tshare.create(None, 4)
    tensors, answers = context.Queue(), context.Queue()
    process = context.Process(target=work, args=(tensors, answers))
    process.start()
    tensors.put(t)
    assert answers.get(timeout=300)
    join(process)
    assert bytes(t)[0] == 9
    close(tensors)
    close(answers)


def test_tensor_of_a_region_travels_by_its_name(context):
    region = tshare.Region.create(None, {"a": (1, "uint8"), "b": (2, "uint8")})
    process = context.Process(target=write, args=(region["b"], 3))
    process.start()
    join(process)
    assert bytes(region["a"]) == b"\0"
    assert bytes(region["b"]) == b"\3\0"


def test_region_travels_whole(context):
    region = tshare.Region.create(None, {"a": (1, "uint8"), "b": (1, "uint8")})
    process = context.Process(target=fill, args=(region,))
    process.start()
    join(process)
    assert bytes(region["a"]) == b"\1"
    assert bytes(region["b"]) == b"\2"


def test_readonly_tensor_stays_readonly(context, name):
    keep = tshare.create(name, 4)
    t = tshare.open(name, readonly=True)
    answers = context.Queue()
    process = context.Process(target=look, args=(t, answers))
    process.start()
    assert answers.get(timeout=300) == ((4,), "uint8", True)
    join(process)
    close(answers)
    assert not keep.readonly
