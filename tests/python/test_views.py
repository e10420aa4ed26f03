# SPDX-License-Identifier: MIT
"""NumPy arrays in shared memory, as arguments of multiprocessing."""

import multiprocessing
import pickle
import threading
from concurrent.futures import ProcessPoolExecutor

import pytest

import tshare
from support import need, run
from tshare.shared_memory import SharedMemory

np = need("numpy")
pytestmark = pytest.mark.usefixtures("helper_processes")


def add(array, value):
    array += value


def add_from(queue, answers):
    array = queue.get(timeout=300)
    array += 1
    answers.put(array)
    # The sender must still run when the answer is received.
    queue.get(timeout=300)


def add_and_return(array):
    array += 1
    return array[1:]


def lies_in_region(array):
    """Whether an array is a view of shared memory here."""
    address, _ = array.__array_interface__["data"]
    return tshare._tshare.bytes_at(address, 1) is not None


def join(process):
    process.join(300)
    assert process.exitcode == 0
    process.close()


def test_array_as_an_argument_is_no_copy(context):
    array = np.asarray(tshare.create(None, 4, "int32"))
    process = context.Process(target=add, args=(array[1:], 7))
    process.start()
    join(process)
    assert array.tolist() == [0, 7, 7, 7]


def test_array_through_queues_is_no_copy(context):
    array = np.asarray(tshare.create(None, 3, "int32"))
    queue, answers = context.Queue(), context.Queue()
    process = context.Process(target=add_from, args=(queue, answers))
    process.start()
    queue.put(array)
    answer = answers.get(timeout=300)
    answer += 1
    assert array.tolist() == [2, 2, 2]
    queue.put(None)
    join(process)
    for each in (queue, answers):
        each.close()
        each.join_thread()


def test_array_through_a_pool_is_no_copy(context):
    array = np.asarray(tshare.create(None, 3, "int32"))
    with context.Pool(1) as pool:
        answer = pool.apply(add_and_return, (array,))
        answer += 1
        pool.close()
        pool.join()
    assert array.tolist() == [1, 2, 2]


def test_array_through_an_executor_is_no_copy(context):
    array = np.asarray(tshare.create(None, 3, "int32"))
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        answer = pool.submit(add_and_return, array).result(timeout=300)
        answer += 1
    assert array.tolist() == [1, 2, 2]


def views():
    """Arrays of every kind in one region of bytes, by their kind."""
    array = np.asarray(tshare.create(None, (4, 6), "int32"))
    array[:] = np.arange(24).reshape(4, 6)
    record = np.dtype([("a", "<i2"), ("b", ">f4"), ("c", "S2")])
    return {
        "whole": array,
        "slice": array[1:3, 2:],
        "steps": array[::2, ::3],
        "transposed": array.T,
        "reversed": array[::-1, ::-2],
        "scalar": array[2, 3:4].reshape(()),
        "broadcast": np.broadcast_to(array[0], (3, 6)),
        "diagonal": np.einsum("ii->i", array[:, :4]),
        "overlapping": np.lib.stride_tricks.as_strided(array, (3, 8), (4, 4)),
        "fortran": array.T.reshape(6, 4, order="A"),
        "other byte order": array.view(">i4"),
        "dates": array.view("M8[s]"),
        "differences": array.view("m8[ns]"),
        "text": array.view("S8"),
        "unicode": array.view("U2"),
        "records": array.view("u1")[:, :24].view(record),
        "a field of records": array.view("u1")[:, :24].view(record)["b"],
        "void": array.view("V6"),
        "matrix": np.asmatrix(array),
        "unaligned": array.reshape(-1).view("u1")[1:9].view("i8"),
        "long double": array.reshape(-1)[:4].view(np.longdouble),
    }


@pytest.mark.parametrize("kind", list(views()))
def test_view_arrives_as_what_it_was(travel, kind):
    sent = views()[kind]
    came = travel(sent)
    assert type(came) is type(sent)
    assert (came.dtype, came.shape, came.strides) == (sent.dtype, sent.shape, sent.strides)
    assert came.flags.writeable == sent.flags.writeable
    assert came.tobytes() == sent.tobytes()
    base, mine = np.asarray(came), np.asarray(sent)
    if sent.flags.writeable:
        base[...] = np.zeros((), base.dtype)
        assert mine.tobytes() == base.tobytes()


def test_array_of_ml_dtypes_arrives_as_what_it_was(travel):
    ml_dtypes = need("ml_dtypes")
    sent = np.asarray(tshare.create(None, (2, 3), "bfloat16"))[:, 1:]
    came = travel(sent)
    came[:] = 2
    assert came.dtype == ml_dtypes.bfloat16
    assert sent.tolist() == [[2, 2], [2, 2]]


def test_mask_is_sent_with_its_array(travel):
    array = np.asarray(tshare.create(None, 3, "float32"))
    sent = np.ma.array(array, mask=[0, 1, 0], fill_value=5, copy=False)
    came = travel(sent)
    came[2] = 8
    assert came.mask.tolist() == [False, True, False]
    assert came.fill_value == 5
    assert array.tolist() == [0, 0, 8]


def test_readonly_array_arrives_where_it_can_t_be_written(travel):
    tensor = tshare.create(None, 4)
    array = np.asarray(tensor)
    array.flags.writeable = False
    came = travel(array)
    assert not came.flags.writeable
    assert tshare.asarray(came).region.readonly


def test_array_over_shared_memory_s_buffer_is_no_copy(travel, name):
    shm = SharedMemory(name, create=True, size=16)
    array = np.ndarray((4,), "int32", buffer=shm.buf)
    came = travel(array)
    came[3] = 9
    assert array.tolist() == [0, 0, 0, 9]
    shm.unlink()


def test_array_inside_of_other_things_is_no_copy(travel):
    array = np.asarray(tshare.create(None, 2))
    travel({"deep": [(array,)]})["deep"][0][0][1] = 3
    assert array.tolist() == [0, 3]


def test_arrays_of_a_message_take_one_descriptor_and_tensors_another(travel, monkeypatch):
    fds = []
    pass_on = tshare._pickling._duplicate
    monkeypatch.setattr(tshare._pickling, "_duplicate", lambda fd: fds.append(fd) or pass_on(fd))
    region = tshare.Region.create(None, {str(i): (8, "uint8") for i in range(50)})
    arrays = [np.asarray(tensor) for tensor in region.values()]
    came, tensors = travel([arrays, list(region.values())])
    assert len(fds) == 2
    came[7][0] = 1
    memoryview(tensors[8])[0] = 2
    assert (arrays[7][0], arrays[8][0]) == (1, 2)


def test_stand_in_for_an_absent_library_does_no_harm():
    # In a process in which tshare has not looked the types up before.
    code = """
        import sys, types
        import tshare
        from multiprocessing import reduction

        class Absent(types.ModuleType):
            def __getattr__(self, name):
                raise ImportError(f"{self.__name__} is not installed")

        sys.modules["torch"] = Absent("torch")
        sys.modules["numpy"] = Absent("numpy")
        reduction.ForkingPickler.dumps(types.SimpleNamespace())
        print(tshare.asarray(b"123").shape)
    """
    assert run(code) == "(3,)"


def test_array_outside_a_region_is_pickled_as_before(travel):
    keep = np.asarray(tshare.create(None, 4))
    assert lies_in_region(travel(keep))
    for array in (np.arange(5), np.array(["x", None], object), np.empty((0, 3)), keep.copy()):
        came = travel(array)
        assert not lies_in_region(came)
        assert came.tolist() == array.tolist()
        assert pickle.loads(pickle.dumps(array)).tolist() == array.tolist()


def test_other_pickles_of_an_array_are_copies():
    array = np.asarray(tshare.create(None, 4))
    came = pickle.loads(pickle.dumps(array))
    came += 1
    assert array.tolist() == [0] * 4


def test_numpy_may_be_imported_at_any_time():
    code = """
        import pickle, sys
        from multiprocessing import reduction
        {}
        t = tshare.create(None, 4)
        a = np.asarray(t)
        pickle.loads(reduction.ForkingPickler.dumps(a))[1] = 7
        print(bytes(t)[1])
    """
    assert run(code.format("import numpy as np; import tshare")) == "7"
    assert run(code.format("import tshare; import numpy as np")) == "7"


def test_threads_may_send_at_the_same_time(travel):
    array = np.asarray(tshare.create(None, 8))
    came = []
    threads = [threading.Thread(target=lambda: came.append(travel(array))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, each in enumerate(came):
        each[number] = 1
    assert array.tolist() == [1] * 8


def test_sender_that_has_ended_leaves_a_view_of_a_named_region(name):
    context = multiprocessing.get_context("fork")
    array = np.asarray(tshare.create(name, 4))
    queue = context.Queue()
    process = context.Process(target=queue.put, args=(array[1:],))
    process.start()
    join(process)
    came = queue.get(timeout=300)
    came[:] = 1
    assert array.tolist() == [0, 1, 1, 1]
    queue.close()
    queue.join_thread()
