# SPDX-License-Identifier: MIT
"""Two processes that answer one another, as in wake.c, in Python, bound to CPUs as there.

Prints one row each, in the format of pair.h.
"""

import os
import statistics
import sys
import time

import tshare

ROUNDS = 100

# Where the one process runs, and the other one: together, or apart.
OWN_CPU, *OTHER_CPUS = sorted(os.sched_getaffinity(0))
TOGETHER = {OWN_CPU}
APART = set(OTHER_CPUS[:1])


class Pipe:
    def __init__(self, name):
        self.ends = os.pipe()

    def attach(self):
        """Called in both processes, before the first word."""

    def say(self):
        os.write(self.ends[1], b".")

    def hear(self):
        os.read(self.ends[0], 1)


class Event:
    def __init__(self, name):
        self.fd = os.eventfd(0)

    def attach(self):
        pass

    def say(self):
        os.eventfd_write(self.fd, 1)

    def hear(self):
        os.eventfd_read(self.fd)


class Generation:
    spin = 0.0

    def __init__(self, name):
        self.made = tshare.Region.create(name, size=1)

    def attach(self):
        self.region = tshare.Region.open(self.made.name)
        self.seen = 0

    def say(self):
        self.region.publish()

    def hear(self):
        self.seen = self.region.wait(self.seen, spin=self.spin)


class SpinningGeneration(Generation):
    spin = 0.0001


class Players:
    """This process, and one that answers it."""

    def __init__(self, kind):
        self.there = kind(f"bench-wake-{kind.__name__}-there")
        self.back = kind(f"bench-wake-{kind.__name__}-back")
        order, self.orders = os.pipe()
        if not os.fork():
            os.close(self.orders)
            self.answer(order)
        os.close(order)
        self.attach()

    def attach(self):
        self.there.attach()
        self.back.attach()

    def answer(self, order):
        self.attach()
        while place := os.read(order, 1):
            os.sched_setaffinity(0, APART if place == b"a" else TOGETHER)
            for _ in range(ROUNDS):
                self.there.hear()
                self.back.say()
        os._exit(0)

    def play(self, place):
        """Seconds for one way."""
        os.write(self.orders, b"a" if place == APART else b"t")
        start = time.perf_counter()
        for _ in range(ROUNDS):
            self.there.say()
            self.back.hear()
        return (time.perf_counter() - start) / ROUNDS / 2


def pair(row, place, other, ours, theirs, rounds=100):
    times = ([], [])
    for i in range(-rounds // 10, rounds):
        for players, taken in zip((ours, theirs), times, strict=True):
            elapsed = players.play(place)
            if i >= 0:
                taken.append(elapsed)
    a, b = map(statistics.median, times)
    print(f"{row}\t{other}\t{a:.9f}\t{b:.9f}\t{a / b:.3f}\t1.00", flush=True)


def main():
    # Each is there before the next is forked, which takes none of another's pipe along.
    pipe, event, generation, spinning = (
        Players(kind) for kind in (Pipe, Event, Generation, SpinningGeneration)
    )
    os.sched_setaffinity(0, TOGETHER)
    for title, place in (("one CPU", TOGETHER), ("two CPUs", APART)):
        if place:
            row = f"Python: publish to wake-up, {title} ({tshare.backend()})"
            pair(row, place, "a byte through a pipe", generation, pipe)
            pair(row, place, "an eventfd", generation, event)
    if APART:
        pair("Python: the same, spinning", APART, "a byte through a pipe", spinning, pipe)
    # The other processes end with this one's ends of their pipes.
    sys.stdout.flush()


if __name__ == "__main__":
    main()
