# SPDX-License-Identifier: MIT
import gc
import itertools
import os
import signal

import pytest

import tshare

# Whoever runs this in the background may have it ignored, and so would all that
# is started here, also where Ctrl-C is what a test is about.
signal.signal(signal.SIGINT, signal.default_int_handler)

PREFIX = f"pytest-{os.getpid()}-"

numbers = itertools.count()


def pytest_report_header():
    return f"tshare: {tshare.backend()} from {tshare.__path__[0]}"


def ours():
    """Names that these tests have made, by the backend's word and by the file system's."""
    found = {info.name for info in tshare.list() if info.name.startswith(PREFIX)}
    for entry in os.listdir("/dev/shm") if os.path.isdir("/dev/shm") else []:
        if PREFIX in entry:
            found.add(entry)
    return found


@pytest.fixture(scope="session", autouse=True)
def nothing_is_left_at_the_end():
    # The session has descriptors of its own from here on, which are no leaks.
    with tshare.create(f"{PREFIX}first", 1) as first:
        first.unlink()
    yield
    assert not ours()


@pytest.fixture
def backend():
    return tshare.backend()


@pytest.fixture
def new_name():
    """A function that gives names that no one else has, gone when the test is."""
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


def count_fds():
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture(autouse=True)
def no_fd_leaks(request):
    before = count_fds()
    yield
    # Fixtures were torn down, but pytest still holds their values.
    request.node.funcargs.clear()
    if count_fds() != before:
        gc.collect()
    assert count_fds() == before
