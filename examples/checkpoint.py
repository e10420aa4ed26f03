#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checkpoints that another process writes while the training goes on.

    checkpoint.py [--steps N] FILE

The trainer copies its parameters into a region, which takes as long as a copy in memory, and
publishes; a saver process writes them to the disk. The trainer doesn't touch the region before
the saver has published in its turn, so each file holds the parameters of one step. A file is
moved to its name when it is complete: one that was there before stays until then.
"""

import argparse
import multiprocessing
import os
from pathlib import Path

import numpy as np

import tshare


def save_each(region, saved, path):
    """Write what the trainer publishes, until it has ended."""
    for _ in region.generations(seen=0):
        part = path.with_suffix(".part")
        with open(part, "wb") as file:
            np.savez(file, **{key: tensor.numpy() for key, tensor in region.items()})
            file.flush()
            os.fsync(file.fileno())
        part.rename(path)
        saved.publish()


def train(state, region, saved, steps):
    """Train, and return how many checkpoints were taken."""
    taken = 0
    for step in range(1, steps + 1):
        for array in state.values():
            array += step  # stands for the work of a step
        if step % 10 == 0:
            if taken:
                saved.wait(taken - 1, timeout=60)  # until the last one is on the disk
            for key, array in state.items():
                region[key].copy_from(array)
            region["step"].copy_from(np.array(step))
            taken = region.publish()
    saved.wait(taken - 1, timeout=60)
    return taken


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("file", type=Path)
    args = parser.parse_args()
    path = args.file.with_suffix(".npz")

    state = {"weight": np.zeros((512, 512)), "bias": np.zeros(512)}
    region = tshare.Region.create(None, {**state, "step": ((), "int64")})
    saved = tshare.create(None, 1).region
    saver = multiprocessing.get_context("spawn").Process(
        target=save_each, args=(region, saved, path)
    )
    saver.start()
    taken = train(state, region, saved, args.steps)
    region.close()  # ends the saver's loop
    saver.join()
    print(f"{args.steps} steps, {taken} checkpoints")

    with np.load(path) as file:
        step = int(file["step"])
        same = all(np.array_equal(file[key], array) for key, array in state.items())
    print(f"the file has step {step}, and what the trainer has: {same}")


if __name__ == "__main__":
    main()
