# SPDX-License-Identifier: MIT
import contextlib
import gc
import itertools
import multiprocessing
import os
import pickle
import signal
import subprocess
import tempfile
import threading
import time
from multiprocessing import forkserver, reduction, resource_sharer, resource_tracker
from pathlib import Path

import pytest

import ranks
import tshare
import vivid
from support import Stream, load_stub

# A shell that runs this in the background ignores SIGINT, and so would all processes that
# are started here, also in tests about Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)

BUILD = Path(__file__).resolve().parents[2] / "build"

PREFIX = f"pytest-{os.getpid()}-"

numbers = itertools.count()


def pytest_report_header():
    return f"tshare: {tshare.backend()} from {tshare.__path__[0]}"


def ours():
    """Return the names that these tests have made, by tshare.list() and by the file system."""
    found = {info.name for info in tshare.list() if info.name.startswith(PREFIX)}
    for entry in os.listdir("/dev/shm") if os.path.isdir("/dev/shm") else []:
        if PREFIX in entry:
            found.add(entry)
    return found


@pytest.fixture(scope="session", autouse=True)
def nothing_is_left_at_the_end():
    # Opens the session, whose descriptors are no leaks.
    with tshare.create(f"{PREFIX}first", 1) as first:
        first.unlink()
    yield
    assert not ours()


@pytest.fixture
def backend():
    return tshare.backend()


@pytest.fixture
def new_name():
    """A function that returns unused names, which are unlinked after the test."""
    names = []

    def new():
        names.append(f"{PREFIX}{next(numbers)}")
        return names[-1]

    yield new
    for name in names:
        try:
            tshare.unlink(name)
        except FileNotFoundError:
            pass


@pytest.fixture
def name(new_name):
    return new_name()


@pytest.fixture
def start():
    """A function that starts a program, which is killed after the test."""
    processes = []

    def start(*command, **options):
        processes.append(
            subprocess.Popen(
                [*map(str, command)],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                **options,
            )
        )
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def ranks_server():
    server = ranks.Server()
    yield server
    server.close()


@pytest.fixture
def start_group(tmp_path):
    """A function that starts a group: takes a server, the code and the number of each rank's host.

    If the hosts are network namespaces, networks are their numbers, too.
    """
    groups = []

    def start(server, code, hosts, networks=(), **variables):
        folders = [tmp_path / f"host{host}" for host in hosts]
        for folder in folders:
            folder.mkdir(mode=0o700, exist_ok=True)
        work = tmp_path / f"group{len(groups)}"
        work.mkdir()
        groups.append(server.start(ranks.BEGIN + code, folders, work, networks, **variables))
        return groups[-1]

    yield start
    for group in groups:
        group.end()
    for host in tmp_path.glob("host*"):
        # A process that looks removes the names of killed ones.
        look = start(groups[-1].server, "tshare.list()", [host.name.removeprefix("host")])
        look.results()
        look.end()
        assert [*host.iterdir()] == []


@pytest.fixture
def start_ranks(ranks_server, start_group):
    """A function that starts a group: takes the code, and the number of each rank's host."""
    return lambda code, *hosts, **variables: start_group(ranks_server, code, hosts, **variables)


def count_all():
    """What the module counts, by the counters' names; nothing without the module."""
    files = map(Path("/sys/class/misc/tshare").joinpath, ("regions", "names", "exports", "bytes"))
    return {file.name: file.read_text() for file in files if file.exists()}


@pytest.fixture
def nothing_is_left_in_the_module():
    before = count_all()
    yield
    assert count_all() == before


@pytest.fixture
def device(nothing_is_left_in_the_module):
    """vivid's node."""
    path = vivid.find()
    assert path, "there is no vivid: tests/vm/run --modprobe 'vivid allocators=1 node_types=1'"
    vivid.set_format(path, 320, 180)
    return path


def find_nvme():
    """Return the node of the disk of tests/vm/run, which holds nothing yet, or None."""
    for disk in Path("/sys/block").glob("nvme*"):
        if (disk / "device/serial").read_text().strip() == "tshare":
            return f"/dev/{disk.name}"
    return None


@pytest.fixture(scope="module")
def disk():
    """A directory on a disk, where /tmp might be in memory."""
    with tempfile.TemporaryDirectory(prefix="disk-", dir=BUILD) as path:
        if not (node := find_nvme()):
            yield Path(path)
            return
        subprocess.run(["/sbin/mkfs.ext4", "-q", "-F", node], check=True)
        subprocess.run(["mount", node, path], check=True)
        yield Path(path)
        subprocess.run(["umount", path], check=True)


@pytest.fixture
def camera(device, start, name):
    """A function that starts a program that has the camera fill a stream, and returns when it runs.

    The program ends before device looks for what is left in the module, also where a test has
    killed it: a process that was killed has its regions until its exit is through.
    """

    def camera(*arguments, program="C", **options):
        process = start(*vivid.PRODUCERS[program], "-4", *arguments, device, name, **options)
        line = process.stdout.readline()
        assert f": '{name}' has " in line, line + process.communicate()[1]
        return process

    return camera


@pytest.fixture
def later():
    """A function that calls another in a thread, when the test probably waits for that.

    The test ends after all calls: close() of a region that another thread is closing returns
    at once, while the region's descriptors may still be open.
    """
    timers = []

    def start(function, *arguments, seconds=0.1):
        timers.append(threading.Timer(seconds, function, arguments))
        timers[-1].start()
        return timers[-1]

    yield start
    for timer in timers:
        timer.join()


@pytest.fixture(scope="module")
def helper_processes():
    """multiprocessing's own, which are started once, and use descriptors."""
    resource_tracker.ensure_running()
    forkserver.ensure_running()


@pytest.fixture(
    params=["fork", "forkserver", pytest.param("spawn", marks=pytest.mark.slow_in_guests)]
)
def context(request):
    yield multiprocessing.get_context(request.param)
    # Ends the thread that serves descriptors, which has descriptors of its own.
    resource_sharer.stop()


@pytest.fixture
def travel():
    """A function that sends an object to another process and back."""

    def travel(thing):
        return pickle.loads(reduction.ForkingPickler.dumps(thing))

    yield travel
    resource_sharer.stop()


def open_fds():
    """The open descriptors, each with what it leads to."""
    fds = set()
    for fd in os.listdir("/proc/self/fd"):
        # The directory's own descriptor is closed again.
        with contextlib.suppress(FileNotFoundError):
            fds.add((fd, os.readlink(f"/proc/self/fd/{fd}")))
    return fds


@pytest.fixture(scope="session")
def lasting_fds(nothing_is_left_at_the_end):
    """The descriptors that were open before the first test, which no test may close."""
    gc.collect()
    return open_fds()


@pytest.fixture(autouse=True)
def no_fd_leaks(request, lasting_fds):
    before = open_fds()
    yield
    # pytest still holds the values of fixtures that were torn down.
    request.node.funcargs.clear()
    if len(open_fds()) != len(before):
        gc.collect()
    # The library's watcher closes its descriptors a tenth of a second after the last wait.
    end = time.monotonic() + 60
    while len(open_fds()) > len(before) and time.monotonic() < end:
        time.sleep(0.01)
    # If there are fewer, garbage of an earlier test was collected during this one.
    if len(open_fds()) != len(before):
        assert lasting_fds <= open_fds() <= before


@pytest.fixture
def tensor():
    return tshare.create(None, (2, 3), "float32")


@pytest.fixture
def readonly(name):
    keep = tshare.create(name, (2, 3), "float32")
    yield tshare.open(name, readonly=True)
    keep.close()


@pytest.fixture
def stub(request):
    """The stub of NVIDIA's driver. What a test leaves in it is an error."""
    stub = load_stub()
    stub.stub_reset()
    yield stub
    # pytest still holds the values of fixtures that were torn down.
    request.node.funcargs.clear()
    gc.collect()
    assert stub.stub_left() is None
    assert stub.stub_complaint() is None


@pytest.fixture
def cuda(stub):
    """A CUDA stream on the stub, in the thread's context."""
    stream = Stream(stub)
    yield stream
    try:
        stream.synchronize()
    finally:
        stream.destroy()
