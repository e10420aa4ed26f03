#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A scheduler tells its workers what to do in each step, as vLLM's does.

    broadcast.py [READERS]

Written for vLLM's MessageQueue, with one line changed.
"""

import multiprocessing
import sys

import numpy as np

# from vllm.distributed.device_communicators.shm_broadcast import MessageQueue
from tshare.queue import Broadcast as MessageQueue


def work(handle, rank, results):
    queue = MessageQueue.create_from_handle(handle, rank)
    queue.wait_until_ready()
    total = 0
    while (step := queue.dequeue(timeout=60)) is not None:
        total += int(step["tokens"].sum()) * step["scale"]
    results.put((rank, total))


def main(readers):
    context = multiprocessing.get_context("spawn")
    queue = MessageQueue(readers, readers, max_chunk_bytes=1 << 20)
    results = context.Queue()
    workers = [
        context.Process(target=work, args=(queue.export_handle(), rank, results))
        for rank in range(readers)
    ]
    for worker in workers:
        worker.start()
    queue.wait_until_ready()
    for number in range(100):
        queue.enqueue({"tokens": np.arange(number), "scale": 2}, timeout=60)
    queue.enqueue(None)
    for _ in workers:
        print("reader {}: {}".format(*results.get(timeout=60)))
    for worker in workers:
        worker.join()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
