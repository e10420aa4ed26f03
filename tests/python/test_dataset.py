# SPDX-License-Identifier: MIT
"""Data sets of Python objects in shared memory."""

import collections
import copy
import json
import multiprocessing
import os
import pickle
import resource
from collections.abc import Sequence
from multiprocessing import resource_sharer

import numpy as np
import pytest

import tshare
from support import need, run, spawn

OBJECTS = [
    "text",
    {"file": "a.jpeg", "boxes": [[1, 2.5], [3, 4]], "label": None},
    [],
    b"\0" * 100,
    (1, 2**100),
    float("inf"),
    collections.Counter("aab"),
]

PAGE = resource.getpagesize()

pytestmark = pytest.mark.usefixtures("helper_processes")


def test_is_a_sequence_of_equal_objects():
    data = tshare.Dataset(OBJECTS)
    assert isinstance(data, Sequence)
    assert len(data) == len(OBJECTS)
    assert list(data) == OBJECTS
    assert list(reversed(data)) == OBJECTS[::-1]
    assert [data[i] for i in range(-len(OBJECTS), 0)] == OBJECTS
    assert data[np.int64(1)] == OBJECTS[1]
    assert data[1:6:2] == OBJECTS[1:6:2]
    assert [] in data
    assert data[1] is not data[1]


@pytest.mark.parametrize("index", [len(OBJECTS), -len(OBJECTS) - 1])
def test_index_out_of_range_is_an_error(index):
    with pytest.raises(IndexError):
        tshare.Dataset(OBJECTS)[index]


def test_index_must_be_an_integer():
    with pytest.raises(TypeError):
        tshare.Dataset(OBJECTS)["file"]


@pytest.mark.parametrize("kind", [iter, tuple, lambda x: (y for y in x), tshare.Dataset])
def test_takes_any_iterable(kind):
    assert list(tshare.Dataset(kind(OBJECTS))) == OBJECTS


def test_may_be_empty():
    data = tshare.Dataset([])
    assert (len(data), list(data)) == (0, [])


def test_is_opened_by_its_name(name):
    data = tshare.Dataset(OBJECTS, name)
    code = """
        import sys, tshare
        data = tshare.Dataset.open(sys.argv[1])
        print(len(data), data[0], data[-1])
    """
    assert run(code, name) == f"{len(data)} text Counter({{'a': 2, 'b': 1}})"
    assert repr(data) == f"<tshare.Dataset of {len(OBJECTS)} objects, name={name!r}>"


def test_open_waits_for_it(name, later):
    made = []
    later(lambda: made.append(tshare.Dataset([1], name)))
    assert tshare.Dataset.open(name, wait=60)[0] == 1
    with pytest.raises(FileNotFoundError):
        tshare.Dataset.open(f"{name}-none")


def test_memory_is_read_only(name):
    for data in (tshare.Dataset([1], name), tshare.Dataset.open(name)):
        assert data.region.readonly
        with pytest.raises(TypeError, match="read-only"):
            memoryview(data.region)[0] = 1


def test_name_stays_without_the_object(name):
    tshare.Dataset([1], name)
    assert tshare.Dataset.open(name)[0] == 1


def test_lifetime_and_mode_and_replacement(name):
    data = tshare.Dataset([1], name, mode=0o644, lifetime="users")
    info = data.region.info()
    assert (info.mode, info.lifetime) == (0o644, "users")
    with pytest.raises(FileExistsError):
        tshare.Dataset([2], name)
    data = tshare.Dataset([2], name, exist_ok=True)
    assert tshare.Dataset.open(name)[0] == 2
    data.region.unlink()
    with pytest.raises(FileNotFoundError):
        tshare.Dataset.open(name)


def first(data):
    assert data[0] == OBJECTS[0]
    return data[len(data) - 1]


@pytest.mark.parametrize("named", [False, True])
def test_goes_to_other_processes(context, name, named):
    data = tshare.Dataset(OBJECTS, name if named else None)
    with context.Pool(1) as pool:
        assert pool.apply(first, (data,)) == OBJECTS[-1]
        pool.close()
        pool.join()


def test_named_one_is_pickled_by_its_name(name):
    data = pickle.loads(pickle.dumps(tshare.Dataset(OBJECTS, name)))
    assert list(data) == OBJECTS
    assert data.region.readonly
    data.region.unlink()
    with pytest.raises(TypeError, match="only by multiprocessing"):
        pickle.dumps(data)


@pytest.mark.slow_in_guests
def test_joblib_s_workers_get_a_named_one(name):
    need("joblib")
    code = """
        import sys, joblib, tshare

        data = tshare.Dataset(["a", "b"], sys.argv[1])
        calls = [joblib.delayed(lambda data, i: data[i])(data, i) for i in range(2)]
        print(joblib.Parallel(n_jobs=2)(calls))
    """
    assert run(code, name) == "['a', 'b']"


@pytest.mark.parametrize("start", ["fork", pytest.param("spawn", marks=pytest.mark.imports_torch)])
def test_data_loader_reads_it(start):
    need("torch")
    torch_data = need("torch.utils.data")
    data = tshare.Dataset({"number": i, "name": str(i)} for i in range(10))
    half, _ = torch_data.random_split(data, [5, 5])
    loader = torch_data.DataLoader(half, 2, num_workers=2, multiprocessing_context=start)
    numbers = [int(number) for batch in loader for number in batch["number"]]
    assert sorted(numbers) == sorted(half.indices)
    del loader
    resource_sharer.stop()


def private():
    """Bytes that no other process has mapped."""
    with open("/proc/self/smaps_rollup") as file:
        return sum(int(line.split()[1]) << 10 for line in file if line.startswith("Private"))


def read(data):
    for i in range(len(data)):
        data[i]


def read_and_measure(data, results):
    before = private()
    read(data)
    results.put(private() - before)


def growth(data):
    """Bytes that a forked worker gets of its own by reading all data, which the parent has read."""
    read(data)
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    process = context.Process(target=read_and_measure, args=(data, results))
    process.start()
    result = results.get()
    process.join()
    return result


def test_worker_that_reads_all_gets_no_copy():
    objects = [f"sample {i}" for i in range(200000)]
    data = tshare.Dataset(objects)
    assert data.region.size > 4 << 20
    # A list's objects have the reference counts in them.
    assert growth(objects) > 4 << 20
    assert growth(data) < 2 << 20


def test_memory_is_one_copy():
    data = tshare.Dataset(str(i) for i in range(100000))
    pickles = sum(len(pickle.dumps(str(i), -1)) for i in range(100000))
    assert data.region.size < 1.01 * (pickles + 8 * 100000) + 16 * PAGE


@pytest.mark.parametrize("objects", [5, None, {"a": 1}])
def test_what_is_no_list_is_refused(objects):
    with pytest.raises(TypeError, match="^objects: must be a list or another iterable, not <class"):
        tshare.Dataset(objects)


def test_object_that_cannot_be_pickled_is_named(name):
    with pytest.raises(TypeError, match=r"^objects\[1\]: can't be pickled \(.*lambda"):
        tshare.Dataset([1, lambda: 1], name)
    with pytest.raises(FileNotFoundError):
        tshare.open(name)


def test_iterable_that_raises_leaves_nothing(name):
    def objects():
        yield 1
        raise EOFError("a broken file")

    with pytest.raises(EOFError, match="^a broken file"):
        tshare.Dataset(objects(), name)
    with pytest.raises(FileNotFoundError):
        tshare.open(name)


class Unreadable:
    def __reduce__(self):
        return [].pop, ()


def test_object_that_raises_does_not_end_the_list():
    objects = iter(tshare.Dataset([1, Unreadable(), 3]))
    assert next(objects) == 1
    with pytest.raises(IndexError):
        next(objects)


@pytest.mark.parametrize("named", [False, True])
def test_copies_are_the_data_set_itself(name, named):
    data = tshare.Dataset(OBJECTS, name if named else None)
    assert copy.copy(data) is copy.deepcopy(data) is data


def test_others_may_not_write(name):
    with pytest.raises(ValueError, match="^mode: others may not write"):
        tshare.Dataset([1], name, mode=0o620)


def test_region_that_others_may_write_is_not_opened(name):
    kept = tshare.Region.create(name, {"starts": np.arange(2), "pickles": b"."}, mode=0o602)
    with pytest.raises(PermissionError, match="pickles could run anything"):
        tshare.Dataset.open(name)
    kept.close()


def test_data_set_of_another_user_is_not_opened(name):
    if os.geteuid():
        pytest.skip("only root becomes another user")
    process = spawn(
        """
        import os, pickle, sys, tshare
        # Opens the session while it may.
        tshare.limits()
        os.setuid(64001)
        data = tshare.Dataset([1], sys.argv[1], mode=0o644)
        print(pickle.dumps(data).hex(), flush=True)
        sys.stdin.readline()
        """,
        name,
    )
    # As if the other user had taken the name of a data set that was pickled and is gone.
    pickled = bytes.fromhex(process.stdout.readline())
    for call, argument in ((tshare.Dataset.open, name), (pickle.loads, pickled)):
        with pytest.raises(PermissionError, match=r"^name: .*, or may be written, by another user"):
            call(argument)
    process.communicate("\n", timeout=300)


def test_data_set_of_root_is_opened(name):
    if os.geteuid():
        pytest.skip("only root becomes another user")
    data = tshare.Dataset([1], name, mode=0o644)
    code = """
        import os, sys, tshare
        tshare.limits()
        os.setuid(64001)
        print(tshare.Dataset.open(sys.argv[1])[0])
    """
    assert run(code, name) == "1"
    del data


def test_another_region_is_no_data_set(name):
    kept = tshare.create(name, 3)
    with pytest.raises(ValueError, match="^name: .* is a region, but no data set"):
        tshare.Dataset.open(name)
    kept.close()


def test_lack_of_shared_memory_is_an_error(tmp_path):
    environment = {**os.environ, "TSHARE_BACKEND": "shm", "TSHARE_SHM_DIR": "/nonexistent"}
    code = """
        import tshare
        try:
            tshare.Dataset([1], "name")
        except OSError as error:
            print(error.strerror)
    """
    assert run(code, env=environment) == "/nonexistent: no such directory"


def test_does_not_import_pytorch():
    code = """
        import json, sys, tshare
        data = tshare.Dataset(["a"])
        print(json.dumps([data[0], "torch" in sys.modules, "numpy" in sys.modules]))
    """
    assert json.loads(run(code)) == ["a", False, False]


def test_name_goes_with_a_maker_that_was_killed(name):
    process = spawn(
        """
        import sys, tshare
        data = tshare.Dataset(["a"], sys.argv[1])
        print("ready", flush=True)
        sys.stdin.read()
        """,
        name,
    )
    process.stdout.readline()
    data = tshare.Dataset.open(name)
    process.kill()
    process.communicate()
    with pytest.raises(FileNotFoundError):
        tshare.Dataset.open(name)
    assert data[0] == "a"
