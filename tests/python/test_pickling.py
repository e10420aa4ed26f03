# SPDX-License-Identifier: MIT
import concurrent.futures
import copy
import errno
import io
import multiprocessing
import os
import pickle
import sys
from multiprocessing import reduction, resource_sharer, util

import pytest

import tshare
from support import address, need, run

pytestmark = pytest.mark.usefixtures("helper_processes")


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


def write_mine(tensors, number):
    tensor = tensors.get(timeout=300)
    with memoryview(tensor) as view:
        view[number] = number + 1
    tensor.close()


def total(tensor):
    with memoryview(tensor) as view:
        result = sum(view)
    tensor.close()
    return result


def numbers(count):
    return tshare.asarray(bytes(range(count)))


def patient_numbers(count):
    """Have the worker wait at its end for a test that is slow to fetch the result."""
    tshare._pickling._LINGER = 60
    return numbers(count)


def leave(tensors):
    tensors.put(numbers(3))


def send_back(tensors, answers):
    answers.put([bytes(tensor) for tensor in tensors])


def join(process):
    process.join(300)
    assert process.exitcode == 0
    process.close()


def close(queue):
    queue.close()
    queue.join_thread()


def test_tensor_is_sent_as_an_argument(context):
    t = tshare.create(None, 4)
    process = context.Process(target=write, args=(t, 7))
    process.start()
    join(process)
    assert bytes(t)[0] == 7


def test_tensor_is_sent_through_a_queue(context):
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


def test_tensor_of_a_region_is_sent_with_its_name(context):
    region = tshare.Region.create(None, {"a": (1, "uint8"), "b": (2, "uint8")})
    process = context.Process(target=write, args=(region["b"], 3))
    process.start()
    join(process)
    assert bytes(region["a"]) == b"\0"
    assert bytes(region["b"]) == b"\3\0"


def test_region_is_sent_whole(context):
    region = tshare.Region.create(None, {"a": (1, "uint8"), "b": (1, "uint8")})
    process = context.Process(target=fill, args=(region,))
    process.start()
    join(process)
    assert bytes(region["a"]) == b"\1"
    assert bytes(region["b"]) == b"\2"


def test_tensor_is_sent_with_its_own_region_whatever_a_peer_wrote(context):
    tensors = [numbers(2), numbers(3)]
    if tensors[0].region.backend != "shm":
        pytest.skip("the module's ids are not a peer's to write")
    # struct shm_header.id
    forged = tensors[0].region.id.to_bytes(8, sys.byteorder)
    os.pwrite(tensors[1].region.fileno(), forged, 16)
    with tshare.Region.from_fd(tensors[1].region.fileno()) as region:
        assert region.id == tensors[0].region.id
        tensors[1] = region[""]
        answers = context.Queue()
        process = context.Process(target=send_back, args=(tensors, answers))
        process.start()
        assert answers.get(timeout=300) == [b"\0\1", b"\0\1\2"]
        join(process)
        close(answers)


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


def test_view_is_sent_with_its_shape_and_strides(context):
    t = tshare.create(None, (4, 6), "uint8")
    view = tshare.asarray(memoryview(t)[::-2])
    process = context.Process(target=write_row, args=(view,))
    process.start()
    join(process)
    assert memoryview(t).tolist()[1:] == [[1] * 6, [0] * 6, [2] * 6]


def write_row(tensor):
    import numpy as np

    np.asarray(tensor)[0] = 2
    np.asarray(tensor)[1] = 1


def test_readonly_view_arrives_readonly(context):
    t = tshare.create(None, 4)
    view = tshare.asarray(memoryview(t).toreadonly())
    answers = context.Queue()
    process = context.Process(target=look, args=(view, answers))
    process.start()
    assert answers.get(timeout=300) == ((4,), "uint8", True)
    join(process)
    close(answers)


def test_tensor_is_sent_after_its_name_is_removed(context, name):
    t = tshare.create(name, 4)
    t.unlink()
    process = context.Process(target=write, args=(t, 7))
    process.start()
    join(process)
    assert bytes(t)[0] == 7


def test_draft_is_sent_by_its_descriptor(context, name):
    t = tshare.create(name, 4, draft=True)
    process = context.Process(target=write, args=(t, 7))
    process.start()
    join(process)
    t.finish()
    assert bytes(tshare.open(name))[0] == 7


def test_executor_takes_and_returns_tensors(context):
    t = tshare.asarray(bytes([1, 2, 3]))
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        assert pool.submit(total, t).result(timeout=300) == 6
        assert list(pool.map(total, [t, t])) == [6, 6]
        made = pool.submit(numbers, 4).result(timeout=300)
        assert bytes(made) == bytes(range(4))


def test_sixty_four_processes_share_one_tensor():
    context = multiprocessing.get_context("fork")
    t = tshare.create(None, 64)
    tensors = context.Queue()
    processes = [context.Process(target=write_mine, args=(tensors, i)) for i in range(64)]
    for process in processes:
        process.start()
        tensors.put(t)
    for process in processes:
        join(process)
    assert bytes(t) == bytes(range(1, 65))
    close(tensors)
    resource_sharer.stop()


def test_receiver_gets_no_copy():
    t = tshare.create(None, 4)
    received = pickle.loads(reduction.ForkingPickler.dumps(t))
    assert address(received) != address(t)
    memoryview(received)[3] = 9
    assert bytes(t)[3] == 9
    resource_sharer.stop()


THINGS = {
    "tensor": lambda name: tshare.create(name, 4),
    "region": lambda name: tshare.Region.create(name, {"a": (4, "uint8")}),
    "view": lambda name: tshare.asarray(memoryview(tshare.create(name, 8))[::-2]),
}


def sole(thing):
    return thing if isinstance(thing, tshare.Tensor) else thing["a"]


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy])
@pytest.mark.parametrize("kind", list(THINGS))
def test_copy_of_shared_memory_is_refused(way, kind, name):
    for thing in (THINGS[kind](name), THINGS[kind](None)):
        with pytest.raises(TypeError, match="asarray\\(t, copy=True\\)"):
            way(thing)


@pytest.mark.parametrize("kind", list(THINGS))
def test_pickle_needs_a_name(kind, name):
    unnamed = THINGS[kind](None)
    with pytest.raises(TypeError, match="without a name .*create it with a name"):
        pickle.dumps(unnamed)
    named = THINGS[kind](name)
    (named if kind == "region" else named.region).unlink()
    with pytest.raises(TypeError, match="without a name"):
        pickle.dumps(named)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("kind", list(THINGS))
def test_pickle_of_a_named_tensor_holds_the_name(kind, protocol, name):
    thing = THINGS[kind](name)
    sent, came = sole(thing), sole(pickle.loads(pickle.dumps(thing, protocol)))
    assert (came.shape, came.strides, came.readonly) == (sent.shape, sent.strides, False)
    assert came.region.id == sent.region.id
    memoryview(came)[1] = 7
    assert memoryview(sent)[1] == 7


class DirectPickler(pickle.Pickler):
    """A pickler that calls __reduce__() of what is tshare's, as some libraries do."""

    def reducer_override(self, obj):
        ours = isinstance(obj, (tshare.Tensor, tshare.Region))
        return obj.__reduce__() if ours else NotImplemented


@pytest.mark.parametrize("kind", ["tensor", "region"])
def test_reduce_is_what_picklers_use(kind, name):
    thing = THINGS[kind](name)
    file = io.BytesIO()
    DirectPickler(file).dump(thing)
    came = pickle.loads(file.getvalue())
    assert type(came) is type(thing)
    assert sole(came).region.id == sole(thing).region.id


def test_pickle_of_readonly_memory_arrives_readonly(name):
    keep = tshare.create(name, 4)
    for t in (tshare.open(name, readonly=True), tshare.asarray(memoryview(keep).toreadonly())):
        came = pickle.loads(pickle.dumps(t))
        assert came.readonly
        assert came.region.readonly


def test_pickle_of_tensors_opens_their_region_once(name):
    region = tshare.Region.create(name, {str(i): (1, "uint8") for i in range(20)})
    before = len(os.listdir("/proc/self/fd"))
    came = pickle.loads(pickle.dumps(dict(region.items())))
    assert len(os.listdir("/proc/self/fd")) <= before + 1
    memoryview(came["7"])[0] = 5
    assert bytes(region["7"]) == b"\5"


@pytest.mark.parametrize("kind", list(THINGS))
def test_pickle_doesn_t_land_on_another_region_of_the_name(kind, name):
    data = pickle.dumps(THINGS[kind](name))
    tshare.unlink(name)
    with pytest.raises(FileNotFoundError, match="no longer exists"):
        pickle.loads(data)
    other = THINGS[kind](name)
    with pytest.raises(OSError, match="is not the one that was pickled") as error:
        pickle.loads(data)
    assert error.value.errno == errno.ESTALE
    assert sole(pickle.loads(pickle.dumps(other))).shape == (4,)


@pytest.mark.parametrize("part", [lambda t: t, lambda t: t.region])
def test_pickle_of_a_draft_is_loaded_once_it_is_finished(part, name):
    t = tshare.create(name, 4, draft=True)
    data = pickle.dumps(part(t))
    with pytest.raises(BlockingIOError, match="is a draft"):
        pickle.loads(data)
    t.finish()
    assert pickle.loads(data).fileno() != t.fileno()


def test_pickle_of_a_draft_doesn_t_land_on_the_region_that_it_will_replace(name):
    old = tshare.create(name, 4)
    new = tshare.create(name, 4, draft=True, exist_ok=True)
    data = pickle.dumps(new)
    with pytest.raises(OSError, match="not the one that was pickled") as caught:
        pickle.loads(data)
    assert caught.value.errno == errno.ESTALE
    new.finish(replace=True)
    assert pickle.loads(data).region.id == new.region.id != old.region.id


def test_pickle_of_another_machine_is_refused(name, monkeypatch):
    keep = tshare.create(name, 4)
    data = pickle.dumps(keep)
    monkeypatch.setattr(tshare._pickling, "_boot", lambda: "another")
    with pytest.raises(OSError, match="is not the one that was pickled"):
        pickle.loads(data)


def test_pickle_reaches_unrelated_processes(name):
    t = tshare.create(name, 4)
    code = """
        import pickle, sys
        memoryview(pickle.loads(bytes.fromhex(sys.argv[1])))[2] = 3
    """
    run(code, pickle.dumps(t).hex())
    assert bytes(t) == b"\0\0\3\0"


def test_cloudpickle_takes_named_tensors(name):
    cloudpickle = need("cloudpickle")
    t = tshare.create(name, 4)

    def write():
        memoryview(t)[0] = 6

    pickle.loads(cloudpickle.dumps(write))()
    assert bytes(t) == b"\6\0\0\0"


@pytest.mark.slow_in_guests
def test_joblib_s_workers_share_named_tensors(name):
    need("joblib")
    t = tshare.create(name, 4)
    code = """
        import sys, joblib, tshare

        def write(t, index):
            memoryview(t)[index] = index + 1

        t = tshare.open(sys.argv[1])
        joblib.Parallel(n_jobs=2)(joblib.delayed(write)(t, i) for i in range(4))
    """
    run(code, name)
    assert bytes(t) == b"\1\2\3\4"


def test_sender_that_has_ended_leaves_regions_of_others_by_name(name):
    context = multiprocessing.get_context("fork")
    t = tshare.create(name, 4)
    tensors = context.Queue()
    process = context.Process(target=tensors.put, args=([t, t.region],))
    process.start()
    join(process)
    came, region = tensors.get(timeout=300)
    memoryview(came)[1] = 1
    memoryview(region[""])[2] = 2
    assert bytes(t) == b"\0\1\2\0"
    close(tensors)


@pytest.mark.slow_in_guests
@pytest.mark.parametrize("library", ["multiprocessing", "concurrent"])
def test_worker_that_ends_with_its_task_leaves_the_result(library):
    context = multiprocessing.get_context("forkserver")
    if library == "multiprocessing":
        with context.Pool(2, maxtasksperchild=1) as pool:
            results = pool.map_async(patient_numbers, range(1, 9), chunksize=1).get(timeout=300)
    else:
        options = {"max_tasks_per_child": 1} if sys.version_info >= (3, 11) else {}
        executor = concurrent.futures.ProcessPoolExecutor(2, context, **options)
        with executor:
            results = list(executor.map(patient_numbers, range(1, 9), timeout=300))
    assert [bytes(t) for t in results] == [bytes(range(i)) for i in range(1, 9)]
    resource_sharer.stop()


def test_process_that_ends_waits_for_the_receiver(context):
    tensors = context.Queue()
    process = context.Process(target=leave, args=(tensors,))
    process.start()
    assert bytes(tensors.get(timeout=300)) == b"\0\1\2"
    join(process)
    close(tensors)


def test_process_that_ends_leaves_no_socket():
    context = multiprocessing.get_context("fork")
    directory = util.get_temp_dir()
    tensors = context.Queue()
    before = os.listdir(directory)
    process = context.Process(target=leave, args=(tensors,))
    process.start()
    tensors.get(timeout=300)
    join(process)
    assert os.listdir(directory) == before
    close(tensors)


def test_pickle_that_outlives_its_sender_is_an_os_error():
    context = multiprocessing.get_context("fork")
    tensors = context.Queue()
    process = context.Process(target=leave, args=(tensors,))
    process.start()
    join(process)
    with pytest.raises(OSError, match="it has ended, is on another machine"):
        tensors.get(timeout=300)
    close(tensors)


def test_pickle_that_was_used_is_an_os_error():
    data = reduction.ForkingPickler.dumps(tshare.create(None, 4))
    pickle.loads(data)
    with pytest.raises(OSError, match="sent it to one process already"):
        pickle.loads(data)
    resource_sharer.stop()


def test_pickle_of_another_authkey_names_the_authkey():
    data = reduction.ForkingPickler.dumps(tshare.create(None, 4))
    code = """
        import pickle, sys, tshare
        try:
            pickle.loads(bytes.fromhex(sys.argv[1]))
        except PermissionError as error:
            print(error)
    """
    assert "authkey differs" in run(code, data.hex())
    resource_sharer.stop()


def test_damaged_pickle_can_t_reach_beyond_the_region():
    t = tshare.create(None, 4)
    name, dtype, shape, strides, offset, readonly = t._spec
    rebuild, region = tshare._tshare.rebuild, t.region
    assert rebuild(region, t._spec).shape == (4,)
    size = region.size
    for spec in (
        (name, dtype, (size + 1,), strides, offset, readonly),
        (name, dtype, shape, (size,), offset, readonly),
        (name, dtype, shape, (-1,), 2, readonly),
        (name, dtype, shape, strides, 1 << 63, readonly),
        (name, dtype, shape, (), offset, readonly),
        (name, dtype, (-1,), strides, offset, readonly),
        (name, (1, 0, 1), shape, strides, offset, readonly),
    ):
        with pytest.raises(ValueError, match=": "):
            rebuild(region, spec)
    with open(os.devnull) as other, pytest.raises(ValueError, match="fd"):
        tshare.Region.from_fd(other)
