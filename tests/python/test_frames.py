# SPDX-License-Identifier: MIT
"""Streams of frames: one producer, consumers that keep frames in place, and their deaths."""

import asyncio
import contextlib
import copy
import ctypes
import errno
import gc
import math
import multiprocessing
import os
import pickle
import select
import signal
import sys
import threading
import time
import weakref

import numpy as np
import pytest

import tshare
from support import VersionedDeleter, exported, imported, need, readonly_torch, spawn

FIELDS = {"image": ((4, 6), "float32"), "count": ((), "int64")}


@pytest.fixture
def streams(name):
    """Opens and creates streams of one name, and closes them after the test."""
    with contextlib.ExitStack() as stack:

        class Streams:
            def create(self, fields=FIELDS, **options):
                return stack.enter_context(tshare.Stream.create(name, fields, **options))

            def open(self, **options):
                return stack.enter_context(tshare.Stream.open(name, **options))

        yield Streams()


@pytest.fixture
def producer(streams):
    return streams.create(slots=4, keep_all=True)


@pytest.fixture
def consumer(streams, producer):
    return streams.open()


def publish(producer, count=1, timeout=0):
    """Publish frames that are filled with their numbers."""
    for _ in range(count):
        with producer.loan(timeout) as frame:
            frame["image"][...] = frame["count"][...] = producer.newest + 1


def is_whole(frame):
    values = {*frame["image"].numpy().flat, frame["count"].item()}
    return values == {frame.number}


def free_slots(producer):
    """The number of slots that can be claimed now."""
    frames = []
    with contextlib.suppress(TimeoutError):
        while True:
            frames.append(producer.loan(0))
    return len(frames)


# Producer and consumer


def test_frames_come_in_order_and_whole(producer, consumer):
    for number in range(1, 20):
        publish(producer)
        with consumer.take(0) as frame:
            assert (frame.number, frame.lost) == (number, 0)
            assert is_whole(frame)
    with pytest.raises(TimeoutError):
        consumer.take(0.01)


def test_attributes_of_a_stream(name, producer, consumer, streams):
    observer = streams.open(observe=True)
    roles = [(s.role, s.seat) for s in (producer, consumer, observer)]
    assert roles == [("producer", None), ("consumer", 0), ("observer", None)]
    publish(producer, 2)
    for stream in (producer, consumer, observer):
        assert (stream.name, stream.fields) == (name, ("image", "count"))
        assert (stream.slots, stream.history, stream.newest) == (4, 1, 2)
        assert not stream.ended
        assert not stream.closed
        assert stream.region.name == name
        assert stream.region["image"].shape == (4, 4, 6)
    assert consumer.region.readonly
    assert not producer.region.readonly
    assert repr(consumer) == f"<tshare.Stream {name!r} consumer fields=('image', 'count')>"


def test_frame_is_a_mapping_of_its_fields(producer, consumer):
    publish(producer)
    frame = consumer.take(0)
    assert list(frame) == list(frame.keys()) == ["image", "count"]
    assert len(frame) == 2
    assert [t.shape for t in frame.values()] == [(4, 6), ()]
    assert dict(frame.items())["image"].name == "image"
    assert "image" in frame
    assert "x" not in frame
    assert 3 not in frame
    assert frame.get("x") is None
    assert frame.get("x", 5) == 5
    assert frame.get("image").ndim == 2
    for key in ("x", 1, ("image",)):
        with pytest.raises(KeyError) as caught:
            frame[key]
        assert caught.value.args == (key,)
    assert frame["image"].readonly
    with pytest.raises(TypeError):
        frame["image"] = 1
    assert tshare.Region.create(None, frame)["count"].item() == 1


def test_slow_consumer_misses_frames_and_is_told_how_many(producer, consumer):
    publish(producer, 10)
    frame = consumer.take(0)
    assert (frame.number, frame.lost) == (7, 6)
    newest = consumer.latest(0)
    assert (newest.number, newest.lost) == (10, 2)


def test_consumer_that_keeps_all_misses_none(name, producer, streams):
    consumer = streams.open(keep_all=True)
    publish(producer, 4)
    with pytest.raises(TimeoutError, match=rf"seat 0 \(pid {os.getpid()}, .* frames 1, 2, 3, 4"):
        producer.loan(0.01)
    for number in range(1, 5):
        with consumer.take(0) as frame:
            assert frame.number == number
            assert is_whole(frame)
    publish(producer, 4)
    with pytest.raises(ValueError, match="keeps all"):
        consumer.latest(0)


def test_keeping_all_needs_the_producers_consent(streams):
    streams.create()
    with pytest.raises(PermissionError, match="keep_all: the producer .* doesn't allow it"):
        streams.open(keep_all=True)


def test_history_is_for_those_who_come_late(streams):
    producer = streams.create(slots=5, history=3)
    publish(producer, 9)
    late = streams.open(history=10)
    assert [late.take(0).number for _ in range(2)] == [5, 6]
    with pytest.raises(TimeoutError):
        streams.open().take(0)


def test_latest_of_a_new_consumer_is_one_of_its_time(producer, streams):
    publish(producer, 3)
    with pytest.raises(TimeoutError):
        streams.open().latest(0)
    assert streams.open(history=1).latest(0).number == 3


def test_frames_can_be_got_by_their_numbers(producer, consumer):
    publish(producer, 6)
    assert consumer[6].number == 6
    assert is_whole(consumer[5])
    for number, text in ((0, "isn't there"), (1, "any more"), (7, "yet")):
        with pytest.raises(tshare.FrameLost, match=text) as caught:
            consumer[number]
        assert isinstance(caught.value, LookupError)
        assert not isinstance(caught.value, IndexError)
    with pytest.raises(ValueError, match="number: must be between 0"):
        consumer[-1]
    with pytest.raises(TypeError, match="number: must be an int"):
        consumer["image"]


def test_a_frame_tells_what_the_producer_says_of_it(producer, consumer):
    frame = producer.loan(0)
    assert (frame.number, frame.captured, frame.published) == (0, None, 0)
    before = time.monotonic_ns()
    frame.captured, frame.sequence, frame.flags = before, 2**64 - 1, 7
    frame.publish()
    taken = consumer.take(0)
    for seen in (frame, taken):
        assert (seen.captured, seen.sequence, seen.flags) == (before, 2**64 - 1, 7)
        assert before <= seen.published <= time.monotonic_ns()
        assert seen.number == 1
        assert seen.slot == frame.slot
        with pytest.raises(PermissionError):
            seen.flags = 1
    frame = producer.loan(0)
    frame.captured = 5
    frame.captured = None
    assert frame.captured is None
    for attribute in ("captured", "sequence", "flags"):
        with pytest.raises(ValueError, match=f"^{attribute}: must be between 0"):
            setattr(frame, attribute, -1)
        with pytest.raises(TypeError, match=f"^{attribute}: must be an int"):
            setattr(frame, attribute, "x")
        with pytest.raises(AttributeError):
            delattr(frame, attribute)
    with pytest.raises(ValueError, match="^flags: must be between 0"):
        frame.flags = 2**64


def test_a_frame_may_use_less_than_the_largest_shape(producer, consumer):
    with producer.loan(0) as frame:
        frame.set_shape("image", (2, 3))
        assert frame["image"].shape == (2, 3)
        assert frame["image"].strides == (24, 4)
        frame["image"][...] = 1
        for shape, error in (((5, 6), ValueError), ((2,), ValueError), ("x", TypeError)):
            with pytest.raises(error, match="^shape"):
                frame.set_shape("image", shape)
        with pytest.raises(KeyError):
            frame.set_shape("x", 1)
        frame.set_shape("count", ())
    taken = consumer.take(0)
    assert taken["image"].shape == (2, 3)
    with pytest.raises(PermissionError):
        taken.set_shape("image", (1, 1))
    publish(producer)
    assert consumer.take(0)["image"].shape == (4, 6)


# Loans


def test_with_publishes_at_its_end(producer, consumer):
    with producer.loan(0) as frame:
        frame["image"][...] = 3
        with pytest.raises(TimeoutError):
            consumer.take(0)
    assert frame.number == 1
    assert frame.closed
    assert (consumer.take(0)["image"].numpy() == 3).all()


def test_with_abandons_a_frame_if_it_raises(producer, consumer):
    free = free_slots(producer)
    with pytest.raises(RuntimeError), producer.loan(0) as frame:
        raise RuntimeError
    assert frame.closed
    assert frame.number == 0
    assert free_slots(producer) == free
    with pytest.raises(TimeoutError):
        consumer.take(0)


def test_with_leaves_alone_what_the_block_has_published_or_closed(producer, consumer):
    with producer.loan(0) as frame:
        frame.publish()
    with producer.loan(0) as frame:
        frame.close()
    assert producer.newest == 1
    frame = producer.loan(0)
    frame.publish()
    with pytest.raises(PermissionError, match="published already"):
        frame.publish()
    with pytest.raises(PermissionError, match="read-only"):
        consumer.take(0).publish()


def test_numbers_are_those_of_the_publishes(producer):
    first, second = producer.loan(0), producer.loan(0)
    second.publish()
    first.publish()
    assert (first.number, second.number) == (2, 1)


def test_only_the_producer_loans_and_only_others_take(producer, consumer):
    for call in (consumer.loan, producer.take, producer.latest, lambda _: next(producer)):
        with pytest.raises(PermissionError):
            call(0)
    with pytest.raises(PermissionError):
        producer[1]
    with pytest.raises(PermissionError):
        consumer.evict(0)


# Leases


def lease_of(keep, producer, consumer):
    """Whether the slot of a frame is held until what keep() makes of the frame is gone."""
    publish(producer)
    before = free_slots(producer)
    frame = consumer.take(0)
    kept = keep(frame)
    frame.close()
    publish(producer)
    held = free_slots(producer) == before - 1
    same = np.asarray(kept).flat[0] == frame.number
    del kept
    gc.collect()
    return held and same and free_slots(producer) == before


VIEWS = {
    "tensor": lambda t: t,
    "index": lambda t: t[1],
    "slice": lambda t: t[1:, ::2],
    "newaxis": lambda t: t[None, ..., -1],
    "transposed": lambda t: t.T,
    "iterated": lambda t: next(iter(t)),
    "numpy": lambda t: t.numpy(),
    "numpy of a slice": lambda t: t[2:].numpy()[:, 1:],
    "asarray": np.asarray,
    "memoryview": memoryview,
    "asarray of tshare": tshare.asarray,
}


if np.lib.NumpyVersion(np.__version__) >= "2.0.0":  # the older has no read-only DLPack
    VIEWS["dlpack"] = np.from_dlpack


@pytest.mark.parametrize("view", VIEWS)
def test_views_and_arrays_keep_the_slot(view, producer, consumer):
    assert lease_of(lambda frame: VIEWS[view](frame["image"]), producer, consumer)


@pytest.mark.slow_in_guests
@pytest.mark.filterwarnings("ignore:the tensor is read-only")
def test_torch_tensors_keep_the_slot(producer, consumer):
    readonly_torch()
    assert lease_of(lambda frame: frame["image"].torch()[1:], producer, consumer)


def test_close_and_with_drop_the_lease_early(producer, consumer):
    publish(producer)
    free = free_slots(producer)
    with consumer.take(0) as frame:
        publish(producer)
        assert free_slots(producer) == free - 1
    assert free_slots(producer) == free
    assert frame.number == 1
    assert frame.closed
    for use in (lambda: frame["image"], frame.check, frame.publish, frame.__enter__):
        with pytest.raises(ValueError, match="frame is closed"):
            use()
    frame.close()


def test_memory_that_is_known_by_its_address_alone_keeps_the_slot(producer, consumer):
    publish(producer)
    # Older ones give no array away that can't be written.
    versioned = np.lib.NumpyVersion(np.__version__) >= "2.1.0"
    for take in (tshare.asarray, tshare.from_dlpack) if versioned else (tshare.asarray,):
        publish(producer)
        array = consumer.take(0)["image"].numpy()
        tensor = take(array, copy=False)
        assert np.shares_memory(tensor.numpy(), array)
        assert tensor.readonly
        number = array.flat[0]
        del array
        publish(producer, 9)
        assert (tensor.numpy() == number).all()
        del tensor


def test_memory_of_a_dropped_frame_is_copied(producer):
    with producer.loan(0) as frame:
        array = frame["image"].numpy()
        array[:] = 1
    tensor = tshare.asarray(array)
    publish(producer, 5)
    assert (tensor.numpy() == 1).all()
    with pytest.raises(BufferError, match="has to be copied"):
        tshare.asarray(array, copy=False)


def test_exchange_keeps_the_slot(producer, consumer):
    publish(producer)
    frame = consumer.take(0)
    same = imported(exported(frame["image"]))
    # By its deleter the importer knows tshare's own; this one it finds by its address.
    foreign = exported(same)
    deleter = ctypes.cast(foreign.contents.deleter, ctypes.c_void_p).value
    foreign.contents.deleter = VersionedDeleter()
    found = imported(foreign)
    VersionedDeleter(deleter)(foreign)
    frame.close()
    del frame, same
    publish(producer, 9)
    assert (found.numpy() == 1).all()


def test_consumer_holds_as_many_frames_as_it_may(streams):
    producer = streams.create(history=4)
    consumer = streams.open(hold=2)
    publish(producer, 4)
    frames = [consumer.take(0), consumer.take(0)]
    with pytest.raises(OSError, match=r"holds 2 frames, .* \(hold=\)") as caught:
        consumer.take(0)
    assert caught.value.errno == errno.ENOBUFS
    frames.pop(0)
    assert consumer.take(0).number == 3


def test_loop_may_keep_the_last_frame_until_it_has_the_next(streams):
    producer = streams.create(slots=2)
    consumer = streams.open()
    publish(producer)
    for frame in consumer:
        array = frame["image"].numpy()
        assert (array == frame.number).all()
        if frame.number == 5:
            break
        publish(producer)


def test_observer_delays_nobody_and_notices_what_was_overwritten(producer, streams):
    observer = streams.open(observe=True)
    publish(producer)
    frame = observer.take(0)
    assert is_whole(frame)
    frame.check()
    publish(producer, 4)
    with pytest.raises(OSError, match="overwritten") as caught:
        frame.check()
    assert caught.value.errno == errno.ESTALE
    with pytest.raises(ValueError, match="keep_all: an observer"):
        streams.open(observe=True, keep_all=True)


def test_observer_sees_the_seats_and_takes_none(producer, streams):
    observer = streams.open(observe=True)
    assert observer.seats() == []
    consumer = streams.open()
    assert [seat.seat for seat in observer.seats()] == [consumer.seat]
    assert observer.seats() == producer.seats()


# Pickles


def in_another_process(function, *args):
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply(function, args)


def first_of(name):
    """Return things that another process makes of a frame, which it then drops."""
    consumer = tshare.Stream.open(name, history=1)
    frame = consumer.take(0)
    return [frame["image"], frame["image"][1:], frame["image"].numpy(), frame.number]


def test_what_multiprocessing_sends_of_a_frame_is_a_copy(name, producer):
    publish(producer)
    *things, number = in_another_process(first_of, name)
    publish(producer, 8)
    assert number == 1
    for thing in things:
        assert set(np.asarray(thing).flat) == {1}
    assert things[1].shape == (3, 6)
    assert not things[0].readonly


@pytest.mark.slow_in_guests
@pytest.mark.filterwarnings("ignore:the tensor is read-only")
def test_torch_sends_a_copy_of_a_frame(producer, consumer, travel):
    torch = readonly_torch()
    need("torch.multiprocessing")
    publish(producer)
    tensor = consumer.take(0)["image"].torch()
    there = travel(tensor)
    publish(producer, 8)
    assert torch.equal(there, torch.ones(4, 6))
    assert torch.equal(tensor, there)


def test_frames_and_streams_are_not_pickled_nor_copied(producer, consumer):
    publish(producer)
    frame = consumer.take(0)
    for thing in (frame, consumer, producer):
        for use in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="can't be pickled or copied"):
                use(thing)
    with pytest.raises(ValueError, match="is of a frame"):
        tshare.by_name(frame["image"])


# Waits


def test_publish_and_drop_in_other_threads_end_waits(producer, consumer, later):
    later(publish, producer)
    frame = consumer.take(60)
    assert frame.number == 1
    publish(producer)
    loans = [producer.loan(0), producer.loan(0)]
    timer = later(frame.close)
    loans.append(producer.loan(60))
    timer.join()


def test_timeout_passes(producer, consumer):
    for wait in (consumer.take, consumer.latest):
        start = time.monotonic()
        with pytest.raises(TimeoutError):
            wait(0.3)
        assert time.monotonic() - start >= 0.3


def test_signal_handlers_run_while_it_waits(producer, consumer, later):
    def handler(*_):
        raise KeyError

    before = signal.signal(signal.SIGUSR1, handler)
    loans = [producer.loan(0) for _ in range(4)]
    try:
        for wait in (consumer.take, producer.loan, consumer.__next__):
            later(os.kill, os.getpid(), signal.SIGUSR1)
            with pytest.raises(KeyError):
                wait()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert len(loans) == 4


@pytest.mark.parametrize(
    "call",
    [
        "consumer.take()",
        "producer.loan()",
        "next(consumer)",
        "tshare.wait([consumer])",
        "orphan.take()",
    ],
)
def test_ctrl_c_ends_a_wait(name, call):
    code = f"""
        import sys
        import tshare

        producer = tshare.Stream.create(sys.argv[1], {{"x": (3, "int8")}}, slots=2)
        consumer = tshare.Stream.open(sys.argv[1])
        orphan_producer = tshare.Stream.create(sys.argv[1] + "-orphan", {{"x": (3, "int8")}})
        orphan = tshare.Stream.open(sys.argv[1] + "-orphan", follow=True)
        del orphan_producer
        if "loan" in sys.argv[2]:
            loans = producer.loan(), producer.loan()
        print("ready", flush=True)
        try:
            {call}
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """
    process = spawn(code, name, call)
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=300)
    assert (output, process.returncode) == ("interrupted\n", 0)


def test_open_waits_for_the_name(name, later):
    made = []
    timer = later(lambda: made.append(tshare.Stream.create(name, FIELDS)))
    with tshare.Stream.open(name, wait=60) as consumer:
        assert consumer.role == "consumer"
    timer.join()
    made.pop().close()
    with pytest.raises(FileNotFoundError):
        tshare.Stream.open(name)
    with pytest.raises(TimeoutError):
        tshare.Stream.open(name, wait=0.2)


def test_cancel_ends_waits_for_good(producer, consumer, later):
    loans = [producer.loan(0) for _ in range(4)]
    for stream, wait in ((consumer, consumer.take), (producer, producer.loan)):
        later(stream.cancel)
        for _ in range(2):
            with pytest.raises(OSError, match="stream: the wait was cancelled") as caught:
                wait()
            assert caught.value.errno == errno.ECANCELED
    assert len(loans) == 4


def test_close_in_another_thread_ends_waits(producer, consumer, later):
    loans = [producer.loan(0) for _ in range(4)]
    later(consumer.close)
    with pytest.raises(ValueError, match="closed during the wait"):
        consumer.take()
    later(producer.close)
    with pytest.raises(ValueError, match=r"stream.* closed"):
        producer.loan()
    assert len(loans) == 4


# asyncio


def test_take_async_in_several_tasks(producer, consumer):
    async def main():
        tasks = [asyncio.create_task(consumer.take_async()) for _ in range(2)]
        await asyncio.sleep(0.05)
        publish(producer, 2)
        frames = await asyncio.gather(*tasks)
        assert sorted(frame.number for frame in frames) == [1, 2]

    asyncio.run(main())


def test_async_for_ends_with_the_stream(producer, consumer):
    numbers = []

    async def read():
        async for frame in consumer:
            numbers.append(frame.number)

    async def main():
        task = asyncio.create_task(read())
        for _ in range(5):
            await asyncio.sleep(0.01)
            publish(producer)
        await asyncio.sleep(0.01)
        producer.close()
        await task

    asyncio.run(main())
    assert numbers == [1, 2, 3, 4, 5]
    with pytest.raises(EOFError):
        asyncio.run(consumer.take_async())


def test_take_async_ends_in_time_and_when_cancelled(consumer):
    async def main():
        for timeout in (0, 0.05):
            with pytest.raises(TimeoutError):
                await consumer.take_async(timeout)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(consumer.take_async(), 0.05)

    asyncio.run(main())


def test_close_and_cancel_end_take_async(streams, producer):
    async def main(end):
        consumer = streams.open()
        task = asyncio.create_task(consumer.take_async())
        await asyncio.sleep(0.05)
        getattr(consumer, end)()
        await task

    with pytest.raises(ValueError, match="stream is closed"):
        asyncio.run(main("close"))
    with pytest.raises(OSError, match="stream: the wait was cancelled") as caught:
        asyncio.run(main("cancel"))
    assert caught.value.errno == errno.ECANCELED


def test_take_async_notices_a_dead_producer(name):
    producer = start_producer(name)
    consumer = tshare.Stream.open(name)

    async def main():
        task = asyncio.create_task(consumer.take_async())
        await asyncio.sleep(0.05)
        producer.kill()
        await task

    with pytest.raises(OSError, match="stream: the producer has exited") as caught:
        asyncio.run(main())
    assert caught.value.errno == errno.EOWNERDEAD
    producer.communicate()


# Following


def test_follower_moves_over_when_the_producer_was_restarted(name):
    consumers = []
    producer = tshare.Stream.create(name, FIELDS, history=4)
    for options in ({"hold": 4}, {"observe": True}):
        consumers.append(tshare.Stream.open(name, follow=True, **options))
    publish(producer, 2)
    del producer
    producer = tshare.Stream.create(name, FIELDS, slots=5, history=4)
    publish(producer, 2)
    for consumer in consumers:
        frames = [consumer.take(0) for _ in range(4)]
        seen = [(frame.epoch, frame.number, frame.lost) for frame in frames[:2]]
        assert seen == [(0, 1, 0), (0, 2, 0)]
        assert all(is_whole(frame) for frame in frames)
        assert consumer.slots == 5
        assert consumer.region.id == producer.region.id
        frames[2].close()
        assert frames[2].epoch == 1
    producer.close()
    assert list(consumers[0]) == []


def restart(name, producer):
    """Kill a producer, and publish a frame as its successor."""
    producer.kill()
    producer.communicate()
    time.sleep(0.2)
    successor = tshare.Stream.create(name, {"x": (3, "int8")}, exist_ok=True)
    successor.loan(0).publish()
    return successor


def test_follower_waits_for_the_successor_of_a_dead_producer(name):
    producer, successors = start_producer(name), []
    consumer = tshare.Stream.open(name, follow=True, history=10)
    thread = threading.Timer(0.1, lambda: successors.append(restart(name, producer)))
    thread.start()
    for frame in consumer:
        if frame.epoch:
            break
    assert frame.number == 1
    thread.join()


def test_async_follower_waits_for_the_successor(name):
    producer, consumer = start_producer(name), tshare.Stream.open(name, follow=True)

    async def read():
        async for frame in consumer:
            if frame.epoch:
                return frame.number

    async def main():
        task = asyncio.create_task(read())
        successor = await asyncio.get_running_loop().run_in_executor(None, restart, name, producer)
        assert await task == 1
        successor.close()

    asyncio.run(main())


def test_follower_without_a_successor_is_late(name):
    producer = tshare.Stream.create(name, FIELDS)
    consumer = tshare.Stream.open(name, follow=True)
    del producer
    with pytest.raises(TimeoutError, match="no other stream yet"):
        consumer.take(0.05)


def test_follower_refuses_other_fields(name):
    producer = tshare.Stream.create(name, FIELDS)
    consumer = tshare.Stream.open(name, follow=True)
    del producer
    producer = tshare.Stream.create(name, {**FIELDS, "count": ((), "int32")})
    with pytest.raises(OSError, match="field 'count' is missing, or not as it was") as caught:
        consumer.take()
    assert caught.value.errno == errno.EPROTO
    producer.close()


# Polling


def readable(stream, timeout=0.0):
    return bool(select.select([stream], [], [], timeout)[0])


def test_descriptor_is_readable_until_a_take_finds_nothing(producer, consumer):
    publish(producer)
    assert readable(consumer)
    consumer.take(0)
    with pytest.raises(TimeoutError):
        consumer.take(0)
    assert not readable(consumer)
    publish(producer)
    assert readable(consumer, 60)
    with pytest.raises(PermissionError, match="is the stream's producer"):
        producer.fileno()


def test_tasks_of_several_loops_take_all_frames(producer, streams):
    consumer, taken = streams.open(keep_all=True, hold=4), []

    async def read():
        async for frame in consumer:
            taken.append(frame.number)
            frame.close()

    async def main():
        await asyncio.gather(read(), read())

    threads = [threading.Thread(target=asyncio.run, args=[main()]) for _ in range(2)]
    for thread in threads:
        thread.start()
    publish(producer, 200, timeout=60)
    producer.close(drain=60)
    for thread in threads:
        thread.join()
    assert sorted(taken) == list(range(1, 201))


# Several streams


@pytest.fixture
def several(name):
    """Producers and consumers of three streams."""
    with contextlib.ExitStack() as stack:
        names = [f"{name}-{i}" for i in range(3)]
        yield (
            [stack.enter_context(tshare.Stream.create(n, FIELDS)) for n in names],
            [stack.enter_context(tshare.Stream.open(n)) for n in names],
        )


def test_wait_returns_the_streams_that_have_frames(several):
    producers, consumers = several
    assert tshare.wait(consumers, 0) == []
    assert tshare.wait(consumers, 0.05) == []
    publish(producers[2])
    publish(producers[0])
    assert tshare.wait(consumers) == [consumers[0], consumers[2]]
    assert tshare.wait(iter([consumers[2], *consumers]), 0) == [consumers[2], consumers[0]]
    consumers[0].take(0)
    assert tshare.wait(consumers, math.inf) == [consumers[2]]
    consumers[2].take(0)
    assert tshare.wait(consumers, 0.05) == []


def test_wait_is_woken_by_any_stream(several, later):
    producers, consumers = several
    for i in range(3):
        later(publish, producers[i])
        assert tshare.wait(consumers) == [consumers[i]]
        consumers[i].take(0)
    later(producers[1].close)
    assert tshare.wait(consumers) == [consumers[1]]
    with pytest.raises(EOFError):
        consumers[1].take(0)
    later(consumers[2].cancel)
    assert tshare.wait(consumers[::2]) == [consumers[2]]
    later(consumers[0].close)
    with pytest.raises(ValueError, match="stream is closed"):
        tshare.wait(consumers[:1])


def test_wait_notices_a_dead_producer(name):
    producer, consumer = start_producer(name), tshare.Stream.open(name)
    threading.Timer(0.1, producer.kill).start()
    assert tshare.wait([consumer]) == [consumer]
    with pytest.raises(OSError, match="the producer has exited"):
        consumer.take(0)
    producer.communicate()


def test_wait_waits_for_the_successor_that_a_stream_follows(name):
    producer, successors = start_producer(name), []
    consumer = tshare.Stream.open(name, follow=True)
    thread = threading.Timer(0.1, lambda: successors.append(restart(name, producer)))
    thread.start()
    assert tshare.wait([consumer]) == [consumer]
    assert consumer.take(0).epoch == 1
    thread.join()


def test_wait_names_the_malformed_argument(producer, consumer):
    with pytest.raises(ValueError, match="^streams: is empty"):
        tshare.wait([])
    with pytest.raises(TypeError, match=r"^streams\[1\]: must be a Stream, not <class 'int'>"):
        tshare.wait([consumer, 1])
    with pytest.raises(PermissionError, match=r"^streams\[0\]: is the producer"):
        tshare.wait([producer])
    with pytest.raises(ValueError, match="^timeout: "):
        tshare.wait([consumer], -1)
    with pytest.raises(TypeError, match="^timeout: "):
        tshare.wait([consumer], "x")
    consumer.close()
    with pytest.raises(ValueError, match="stream is closed"):
        tshare.wait([consumer], 0)


# The end


def test_iteration_ends_with_the_stream(producer, streams):
    consumer = streams.open()
    publish(producer, 3)
    producer.close()
    assert consumer.ended
    assert consumer.newest == 3
    assert [frame.number for frame in consumer] == [1, 2, 3]
    assert list(consumer) == []
    for wait in (consumer.take, consumer.latest):
        with pytest.raises(EOFError, match="the producer has closed it"):
            wait()


def test_closed_streams_raise_value_error(name, producer, consumer):
    frame = producer.loan(0)
    for stream in (producer, consumer):
        stream.close()
        stream.close()
        assert stream.closed
        assert stream.name == name
        assert stream.fields
        assert stream.role
        for use in (
            lambda stream=stream: stream.slots,
            lambda stream=stream: stream.region,
            lambda stream=stream: stream[1],
            stream.take,
            stream.take_async,
            stream.loan,
            stream.seats,
            stream.cancel,
            stream.fileno,
            stream.__enter__,
            stream.__next__,
            stream.__anext__,
        ):
            with pytest.raises(ValueError, match="stream is closed"):
                use()
    with pytest.raises(ValueError, match="stream is closed"):
        frame.publish()


def test_close_drains(producer, consumer, later):
    publish(producer)
    frame = consumer.take(0)
    with pytest.raises(TimeoutError, match=r"seat 0 .* holds frames 1"):
        producer.close(drain=0.05)
    assert not producer.closed
    assert producer.ended
    with pytest.raises(ValueError, match="stream is closed"):
        producer.loan(0)
    later(frame.close)
    producer.close(60)
    assert producer.closed
    producer.close(60)
    with pytest.raises(ValueError, match="drain: is for the producer"):
        consumer.close(1)


def test_stream_has_ended_if_a_drain_is_interrupted(producer, consumer, later):
    def handler(*_):
        raise KeyError

    publish(producer)
    frame = consumer.take(0)
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        later(os.kill, os.getpid(), signal.SIGUSR1)
        with pytest.raises(KeyError):
            producer.close(drain=60)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert producer.ended
    assert not producer.closed
    with pytest.raises(ValueError, match="stream is closed"):
        producer.loan(0)
    frame.close()
    producer.close(60)
    assert producer.closed


def test_close_in_another_thread_ends_a_drain(producer, consumer, later):
    publish(producer)
    frame = consumer.take(0)
    later(producer.close)
    producer.close(60)
    assert producer.closed
    assert is_whole(frame)


def test_names_go_with_the_producer(name):
    with tshare.Stream.create(name, FIELDS) as producer:
        with pytest.raises(FileExistsError, match=r"producer lives, .* \(exist_ok=True\)"):
            tshare.Stream.create(name, FIELDS)
        with tshare.Stream.create(name, FIELDS, exist_ok=True) as successor:
            assert tshare.Region.open(name).id == successor.region.id
    assert producer.closed
    for region in (name, f"{name}.seats"):
        with pytest.raises(FileNotFoundError):
            tshare.open(region)


def test_replaced_producer_goes_on_with_its_consumers(producer, consumer, streams):
    successor = streams.create(exist_ok=True)
    late = streams.open()
    publish(producer)
    assert consumer.take(0).number == 1
    assert late.newest == 0
    publish(successor)
    assert late.take(0).number == 1
    assert consumer.newest == 1


def test_create_takes_no_region_s_name(name):
    with tshare.create(name, 3):
        for exist_ok in (False, True):
            with pytest.raises(FileExistsError, match="no stream's; unlink it"):
                tshare.Stream.create(name, FIELDS, exist_ok=exist_ok)


def test_eviction(producer, consumer):
    publish(producer, 2)
    frame = consumer.take(0)
    (seat,) = producer.seats()
    assert seat == (0, os.getpid(), 1, False, False, seat.command)
    assert seat.command
    assert type(seat).__name__ == "StreamSeat"
    with pytest.raises(LookupError, match="process"):
        producer.evict(seat.seat, seat.pid + 1)
    producer.evict(seat.seat, pid=seat.pid)
    assert producer.seats()[0].evicted
    for use in (frame.check, consumer.take, lambda: consumer[1]):
        with pytest.raises(OSError, match="evicted") as caught:
            use()
        assert caught.value.errno == errno.ESTALE
    with pytest.raises(LookupError, match="nobody has seat 5"):
        producer.evict(5)
    for bad, error in ((62, ValueError), (-1, ValueError), ("x", TypeError)):
        with pytest.raises(error, match="^seat: "):
            producer.evict(bad)
    with pytest.raises(ValueError, match="^pid: "):
        producer.evict(0, 0)


def start_producer(name):
    process = spawn(
        """
        import sys, time, tshare
        stream = tshare.Stream.create(sys.argv[1], {"x": (3, "int8")})
        for _ in range(3):
            with stream.loan() as frame:
                pass
        print("ready", flush=True)
        time.sleep(1000)
        """,
        name,
    )
    assert process.stdout.readline() == "ready\n"
    return process


def test_frames_of_a_dead_producer_can_be_read(name):
    producer = start_producer(name)
    with tshare.Stream.open(name, history=1) as consumer:
        producer.kill()
        producer.communicate()
        assert consumer.take().number == 3
        for wait in (consumer.take, consumer.__next__):
            with pytest.raises(OSError, match="stream: the producer has exited") as caught:
                wait()
            assert caught.value.errno == errno.EOWNERDEAD


def hold_forever(name, ready):
    consumer = tshare.Stream.open(name, keep_all=True, hold=4)
    frames = [consumer.take(60) for _ in range(2)]
    ready.set()
    time.sleep(1000)
    print(frames)


@pytest.mark.slow_in_guests
def test_slots_of_killed_consumers_return(name, producer, helper_processes):
    context = multiprocessing.get_context("forkserver")
    readies = [context.Event() for _ in range(3)]
    workers = [context.Process(target=hold_forever, args=(name, ready)) for ready in readies]
    for worker in workers:
        worker.start()
    while len(producer.seats()) < 3:
        time.sleep(0.01)
    publish(producer, 2)
    for ready in readies:
        assert ready.wait(300)
    publish(producer, 2)
    with pytest.raises(TimeoutError, match="frames 1, 2"):
        producer.loan(0)
    for worker in workers:
        worker.kill()
        worker.join()
        worker.close()
    for _ in range(8):
        with producer.loan(60):
            pass
    assert producer.seats() == []


def test_child_of_fork_has_no_role(producer, consumer):
    publish(producer)
    frame, loan = consumer.take(0), producer.loan(0)
    pid = os.fork()
    if not pid:
        code = 0
        for use in (consumer.take, producer.loan, loan.publish, producer.seats, consumer.__next__):
            try:
                use()
                code = 1
            except OSError as error:
                code = code or (error.errno != errno.EOPNOTSUPP)
        frame.close()
        consumer.close()
        producer.close()
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert is_whole(frame)
    assert not consumer.ended
    publish(producer)
    assert consumer.take(0).number == 2


# Arguments


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"fields": {}}, ValueError, "^fields: "),
        ({"fields": 5}, TypeError, "^fields: must be a mapping"),
        ({"fields": {"x": (5,)}}, TypeError, "^fields: 'x': "),
        ({"fields": {"x": ((-1,), "int8")}}, ValueError, r"^fields: 'x': shape\[0\]"),
        ({"fields": {"x": (2, "int9")}}, (ValueError, TypeError), "^fields: 'x': dtype"),
        ({"fields": {"x": (2, "float4_e2m1fn")}}, ValueError, "^fields: 'x': dtype"),
        ({"fields": {"x": (2, "int8", (1,))}}, ValueError, "^fields: 'x': strides"),
        ({"fields": {"x": (2, "int8", None, 8)}}, ValueError, "^fields: 'x': offset"),
        ({"fields": {".x": (2, "int8")}}, ValueError, r"^fields: '.x': name"),
        ({"fields": {"": (2, "int8")}}, ValueError, "^fields: '': name"),
        ({"slots": 1}, ValueError, "^slots: must be between 2"),
        ({"slots": 257}, ValueError, "^slots: "),
        ({"slots": 4, "history": 4}, ValueError, "^history: "),
        ({"history": 0}, ValueError, "^history: "),
        ({"history": "x"}, TypeError, "^history: "),
        ({"mode": 0o777}, ValueError, "^mode: "),
        ({"lifetime": "users"}, TypeError, "lifetime"),
        ({"name": "x" * 121}, (ValueError, OSError), "name"),
        ({"name": None}, TypeError, "^name: "),
    ],
)
def test_create_names_the_malformed_argument(name, arguments, error, match):
    with pytest.raises(error, match=match):
        tshare.Stream.create(**{"name": name, "fields": FIELDS, **arguments})


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"hold": 0}, ValueError, "^hold: "),
        ({"history": -1}, ValueError, "^history: "),
        ({"wait": -1}, ValueError, "^wait: "),
        ({"name": None}, TypeError, "^name: "),
        ({"x": 1}, TypeError, "unexpected keyword argument 'x'"),
    ],
)
def test_open_names_the_malformed_argument(name, producer, arguments, error, match):
    with pytest.raises(error, match=match):
        tshare.Stream.open(**{"name": name, **arguments})


def test_waits_name_the_malformed_argument(producer, consumer):
    for wait in (producer.loan, consumer.take, consumer.latest, consumer.take_async):
        with pytest.raises(ValueError, match="^timeout: "):
            wait(-1)
        with pytest.raises(TypeError, match="^timeout: "):
            wait("x")
    with pytest.raises(ValueError, match="^drain: "):
        producer.close(-1)


def test_open_refuses_a_region_that_is_no_stream(name):
    with tshare.create(name, 3), pytest.raises(OSError, match="is no stream") as caught:
        tshare.Stream.open(name)
    assert caught.value.errno == errno.EPROTO


def test_fields_may_be_arrays_of_that_shape_and_type(streams):
    producer = streams.create({"camera": {"left": np.zeros((2, 3), "uint8")}, "time": (1, "f8")})
    assert producer.fields == ("camera/left", "time")
    assert producer.loan(0)["camera/left"].shape == (2, 3)


def test_objects_go_with_their_last_references(name):
    producer = tshare.Stream.create(name, FIELDS)
    frame = producer.loan(0)
    references, gone = sys.getrefcount(name), [weakref.ref(producer), weakref.ref(frame)]
    del producer, frame
    gc.collect()
    assert [ref() for ref in gone] == [None, None]
    assert sys.getrefcount(name) == references - 1


def test_threads_share_a_consumer(producer, streams):
    numbers, lock, consumer = [], threading.Lock(), streams.open(hold=4)

    def read():
        for frame in consumer:
            with lock:
                numbers.append(frame.number)
            frame.close()

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    # Three threads and the history may have all slots.
    publish(producer, 200, timeout=300)
    while consumer.newest not in numbers:
        time.sleep(0.001)
    producer.close()
    for thread in threads:
        thread.join()
    assert sorted(set(numbers)) == sorted(numbers)
