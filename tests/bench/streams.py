# SPDX-License-Identifier: MIT
"""Streams of frames against what hands frames to sleeping consumers today, in Python.

Prints rows in the format of pair.h. usage: streams.py [ROUNDS]

A frame is copied into each way's memory from the same source, published, and is in a consumer's
hands when that has an array over it (of multiprocessing.Queue: a copy). Of several consumers the
last one counts. Consumers sleep before each frame, and drop it when they have said so.
"""

import ctypes
import gc
import multiprocessing
import os
import signal
import statistics
import struct
import subprocess
import sys
import time
from multiprocessing import shared_memory
from pathlib import Path

import numpy as np
import torch

import tshare

try:
    import iceoryx2
except ImportError:
    iceoryx2 = None

NBYTES = 6 << 20
SLOTS = 8
CONSUMERS = (1, 8)
PROGRAM = Path(__file__).parents[2] / "build/c/tests/bench/streams"

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 100
# Each slot is touched before the times count.
WARM_UP = SLOTS + 2

fork = multiprocessing.get_context("fork")


class Stream:
    """The ways have these methods, in this order: __init__() in the process that forks all others,
    start(), fill() and publish() in the producer, attach(), take() and drop() in a consumer."""

    def __init__(self, consumers):
        self.name = f"bench-streams-{consumers}"

    def start(self):
        self.stream = tshare.Stream.create(self.name, {"image": (NBYTES, "uint8")}, SLOTS)

    def fill(self, source):
        self.frame = self.stream.loan()
        np.copyto(self.frame["image"].numpy(), source)

    def publish(self):
        self.frame.publish()

    def attach(self, consumer):
        self.stream = tshare.Stream.open(self.name, wait=60)

    def take(self):
        self.frame = self.stream.take()
        return self.frame["image"].numpy()

    def drop(self):
        self.frame.close()


class Queue:
    title = "multiprocessing.Queue"
    aim = 0.1

    def __init__(self, consumers):
        self.queues = [fork.Queue() for _ in range(consumers)]

    def start(self):
        pass

    def fill(self, source):
        self.frame = source

    def publish(self):
        for queue in self.queues:
            queue.put(self.frame)

    def attach(self, consumer):
        self.queue = self.queues[consumer]

    def take(self):
        return self.queue.get()

    def drop(self):
        pass


class TorchQueue(Queue):
    """Shared memory for each frame."""

    title = "torch.multiprocessing queue"
    aim = 0.3

    def __init__(self, consumers):
        context = torch.multiprocessing.get_context("fork")
        self.queues = [context.Queue() for _ in range(consumers)]

    def fill(self, source):
        # As the queue does with a tensor that isn't shared: this is the copy.
        self.frame = torch.from_numpy(source).share_memory_()

    def take(self):
        self.frame = self.queue.get()
        return self.frame.numpy()

    def drop(self):
        del self.frame


class Ring:
    """Slots in SharedMemory, and semaphores, which count the filled and the free ones."""

    title = "a ring in SharedMemory"
    aim = None

    def __init__(self, consumers):
        self.make(consumers)
        self.filled = [fork.Semaphore(0) for _ in range(consumers)]
        self.free = [fork.Semaphore(SLOTS) for _ in range(consumers)]
        self.count = 0

    def make(self, consumers):
        self.memory = shared_memory.SharedMemory(create=True, size=SLOTS * NBYTES)
        self.memory.unlink()
        self.slots = np.ndarray((SLOTS, NBYTES), "uint8", buffer=self.memory.buf)

    def start(self):
        pass

    def fill(self, source):
        for semaphore in self.free:
            semaphore.acquire()
        np.copyto(self.slots[self.count % SLOTS], source)

    def publish(self):
        self.count += 1
        for semaphore in self.filled:
            semaphore.release()

    def attach(self, consumer):
        self.consumer = consumer

    def take(self):
        self.filled[self.consumer].acquire()
        self.count += 1
        return self.slots[(self.count - 1) % SLOTS]

    def drop(self):
        self.free[self.consumer].release()


class TorchRing(Ring):
    """Slots in shared tensors, and queues of their indices."""

    title = "a ring of shared tensors"

    def make(self, consumers):
        self.tensors = torch.zeros((SLOTS, NBYTES), dtype=torch.uint8).share_memory_()
        self.slots = self.tensors.numpy()
        self.queues = TorchQueue(consumers).queues

    def publish(self):
        for queue in self.queues:
            queue.put(self.count % SLOTS)
        self.count += 1

    def take(self):
        return self.tensors[self.queues[self.consumer].get()].numpy()


class Wake:
    """One array in a region, whose generation wakes the consumers: what no stream can save."""

    title = "a bare publish() and wait()"
    aim = None

    def __init__(self, consumers):
        self.name = f"bench-streams-wake-{consumers}"
        self.seen = 0

    def start(self):
        self.region = tshare.Region.create(self.name, {"image": (NBYTES, "uint8")})
        self.array = self.region["image"].numpy()

    def fill(self, source):
        np.copyto(self.array, source)

    def publish(self):
        self.region.publish()

    def attach(self, consumer):
        self.region = tshare.Region.open(self.name, wait=60)
        self.array = self.region["image"].numpy()

    def take(self):
        self.seen = self.region.wait(self.seen)
        return self.array

    def drop(self):
        pass


class Iceoryx:
    """A ring by nature. An event wakes the consumers."""

    title = "iceoryx2"
    aim = 0.35

    def __init__(self, consumers):
        self.name = f"bench-streams/{os.getpid()}/{consumers}"

    def open(self):
        iceoryx2.set_log_level(iceoryx2.LogLevel.Error)
        self.node = iceoryx2.NodeBuilder.new().create(iceoryx2.ServiceType.Ipc)
        name = iceoryx2.ServiceName.new(self.name)
        builder = self.node.service_builder(name).publish_subscribe(iceoryx2.Slice[ctypes.c_uint8])
        self.frames = builder.max_subscribers(max(CONSUMERS)).open_or_create()
        self.event = self.node.service_builder(name).event().open_or_create()

    def start(self):
        self.open()
        self.publisher = self.frames.publisher_builder().initial_max_slice_len(NBYTES).create()
        self.notifier = self.event.notifier_builder().create()

    def fill(self, source):
        self.frame = self.publisher.loan_slice_uninit(NBYTES)
        np.copyto(np.asarray(self.frame.payload().as_memory_view()), source)

    def publish(self):
        self.frame.assume_init().send()
        self.notifier.notify()

    def attach(self, consumer):
        self.open()
        self.subscriber = self.frames.subscriber_builder().create()
        self.listener = self.event.listener_builder().create()

    def take(self):
        while (frame := self.subscriber.receive()) is None:
            self.listener.blocking_wait()
        self.frame = frame
        return np.asarray(frame.payload().as_memory_view())

    def drop(self):
        self.frame.delete()


# Each is timed in turn with Stream: today's tool, and a ring in that tool's own memory.
OTHERS = [(Queue, Ring), (TorchQueue, TorchRing), (Wake, Iceoryx) if iceoryx2 else (Wake,)]


def consume(way, consumer, reports):
    """A consumer: reports when it is ready, and then when it had each frame."""
    way.attach(consumer)
    os.write(reports, bytes(8))
    for _ in range(WARM_UP + ROUNDS):
        array = way.take()
        now = time.monotonic_ns()
        array[-1]
        del array
        way.drop()
        os.write(reports, struct.pack("q", now))


def hear(reports, consumers):
    return max(struct.unpack("q", os.read(reports, 8))[0] for _ in range(consumers))


def hand_over(consumers, others):
    """Prints the rows of frames that go to that many consumers."""
    ways = [way(consumers) for way in (Stream, *others)]
    pipes = [os.pipe() for _ in ways]
    # All are forked before the queues start threads.
    processes = [
        fork.Process(target=consume, args=(way, i, pipe[1]), daemon=True)
        for way, pipe in zip(ways, pipes, strict=True)
        for i in range(consumers)
    ]
    for process in processes:
        process.start()
    for way, pipe in zip(ways, pipes, strict=True):
        way.start()
        hear(pipe[0], consumers)

    source = np.random.default_rng(1).integers(0, 256, NBYTES, "uint8")
    published = [[] for _ in ways]
    copied = [[] for _ in ways]
    for i in range(WARM_UP + ROUNDS):
        for way, pipe, *taken in zip(ways, pipes, published, copied, strict=True):
            time.sleep(0.003)
            begin = time.monotonic_ns()
            way.fill(source)
            filled = time.monotonic_ns()
            way.publish()
            end = hear(pipe[0], consumers)
            if i >= WARM_UP:
                for times, start in zip(taken, (filled, begin), strict=True):
                    times.append((end - start) / 1e9)
    for process in processes:
        process.join()
    who = "1 consumer" if consumers == 1 else f"{consumers} consumers"
    for what, times in (("publish to array", published), ("copy, publish to array", copied)):
        for i, other in enumerate(others, 1):
            aim = other.aim if times is published else None
            row(f"Python: {what}, {who} ({tshare.backend()})", other.title, times[0], times[i], aim)


def row(title, other, ours, theirs, aim=None):
    a, b = map(statistics.median, (ours, theirs))
    print(f"{title}\t{other}\t{a:.9f}\t{b:.9f}\t{a / b:.3f}\t{aim or '-'}", flush=True)


class Calls:
    """The calls alone, in one process, which ask for the frame's memory, too, and leave it alone.

    batch() returns the seconds of loan and publish, and those of take and release.
    """

    repeats = 300

    def batch(self):
        times = [0, 0]
        for _ in range(self.repeats):
            start = time.perf_counter_ns()
            self.put()
            middle = time.perf_counter_ns()
            self.get()
            times[0] += middle - start
            times[1] += time.perf_counter_ns() - middle
        return [t / self.repeats / 1e9 for t in times]


class StreamCalls(Calls):
    def __init__(self):
        self.producer = tshare.Stream.create("bench-streams-calls", {"data": (1024, "uint8")})
        self.consumer = tshare.Stream.open(self.producer.name)

    def put(self):
        with self.producer.loan() as frame:
            frame["data"]

    def get(self):
        frame = self.consumer.take()
        frame["data"]
        frame.close()


class RingCalls(Calls):
    title = Ring.title

    def __init__(self):
        self.ring = Ring(1)
        self.ring.attach(0)

    def put(self):
        self.ring.free[0].acquire()
        self.ring.slots[self.ring.count % SLOTS]
        self.ring.filled[0].release()

    def get(self):
        self.ring.take()
        self.ring.drop()


class IceoryxCalls(Calls):
    title = Iceoryx.title

    def __init__(self):
        self.way = Iceoryx(0)
        self.way.start()
        self.way.attach(0)

    def put(self):
        frame = self.way.publisher.loan_slice_uninit(1024)
        frame.payload()
        frame.assume_init().send()

    def get(self):
        frame = self.way.subscriber.receive()
        frame.payload()
        frame.delete()


class CProgram:
    """streams.c, which does a batch when asked."""

    def __init__(self):
        pipe = subprocess.PIPE
        self.program = subprocess.Popen([PROGRAM], stdin=pipe, stdout=pipe, text=True, bufsize=1)

    def batch(self):
        self.program.stdin.write("\n")
        return [float(t) for t in self.program.stdout.readline().split()]


def calls():
    """Prints the rows of loan and publish, and of take and release, in one process."""
    ours = [StreamCalls(), CProgram()]
    others = [RingCalls()] + ([IceoryxCalls()] if iceoryx2 else [])
    times = [[] for _ in ours + others]
    for i in range(-WARM_UP, ROUNDS):
        for way, taken in zip(ours + others, times, strict=True):
            batch = way.batch()
            if i >= 0:
                taken.append(batch)
    # Its input ends.
    ours[1].program.communicate()
    times = [list(zip(*taken, strict=True)) for taken in times]
    for part, title in enumerate(("loan + publish", "take + release")):
        for i, (language, aim) in enumerate((("Python", 1.0), ("C", 0.5))):
            for j, other in enumerate(others, len(ours)):
                row(
                    f"{language}: {title} ({tshare.backend()})",
                    f"{others[j - 2].title}, Python",
                    times[i][part],
                    times[j][part],
                    aim if other.title == Iceoryx.title else None,
                )


def die(name, reports):
    """A consumer that takes a frame, and kills itself while the producer waits for it."""
    stream = tshare.Stream.open(name, history=1)
    frame = stream.take()
    os.write(reports, bytes(8))
    time.sleep(0.05 + os.getpid() % 100 / 1000)
    os.write(reports, struct.pack("q", time.monotonic_ns()))
    os.kill(os.getpid(), signal.SIGKILL)
    frame.close()


def deaths():
    """Prints the row of a slot that a killed consumer held."""
    reports, end = os.pipe()
    times = []
    with tshare.Stream.create("bench-streams-deaths", {"data": (1024, "uint8")}, 2) as stream:
        stream.loan().publish()
        for _ in range(20):
            victim = fork.Process(target=die, args=(stream.name, end), daemon=True)
            victim.start()
            hear(reports, 1)
            stream.loan().publish()
            # Both slots are in use now: one has the newest frame, one the victim's.
            stream.loan().publish()
            free = time.monotonic_ns()
            times.append((free - hear(reports, 1)) / 1e9)
            victim.join()
    backend = tshare.backend()
    row(f"Python: slot back after a kill -9 ({backend})", "0.2 s", times, [0.2], 1.0)
    row(f"Python: the same, longest of {len(times)} ({backend})", "0.2 s", [max(times)], [0.2], 1.0)


def in_child(function, *args):
    process = fork.Process(target=function, args=args)
    process.start()
    process.join()
    if process.exitcode:
        sys.exit(1)


def main():
    gc.disable()
    if not iceoryx2:
        print("# iceoryx2 is not installed: its rows are left out", file=sys.stderr)
    for consumers in CONSUMERS:
        for others in OTHERS:
            in_child(hand_over, consumers, others)
    in_child(calls)
    in_child(deaths)


if __name__ == "__main__":
    main()
