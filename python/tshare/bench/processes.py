# SPDX-License-Identifier: MIT
"""The two processes, producer and consumer, in which everything is measured.

There is a pair for each backend, since a process has one session. The benchmark's own
process sends requests to the producer, which sends requests to the consumer.

The pair ends with the benchmark, even if that is killed. SIGINT is blocked in both
processes; the benchmark handles it, and ends the pair by SIGTERM.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import glob
import importlib
import multiprocessing
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from time import perf_counter
from typing import Any

import tshare

from . import between, measure, within
from .between import Link
from .measure import Memory

LIBRARIES = {"numpy": "NumPy", "torch": "PyTorch"}

# Seconds before each announcement, in which the receiver falls asleep.
PAUSE = 300e-6

# Seconds after which a pair that doesn't answer is given up; emulated machines are slow.
ANSWER_WITHIN = 300.0

_spawn = multiprocessing.get_context("spawn")
_PR_SET_PDEATHSIG = 1


class MeasurementError(Exception):
    """Something could not be measured. The text is the reason, for the row."""


class PairDiedError(MeasurementError):
    """Something could not be measured, and the pair has ended."""


@dataclass
class Hello:
    """A pair's answer to being started."""

    backend: str
    unusable: str | None = None  # why the backend can't be used
    versions: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    pids: tuple[int, ...] = ()


# In both processes


def _settle() -> tuple[dict[str, str], dict[str, str]]:
    """Import the libraries and stop the garbage collector, before anything is measured."""
    versions, missing = {}, {}
    for module, name in LIBRARIES.items():
        try:
            versions[module] = importlib.import_module(module).__version__
        except ImportError:
            missing[module] = f"{name} is not installed"
        except Exception as error:
            missing[module] = f"{name} can't be imported: {error}"
    if "torch" in versions:
        # Registers tensors with the pickler of queues.
        importlib.import_module("torch.multiprocessing")
    gc.collect()
    gc.freeze()
    gc.disable()
    return versions, missing


def _die_with_parent(parent: int) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        os._exit(1)


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__


# The consumer


def _read(array: Any) -> None:
    """Read the whole array, as fast as NumPy can."""
    import numpy as np

    np.add.reduce(np.asarray(array).view(np.uint64))


def _receive(link: Link, key: str, count: int) -> None:
    receive = between.HAND_OVERS[key].receive
    for _ in range(count):
        array, release = receive(link)
        received = perf_counter()
        _read(array)
        read = perf_counter()
        del array
        release()
        link.control.send((received, read))


def _receive_for_memory(link: Link, key: str) -> None:
    receive = between.HAND_OVERS[key].receive
    before = measure.memory_before()
    link.control.send("ready")
    array, release = receive(link)
    _read(array)
    link.control.send("read")
    link.control.recv()
    link.control.send(measure.memory_after(before))
    link.control.recv()
    del array
    release()
    link.control.send("released")


def _wait(link: Link, key: str, name: str | None, count: int) -> None:
    wait = between.ANNOUNCEMENTS[key].waiter(link, name)
    link.control.send("ready")
    for _ in range(count):
        wait()
        link.control.send(perf_counter())


def _consume(link: Link, parent: int) -> None:
    _die_with_parent(parent)
    _settle()
    tasks: dict[str, Callable[..., None]] = {
        "receive": _receive,
        "receive_for_memory": _receive_for_memory,
        "wait": _wait,
    }
    link.control.send("settled")
    try:
        while True:
            task, *arguments = link.control.recv()
            tasks[task](link, *arguments)
    except EOFError:
        pass
    except Exception as error:
        # The state of the pipe is unknown: the pair ends.
        with contextlib.suppress(OSError):
            link.control.send(MeasurementError(f"in the consumer: {_reason(error)}"))


# The producer


class _Producer:
    def __init__(self) -> None:
        control, its_control = _spawn.Pipe()
        its_pipe, pipe = _spawn.Pipe(duplex=False)
        sock, its_socket = socket.socketpair()
        queue = _spawn.Queue()
        # Don't wait at the end for a consumer that has died to read the rest.
        queue.cancel_join_thread()
        self.link = Link(control, pipe, sock, queue)
        self.consumer = _spawn.Process(
            target=_consume,
            args=(Link(its_control, its_pipe, its_socket, queue), os.getpid()),
            daemon=True,
        )
        self.consumer.start()
        # So that reading ends with EOFError when the consumer ends.
        its_control.close()
        its_pipe.close()
        its_socket.close()

    def answer(self) -> Any:
        """Return the consumer's answer."""
        try:
            got = self.link.control.recv()
        except (EOFError, ConnectionError):
            self.consumer.join(5)
            raise PairDiedError(f"the consumer ended: {_ending(self.consumer.exitcode)}") from None
        if isinstance(got, MeasurementError):
            raise PairDiedError(str(got))
        return got

    def tell(self, *task: Any) -> None:
        self.link.control.send(task)

    @contextmanager
    def consuming(self) -> Iterator[None]:
        """Turn errors into PairDiedError: they leave the consumer waiting for ever."""
        try:
            yield
        except PairDiedError:
            raise
        except Exception as error:
            # The consumer may have failed first; then its error is the cause.
            if isinstance(error, OSError) and self.link.control.poll(1):
                self.answer()
            raise PairDiedError(_reason(error)) from None

    # Requests of the benchmark

    def time_within(self, group: str, key: str, size: int, count: int) -> tuple[float, int]:
        with _within(group, key).prepared(size) as prepared:
            return measure.per_call(prepared.loop, count)

    def memory_within(self, group: str, key: str, size: int) -> Memory:
        with _within(group, key).prepared(size) as prepared:
            # Memory that only the first call allocates does not count.
            prepared.release(prepared.once())
            before = measure.memory_before()
            result = prepared.once()
            after = measure.memory_after(before)
            prepared.release(result)
            del result
            return after

    @contextmanager
    def hand_over(self, key: str, size: int) -> Iterator[between.HandOver]:
        hand_over = between.HAND_OVERS[key](self.link, size)
        try:
            yield hand_over
        finally:
            hand_over.close()

    def time_between(self, key: str, size: int, count: int) -> list[tuple[float, float]]:
        """Return the seconds until the consumer has the array, and has read it, count times."""
        times = []
        with self.hand_over(key, size) as hand_over, self.consuming():
            self.tell("receive", key, count)
            for _ in range(count):
                hand_over.before()
                start = perf_counter()
                hand_over.send()
                received, read = self.answer()
                hand_over.after()
                times.append((received - start, read - start))
        return times

    def memory_between(self, key: str, size: int) -> Memory:
        """Return what both processes use in addition once the consumer has read the array."""
        with self.hand_over(key, size) as hand_over, self.consuming():
            hand_over.before()
            self.tell("receive_for_memory", key)
            self.answer()
            before = measure.memory_before()
            hand_over.send()
            self.answer()
            ours = measure.memory_after(before)
            self.tell("measure")
            theirs = self.answer()
            self.tell("release")
            self.answer()
            hand_over.after()
        return ours.plus(theirs)

    def announce(self, key: str, count: int) -> list[float]:
        """Return the seconds until the consumer runs, for each of count announcements."""
        announcement = between.ANNOUNCEMENTS[key](self.link)
        times = []
        try:
            with self.consuming():
                self.tell("wait", key, announcement.name, count)
                self.answer()
                for _ in range(count):
                    time.sleep(PAUSE)
                    start = perf_counter()
                    announcement.announce()
                    times.append(self.answer() - start)
        finally:
            announcement.close()
        return times


def _within(group: str, key: str) -> within.Within:
    groups = {
        "within": within.TRANSFERS,
        "open": within.OPENINGS,
        "dlpack": within.EXCHANGES,
    }
    return groups[group][key]


def _ending(status: int | None) -> str:
    if status is not None and status < 0:
        return signal.Signals(-status).name
    return f"exit status {status}"


def _stop_on_sigterm(number: int, frame: Any) -> None:
    # Once: an exception runs all clean-up handlers.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SystemExit(0)


def _serve(requests: Connection[Any, Any], producer: _Producer) -> None:
    while True:
        try:
            method, *arguments = requests.recv()
        except EOFError:
            return
        try:
            answer = getattr(producer, method)(*arguments)
        except PairDiedError as error:
            requests.send(error)
            return
        except Exception as error:
            answer = MeasurementError(_reason(error))
        requests.send(answer)


def _produce(requests: Connection[Any, Any], parent: int, needs_backend: bool) -> None:
    signal.signal(signal.SIGTERM, _stop_on_sigterm)
    _die_with_parent(parent)
    hello = Hello(os.environ["TSHARE_BACKEND"])
    try:
        tshare.backend()
    except OSError as error:
        hello.unusable = _reason(error)
        if needs_backend:
            requests.send(hello)
            return
    producer = _Producer()
    try:
        hello.pids = (os.getpid(), producer.consumer.pid or 0)
        hello.versions, hello.missing = _settle()
        producer.answer()
        requests.send(hello)
        _serve(requests, producer)
    except PairDiedError as error:
        requests.send(error)
    finally:
        producer.consumer.terminate()
        producer.consumer.join()


# The benchmark's side


def _remove_files(pids: Sequence[int]) -> None:
    """Remove the files of PyTorch and SharedMemory that a killed pair has left.

    tshare's own are removed with the process that made them.
    """
    for pid in pids:
        for pattern in (f"torch_{pid}_*", within.name_of(pid, "*")):
            for path in glob.glob(f"/dev/shm/{pattern}"):
                with contextlib.suppress(OSError):
                    os.unlink(path)


@contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


class Pair:
    """A pair, which is started at the first request, and again after it has died."""

    def __init__(self, backend: str, needs_backend: bool) -> None:
        self.backend = backend
        self._needs_backend = needs_backend
        self._process: Any = None
        self._requests: Any = None
        self._pids: tuple[int, ...] = ()

    def start(self) -> Hello:
        # Before SIGINT is blocked, since starting the tracker unblocks it.
        resource_tracker.ensure_running()
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            self._requests, theirs = _spawn.Pipe()
            self._process = _spawn.Process(
                target=_produce, args=(theirs, os.getpid(), self._needs_backend)
            )
            with _environment("TSHARE_BACKEND", self.backend):
                self._process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        theirs.close()
        hello = self._answer()
        assert isinstance(hello, Hello)
        self._pids = hello.pids
        return hello

    def _answer(self, *request: Any) -> Any:
        try:
            if request:
                self._requests.send(request)
            if not self._requests.poll(ANSWER_WITHIN):
                self.stop()
                raise PairDiedError(f"no answer in {ANSWER_WITHIN:.0f} s")
            answer = self._requests.recv()
        except (EOFError, ConnectionError):
            self._process.join(5)
            status = self._process.exitcode
            self.stop()
            raise PairDiedError(f"the process ended: {_ending(status)}") from None
        if isinstance(answer, PairDiedError):
            self.stop()
        if isinstance(answer, MeasurementError):
            raise answer
        return answer

    def ask(self, method: str, *arguments: Any) -> Any:
        if self._process is None:
            self.start()
        return self._answer(method, *arguments)

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        # A process that waits for a request ends by that.
        self._requests.close()
        process.join(1)
        if process.exitcode is None:
            process.terminate()
            process.join(10)
        if process.exitcode is None:
            process.kill()
            process.join()
        if process.exitcode != 0:
            _remove_files(self._pids)
