# SPDX-License-Identifier: MIT
import concurrent.futures
import contextlib
import copy
import errno
import multiprocessing
import os
import pickle
import shelve
import sys
import threading
import time
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


# Ways to write a file, or to make a message of bytes; each is given a folder.
def write_pickle(thing, folder):
    with open(folder / "file", "wb") as file:
        pickle.dump(thing, file)


def write_shelf(thing, folder):
    with shelve.open(folder / "file") as shelf:
        shelf["t"] = thing


def write_joblib(thing, folder):
    need("joblib").dump({"t": thing}, folder / "file")


def write_torch(thing, folder):
    need("torch").save({"t": thing}, folder / "file")


def hash_by_joblib(thing, folder):
    need("joblib").hash(thing)


def call_by_joblib_s_memory(thing, folder):
    need("joblib").Memory(folder, verbose=0).cache(sole)(thing)


def write_cloudpickle(thing, folder):
    need("cloudpickle").dumps(lambda: thing)


WAYS = [write_pickle, write_shelf, write_joblib, write_torch, write_cloudpickle]
WAYS += [hash_by_joblib, call_by_joblib_s_memory]


@pytest.mark.slow_in_guests
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", list(THINGS))
def test_pickle_that_may_be_kept_is_refused_with_the_remedies(kind, way, name, tmp_path):
    for thing in (THINGS[kind](name), THINGS[kind](None)):
        with pytest.raises(TypeError, match="only by multiprocessing") as caught:
            way(thing, tmp_path)
        for remedy in ("t.numpy()", "t.torch()", "tshare.by_name(t)"):
            assert remedy in str(caught.value)


@pytest.mark.parametrize("kind", list(THINGS))
def test_by_name_needs_a_name(kind, name):
    with pytest.raises(ValueError, match="^thing: its region has no name"):
        tshare.by_name(THINGS[kind](None))
    named = THINGS[kind](name)
    given = tshare.by_name(named)
    tshare.unlink(name)
    with pytest.raises(ValueError, match="no name any more"):
        pickle.dumps(given)
    with pytest.raises(ValueError, match="^thing: its region has no name"):
        tshare.by_name(named)


@pytest.mark.parametrize("thing", [None, "frames", memoryview(b"")])
def test_by_name_takes_tensors_and_regions_alone(thing):
    with pytest.raises(TypeError, match=r"^thing: must be a tshare\.Tensor or Region, not <class"):
        tshare.by_name(thing)


def test_by_name_shows_what_it_was_given(name):
    assert repr(tshare.by_name(t := tshare.create(name, 4))) == f"tshare.by_name({t!r})"


def by_name(thing, protocol=None):
    return pickle.dumps(tshare.by_name(thing), protocol)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("kind", list(THINGS))
def test_by_name_arrives_as_the_same_memory(kind, protocol, name):
    thing = THINGS[kind](name)
    came = pickle.loads(by_name(thing, protocol))
    assert type(came) is type(thing)
    sent, came = sole(thing), sole(came)
    assert (came.shape, came.strides, came.readonly) == (sent.shape, sent.strides, False)
    assert came.region.id == sent.region.id
    memoryview(came)[1] = 7
    assert memoryview(sent)[1] == 7


def test_multiprocessing_passes_what_by_name_returns_by_the_name(name, travel):
    t = tshare.create(name, 4)
    assert travel(tshare.by_name(t)).region.id == t.region.id
    data = reduction.ForkingPickler.dumps(tshare.by_name(t))
    t.unlink()
    with pytest.raises(FileNotFoundError, match="no longer exists"):
        pickle.loads(data)


def test_what_has_arrived_by_name_is_refused_again(name):
    keep = tshare.create(name, 4)
    came = pickle.loads(by_name(keep))
    with pytest.raises(TypeError, match="only by multiprocessing"):
        pickle.dumps(came)
    assert pickle.loads(by_name(came)).region.id == keep.region.id


def test_by_name_of_readonly_memory_arrives_readonly(name):
    keep = tshare.create(name, 4)
    for t in (tshare.open(name, readonly=True), tshare.asarray(memoryview(keep).toreadonly())):
        came = pickle.loads(by_name(t))
        assert came.readonly
        assert came.region.readonly


def test_by_name_of_tensors_opens_their_region_once(name):
    region = tshare.Region.create(name, {str(i): (1, "uint8") for i in range(20)})
    before = len(os.listdir("/proc/self/fd"))
    sent = {key: tshare.by_name(tensor) for key, tensor in region.items()}
    came = pickle.loads(pickle.dumps(sent))
    assert len(os.listdir("/proc/self/fd")) <= before + 1
    memoryview(came["7"])[0] = 5
    assert bytes(region["7"]) == b"\5"


@pytest.mark.parametrize("kind", list(THINGS))
def test_by_name_doesn_t_land_on_another_region_of_the_name(kind, name):
    data = by_name(THINGS[kind](name))
    tshare.unlink(name)
    with pytest.raises(FileNotFoundError, match="no longer exists"):
        pickle.loads(data)
    other = THINGS[kind](name)
    with pytest.raises(OSError, match="is not the one that was pickled") as error:
        pickle.loads(data)
    assert error.value.errno == errno.ESTALE
    assert sole(pickle.loads(by_name(other))).shape == (4,)


@pytest.mark.parametrize("part", [lambda t: t, lambda t: t.region])
def test_by_name_of_a_draft_is_loaded_once_it_is_finished(part, name):
    t = tshare.create(name, 4, draft=True)
    data = by_name(part(t))
    with pytest.raises(BlockingIOError, match="is a draft"):
        pickle.loads(data)
    t.finish()
    assert pickle.loads(data).fileno() != t.fileno()


def test_by_name_of_a_draft_doesn_t_land_on_the_region_that_it_will_replace(name):
    old = tshare.create(name, 4)
    new = tshare.create(name, 4, draft=True, exist_ok=True)
    data = by_name(new)
    with pytest.raises(OSError, match="not the one that was pickled") as caught:
        pickle.loads(data)
    assert caught.value.errno == errno.ESTALE
    new.finish(replace=True)
    assert pickle.loads(data).region.id == new.region.id != old.region.id


def test_by_name_on_another_machine_is_refused(name, monkeypatch):
    keep = tshare.create(name, 4)
    data = by_name(keep)
    monkeypatch.setattr(tshare._pickling, "_boot", lambda: "another")
    with pytest.raises(OSError, match="is not the one that was pickled"):
        pickle.loads(data)


def test_pickle_reaches_unrelated_processes(name):
    t = tshare.create(name, 4)
    code = """
        import pickle, sys
        memoryview(pickle.loads(bytes.fromhex(sys.argv[1])))[2] = 3
    """
    run(code, by_name(t).hex())
    assert bytes(t) == b"\0\0\3\0"


def test_cloudpickle_takes_names(name):
    cloudpickle = need("cloudpickle")
    t = tshare.create(name, 4)

    def write(t):
        memoryview(t)[0] = 6

    came, argument = pickle.loads(cloudpickle.dumps((write, tshare.by_name(t))))
    came(argument)
    assert bytes(t) == b"\6\0\0\0"


@pytest.mark.slow_in_guests
def test_joblib_s_workers_share_named_tensors(name):
    need("joblib")
    t = tshare.create(name, 4)
    code = """
        import sys, joblib, tshare

        def write(t, index):
            memoryview(t)[index] = index + 1

        t = tshare.by_name(tshare.open(sys.argv[1]))
        joblib.Parallel(n_jobs=2)(joblib.delayed(write)(t, i) for i in range(4))
    """
    run(code, name)
    assert bytes(t) == b"\1\2\3\4"


@pytest.mark.slow_in_guests
def test_joblib_s_workers_are_given_no_copy_without_a_word(name):
    need("joblib")
    keep = tshare.create(name, 4)
    code = """
        import sys, joblib, tshare

        t = tshare.open(sys.argv[1])
        try:
            joblib.Parallel(n_jobs=2)(joblib.delayed(len)(t) for i in range(4))
        except Exception as error:
            print("by_name" in f"{error} {error.__cause__}")
    """
    # With Python 3.13 the workers print tracebacks, too.
    assert run(code, name).split()[0] == "True"
    keep.close()


def test_joblib_s_memory_goes_by_the_contents(name, tmp_path):
    joblib = need("joblib")
    t = tshare.asarray(bytes([1, 2, 3]), name)
    calls = []

    def total(array):
        calls.append(array)
        return int(array.sum())

    cached = joblib.Memory(tmp_path, verbose=0).cache(total)
    assert cached(t.numpy()) == cached(t.numpy()) == 6
    assert len(calls) == 1
    t.numpy()[0] = 7
    assert cached(t.numpy()) == 12


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


def travel(thing):
    return pickle.loads(reduction.ForkingPickler.dumps(thing))


def count_descriptors(region):
    own, count = os.fstat(region.fileno()), 0
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            count += os.path.samestat(own, os.fstat(int(fd)))
    return count


def await_descriptors(region, count):
    """Wait until the sender's thread has closed its own."""
    until = time.monotonic() + 60
    while count_descriptors(region) != count:
        assert time.monotonic() < until, count_descriptors(region)
        time.sleep(0.01)


@pytest.mark.parametrize(
    "library", ["numpy", pytest.param("torch", marks=pytest.mark.slow_in_guests)]
)
def test_arrays_of_one_region_take_one_descriptor(library):
    need(library)
    t = numbers(20)
    arrived = [travel(getattr(t[i : i + 1], library)()) for i in range(20)]
    await_descriptors(t.region, 2)
    assert b"".join(map(bytes, map(memoryview, map(tshare.asarray, arrived)))) == bytes(t)
    with memoryview(t) as memory:
        memory[3] = 99
    assert int(arrived[3][0]) == 99
    arrived.clear()
    await_descriptors(t.region, 1)
    resource_sharer.stop()


def test_messages_that_nobody_fetches_take_one_descriptor_together():
    t = numbers(4)
    messages = [reduction.ForkingPickler.dumps(t) for _ in range(10)]
    assert count_descriptors(t.region) == 2
    assert [bytes(pickle.loads(message)) for message in messages] == [bytes(t)] * 10
    await_descriptors(t.region, 1)
    resource_sharer.stop()


def test_messages_about_one_region_leave_each_its_access(name):
    need("numpy")
    t = tshare.create(name, 4)
    views = [tshare.open(name, readonly=True).numpy(), t.numpy()] * 2
    messages = [reduction.ForkingPickler.dumps(view) for view in views]
    arrived = [pickle.loads(message) for message in messages]
    assert [array.flags.writeable for array in arrived] == [False, True, False, True]
    resource_sharer.stop()


def test_readonly_view_of_a_writable_array_arrives_readonly():
    array = numbers(4).numpy()
    readonly = array[:]
    readonly.flags.writeable = False
    arrived = [travel(view) for view in (array, readonly, array)]
    assert [view.flags.writeable for view in arrived] == [True, False, True]
    resource_sharer.stop()


def test_region_that_comes_twice_is_two_publishers():
    region = tshare.Region.create(None, size=4096)
    first, second = travel(region), travel(region)
    first.announce()
    assert second.has_publishers()
    first.close()
    with pytest.raises(OSError, match="publishers") as caught:
        second.has_publishers()
    assert caught.value.errno == errno.EOWNERDEAD
    resource_sharer.stop()


def test_array_is_not_taken_for_what_lies_there_since():
    first = numbers(4).numpy()
    for number in range(5):
        assert bytes(travel(first)) == bytes(range(4))
        # It is mapped where the one that has arrived was.
        other = tshare.asarray(bytes([number] * 4)).numpy()
        assert bytes(travel(other)) == bytes([number] * 4)
        assert bytes(travel(first)) == bytes(range(4))
    resource_sharer.stop()


@pytest.mark.slow_in_guests
def test_array_is_not_taken_for_what_another_thread_makes_there():
    ended = threading.Event()

    def make():
        while not ended.is_set():
            tshare.create(None, 1 << 20)

    array = tshare.create(None, 1 << 20).numpy()
    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        made = threads.submit(make)
        try:
            for _ in range(500):
                travel(array)
        finally:
            ended.set()
        made.result()
    resource_sharer.stop()


@pytest.mark.parametrize("held", ["import", "directory"])
def test_process_forked_during_the_first_message_of_a_thread_can_send(held):
    """The thread is held up where Python has locks that a fork copies."""
    code = """
        import multiprocessing, os, pickle, sys, tempfile, threading
        from multiprocessing import reduction
        import tshare

        begun, forked = threading.Event(), threading.Event()
        parent, main = os.getpid(), threading.get_ident()

        def hold(event, *_):
            if event == "exec" and os.getpid() == parent and threading.get_ident() != main:
                begun.set()
                forked.wait()

        def travel():
            data = reduction.ForkingPickler.dumps(tshare.asarray(b"1"))
            assert bytes(pickle.loads(data)) == b"1"

        def first():
            try:
                travel()
            finally:
                begun.set()

        if sys.argv[1] == "import":
            sys.addaudithook(hold)
        else:
            default = tempfile._get_default_tempdir
            tempfile._get_default_tempdir = lambda: hold("exec") or default()
        threading.Thread(target=first).start()
        begun.wait()
        process = multiprocessing.get_context("fork").Process(target=travel)
        process.start()
        forked.set()
        process.join(300)
        print(process.exitcode)
        process.kill()
    """
    assert run(code, held) == "0"


def test_child_waits_for_receivers_of_its_own_messages_alone():
    """Another thread of the parent may be sending at the fork, and its frames stay in the child."""
    code = """
        import multiprocessing
        import tshare
        from tshare import _pickling

        def end():
            assert not _pickling._unfetched

        tensor = tshare.create(None, 1)
        fd = tensor.region.fileno()
        sending = _pickling._unfetched[_pickling._file(fd)] = _pickling._Duplicate(fd)
        process = multiprocessing.get_context("fork").Process(target=end)
        process.start()
        process.join()
        print(process.exitcode)
    """
    assert run(code) == "0"


def test_few_of_the_regions_that_have_arrived_are_remembered(monkeypatch):
    monkeypatch.setattr(tshare._pickling, "_ADDRESSES", 2)
    monkeypatch.setattr(tshare._pickling, "_addresses", {})
    sent = [numbers(count).numpy() for count in (1, 2, 3)] * 2
    assert [bytes(travel(array)) for array in sent] == [bytes(array) for array in sent]
    assert len(tshare._pickling._addresses) == 2
    resource_sharer.stop()


@pytest.mark.parametrize("left", [0, 1, 2])
def test_receiver_without_descriptors_left_names_the_limit(left):
    """Whichever step fails: the connection to the sender takes two descriptors."""
    code = """
        import multiprocessing, os, resource, sys
        import tshare

        def send(pipe):
            pipe.send(tshare.create(None, 1))
            pipe.recv()

        parent, child = multiprocessing.Pipe()
        context = multiprocessing.get_context("fork")
        context.Process(target=send, args=(child,)).start()
        parent.poll(None)
        limit = max(map(int, os.listdir("/proc/self/fd"))) + 20
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
        taken = []
        try:
            while True:
                taken.append(os.dup(0))
        except OSError:
            for fd in taken[:int(sys.argv[1])]:
                os.close(fd)
        try:
            parent.recv()
        except RuntimeError as error:
            print(f"allows, {limit}, are in use" in str(error), "ulimit -n" in str(error))
        parent.send(None)
    """
    assert run(code, left) == "True True"


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
