# SPDX-License-Identifier: MIT
"""Drafts, which can't be opened before they are finished, and regions that replace others."""

import contextlib
import math
import os
import signal
import struct
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import tshare
from tshare.shared_memory import ShareableList


def test_draft_is_opened_once_it_is_finished(name):
    t = tshare.create(name, 4, draft=True)
    assert t.region.info().draft
    with pytest.raises(BlockingIOError, match="is a draft") as caught:
        tshare.open(name)
    assert caught.value.filename == name
    np.asarray(t)[:] = 7
    t.finish()
    assert bytes(tshare.open(name)) == bytes([7] * 4)
    assert not t.region.info().draft


@pytest.mark.parametrize(
    "make",
    [
        lambda name, **options: tshare.create(name, 4, **options).region,
        lambda name, **options: tshare.Region.create(name, size=4, **options),
        lambda name, **options: tshare.Region.create(name, {"a": np.ones(4)}, **options),
        lambda name, **options: tshare.asarray(np.ones(4), name, **options).region,
    ],
)
def test_each_way_to_create_makes_drafts_and_replaces(name, make):
    region = make(name, draft=True)
    with pytest.raises(BlockingIOError):
        tshare.Region.open(name)
    with pytest.raises(FileExistsError):
        make(name, exist_ok=True)
    region.finish()
    assert tshare.Region.open(name).id == region.id
    with pytest.raises(FileExistsError):
        make(name)
    successor = make(name, exist_ok=True)
    assert tshare.Region.open(name).id == successor.id
    assert region.info().name is None


def test_draft_replaces_when_it_is_finished(name):
    old = tshare.create(name, 4)
    new = tshare.create(name, 4, draft=True, exist_ok=True)
    assert tshare.open(name).region.id == old.region.id
    new.finish()
    assert tshare.open(name).region.id == new.region.id


def test_finish_of_a_finished_region_is_a_value_error(name):
    t = tshare.create(name, 4)
    for finish in (t.finish, t.region.finish, tshare.create(None, 4).finish):
        with pytest.raises(ValueError, match="^region: is not a draft"):
            finish()


def test_finish_rejects_wrong_arguments(name):
    t = tshare.create(name, 4, draft=True)
    with pytest.raises(TypeError, match="positional"):
        t.finish(True)
    with pytest.raises(TypeError, match="overwrite"):
        t.finish(overwrite=True)


@pytest.mark.parametrize("of", [lambda t: t, lambda t: t.region], ids=["tensor", "region"])
def test_argument_may_close_what_is_finished(name, of):
    draft = of(tshare.create(name, 4, draft=True, lifetime="persist"))

    class Closes:
        def __bool__(self):
            draft.close()
            return False

    draft.finish(replace=Closes())
    assert draft.closed
    with tshare.open(name) as t:
        assert t.shape == (4,)
        t.unlink()


@pytest.mark.parametrize("option", ["draft", "exist_ok"])
def test_error_of_an_option_without_a_name_names_it(option):
    with pytest.raises(ValueError, match=f"^{option}: needs a name"):
        tshare.create(None, 4, **{option: True})


def test_unlinked_draft_can_not_be_finished(name):
    t = tshare.create(name, 4, draft=True)
    t.unlink()
    with pytest.raises(FileNotFoundError):
        t.finish()
    with pytest.raises(FileNotFoundError):
        tshare.open(name)


def test_draft_is_removed_with_the_last_that_has_it_open(name):
    t = tshare.create(name, 4, draft=True)
    view = t[1:]
    t.close()
    with pytest.raises(BlockingIOError):
        tshare.open(name)
    view.close()
    with pytest.raises(FileNotFoundError):
        tshare.open(name)


def test_unlinked_draft_leaves_its_name_free(name):
    tshare.create(name, 4, draft=True).unlink()
    assert tshare.create(name, 5).region.id == tshare.open(name).region.id


def test_unlink_leaves_a_successor_s_name(name):
    old = tshare.create(name, 4)
    new = tshare.create(name, 4, exist_ok=True)
    for unlink in (old.unlink, old.region.unlink):
        with pytest.raises(FileNotFoundError):
            unlink()
    assert tshare.open(name).region.id == new.region.id
    new.unlink()
    with pytest.raises(FileNotFoundError):
        tshare.open(name)


def test_draft_of_another_process_can_not_be_finished(name):
    t = tshare.create(name, 4, draft=True)
    code = "import sys, tshare; tshare.from_fd(int(sys.argv[1])).finish()"
    ended = subprocess.run(
        [sys.executable, "-c", code, str(t.fileno())],
        pass_fds=[t.fileno()], capture_output=True, text=True,
    )  # fmt: skip
    assert "PermissionError" in ended.stderr


COPY = """
import sys, numpy as np, tshare
source = np.full(4 << 20, 7, np.uint8)
for i in range(20):
    if i % 2:
        t = tshare.asarray(source, sys.argv[1])
    else:
        t = tshare.Region.create(sys.argv[1], {"a": source})
    t.unlink()
"""


def test_copy_is_opened_only_when_complete(name):
    with subprocess.Popen([sys.executable, "-c", COPY, name]) as copying:
        while copying.poll() is None:
            try:
                with tshare.open(name) as t:
                    assert bytes(t[0:1]) == bytes(t[-1:]) == b"\x07"
            except OSError:
                pass
        assert copying.returncode == 0


@pytest.mark.parametrize("seconds", [60, 60.0, math.inf])
def test_open_waits_for_a_name(name, seconds, later):
    made = []
    thread = later(lambda: made.append(tshare.create(name, 4)))
    t = tshare.open(name, wait=seconds)
    thread.join()
    assert t.region.id == made[0].region.id


def test_open_waits_for_a_draft(name, later):
    region = tshare.Region.create(name, size=4, draft=True)
    later(region.finish)
    assert tshare.Region.open(name, wait=60).id == region.id


@pytest.mark.parametrize("other", [lambda t: t, lambda t: t.region])
def test_open_waits_for_another_region(name, other, later):
    old = tshare.create(name, 4)
    with pytest.raises(BlockingIOError, match="still leads to other_than"):
        tshare.open(name, other_than=other(old))
    made = []
    thread = later(lambda: made.append(tshare.create(name, 4, exist_ok=True)))
    new = tshare.open(name, wait=60, other_than=other(old))
    thread.join()
    assert new.region.id == made[0].region.id


@pytest.mark.parametrize("seconds", [0.01, 1e-12])
def test_open_times_out(name, seconds):
    with pytest.raises(TimeoutError) as caught:
        tshare.open(name, wait=seconds)
    assert caught.value.filename == name


def test_ctrl_c_ends_open(name, later):
    def interrupted():
        later(os.kill, os.getpid(), signal.SIGINT)
        tshare.open(name, wait=60)

    with pytest.raises(KeyboardInterrupt):
        interrupted()


def test_open_goes_on_after_a_signal_for_the_time_that_is_left(name):
    got = []

    def handle(*_):
        got.append(1)
        assert len(got) < 1000

    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
    try:
        with pytest.raises(TimeoutError):
            tshare.open(name, wait=0.3)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert got


def test_open_rejects_wrong_arguments(name):
    for wait in (-1, math.nan):
        with pytest.raises(ValueError, match="^wait: "):
            tshare.open(name, wait=wait)
    with pytest.raises(TypeError, match="^wait: "):
        tshare.open(name, wait="1")
    with pytest.raises(TypeError, match="^other_than: "):
        tshare.open(name, other_than=name)
    closed = tshare.Region.create(None, size=4)
    closed.close()
    with pytest.raises(ValueError, match="closed"):
        tshare.open(name, other_than=closed)


WAITER = """
import sys, tshare
print("waits", flush=True)
try:
    tshare.open(sys.argv[1], wait=60)
except FileNotFoundError:
    print("its maker has ended")
"""

MAKER = """
import sys, tshare
t = tshare.create(sys.argv[1], 4, draft=True, lifetime="persist")
print("made", flush=True)
sys.stdin.read()
"""


def test_death_of_a_draft_s_maker_ends_open(name):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    maker = subprocess.Popen([sys.executable, "-c", MAKER, name], **pipes)
    with maker:
        assert maker.stdout.readline() == "made\n"
        waiter = subprocess.Popen([sys.executable, "-c", WAITER, name], **pipes)
        with waiter:
            assert waiter.stdout.readline() == "waits\n"
            time.sleep(0.5)
            maker.kill()
            assert waiter.stdout.read() == "its maker has ended\n"


@contextlib.contextmanager
def handled_once(act):
    """While the main thread waits, SIGUSR1 calls another function, once."""
    got = []

    def handle(*_):
        got.append(1)
        if len(got) == 1:
            act()

    before = signal.signal(signal.SIGUSR1, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert got


def signal_here():
    os.kill(os.getpid(), signal.SIGUSR1)


def signal_in_this_thread():
    """Send a signal that doesn't end the main thread's sleep."""
    signal.raise_signal(signal.SIGUSR1)


HOW = [signal_here, signal_in_this_thread]


@pytest.mark.parametrize("wait", [tshare.open, tshare.Stream.open])
@pytest.mark.parametrize("send", HOW)
def test_open_reports_the_death_of_a_maker_while_a_handler_runs(name, later, send, wait):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    maker = subprocess.Popen([sys.executable, "-c", MAKER, name], **pipes)

    def kill():
        maker.kill()
        maker.wait()

    with maker:
        assert maker.stdout.readline() == "made\n"
        later(send)
        with handled_once(kill), pytest.raises(FileNotFoundError):
            wait(name, wait=20)


@pytest.mark.parametrize("send", HOW)
def test_open_waits_on_when_a_draft_comes_and_goes_while_a_handler_runs(name, later, send):
    made = [tshare.create(name, 4, draft=True)]
    threads = []

    def finish_and_unlink():
        made[0].finish()
        made[0].unlink()
        threads.append(later(lambda: made.append(tshare.create(name, 4))))

    later(send)
    with handled_once(finish_and_unlink):
        t = tshare.open(name, wait=60)
    threads[0].join()
    assert t.region.id == made[1].region.id


@pytest.mark.parametrize("phase", range(8))
def test_open_reports_the_end_of_a_draft_at_any_time(name, later, phase):
    draft = tshare.create(name, 4, draft=True)
    later(draft.close, seconds=0.1 + phase / 70)
    with pytest.raises(FileNotFoundError):
        tshare.open(name, wait=20)


USER = """
import sys, tshare
t = tshare.open(sys.argv[1])
print("open", flush=True)
sys.stdin.read()
"""


def test_name_stays_while_anybody_has_the_region_open(name):
    t = tshare.create(name, 4, lifetime="users")
    assert t.region.info().lifetime == "users"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", USER, name], **pipes) as user:
        assert user.stdout.readline() == "open\n"
        t.close()
        tshare.open(name).close()
        user.kill()
    with pytest.raises(FileNotFoundError):
        tshare.open(name)


def test_error_of_an_unknown_lifetime_lists_those_there_are(name):
    with pytest.raises(ValueError, match="^lifetime: 'user' is none of 'maker', 'users', 'pers"):
        tshare.create(name, 4, lifetime="user")
    with pytest.raises(TypeError, match="^lifetime: must be a str"):
        tshare.create(name, 4, lifetime=True)


def test_shareable_list_can_not_be_opened_before_it_is_complete(name, monkeypatch):
    seen = []
    pack_into = struct.pack_into

    def look_and_pack(*arguments):
        with pytest.raises(BlockingIOError) as caught:
            tshare.Region.open(name)
        seen.append(caught.type)
        pack_into(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(struct, "pack_into", look_and_pack)
        made = ShareableList(["one", 2], name=name)
    assert seen
    assert list(ShareableList(name=name)) == ["one", 2]
    made.shm.unlink()


def test_shareable_list_that_can_not_be_filled_leaves_no_name(name):
    with pytest.raises(struct.error):
        ShareableList([2**64], name=name)
    ShareableList([1], name=name).shm.unlink()


def test_copy_that_can_not_be_finished_leaves_no_name(name, backend):
    if backend == "kmod":
        pytest.skip("the module's names are not a peer's to write")
    folder = os.environ.get("TSHARE_SHM_DIR", "/dev/shm")
    home = f"{folder}/tshare.{name}"
    draft, place = f"{home}/next", f"{home}/region"
    source = bytearray(64 << 20)
    done = threading.Event()

    def take_the_place():
        while not os.path.exists(draft):
            if done.is_set():
                return
        time.sleep(0.002)  # until the region is made, and is being filled
        with open(place, "x"):
            pass

    def create():
        taker = threading.Thread(target=take_the_place)
        taker.start()
        try:
            tshare.Region.create(name, {"a": source}).unlink()
        finally:
            done.set()
            taker.join()
            done.clear()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(place)
                os.rmdir(home)

    def create_until_refused():
        while True:
            create()

    with pytest.raises(FileExistsError):
        create_until_refused()
    assert not os.path.exists(draft)
    tshare.create(name, 1).unlink()
