# SPDX-License-Identifier: MIT
"""Several processes: shared memory, and its state when one of them ends."""

import os
import signal
import socket

import pytest

import tshare
from support import run, spawn

MAKER = """
    import sys, tshare

    t = tshare.create(sys.argv[1], 8, lifetime=sys.argv[2] if len(sys.argv) > 2 else "maker")
    with memoryview(t) as view:
        view[0] = 42
    print("made", flush=True)
    sys.stdin.read()
"""


class Maker:
    """A process that makes a named tensor and waits."""

    def __init__(self, *args):
        self.process = spawn(MAKER, *args)
        assert self.process.stdout.readline() == "made\n"

    def end(self):
        self.process.communicate(timeout=300)
        assert self.process.returncode == 0

    def kill(self):
        self.process.kill()
        self.process.communicate(timeout=300)
        assert self.process.returncode == -signal.SIGKILL


@pytest.fixture
def maker(name):
    maker = Maker(name)
    yield maker
    maker.process.kill()
    maker.process.communicate(timeout=300)


def test_processes_share_memory_by_name(maker, name):
    t = tshare.open(name)
    assert memoryview(t)[0] == 42
    memoryview(t)[1] = 43
    assert run("import sys, tshare; print(memoryview(tshare.open(sys.argv[1]))[1])", name) == "43"


@pytest.mark.parametrize("end", ["end", "kill"])
def test_name_goes_with_its_maker_and_memory_stays(maker, end, name):
    t = tshare.open(name)
    getattr(maker, end)()
    with pytest.raises(FileNotFoundError):
        tshare.open(name)
    assert memoryview(t)[0] == 42


def test_name_of_a_killed_maker_is_free_again(maker, name):
    maker.kill()
    assert name not in {info.name for info in tshare.list()}
    assert tshare.create(name, 3).shape == (3,)


def test_name_that_persists_outlives_its_maker(name):
    Maker(name, "persist").kill()
    t = tshare.open(name)
    assert memoryview(t)[0] == 42
    t.unlink()


def test_ordinary_exit_leaves_nothing_behind(name):
    Maker(name).end()
    if os.path.isdir("/dev/shm"):
        assert not [entry for entry in os.listdir("/dev/shm") if name in entry]


def test_taken_name_is_refused_across_processes(maker, name):
    with pytest.raises(FileExistsError):
        tshare.create(name, 1)


def test_readonly_memory_can_not_be_made_writable(maker, name):
    assert run(
        """
            import ctypes, errno, sys, tshare

            t = tshare.open(sys.argv[1], readonly=True)
            libc = ctypes.CDLL(None, use_errno=True)
            libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
            libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [
                ctypes.c_long]
            libc.mmap.restype = ctypes.c_void_p
            address = t.__array_interface__["data"][0]
            assert address % 4096 == 0
            assert libc.mprotect(address, 4096, 3) == -1
            print(errno.errorcode[ctypes.get_errno()])
            assert libc.mmap(None, 4096, 3, 1, t.fileno(), 0) == 2**64 - 1
            print(errno.errorcode[ctypes.get_errno()])
            """,
        name,
    ).split() == ["EACCES", "EACCES"]


def test_writing_to_readonly_memory_is_stopped_by_the_mmu(maker, name):
    # A consumer that ignores READ_ONLY, as PyTorch does.
    writer = spawn(
        """
        import ctypes, sys, tshare

        t = tshare.open(sys.argv[1], readonly=True)
        ctypes.memset(t.__array_interface__["data"][0], 1, 1)
        """,
        name,
    )
    writer.communicate(timeout=300)
    assert writer.returncode == -signal.SIGSEGV
    assert memoryview(tshare.open(name))[0] == 42


def test_forked_child_shares_memory_and_names(name):
    # In a process of its own, since this one may have threads of other libraries.
    code = """
        import os, sys, tshare

        t = tshare.create(sys.argv[1], 8)
        tshare.create(sys.argv[1] + "-dropped", 8).unlink()
        pid = os.fork()
        if not pid:
            memoryview(t)[0] = 1
            memoryview(tshare.open(sys.argv[1]))[1] = 2
            memoryview(tshare.create(None, 3))[0] = 3
            sys.exit()
        assert os.waitpid(pid, 0)[1] == 0
        assert tshare.open(sys.argv[1]).shape == (8,)
        print(list(bytes(t)[:3]))
    """
    assert run(code, name) == "[1, 2, 0]"


def test_name_that_a_forked_child_makes_goes_with_the_child(name):
    code = """
        import os, signal, sys, tshare

        mine, theirs, later = (f"{sys.argv[1]}-{i}" for i in range(3))
        keep = tshare.create(mine, 4)
        told, tell = os.pipe()
        child = os.fork()
        if not child:
            kept = tshare.create(theirs, 4)
            os.write(tell, b"made")
            signal.pause()
        os.read(told, 4)
        assert tshare.open(theirs).shape == (4,)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        try:
            tshare.open(theirs)
        except FileNotFoundError:
            print(tshare.open(mine).name == mine, tshare.create(later, 4).name == later)
    """
    assert run(code, name) == "True True"


def test_descriptor_is_sent_through_a_socket():
    t = tshare.create(None, (2, 3), "int32")
    ours, theirs = socket.socketpair()
    with ours, theirs:
        process = spawn(
            """
            import os, socket, sys, tshare

            with socket.socket(fileno=int(sys.argv[1])) as sock:
                _, fds, _, _ = socket.recv_fds(sock, 1, 1)
                t = tshare.from_fd(fds[0])
                os.close(fds[0])
                with memoryview(t) as view:
                    view[1, 2] = 99
                print(t.shape, t.dtype)
            """,
            theirs.fileno(),
            pass_fds=[theirs.fileno()],
        )
        socket.send_fds(ours, [b"x"], [t.fileno()])
        output, _ = process.communicate(timeout=300)
    assert output == "(2, 3) int32\n"
    assert memoryview(t)[1, 2] == 99


def test_descriptor_is_inherited_where_it_is_passed():
    t = tshare.create(None, 4)
    run(
        "import sys, tshare; memoryview(tshare.from_fd(int(sys.argv[1])))[0] = 5",
        t.fileno(),
        pass_fds=[t.fileno()],
    )
    assert bytes(t)[0] == 5


def test_readonly_descriptor_stays_readonly_in_the_receiver(name):
    t = tshare.create(name, 4)
    sent = tshare.open(name, readonly=True)
    code = """
        import sys, tshare
        t = tshare.from_fd(int(sys.argv[1]))
        print(t.readonly, memoryview(t).readonly)
    """
    assert run(code, sent.fileno(), pass_fds=[sent.fileno()]) == "True True"
    assert not t.readonly


@pytest.mark.parametrize("backend", ["nonsense", "SHM"])
def test_unknown_backend_is_refused(backend):
    code = """
        import tshare
        try:
            tshare.backend()
        except ValueError as error:
            print("TSHARE_BACKEND" in str(error))
    """
    assert run(code, env={**os.environ, "TSHARE_BACKEND": backend}) == "True"


def test_requested_backend_is_used():
    code = "import tshare; print(tshare.backend(), tshare.create(None, 1).region.backend)"
    for backend in ("kmod", "shm") if os.path.exists("/dev/tshare") else ("shm",):
        env = {**os.environ, "TSHARE_BACKEND": backend}
        assert run(code, env=env).split() == [backend, backend]


def test_missing_backend_is_named():
    if os.path.exists("/dev/tshare"):
        pytest.skip("the device is there, and can't be taken away")
    code = """
        import errno, tshare
        for call in tshare.backend, tshare.list, tshare.limits, lambda: tshare.create(None, 1):
            try:
                call()
            except OSError as error:
                print(errno.errorcode[error.errno], "/dev/tshare" in str(error))
    """
    assert run(code, env={**os.environ, "TSHARE_BACKEND": "kmod"}) == "\n".join(["ENODEV True"] * 4)


def test_import_opens_no_session_and_no_library():
    code = """
        import os, sys, tshare
        print(len([m for m in ("numpy", "torch", "jax") if m in sys.modules]))
    """
    assert run(code) == "0"
