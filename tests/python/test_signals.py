# SPDX-License-Identifier: MIT
"""Signals that another thread gets, or that come before a sleep: each wait notices them."""

import os
import signal
import subprocess
import sys
import time

import pytest

import tshare

FIELDS = {"x": (1, "uint8")}


def wait_for_a_generation(name):
    tshare.create(name, 4).region.wait(0, 60)


def take(name):
    producer = tshare.Stream.create(name, FIELDS)
    with tshare.Stream.open(name) as consumer:
        consumer.take(60)
    producer.close()


def loan(name):
    with tshare.Stream.create(name, FIELDS, slots=2) as producer:
        held = [producer.loan(0), producer.loan(0)]
        producer.loan(60)
        del held


def wait_for_streams(name):
    producer = tshare.Stream.create(name, FIELDS)
    with tshare.Stream.open(name) as consumer:
        tshare.wait([consumer], 60)
    producer.close()


def make(name):
    pool = tshare.Pool.create(name, 1 << 20)
    unfinished = pool.make("k", FIELDS)
    pool.make("k", FIELDS, timeout=60)
    del unfinished


WAITS = {
    "open": lambda name: tshare.open(name, wait=60),
    "Region.open": lambda name: tshare.Region.open(name, wait=60),
    "Pool.open": lambda name: tshare.Pool.open(name, wait=60),
    "Stream.open": lambda name: tshare.Stream.open(name, wait=60),
    "Region.wait": wait_for_a_generation,
    "Watcher.wait": lambda name: tshare.watch(name).wait(None, 60),
    "Stream.take": take,
    "Stream.loan": loan,
    "wait": wait_for_streams,
    "Pool.make": make,
}


@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS)
def test_ctrl_c_that_another_thread_gets_ends_a_wait(name, later, wait):
    later(signal.raise_signal, signal.SIGINT)
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        wait(name)
    assert time.monotonic() - began < 30


# Memory that was freed is filled, so that its use is noticed.
FORKING = """
import os, signal, sys, threading, time
import tshare

kind, name = sys.argv[1:]
children = []

def fork(*_):
    children.append(os.fork())
    if not children[0]:
        # The child's own context takes the place of its parent's.
        globals()["own"] = tshare.create(None, 4)

def send():
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGUSR1)

WAITS = {
    "open": lambda: tshare.open(name, wait=2),
    "Pool.open": lambda: tshare.Pool.open(name, wait=2),
    "Pool.create": lambda: tshare.Pool.create(name, 1 << 20, exist_ok=True),
    "Stream.open": lambda: tshare.Stream.open(name, wait=2),
}
if kind == "Pool.create":
    draft = tshare.create(name, 4, draft=True)
    threading.Timer(2, draft.unlink).start()
signal.signal(signal.SIGUSR1, fork)
threading.Thread(target=send, daemon=True).start()
try:
    WAITS[kind]()
except TimeoutError:
    pass
if not children[0]:
    os._exit(42)
print(os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]))
"""


@pytest.mark.parametrize("kind", ["open", "Pool.open", "Pool.create", "Stream.open"])
def test_wait_goes_on_in_a_child_that_a_handler_forks(name, kind):
    env = {**os.environ, "MALLOC_PERTURB_": "165"}
    command = [sys.executable, "-c", FORKING, kind, name]
    assert subprocess.run(command, stdout=subprocess.PIPE, check=True, env=env).stdout == b"42\n"


# Python's main thread is another one than the process's, as in a program that runs Python in a
# thread of its own. A thread becomes the main one by the calls that os.fork() makes in a child.
ELSEWHERE = """
import ctypes, os, signal, sys, threading, time
import tshare

def handle(*_):
    os.write(1, b"handled")
    os._exit(0)

def open_name():
    tshare.open(sys.argv[1], wait=60)

def wait():
    producer = tshare.Stream.create(sys.argv[1], {"x": (1, "uint8")})
    tshare.wait([tshare.Stream.open(sys.argv[1])], 60)

def send():
    time.sleep(0.3)
    signal.raise_signal(signal.SIGUSR1)

def run():
    ctypes.pythonapi.PyOS_BeforeFork()
    ctypes.pythonapi.PyOS_AfterFork_Child()
    threading.Thread(target=send, daemon=True).start()
    try:
        globals()[sys.argv[2]]()
    finally:
        os._exit(1)

signal.signal(signal.SIGUSR1, handle)
threading.Thread(target=run).start()
ctypes.CDLL(None).pause()
"""


# Later versions crash in such a program.
if sys.version_info < (3, 13):

    @pytest.mark.parametrize("wait", ["open_name", "wait"])
    def test_python_s_main_thread_need_not_be_the_process_s(name, wait):
        command = [sys.executable, "-c", ELSEWHERE, name, wait]
        began = time.monotonic()
        assert subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout == b"handled"
        assert time.monotonic() - began < 30
