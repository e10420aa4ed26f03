# SPDX-License-Identifier: MIT
"""tshare.queue: messages from one process to several."""

import contextlib
import errno
import gc
import multiprocessing
import os
import pickle
import threading
import time
import weakref

import numpy as np
import pytest

import tshare
from support import need, run, spawn
from tshare.queue import Broadcast, Handle

pytestmark = pytest.mark.usefixtures("helper_processes")


def names_of(pid):
    """Return the names that a process has made, by tshare.list() and by the file system."""
    names = [info.name for info in tshare.list()]
    names += os.listdir("/dev/shm") if os.path.isdir("/dev/shm") else []
    return [name for name in names if f"queue-{pid}-" in name]


@pytest.fixture
def create():
    """A function that makes a queue and its readers, which are closed after the test."""
    ends = []

    def create(readers=1, **options):
        options = {"max_chunk_bytes": 1 << 19, "max_chunks": 4, **options}
        ends.append(Broadcast(readers, readers, **options))
        handle = ends[-1].export_handle()
        made = [Broadcast.create_from_handle(handle, rank) for rank in handle.local_reader_ranks]
        ends.extend(made)
        return ends[-1 - readers], *made

    yield create
    for end in ends:
        end.close()
    ends.clear()
    gc.collect()
    assert not names_of(os.getpid())


@pytest.fixture
def queue(create):
    return create()


@pytest.fixture
def new_queue():
    """A queue of two readers, of which none has opened it."""
    with Broadcast(2, 2, max_chunk_bytes=1 << 13, max_chunks=4) as queue:
        yield queue
    assert not names_of(os.getpid())


def pass_on(queue, message):
    writer, reader = queue
    thread = threading.Thread(target=writer.enqueue, args=(message, 60))
    thread.start()
    result = reader.dequeue(60)
    thread.join()
    return result


# Messages


def test_all_readers_get_all_messages_in_order(create):
    writer, *readers = create(3)
    for i in range(20):
        writer.enqueue(i, timeout=60)
        assert [reader.dequeue(60) for reader in readers] == [i] * 3
    for i in range(4):
        writer.enqueue(i, timeout=60)
    assert [[reader.dequeue(60) for _ in range(4)] for reader in readers] == [[0, 1, 2, 3]] * 3


@pytest.mark.parametrize("size", [0, 1, 3000, 4096, 100_001])
def test_messages_of_any_size_arrive(queue, size):
    data = os.urandom(size)
    assert pass_on(queue, data) == data
    array = np.frombuffer(data, np.uint8)
    result = pass_on(queue, {"a": array, "b": [array[: size // 2], 3]})
    assert np.array_equal(result["a"], array)
    assert np.array_equal(result["b"][0], array[: size // 2])
    assert result["b"][1] == 3


@pytest.mark.parametrize("length", [1, 1000])
@pytest.mark.parametrize("kind", ["bool", "int8", "float16", "float64", "complex128", "i8, f4"])
def test_arrays_arrive_as_they_are(queue, kind, length):
    array = np.arange(length * 6).reshape(length, 3, 2).astype("u1").astype(kind)
    result = pass_on(queue, [array, array.T, array[::2, 1], array[:0]])
    for x, y in zip(result, [array, array.T, array[::2, 1], array[:0]], strict=True):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        assert x.flags.aligned
        assert np.array_equal(x, y)


@pytest.mark.parametrize("length", [1, 10_000])
def test_result_is_the_readers_own(create, length):
    writer, *readers = create(2)
    array = np.zeros(length)
    writer.enqueue(array)
    a, b = (reader.dequeue(60) for reader in readers)
    a[:] = 1
    assert not b.any()
    assert not array.any()
    for i in range(10):
        writer.enqueue(i, timeout=60)
        for reader in readers:
            reader.dequeue(60)
    assert a.all()


def test_array_that_is_readonly_stays_so(queue):
    array = np.arange(3)
    array.flags.writeable = False
    assert not pass_on(queue, array).flags.writeable


def test_arrays_go_past_the_pickle(queue, monkeypatch):
    sizes = []
    loads = pickle.loads

    def measure(data, **options):
        sizes.append(len(data))
        return loads(data, **options)

    monkeypatch.setattr(pickle, "loads", measure)
    pass_on(queue, np.zeros(10_000))
    assert sizes[0] < 1000


@pytest.mark.imports_torch
@pytest.mark.parametrize("kind", ["bool", "uint8", "bfloat16", "float32", "complex64"])
def test_tensors_of_pytorch_arrive(queue, kind):
    torch = need("torch")
    tensor = torch.arange(6000).reshape(1000, 3, 2).to(getattr(torch, kind))
    message = [tensor, tensor.mT, tensor[::2, 1], tensor[:0], tensor[0, 0, 0]]
    for x, y in zip(pass_on(queue, message), message, strict=True):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        assert torch.equal(x, y)
        x.zero_()
    assert tensor.any()


@pytest.mark.imports_torch
def test_tensors_of_pytorch_go_past_the_pickle(queue):
    torch = need("torch")
    from tshare.queue import _pickle

    z = torch.zeros(20).to(torch.complex64).conj()
    parts = _pickle([torch.zeros(1000), torch.ones(10), z, torch._neg_view(torch.ones(5))])
    assert len(parts[1]) < 500
    assert [len(part) for part in parts[2:]] == [4000, 40, 160, 20]


@pytest.mark.imports_torch
@pytest.mark.filterwarnings("ignore:torch.quantize")
def test_other_tensors_of_pytorch_arrive(queue):
    torch = need("torch")
    z = torch.arange(4).to(torch.complex64) * 1j
    grad = torch.ones(3, requires_grad=True)
    tagged = torch.ones(3)
    tagged.tag = "x"
    meta = torch.ones(3, device="meta")
    quantised = torch.quantize_per_tensor(torch.ones(3), 0.5, 1, torch.qint8)
    message = [z.conj(), z.conj().imag, grad, torch.eye(3).to_sparse(), tagged, meta, quantised]
    a, b, c, d, e, f, g = pass_on(queue, message)
    assert torch.equal(a, z.conj().resolve_conj())
    assert torch.equal(b, z.conj().imag.resolve_neg())
    assert c.requires_grad
    assert torch.equal(d.to_dense(), torch.eye(3))
    # Not in PyTorch 1.13.
    assert vars(e) == vars(pickle.loads(pickle.dumps(tagged)))
    assert (f.device.type, f.shape) == ("meta", (3,))
    assert torch.equal(g.dequantize(), torch.ones(3))


@pytest.mark.imports_torch
def test_tensors_of_pytorch_arrive_without_numpy():
    need("torch")
    code = """
    import sys, warnings
    warnings.simplefilter("ignore")
    sys.modules["numpy"] = None
    import torch
    from tshare.queue import Broadcast
    with Broadcast(1, 1) as writer:
        with Broadcast.create_from_handle(writer.handle, 0) as reader:
            writer.enqueue(torch.ones(3))
            print(reader.dequeue(60).tolist())
    """
    assert run(code) == "[1.0, 1.0, 1.0]"


def test_tensor_of_tshare_is_refused_and_sent_by_name(queue, name):
    with tshare.create(name, 3) as t:
        with pytest.raises(TypeError, match="by_name"):
            queue[0].enqueue(t)
        t.numpy()[:] = 7
        with pass_on(queue, tshare.by_name(t)) as result:
            assert result.numpy().tolist() == [7, 7, 7]


def test_message_that_cannot_be_pickled_leaves_the_queue_as_it_is(queue):
    writer, reader = queue
    with pytest.raises((TypeError, AttributeError, pickle.PicklingError)):
        writer.enqueue(lambda: None)
    writer.enqueue("next")
    assert reader.dequeue(60) == "next"


def test_message_larger_than_a_slot_is_refused(create):
    writer, reader = create(max_chunk_bytes=1000)
    pickled = len(pickle.dumps(bytes(900), 5))
    whole = bytes(900 + 1000 - 16 - pickled)
    writer.enqueue(whole)
    with pytest.raises(ValueError, match="obj: takes 1001 bytes, more than max_chunk_bytes, 1000"):
        writer.enqueue(whole + b"x")
    with pytest.raises(ValueError, match="obj: takes 8"):
        writer.enqueue(np.zeros(1000))
    writer.enqueue("next")
    assert reader.dequeue(60) == whole
    assert reader.dequeue(60) == "next"


def broken():
    raise LookupError("can't be loaded")


class Broken:
    def __reduce__(self):
        return broken, ()


def test_message_that_cannot_be_loaded_is_passed_over(queue):
    writer, reader = queue
    for i in range(10):
        writer.enqueue([np.arange(10), Broken()], timeout=60)
        with pytest.raises(LookupError, match="can't be loaded"):
            reader.dequeue(60)
        writer.enqueue(i, timeout=60)
        assert reader.dequeue(60) == i


# Waiting


@pytest.mark.parametrize("spin", [0.0, 0.05])
def test_dequeue_waits_for_a_message(create, later, spin):
    writer, reader = create(spin=spin)
    with pytest.raises(TimeoutError):
        reader.dequeue(timeout=0.01)
    with pytest.raises(TimeoutError):
        reader.dequeue(0, indefinite=True)
    for seconds in (0.01, 0.1):
        later(writer.enqueue, "message", seconds=seconds)
        assert reader.dequeue(60) == "message"


def test_a_reader_that_spins_does_not_sleep(create):
    assert pass_on(queue := create(spin=0.2), "first") == "first"
    _, reader = queue
    start = time.thread_time()
    # It may get little of a busy processor. One that sleeps needs 2 ms for all rounds.
    for _ in range(20):
        with pytest.raises(TimeoutError):
            reader.dequeue(0.2)
        if time.thread_time() - start > 0.02:
            return
    raise AssertionError("the reader has slept")


def test_a_reader_spins_no_longer_than_its_timeout(create):
    _, reader = create(spin=1000.0)
    with pytest.raises(TimeoutError):
        reader.dequeue(0.01)


def test_spin_goes_with_the_handle(create):
    _, reader = create(spin=0.5)
    assert reader.handle.spin == 0.5


def test_slow_reader_is_named(create):
    writer, quick, slow = create(2, local_reader_ranks=[3, 7])
    for i in range(4):
        writer.enqueue(i, timeout=60)
        quick.dequeue(60)
    text = rf"^reader 7 \(process {os.getpid()}\) has 4 messages to take$"
    for _ in range(2):
        with pytest.raises(TimeoutError, match=text):
            writer.enqueue("too many", timeout=0.01)
    assert [slow.dequeue(60) for _ in range(4)] == [0, 1, 2, 3]
    writer.enqueue("again", timeout=60)
    assert [reader.dequeue(60) for reader in (quick, slow)] == ["again"] * 2


def test_first_message_waits_for_all_readers(new_queue, later):
    handle = new_queue.export_handle()
    with Broadcast.create_from_handle(handle, 1) as one:
        with pytest.raises(TimeoutError, match="^reader 0 hasn't opened the queue$"):
            new_queue.enqueue("lost", timeout=0.01)
        with pytest.raises(TimeoutError):
            one.dequeue(0)
        ends = []
        opens = later(lambda: ends.append(Broadcast.create_from_handle(handle, 0)))
        new_queue.enqueue("first", timeout=60)
        opens.join()
        assert [end.dequeue(60) for end in (one, *ends)] == ["first"] * 2
        ends[0].close()


def test_reader_that_is_about_to_open_is_awaited(new_queue):
    fields = {"seat": (2, "int64")}
    with tshare.Region.create(f"{new_queue.handle.name}.0", fields, draft=True, lifetime="users"):
        with pytest.raises(TimeoutError, match="^reader 0 hasn't opened the queue$"):
            new_queue.enqueue("lost", timeout=0)


def test_stranger_that_takes_no_messages_is_named(queue):
    writer, reader = queue
    with tshare.Stream.open(writer.handle.name, keep_all=True):
        for i in range(4):
            writer.enqueue(i)
            reader.dequeue(60)
        with pytest.raises(TimeoutError, match="no slot of 4 became free; seat 1 "):
            writer.enqueue("too many", timeout=0)


def test_readers_are_looked_for_ten_times_a_second(queue, monkeypatch):
    writer, _ = queue
    writer.enqueue(0)
    looks, look = [], writer._look
    monkeypatch.setattr(writer, "_look", lambda: looks.append(look()) or looks[-1])
    start = time.monotonic()
    fill(writer, 3)
    with pytest.raises(TimeoutError):
        writer.enqueue("too many", timeout=0.3)
    assert 3 <= len(looks) <= (time.monotonic() - start) * 10 + 3


def test_reader_that_has_gone_is_not_waited_for(create, later):
    writer, _, two = create(2)
    fill(writer)
    later(two.close)
    with pytest.raises(BrokenPipeError, match="reader 1 "):
        writer.enqueue("too many")


def test_reader_that_goes_while_others_are_awaited_is_named(new_queue, later):
    reader = Broadcast.create_from_handle(new_queue.export_handle(), 0)
    with pytest.raises(TimeoutError, match="^reader 1 hasn't opened the queue$"):
        new_queue.enqueue("lost", timeout=0)
    later(reader.close)
    with pytest.raises(BrokenPipeError, match="reader 0 "):
        new_queue.wait_until_ready()


def test_wait_until_ready_ends_with_the_queue(queue, later):
    writer, reader = queue
    later(writer.close)
    reader.wait_until_ready()
    with pytest.raises(EOFError):
        reader.dequeue(60)


def test_all_wait_until_all_are_ready(new_queue):
    handle, done = new_queue.export_handle(), []

    def wait(rank):
        with Broadcast.create_from_handle(handle, rank) as reader:
            reader.wait_until_ready()
            done.append(rank)

    threads = [threading.Thread(target=wait, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
        time.sleep(0.05)
    assert not done
    new_queue.wait_until_ready()
    for thread in threads:
        thread.join()
    assert sorted(done) == [0, 1]


@pytest.mark.parametrize("side", ["reader", "writer"])
def test_shutdown_ends_waits_for_good(queue, later, side):
    writer, reader = queue
    end, wait = (reader, reader.dequeue) if side == "reader" else (writer, fill(writer))
    later(end.shutdown)
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"queue: shutdown\(\) was called"):
            wait()


def fill(writer, count=4):
    for i in range(count):
        writer.enqueue(i)
    return lambda: writer.enqueue("too many")


# Ends and deaths


def test_readers_get_what_is_left_when_the_writer_has_closed(queue):
    writer, reader = queue
    writer.enqueue(1)
    writer.enqueue(2)
    writer.close()
    assert [reader.dequeue(60), reader.dequeue(60)] == [1, 2]
    with pytest.raises(EOFError):
        reader.dequeue(60)


def test_reader_that_closed_is_named(create):
    writer, one, two = create(2)
    writer.enqueue(1)
    two.close()
    text = rf"reader 1 \(process {os.getpid()}\) has closed the queue or ended"
    wait_for_error(writer, text)
    with pytest.raises(BrokenPipeError, match=text):
        writer.enqueue(2)


def wait_for_error(writer, text):
    """Look for a reader that has gone, as the writer does every tenth of a second."""
    until = time.monotonic() + 60
    with pytest.raises(BrokenPipeError, match=text):  # noqa: PT012
        while time.monotonic() < until:
            with contextlib.suppress(TimeoutError):
                writer.enqueue("to nobody", timeout=0.01)


def read(handle, rank, pipe):
    with Broadcast.create_from_handle(handle, rank) as reader:
        reader.wait_until_ready()
        while True:
            try:
                pipe.send(reader.dequeue())
            except EOFError:
                return


def test_readers_are_other_processes(new_queue, context):
    handle = new_queue.export_handle()
    pipes = [context.Pipe(duplex=False) for _ in range(2)]
    processes = [
        context.Process(target=read, args=(handle, rank, pipe[1]))
        for rank, pipe in enumerate(pipes)
    ]
    for process in processes:
        process.start()
    new_queue.wait_until_ready()
    messages = ["text", list(range(1000)), b"x" * 1000]
    for message in messages:
        new_queue.enqueue(message, timeout=300)
    new_queue.close()
    for pipe, process in zip(pipes, processes, strict=True):
        assert [pipe[0].recv() for _ in messages] == messages
        process.join()
        for end in pipe:
            end.close()
        process.close()


def test_killed_reader_is_named(new_queue):
    context = multiprocessing.get_context("forkserver")
    handle = new_queue.export_handle()
    pipes = [context.Pipe(duplex=False) for _ in range(2)]
    processes = [
        context.Process(target=read, args=(handle, rank, pipes[rank][1])) for rank in range(2)
    ]
    for process in processes:
        process.start()
    new_queue.wait_until_ready()
    new_queue.enqueue("both")
    assert [pipe[0].recv() for pipe in pipes] == ["both"] * 2
    processes[1].kill()
    wait_for_error(new_queue, rf"reader 1 \(process {processes[1].pid}\) has closed")
    processes[0].kill()
    processes[0].join()
    new_queue.close()
    # Before tshare.list() removes what the dead have left.
    if os.path.isdir("/dev/shm"):
        assert not [name for name in os.listdir("/dev/shm") if f"queue-{os.getpid()}-" in name]
    for process, pipe in zip(processes, pipes, strict=True):
        process.join()
        process.close()
        for end in pipe:
            end.close()


def test_readers_get_what_a_killed_writer_has_left():
    writer = spawn(
        """
        import sys, time
        from tshare.queue import Broadcast
        queue = Broadcast(1, 1)
        print(queue.handle.name, flush=True)
        queue.enqueue("left")
        print(flush=True)
        time.sleep(1000)
        """
    )
    with Broadcast.create_from_handle(Handle(writer.stdout.readline().strip(), [0]), 0) as reader:
        writer.stdout.readline()
        writer.kill()
        writer.communicate()
        assert reader.dequeue(60) == "left"
        with pytest.raises(OSError, match="the producer has exited") as caught:
            reader.dequeue(60)
        assert caught.value.errno == errno.EOWNERDEAD
    assert not names_of(writer.pid)


def test_reader_does_not_wait_for_a_writer_that_was_killed(later):
    writer = spawn(
        """
        import time
        from tshare.queue import Broadcast
        queue = Broadcast(1, 1)
        print(queue.handle.name, flush=True)
        time.sleep(1000)
        """
    )
    with Broadcast.create_from_handle(Handle(writer.stdout.readline().strip(), [0]), 0) as reader:
        later(writer.kill)
        with pytest.raises(OSError, match="exited") as caught:
            reader.wait_until_ready()
        assert caught.value.errno == errno.EOWNERDEAD
    writer.communicate()


@pytest.mark.skipif(tshare.backend() == "kmod", reason="the module's names are not in a folder")
def test_close_unmaps_the_messages(queue):
    def count():
        with open("/proc/self/maps") as maps:
            return maps.read().count("queue-")

    before = count()
    for end in queue:
        end.close()
    assert count() <= before - 3


def test_names_go_with_the_object():
    queue = Broadcast(1, 1, max_chunk_bytes=100)
    assert names_of(os.getpid())
    gone = weakref.ref(queue)
    del queue
    gc.collect()
    assert gone() is None
    assert not names_of(os.getpid())


# Bad input


@pytest.mark.parametrize(
    ("arguments", "options", "text"),
    [
        ((2, 1), {}, "local_reader_ranks: must be the different numbers of 2 readers, all on this"),
        ((2, 2, [1]), {}, "local_reader_ranks: must be the different numbers of 2 readers"),
        ((2, 2, [1, 1]), {}, "local_reader_ranks: must be the different numbers of 2 readers"),
        ((63, 63), {}, "n_reader: must be between 0 and 62, not 63"),
        ((1, 1), {"max_chunk_bytes": -1}, "max_chunk_bytes: must be between 0 and"),
        ((1, 1), {"max_chunks": 1}, "max_chunks: must be between 2 and 256, not 1"),
        ((1, 1), {"max_chunks": 257}, "max_chunks: must be between 2 and 256, not 257"),
        ((1, 1), {"spin": -1.0}, "spin: must be between 0 and inf, not -1.0"),
    ],
)
def test_arguments_out_of_range_are_named(arguments, options, text):
    with pytest.raises(ValueError, match=text):
        Broadcast(*arguments, **options)


def test_wrong_timeouts_are_named(queue):
    writer, reader = queue
    for wait in (reader.dequeue, lambda timeout: writer.enqueue("message", timeout)):
        with pytest.raises(ValueError, match="^timeout: "):
            wait(-1)
        with pytest.raises(TypeError, match="^timeout: "):
            wait("x")
    assert pass_on(queue, "next") == "next"


def test_reader_of_another_rank_is_refused(new_queue):
    with pytest.raises(ValueError, match=r"rank: must be one of \[0, 1\], not 2"):
        Broadcast.create_from_handle(new_queue.export_handle(), 2)


def test_reader_that_is_there_already_is_refused(queue):
    writer, reader = queue
    with pytest.raises(FileExistsError, match=r"queue-\d+-\w+\.0"):
        Broadcast.create_from_handle(writer.export_handle(), 0)
    writer.enqueue("still works")
    assert reader.dequeue(60) == "still works"


def test_reader_that_has_closed_does_not_come_back(queue):
    writer, reader = queue
    writer.enqueue(1)
    reader.close()
    with pytest.raises(FileExistsError):
        Broadcast.create_from_handle(writer.export_handle(), 0)


def test_handle_of_a_queue_that_has_gone_is_an_error():
    with Broadcast(1, 1, max_chunk_bytes=100) as queue:
        handle = pickle.loads(pickle.dumps(queue.export_handle()))
        assert handle == queue.handle
    with pytest.raises(FileNotFoundError) as caught:
        Broadcast.create_from_handle(handle, 0)
    assert caught.value.__traceback__
    assert not names_of(os.getpid())
    with pytest.raises(ValueError, match="closed"):
        queue.enqueue(1)


def test_sides_are_not_exchanged(queue):
    writer, reader = queue
    with pytest.raises(PermissionError):
        writer.dequeue(0)
    with pytest.raises(PermissionError):
        reader.enqueue(1, timeout=0)


def test_too_little_memory_is_an_error():
    with pytest.raises(OSError, match=f"queue-{os.getpid()}-"):
        Broadcast(1, 1, max_chunk_bytes=1 << 50)


@pytest.mark.skipif(tshare.backend() == "kmod", reason="the module's names are not in a folder")
def test_missing_folder_of_shared_memory_is_an_error():
    code = """
    from tshare.queue import Broadcast
    try:
        Broadcast(1, 1)
    except OSError as error:
        print(error)
    """
    text = run(code, env={**os.environ, "TSHARE_SHM_DIR": "/nowhere"})
    assert "/nowhere: no such directory" in text


def test_queue_imports_neither_numpy_nor_pytorch():
    code = """
    import sys
    from tshare.queue import Broadcast
    with Broadcast(1, 1) as writer:
        with Broadcast.create_from_handle(writer.handle, 0) as reader:
            writer.enqueue({"a": bytearray(100)})
            print(reader.dequeue(60) == {"a": bytearray(100)})
    print("numpy" in sys.modules, "torch" in sys.modules)
    """
    assert run(code).split() == ["True", "False", "False"]
