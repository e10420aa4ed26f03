# SPDX-License-Identifier: MIT
"""tshare.queue.Broadcast against what passes small messages to readers that wait, in Python.

Prints rows in the format of pair.h. usage: broadcast.py [ROUNDS]

A message of some numbers every 5 ms, to one reader and to four: from before it is passed on until
the last reader has it, and the processor time that a reader takes for it. The rows of vLLM's
MessageQueue need vLLM, which polls for a second after each message and then sleeps; asleep, that
second is 0. Those of ZMQ need pyzmq.
"""

import multiprocessing
import os
import pickle
import statistics
import struct
import sys
import time
from multiprocessing import shared_memory

import tshare
from tshare.queue import Broadcast

try:
    import zmq
except ImportError:
    zmq = None
try:
    # What it logs goes to the table.
    os.environ["VLLM_CONFIGURE_LOGGING"] = "0"
    from vllm.distributed.device_communicators.shm_broadcast import MessageQueue
except ImportError:
    MessageQueue = None

GAP = 0.005
ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 100
WARM_UP = 10
READERS = (1, 4)

spawn = multiprocessing.get_context("spawn")


class Tshare:
    """The ways have these methods: __init__() and send() in the writer, open() and receive() in the
    readers, which get what handle() returns."""

    title = "tshare"
    spin = 0.0

    def __init__(self, readers):
        self.queue = Broadcast(readers, readers, max_chunk_bytes=1 << 20, spin=self.spin)

    def handle(self):
        return self.queue.export_handle()

    def send(self, message):
        self.queue.enqueue(message)

    @classmethod
    def open(cls, handle, i):
        self = cls.__new__(cls)
        self.queue = Broadcast.create_from_handle(handle, i)
        return self

    def receive(self):
        return self.queue.dequeue()


class TshareSpin(Tshare):
    title = "tshare, spin=0.01"
    spin = 0.01


class Vllm(Tshare):
    title = "vLLM's MessageQueue, asleep"
    aim = 0.4
    polls = 0.0

    def __init__(self, readers):
        self.queue = MessageQueue(readers, readers, max_chunk_bytes=1 << 20)

    @classmethod
    def open(cls, handle, i):
        self = cls.__new__(cls)
        self.queue = MessageQueue.create_from_handle(handle, i)
        self.queue._spin_condition.busy_loop_s = self.polls
        return self


class VllmSpin(Vllm):
    title = "vLLM's MessageQueue, polling"
    aim = None
    polls = 1.0


class Zmq:
    title = "ZMQ"
    aim = 0.4

    def __init__(self, readers):
        self.socket = zmq.Context.instance().socket(zmq.PUB)
        self.address = f"ipc:///tmp/bench-broadcast-{os.getpid()}"
        self.socket.bind(self.address)

    def handle(self):
        return self.address

    def send(self, message):
        self.socket.send(pickle.dumps(message))

    @classmethod
    def open(cls, handle, i):
        self = cls.__new__(cls)
        self.socket = zmq.Context.instance().socket(zmq.SUB)
        self.socket.setsockopt_string(zmq.SUBSCRIBE, "")
        self.socket.connect(handle)
        time.sleep(0.5)
        return self

    def receive(self):
        return pickle.loads(self.socket.recv())


class Ring:
    """Slots in SharedMemory, and two semaphores for each reader."""

    title = "a ring in SharedMemory"
    aim = None
    slots, room = 10, 1 << 20

    def __init__(self, readers):
        self.memory = shared_memory.SharedMemory(create=True, size=self.slots * self.room)
        self.filled = [spawn.Semaphore(0) for _ in range(readers)]
        self.free = [spawn.Semaphore(self.slots) for _ in range(readers)]
        self.count = 0

    def __del__(self):
        self.memory.close()
        if hasattr(self, "free") and len(self.free) > 0:
            self.memory.unlink()

    def handle(self):
        return self.memory.name, self.filled, self.free

    def place(self):
        self.count += 1
        return (self.count % self.slots) * self.room

    def send(self, message):
        for semaphore in self.free:
            semaphore.acquire()
        data, place = pickle.dumps(message), self.place()
        struct.pack_into("q", self.memory.buf, place, len(data))
        self.memory.buf[place + 8 : place + 8 + len(data)] = data
        for semaphore in self.filled:
            semaphore.release()

    @classmethod
    def open(cls, handle, i):
        self = cls.__new__(cls)
        name, filled, free = handle
        self.memory = shared_memory.SharedMemory(name)
        self.semaphores, self.free, self.count = (filled[i], free[i]), [], 0
        return self

    def receive(self):
        filled, free = self.semaphores
        filled.acquire()
        place = self.place()
        (size,) = struct.unpack_from("q", self.memory.buf, place)
        message = pickle.loads(self.memory.buf[place + 8 : place + 8 + size])
        free.release()
        return message


# Each is timed in turn with the others of its group.
ASLEEP = [Tshare, *([Vllm] if MessageQueue else []), *([Zmq] if zmq else []), Ring]
POLLING = [TshareSpin, *([VllmSpin] if MessageQueue else [])]


def read(way, handle, i, ready, reports):
    """A reader: reports when it had each message, and in the end its processor time."""
    end = way.open(handle, i)
    ready.release()
    times = []
    for _ in range(WARM_UP + ROUNDS):
        end.receive()
        times.append(time.monotonic())
        if len(times) == WARM_UP:
            start = time.process_time()
    reports.send((times[WARM_UP:], (time.process_time() - start) / ROUNDS))


def measure(way, readers):
    """Return the delays of messages and the processor time of a reader for one."""
    end, ready = way(readers), spawn.Semaphore(0)
    pipes = [spawn.Pipe(duplex=False) for _ in range(readers)]
    processes = [
        spawn.Process(target=read, args=(way, end.handle(), i, ready, pipe[1]), daemon=True)
        for i, pipe in enumerate(pipes)
    ]
    for process in processes:
        process.start()
    for _ in processes:
        ready.acquire()
    message = {"step": 0, "tokens": [*range(20)], "done": False}
    sent = []
    for i in range(WARM_UP + ROUNDS):
        time.sleep(GAP)
        message["step"] = i
        sent.append(time.monotonic())
        end.send(message)
    results = [pipe[0].recv() for pipe in pipes]
    for process in processes:
        process.join()
    last = [max(times) for times in zip(*(times for times, _ in results), strict=True)]
    delays = [b - a for a, b in zip(sent[WARM_UP:], last, strict=True)]
    return delays, [work for _, work in results]


def compare(ways, readers, how):
    results = {way: ([], []) for way in ways}
    for _ in range(3):
        for way in ways:
            for all_of, new in zip(results[way], measure(way, readers), strict=True):
                all_of.extend(new)
    who = "1 reader" if readers == 1 else f"{readers} readers"
    for i, what in enumerate(("message", "processor time")):
        a = statistics.median(results[ways[0]][i])
        if len(ways) == 1:
            row(f"Python: {what}, {who}, {how}", ways[0].title, a, a)
        for way in ways[1:]:
            b = statistics.median(results[way][i])
            row(f"Python: {what}, {who}, {how}", way.title, a, b, None if i else way.aim)


def row(title, other, a, b, aim=None):
    title = f"{title} ({tshare.backend()})"
    print(f"{title}\t{other}\t{a:.9f}\t{b:.9f}\t{a / b:.3f}\t{aim or '-'}", flush=True)


if __name__ == "__main__":
    for readers in READERS:
        compare(ASLEEP, readers, "asleep")
    compare(POLLING, 1, "polling")
