# SPDX-License-Identifier: MIT
"""Pools of tensors under keys."""

import contextlib
import errno
import gc
import math
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping

import numpy as np
import pytest

import tshare
from support import readonly_torch, run, spawn

PAGE = 4096


@pytest.fixture
def pool(name):
    with tshare.Pool.create(name, 64 * PAGE, 16) as pool:
        yield pool


def put(pool, key, number, count=100, timeout=0):
    return pool.put(key, {"x": np.full(count, number, "u1")}, timeout)


def test_puts_and_gets(pool):
    pixels = np.arange(12, dtype="f4").reshape(3, 4)
    entry = pool.put("image", {"pixels": pixels, "label": np.int64(3), "t": pixels.T})
    assert list(entry) == ["pixels", "label", "t"]
    assert len(entry) == 3
    with tshare.Pool.open(pool.name) as other:
        got = other["image"]
        assert isinstance(got, Mapping)
        assert "image" in other
        assert "others" not in other
        np.testing.assert_array_equal(got["pixels"].numpy(), pixels)
        np.testing.assert_array_equal(got["t"].numpy(), pixels.T)
        assert got["label"].item() == 3
        assert got.get("pixels").shape == (3, 4)
        assert got.get("none") is None
        assert got.get(5, "default") == "default"
        assert "pixels" in got
        assert 5 not in got
        assert dict(got.items()).keys() == {"pixels", "label", "t"}
        with pytest.raises(KeyError, match="none"):
            got["none"]
        with pytest.raises(KeyError, match="5"):
            got[5]


def test_what_is_got_is_read_only(pool):
    put(pool, "k", 1)
    array = pool["k"]["x"].numpy()
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 2


def test_missing_keys(pool):
    assert pool.get("k") is None
    assert pool.get("k", 5) == 5
    with pytest.raises(KeyError, match="k"):
        pool["k"]


def test_str_and_bytes_are_one_key(pool):
    put(pool, "ä\0", 1)
    assert pool["ä\0".encode()]["x"][0].item() == 1
    put(pool, b"\xff" * 120, 2)
    assert pool[b"\xff" * 120]["x"][0].item() == 2


@pytest.mark.parametrize(
    ("key", "error"), [("", ValueError), ("x" * 121, ValueError), (3, TypeError), (None, TypeError)]
)
def test_wrong_keys(pool, key, error):
    for call in (pool.get, pool.__getitem__, pool.__contains__):
        with pytest.raises(error, match="key: "):
            call(key)
    with pytest.raises(error, match="key: "):
        pool.put(key, {"x": np.zeros(1)})
    with pytest.raises(error, match="key: "):
        pool.make(key, {"x": (1, "u1")})


def test_put_returns_what_is_there(pool):
    first = put(pool, "k", 1)
    second = put(pool, "k", 2)
    assert second["x"][0].item() == 1
    assert pool.info().entries == 1
    del first, second


# .torch() warns of what is read-only.
@pytest.mark.slow_in_guests
@pytest.mark.filterwarnings("ignore:the tensor is read-only")
def test_put_of_other_libraries(pool):
    torch = readonly_torch()
    ones = torch.ones(2, 3, dtype=torch.bfloat16)
    entry = pool.put("k", {"a": ones, "nested": {"b": ones[0]}})
    assert entry["a"].dtype == "bfloat16"
    assert torch.equal(entry["a"].torch().clone(), ones)
    assert [tensor.shape for tensor in entry.values()] == [(2, 3), (3,)]


def test_put_takes_arrays(pool):
    with pytest.raises(TypeError, match=r"arrays: 'x' must be an array, not a tuple"):
        pool.put("k", {"x": ((3,), "u1")})
    with pytest.raises((TypeError, ValueError, BufferError), match="arrays: 'x': "):
        pool.put("k", {"x": "text"})
    with pytest.raises(ValueError, match="at least 1|not 1 to"):
        pool.put("k", {})
    assert pool.info().entries == 0


def test_make_fills_in_place(pool):
    with pool.make("k", {"x": ((2, 3), "i4"), "y": np.zeros(5)}) as entry:
        entry["x"].numpy()[:] = 7
        assert repr(entry) == "<tshare.Entry ('x', 'y') unfinished>"
        assert pool.get("k") is None
    assert entry.closed
    assert (pool["k"]["x"].numpy() == 7).all()
    assert pool["k"]["y"].shape == (5,)
    with pytest.raises(FileExistsError, match="key: the pool has an entry"):
        pool.make("k", {"x": (1, "u1")})


def test_a_failed_block_makes_nothing(pool):
    with pytest.raises(RuntimeError), pool.make("k", {"x": (1, "u1")}):
        raise RuntimeError
    assert pool.get("k") is None
    assert pool.info().used_slots == 0


def test_finish(pool):
    entry = pool.make("k", {"x": (1, "u1")})
    entry.finish()
    assert pool["k"]
    with pytest.raises(PermissionError, match="finished already"):
        entry.finish()
    with pytest.raises(PermissionError, match="finished already"):
        pool["k"].finish()
    with entry:
        pass
    with pytest.raises(ValueError, match="entry is closed"):
        entry.finish()
    with pytest.raises(ValueError, match="entry is closed"):
        entry["x"]


def test_arrays_hold_their_entry(pool):
    entry = put(pool, "k", 1)
    array = entry["x"].numpy()
    view = np.asarray(entry["x"])[3:7]
    del entry
    gc.collect()
    for number in range(40):
        put(pool, str(number), number)
    assert pool.info().held_slots == 1
    assert (array == 1).all()
    del array
    again = tshare.asarray(view)
    del view
    gc.collect()
    assert pool.info().held_slots == 1
    del again
    gc.collect()
    assert pool.info().held_slots == 0


def test_full(pool):
    held = [put(pool, str(i), i) for i in range(16)]
    with pytest.raises(TimeoutError, match=rf"slots side by side.*pid {os.getpid()}, '.*16 entr"):
        put(pool, "more", 1)
    start = time.monotonic()
    with pytest.raises(TimeoutError):
        put(pool, "more", 1, timeout=0.05)
    assert time.monotonic() - start >= 0.05
    timer = threading.Timer(0.05, held.clear)
    timer.start()
    put(pool, "more", 1, timeout=60)
    timer.join()
    with pytest.raises(OSError, match="arrays: need 1000000 bytes") as info:
        put(pool, "large", 1, 1_000_000)
    assert info.value.errno == errno.EFBIG


def test_a_second_maker_waits(pool):
    entry = pool.make("k", {"x": (100, "u1")})
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(put(pool, "k", 2, timeout=60)))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    time.sleep(0.05)
    assert not results
    entry["x"].numpy()[:] = 1
    entry.finish()
    for thread in threads:
        thread.join()
    assert [int(result["x"][0]) for result in results] == [1, 1, 1]


def test_readonly(pool):
    put(pool, "k", 1)
    with tshare.Pool.open(pool.name, readonly=True) as reader:
        assert reader["k"]["x"][5].item() == 1
        with pytest.raises(PermissionError, match="read-only"):
            put(reader, "l", 1)
        with pytest.raises(PermissionError, match="read-only"):
            reader.make("l", {"x": (1, "u1")})
        assert reader.region.readonly


def test_close_and_cancel(pool):
    other = tshare.Pool.open(pool.name)
    entry = put(other, "k", 1)
    assert repr(other) == f"<tshare.Pool '{pool.name}'>"
    other.close()
    other.close()
    assert other.closed
    assert repr(other).endswith(" closed>")
    assert entry["x"][0].item() == 1
    for call in (
        other.info,
        other.unlink,
        other.cancel,
        lambda: other.get("k"),
        lambda: other.region,
    ):
        with pytest.raises(ValueError, match="pool is closed"):
            call()
    other = tshare.Pool.open(pool.name)
    other.cancel()
    unfinished = pool.make("l", {"x": (1, "u1")})
    with pytest.raises(OSError, match="cancelled") as info:
        put(other, "l", 1, timeout=60)
    assert info.value.errno == errno.ECANCELED
    del unfinished


def test_delete(pool):
    held = put(pool, "k", 1)
    with pytest.raises(TypeError, match="delete it first"):
        pool["k"] = {"x": np.zeros(3)}
    del pool["k"]
    assert "k" not in pool
    with pytest.raises(KeyError, match="k"):
        del pool["k"]
    with pytest.raises(TypeError, match="key: "):
        del pool[3]
    assert put(pool, "k", 2)["x"][0].item() == 2
    assert held["x"][0].item() == 1
    put(pool, "l", 3)
    pool.clear()
    assert "k" not in pool
    assert "l" not in pool
    with (
        tshare.Pool.open(pool.name, readonly=True) as reader,
        pytest.raises(PermissionError, match="read-only"),
    ):
        reader.clear()


def test_equal_processes_create_it_once(name):
    code = """
    import sys, tshare
    pool = tshare.Pool.create(sys.argv[1], 1 << 20, lifetime="users", exist_ok=True)
    entry = pool.put("k", {"x": [int(sys.argv[2])]})
    print(entry["x"][0].item(), flush=True)
    sys.stdin.readline()
    """
    processes = [spawn(code, name, number) for number in range(4)]
    answers = {process.stdout.readline() for process in processes}
    assert len(answers) == 1
    for process in processes:
        assert not process.communicate("\n")[0]
        assert process.returncode == 0


def test_exist_ok_opens_what_is_there(pool):
    put(pool, "k", 1)
    with tshare.Pool.create(pool.name, 1, exist_ok=True) as other:
        assert other["k"]["x"][0].item() == 1
    # It isn't the one that created it.
    assert tshare.Pool.open(pool.name)
    with pytest.raises(FileExistsError, match="open it, or unlink it"):
        tshare.Pool.create(pool.name, 1)


def test_names_end_with_close_though_arrays_live(name):
    pool = tshare.Pool.create(name, PAGE)
    array = put(pool, "k", 1)["x"].numpy()
    pool.close()
    with pytest.raises(FileNotFoundError):
        tshare.Pool.open(name)
    assert (array == 1).all()


@pytest.mark.slow_in_guests
def test_torch_says_what_a_write_does(pool):
    readonly_torch()
    put(pool, "k", 1)
    code = """
    import sys, warnings, tshare
    pool = tshare.Pool.open(sys.argv[1], readonly=len(sys.argv) > 2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pool["k"]["x"].torch()
    print(caught[0].message)
    """
    assert "changes it for all processes" in run(code, pool.name)
    assert "SIGSEGV" in run(code, pool.name, "readonly")


def test_close_ends_a_wait(pool):
    other = tshare.Pool.open(pool.name)
    unfinished = pool.make("l", {"x": (1, "u1")})
    timer = threading.Timer(0.05, other.close)
    timer.start()
    with pytest.raises(ValueError, match="closed during the wait"):
        put(other, "l", 1, timeout=60)
    timer.join()
    del unfinished


def test_names(name):

    with pytest.raises(FileNotFoundError, match=name):
        tshare.Pool.open(name)
    with pytest.raises(TimeoutError):
        tshare.Pool.open(name, wait=0.01)
    pool = tshare.Pool.create(name, PAGE, lifetime="users")
    with pytest.raises(FileExistsError, match=name):
        tshare.Pool.create(name, PAGE)
    other = tshare.Pool.open(name, wait=1)
    pool.close()
    pool = tshare.Pool.open(name)
    pool.unlink()
    with pytest.raises(FileNotFoundError):
        tshare.Pool.open(name)
    with pytest.raises(FileNotFoundError):
        other.unlink()
    with tshare.Stream.create(name, {"x": (1, "u1")}), pytest.raises(OSError, match="is no pool"):
        tshare.Pool.open(name)
    assert not [info for info in tshare.list() if info.name.startswith(name)]


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"size": 0}, ValueError, "size: "),
        ({"size": -1}, ValueError, "size: "),
        ({"size": "1"}, TypeError, "size: "),
        ({"size": PAGE, "slots": 2}, ValueError, "size: "),
        ({"size": PAGE, "slots": 0}, ValueError, "slots: "),
        ({"size": PAGE, "slots": 1 << 21}, ValueError, "slots: "),
        ({"size": PAGE, "lifetime": "long"}, ValueError, "lifetime: "),
        ({"size": PAGE, "mode": 0o777}, ValueError, "mode: "),
    ],
)
def test_wrong_arguments(name, arguments, error, text):
    with pytest.raises(error, match=text):
        tshare.Pool.create(name, **arguments)


def test_a_pickled_pool_is_opened_where_it_arrives(pool):
    put(pool, "k", 1)
    with pickle.loads(pickle.dumps(pool)) as other:
        assert other.info().seat != pool.info().seat
        assert other["k"]["x"][0].item() == 1
        assert not other.region.readonly
    reader = tshare.Pool.open(pool.name, readonly=True)
    with pickle.loads(pickle.dumps(reader)) as other:
        assert other.region.readonly
    reader.close()
    with pytest.raises(ValueError, match="pool is closed"):
        pickle.dumps(reader)


def test_an_entry_can_not_be_pickled(pool):
    entry = put(pool, "k", 1)
    with pytest.raises(TypeError, match="can't be pickled"):
        pickle.dumps(entry)
    with pytest.raises(TypeError):
        iter(pool)
    with pytest.raises(TypeError):
        tshare.Pool()
    with pytest.raises(TypeError):
        tshare.Entry()


def test_multiprocessing_sends_a_copy(pool):
    entry = put(pool, "k", 1)
    context = multiprocessing.get_context("fork")
    with context.Pool(1) as workers:
        assert workers.apply(np.sum, (entry["x"].numpy(),)) == 100


def test_a_child_opens_the_pool_itself(pool):
    entry = put(pool, "k", 1)
    pid = os.fork()
    if not pid:
        status = 1
        with contextlib.suppress(BaseException):
            try:
                pool.get("k")
            except OSError as error:
                status = 2 if error.errno != errno.EOPNOTSUPP else 0
            with tshare.Pool.open(pool.name) as own:
                status |= own["k"]["x"][0].item() != 1
        os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0
    assert pool.info().held_slots == 1
    del entry


HOLD = """
import sys, time, tshare
pool = tshare.Pool.open(sys.argv[1])
held = pool["k"], pool.make("l", {"x": (100, "u1")})
print("ready", flush=True)
time.sleep(1000)
"""


def test_a_killed_process_holds_nothing(pool):
    put(pool, "k", 1)
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, pool.name], stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout.readline() == "ready\n"
        assert pool.get("l") is None
        with pytest.raises(TimeoutError, match=f"pid {process.pid}"):
            put(pool, "all", 5, 64 * PAGE - 500)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert (put(pool, "l", 3, timeout=60)["x"].numpy() == 3).all()
    gc.collect()
    assert put(pool, "all", 5, 64 * PAGE - 500, timeout=60)
    assert pool.get("k") is None


def test_a_signal_interrupts_a_wait(pool):
    def handler(*_):
        raise KeyboardInterrupt

    unfinished = pool.make("k", {"x": (1, "u1")})
    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            put(pool, "k", 1, timeout=math.inf)
    finally:
        signal.signal(signal.SIGALRM, before)
    del unfinished


def test_memory_of_entries_is_no_region_s(pool):
    entry = put(pool, "k", 1)
    tensor = entry["x"]
    assert tensor.region.name == pool.name
    # A tensor that is sent by name would outlive its entry.
    copy = pickle.loads(pickle.dumps(tensor.numpy()))
    assert (copy == 1).all()
