# SPDX-License-Identifier: MIT
"""tshare.managers; see test_stdlib.py for CPython's own tests."""

import contextlib
import os
import signal
import subprocess
import time
from multiprocessing import managers as standard

import pytest

from support import run_in_silence, spawn
from tshare import managers
from tshare.shared_memory import SharedMemory

# Each test in a process of its own, since this one may have threads of other
# libraries, and so that nothing else starts a resource tracker.
BEGIN = """
import multiprocessing, sys
from multiprocessing import resource_tracker
import tshare
from tshare.managers import SharedMemoryManager
from tshare.shared_memory import ShareableList, SharedMemory

context = multiprocessing.get_context(sys.argv[1])

def gone(name):
    try:
        SharedMemory(name)
    except FileNotFoundError:
        return True
    return False
"""


@pytest.fixture(params=["fork", "forkserver", "spawn"])
def method(request):
    return request.param


def silently(code, *args):
    return run_in_silence(BEGIN + code, *args)


def wait_until_gone(name):
    for _ in range(3000):
        try:
            SharedMemory(name).close()
        except FileNotFoundError:
            return True
        time.sleep(0.1)
    return False


def test_manager_is_a_standard_one():
    assert issubclass(managers.SharedMemoryManager, standard.SharedMemoryManager)
    assert set(managers.__all__) == set(standard.__all__)


def test_manager_makes_memory_and_lists(method):
    code = """
with SharedMemoryManager(ctx=context) as manager:
    shm, sl = manager.SharedMemory(10), manager.ShareableList(["ä" * 8 + "\\0", 2, None])
    assert type(shm) is SharedMemory and shm.size == len(shm.buf) == 10
    assert type(sl) is ShareableList and list(sl) == ["ä" * 8 + "\\0", 2, None]
    shm.buf[9] = 1
    assert SharedMemory(shm.name).buf[9] == 1
    assert tshare.open(sl.shm.name).nbytes == sl.shm.size
"""
    silently(code, method)


def test_names_go_when_the_manager_shuts_down_and_memory_stays(method):
    code = """
manager = SharedMemoryManager(ctx=context)
manager.start()
shm, sl = manager.SharedMemory(10), manager.ShareableList(range(3))
manager.shutdown()
assert gone(shm.name) and gone(sl.shm.name)
shm.buf[9] = 1
assert list(sl) == [0, 1, 2]
"""
    silently(code, method)


def test_names_go_when_the_manager_is_killed(method):
    # Also where this process has opened its session before the other is forked.
    code = """
keep = tshare.create(None, 1)
manager = SharedMemoryManager(ctx=context)
manager.start()
shm, sl = manager.SharedMemory(10), manager.ShareableList(range(3))
manager._process.kill()
manager._process.join()
assert gone(shm.name) and gone(sl.shm.name)
shm.buf[9] = 1
assert list(sl) == [0, 1, 2]
"""
    silently(code, method)


def test_names_of_others_stay_when_the_manager_ends(name):
    code = """
shm = SharedMemory(sys.argv[2], create=True, size=1)
with SharedMemoryManager(ctx=context) as manager:
    pass
assert not gone(shm.name)
"""
    silently(code, "fork", name)


def test_names_go_when_the_manager_s_parent_is_killed(method):
    code = """
manager = SharedMemoryManager(ctx=context)
manager.start()
print(manager.SharedMemory(10).name, manager._process.pid, flush=True)
sys.stdin.read()
"""
    process = spawn(BEGIN + code, method, stderr=subprocess.DEVNULL)
    name, manager = process.stdout.readline().split()
    shm = SharedMemory(name)
    process.kill()
    process.communicate(timeout=300)
    try:
        assert wait_until_gone(name)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(manager), signal.SIGKILL)
    shm.buf[0] = 1


def test_names_stay_when_the_client_that_requested_them_ends():
    code = """
def ask(address, authkey, answers):
    manager = SharedMemoryManager(address, authkey)
    manager.connect()
    shm = manager.SharedMemory(10)
    shm.buf[0] = 42
    answers.send((shm.name, manager.ShareableList("ab").shm.name))

# Only fork can run code that is in no file.
client = multiprocessing.get_context("fork")
with SharedMemoryManager(authkey=b"key", ctx=context) as manager:
    here, there = client.Pipe()
    process = client.Process(target=ask, args=(manager.address, b"key", there))
    process.start()
    name, list_name = here.recv()
    process.join()
    assert SharedMemory(name).buf[0] == 42
    assert list(ShareableList(name=list_name)) == ["a", "b"]
assert gone(name)
"""
    silently(code, "spawn")


def test_manager_ends_at_once_when_its_names_were_unlinked():
    code = """
with SharedMemoryManager(ctx=context) as manager:
    manager.SharedMemory(10).unlink()
    process, other = manager._process, manager.SharedMemory(10)
assert process.exitcode == 0 and gone(other.name)
"""
    silently(code, "fork")


def test_manager_lists_and_releases_its_names():
    code = """
from multiprocessing.managers import dispatch
with SharedMemoryManager(ctx=context) as manager:
    def call(*args):
        with manager._Client(manager.address, authkey=manager._authkey) as connection:
            return dispatch(connection, None, *args)
    first, second = manager.SharedMemory(1).name, manager.SharedMemory(2).name
    assert call("list_segments") == [first, second]
    call("release_segment", (first,))
    assert call("list_segments") == [second]
    assert gone(first) and not gone(second)
"""
    silently(code, "fork")


def test_manager_by_fork_starts_no_tracker():
    code = """
with SharedMemoryManager(ctx=context) as manager:
    manager.SharedMemory(10)
    manager.ShareableList([1])
print(resource_tracker._resource_tracker._fd)
"""
    assert silently(code, "fork") == "None"


def test_errors_are_the_standard_ones():
    code = """
from multiprocessing import managers as standard

def error_of(function, *args):
    try:
        function(*args)
    except Exception as error:
        return type(error), str(error)

def errors(manager):
    yield error_of(manager.SharedMemory, 1)
    yield error_of(manager.ShareableList, [1])
    manager.start()
    for size in 0, -1, "size", None:
        yield error_of(manager.SharedMemory, size)
    yield error_of(manager.ShareableList, [object])
    yield error_of(manager.start)
    yield error_of(manager.get_server)
    manager.shutdown()
    yield error_of(manager.start)
    yield error_of(manager.get_server)

ours = list(errors(SharedMemoryManager(ctx=context)))
theirs = list(errors(standard.SharedMemoryManager(ctx=context)))
assert None not in ours and ours == theirs, (ours, theirs)
"""
    silently(code, "fork")


def test_too_large_a_size_is_the_callers_error():
    code = """
with SharedMemoryManager(ctx=context) as manager:
    try:
        manager.SharedMemory(1 << 50)
    except OSError as error:
        print(type(error) is OSError, error.errno != 0)
"""
    assert silently(code, "fork") == "True True"
