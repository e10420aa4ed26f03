# SPDX-License-Identifier: MIT
"""tshare.gym.AsyncVectorEnv against gymnasium's, and both against a ring.

Prints rows in the format of pair.h. usage: environments.py [ROUNDS]

Eight environments return a picture of 210 x 160 x 3 that is there already, so a step takes what the
exchange takes. The ring has actions, rewards and pictures in multiprocessing's shared memory, and
two semaphores for each environment; it knows no infos, errors, resets or deaths.
"""

import multiprocessing
import os
import statistics
import sys
import time
from pathlib import Path

import gymnasium
import numpy as np

import tshare
import tshare.gym

COUNT = 8
STEPS = 15
ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 100

fork = multiprocessing.get_context("fork")


class Env(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 255, (210, 160, 3), np.uint8)
    action_space = gymnasium.spaces.Discrete(4)

    def __init__(self):
        self.picture, self.count = np.zeros((210, 160, 3), np.uint8), 0

    def reset(self, *, seed=None, options=None):
        return self.picture, {}

    def step(self, action):
        self.count += 1
        self.picture[0, 0, 0] = self.count & 255
        return self.picture, 0.0, False, False, {}


class Ring:
    def __init__(self, copy):
        self.copy = copy
        shape = COUNT, *Env.observation_space.shape
        self.pictures = np.frombuffer(fork.RawArray("B", int(np.prod(shape))), "u1").reshape(shape)
        self.actions = np.frombuffer(fork.RawArray("q", COUNT), "i8")
        self.results = np.frombuffer(fork.RawArray("d", COUNT * 3), "f8").reshape(COUNT, 3)
        self.commands = [fork.Semaphore(0) for _ in range(COUNT)]
        self.answers = [fork.Semaphore(0) for _ in range(COUNT)]
        self.processes = [
            fork.Process(target=self.work, args=(i,), daemon=True) for i in range(COUNT)
        ]
        for process in self.processes:
            process.start()

    def work(self, i):
        env = Env()
        while True:
            self.commands[i].acquire()
            picture, *result, _ = env.step(self.actions[i])
            self.pictures[i] = picture
            self.results[i] = result
            self.answers[i].release()

    def reset(self):
        pass

    def step(self, actions):
        self.actions[:] = actions
        for semaphore in self.commands:
            semaphore.release()
        for semaphore in self.answers:
            semaphore.acquire()
        pictures = self.pictures.copy() if self.copy else self.pictures
        return pictures, *self.results.T.copy(), {}

    def close(self):
        for process in self.processes:
            process.terminate()
            process.join()


def processor_time(envs):
    """Seconds that this process and those of the environments have run."""
    pids = [os.getpid(), *(process.pid for process in envs.processes)]
    return sum(int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for pid in pids) / 1e9


def measure(copy):
    """Prints the rows with or without copies of the observations."""
    ways = {
        "tshare": tshare.gym.AsyncVectorEnv([Env] * COUNT, copy=copy),
        "gymnasium": gymnasium.vector.AsyncVectorEnv([Env] * COUNT, copy=copy),
        "a ring in shared memory": Ring(copy),
    }
    actions = np.zeros(COUNT, np.int64)
    walls, works = ({title: [] for title in ways} for _ in range(2))
    for envs in ways.values():
        envs.reset()
    for _ in range(ROUNDS):
        for title, envs in ways.items():
            # Its processes and memory were idle meanwhile.
            envs.step(actions)
            work, wall = processor_time(envs), time.perf_counter()
            for _ in range(STEPS):
                envs.step(actions)
            walls[title].append((time.perf_counter() - wall) / STEPS)
            works[title].append((processor_time(envs) - work) / STEPS)
    for envs in ways.values():
        envs.close()
    how = "copied" if copy else "not copied"
    for what, times in (("a step of 8 environments", walls), ("its processor time", works)):
        a = statistics.median(times["tshare"])
        for title, theirs in list(times.items())[1:]:
            b = statistics.median(theirs)
            aim = 0.33 if times is walls and title == "gymnasium" else "-"
            name = f"Python: {what}, {how} ({tshare.backend()})"
            print(f"{name}\t{title}\t{a:.9f}\t{b:.9f}\t{a / b:.3f}\t{aim}", flush=True)


if __name__ == "__main__":
    measure(copy=True)
    measure(copy=False)
