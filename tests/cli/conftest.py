# SPDX-License-Identifier: MIT
"""Fixtures of the tests of the command: see Documentation/testing.rst."""

import fcntl
import itertools
import os
import pty
import shutil
import signal
import struct
import subprocess
import tempfile
import termios
import threading
from pathlib import Path

import pytest

from helpers import ROOT, Command, Screen, library_path, text, until

# A shell that runs this in the background ignores SIGINT, nohup ignores SIGHUP, and so would the
# command.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Seconds after which a test has hung; the tests in C have the same.
LIMIT = int(os.environ.get("TSHARE_TEST_LIMIT", "300"))

PREFIX = f"cli-{os.getpid()}"

numbers = itertools.count()


def pytest_addoption(parser):
    parser.addoption(
        "--tshare",
        type=Path,
        default=ROOT / "build/c/tools/tshare",
        help="the command that is tested, in the folder of its build",
    )


def pytest_configure(config):
    command = config.getoption("--tshare")
    if not os.access(command, os.X_OK):
        raise pytest.UsageError(f"--tshare: there is no command '{command}' (run: make lib)")


def pytest_report_header():
    return f"tshare: {os.environ.get('TSHARE_BACKEND', 'the backend that the command chooses')}"


def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.timeout(LIMIT))


@pytest.fixture(scope="session")
def build(request):
    """The folder in which the command, and what its tests need, was built."""
    return request.config.getoption("--tshare").resolve().parents[1]


@pytest.fixture(scope="session")
def on_tmpfs():
    """A folder for shared memory: a guest's temporary folder is on a file system without."""
    with tempfile.TemporaryDirectory(prefix=f"{PREFIX}.", dir="/dev/shm") as path:
        yield Path(path)


@pytest.fixture(scope="session")
def tshare(build, on_tmpfs):
    # Tables and completions show all regions that there are, and other suites make some meanwhile.
    if not os.environ.get("TSHARE_SHM_DIR"):
        (on_tmpfs / "regions").mkdir()
        os.environ["TSHARE_SHM_DIR"] = str(on_tmpfs / "regions")
    return Command(build / "tools/tshare")


@pytest.fixture(scope="session")
def backend(tshare):
    """The name of the backend that the command uses."""
    backends = tshare.json("info")["backends"]
    return next(name for name, backend in backends.items() if backend["used"])


@pytest.fixture(scope="session")
def version():
    return (ROOT / "VERSION").read_text().strip()


@pytest.fixture
def own_regions(on_tmpfs):
    """An environment with shared memory that holds nothing; the folder is TSHARE_SHM_DIR's."""
    folder = on_tmpfs / f"own-{next(numbers)}"
    folder.mkdir()
    return {"TSHARE_BACKEND": "shm", "TSHARE_SHM_DIR": str(folder)}


@pytest.fixture
def name(tshare):
    """A name that is unused; all regions with it in their names are unlinked after the test."""
    name = f"{PREFIX}-{next(numbers)}"
    yield name
    left = [region["name"] for region in tshare.json("list") if name in region["name"]]
    if left:
        tshare("unlink", *left)


def has_module():
    """Whether the module is loaded, or could be."""
    modinfo = shutil.which("modinfo", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    return os.path.isdir("/sys/module/tshare") or (
        modinfo and subprocess.run([modinfo, "tshare"], capture_output=True).returncode == 0
    )


# Conditions for @pytest.mark.needs(condition, reason); the reason is that of the skip.
NEEDS = {
    "kmod": lambda request: request.getfixturevalue("backend") == "kmod",
    "no module": lambda _: not has_module(),
    "root": lambda _: os.geteuid() == 0,
}


@pytest.fixture(autouse=True)
def needs_are_met(request):
    for mark in request.node.iter_markers("needs"):
        what, reason = mark.args
        if not NEEDS[what](request):
            pytest.skip(reason)


@pytest.fixture(autouse=True)
def late_tests_are_named(request):
    """Write a test's name to the file that tests/runner/run looks at, after a fifth of its time."""

    def tell():
        with open(os.environ.get("TSHARE_TEST_LATE", os.devnull), "a") as file:
            file.write(f"# late: {request.node.name} has run for {LIMIT / 5:g} s\n")

    timer = threading.Timer(LIMIT / 5, tell)
    timer.start()
    yield
    timer.cancel()


@pytest.fixture
def start(tshare):
    """A function that starts the command, which is killed after the test."""
    processes = []

    def start(*arguments, **options):
        options = {"stdout": subprocess.PIPE, **options}
        processes.append(subprocess.Popen([tshare.path, *arguments], **options))
        return processes[-1]

    yield start
    for process in processes:
        with process:
            process.kill()


@pytest.fixture
def terminal(start):
    """A function that runs the command in a terminal, and returns what it prints there."""

    def terminal(columns, *arguments, env=None):
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
        process = start(
            *arguments,
            env={**os.environ, "TERM": "xterm", **(env or {})},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        said = b""
        try:
            while data := os.read(ours, 65536):
                said += data
        except OSError:
            # Nobody has the other side any more.
            pass
        os.close(ours)
        assert process.wait() == 0
        return text(said).replace("\r", "")

    return terminal


@pytest.fixture
def screen():
    """A function that runs a command in a new terminal of so many columns."""
    screens = []

    def screen(columns, *command):
        screens.append(Screen(f"{PREFIX}-{next(numbers)}"))
        screens[-1].run(columns, *command)
        return screens[-1]

    yield screen
    for one in screens:
        one.close()


@pytest.fixture
def held(start, name):
    """The name of a region that its maker has open, and another process; and their numbers."""
    region = f"{name}-held"
    command = ["sh", "-c", "echo $$; exec sleep 600"]
    maker = start("exec", "--name", region, "4", "int8", "--", *command)
    user = int(maker.stdout.readline())
    until(lambda: Path(f"/proc/{user}/comm").read_text() == "sleep\n")
    yield region, maker.pid, user
    # Without its child the maker ends, and removes the region.
    os.kill(user, signal.SIGKILL)
    maker.wait()


@pytest.fixture
def publisher_exits(build, name):
    """A function that has a process become a publisher of the region of that name, and exit."""
    return lambda: subprocess.run([build / "tests/cli/publisher", name], check=True)


class Streamer:
    """A producer or a consumer of a stream: see tests/cli/streamer.c."""

    def __init__(self, program, *arguments):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen([program, *arguments], text=True, bufsize=1, **pipes)
        self.pid = self.process.pid
        assert self.process.stdout.readline() == "ready\n"

    def __call__(self, *words):
        """Have it obey a line, and return the number that it answers."""
        print(*words, file=self.process.stdin)
        return int(self.process.stdout.readline())

    def kill(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture
def streamer(tshare, build):
    """A function that starts a Streamer, which is killed after the test."""
    streamers = []

    def streamer(*arguments):
        streamers.append(Streamer(build / "tests/cli/streamer", *map(str, arguments)))
        return streamers[-1]

    yield streamer
    for one in streamers:
        with one.process:
            one.kill()


@pytest.fixture
def with_cuda(build):
    """A function that returns an environment with the stub of CUDA's driver, so controlled."""
    return lambda controls: {
        "LD_LIBRARY_PATH": library_path(build / "tests/cuda-stub"),
        "TSHARE_STUB_CUDA": controls,
        "CUDA_VISIBLE_DEVICES": "0",
    }


class Module:
    """A kernel and its module tshare, as the stub of libkmod has them: see tests/cli/kmod.c."""

    # The module that is installed: that version of it, signed and with the sources ABCD.
    SIGNED = "version=0.9.1\nsrcversion=ABCD\nsig_id=PKCS#7\nsigner=me"
    UNSIGNED = "version=0.9.1\nsrcversion=ABCD"

    def __init__(self, stub, root):
        self.stub, self.root = stub, root

    def write(self, file, content):
        path = self.root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{content}\n")

    def load(self, version, sources="ABCD"):
        self.write("sys/module/tshare/version", version)
        self.write("sys/module/tshare/srcversion", sources)

    def lock_down(self):
        self.write("sys/kernel/security/lockdown", "none [integrity] confidentiality")

    def env(self, info=None, **state):
        """Return the environment in which the module has that info, and the state: CUT=-22."""
        state = {f"STUB_KMOD_{key.upper()}": str(value) for key, value in state.items()}
        if info is not None:
            state["STUB_KMOD_INFO"] = info
        path = library_path(self.stub)
        return {"LD_LIBRARY_PATH": path, "STUB_KMOD_ROOT": str(self.root), **state}


@pytest.fixture
def module(build, tmp_path):
    return Module(build / "tests/cli", tmp_path / "kernel")
