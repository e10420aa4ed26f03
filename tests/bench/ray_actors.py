# SPDX-License-Identifier: MIT
"""tshare.ray against Ray's own ways from actor to actor, on one machine.

Prints rows in the format of pair.h. usage: ray_actors.py [MIB [ROUNDS]]

An actor returns a tensor of 256 MiB, and another reads its first and last element. Ray's object
store copies it twice, or once with Ray's switch for zero copies.
"""

import os
import statistics
import sys
import tempfile
import time

os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}

import ray
import torch

import tshare
import tshare.ray

MIB = int(sys.argv[1]) if len(sys.argv) > 1 else 256
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 9

tshare.ray.register()


@ray.remote(num_cpus=0)
class Actor:
    def __init__(self):
        self.plain = torch.ones(MIB << 18)

    def name(self, name):
        self.region = tshare.create(name, MIB << 18, "float32")
        self.placed = self.region.torch().fill_(1)

    def store(self):
        return self.plain

    @ray.method(tensor_transport="tshare")
    def copied(self):
        return self.plain

    @ray.method(tensor_transport="tshare")
    def in_place(self):
        return self.placed

    def use(self, x):
        return float(x[0]) + float(x[-1])


def measure(switch, ways):
    """Return the median of each way, in a cluster of its own."""
    os.environ["RAY_ENABLE_ZERO_COPY_TORCH_TENSORS"] = switch
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as work:
        return measure_in(work, ways)


def measure_in(work, ways):
    ray.init(
        _temp_dir=work,
        num_cpus=2,
        object_store_memory=max(4 * MIB, 100) << 20,
        include_dashboard=False,
        logging_level="ERROR",
        log_to_driver=False,
    )
    sender, receiver = Actor.remote(), Actor.remote()
    ray.get(sender.name.remote(f"bench-ray-{os.getpid()}"))
    times = {way: [] for way in ways}
    for _ in range(ROUNDS + 1):
        for way in ways:
            start = time.perf_counter()
            assert ray.get(receiver.use.remote(getattr(sender, way).remote())) == 2
            times[way].append(time.perf_counter() - start)
    ray.shutdown()
    return {way: statistics.median(each[1:]) for way, each in times.items()}


if __name__ == "__main__":
    found = measure("0", ["in_place", "copied", "store"])
    switched = measure("1", ["store"])["store"]
    for way, what in (("in_place", "in a region"), ("copied", "copied once")):
        for title, b in (("object store", found["store"]), ("with zero copies", switched)):
            a = found[way]
            name = f"Python: {MIB} MiB between actors, {what} ({tshare.backend()})"
            print(f"{name}\tRay, {title}\t{a:.9f}\t{b:.9f}\t{a / b:.3f}\t-", flush=True)
