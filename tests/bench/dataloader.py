# SPDX-License-Identifier: MIT
"""A DataLoader with tshare.torch.collate() against PyTorch's collation and a ring in its memory.

Prints rows in the format of pair.h. usage: dataloader.py [ROUNDS]

A worker makes batches, and the consumer reads a byte of each page, and drops the batch when it has
the next one. A round is an epoch of each way, in turn; the first batches, with which the workers
start, don't count. Times are those of a batch: on the clock, and of all processors.
"""

import gc
import resource
import statistics
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset, default_collate

import tshare
import tshare.torch

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 5
WARM_UP = 4
SLOTS = 6


class Samples(Dataset):
    """Samples of which each is computed by a copy, as if it were decoded."""

    def __init__(self, shape, dtype, count):
        generator = torch.Generator().manual_seed(1)
        pool = torch.randint(0, 255, (256, *shape), dtype=torch.uint8, generator=generator)
        self.samples, self.dtype, self.count = pool, dtype, count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        return self.samples[i % len(self.samples)].to(self.dtype)


class Ring:
    """Slots of a shared tensor, used in turn: also if the consumer still has a batch."""

    def __init__(self):
        self.slots, self.count = None, 0

    def __call__(self, samples):
        if self.slots is None:
            shape = (SLOTS, len(samples), *samples[0].shape)
            self.slots = torch.empty(shape, dtype=samples[0].dtype).share_memory_()
        self.count += 1
        return torch.stack(samples, out=self.slots[self.count % SLOTS])


WAYS = {
    "tshare": lambda: tshare.torch.collate(SLOTS),
    "default_collate()": lambda: default_collate,
    "a ring in PyTorch's memory": Ring,
}


def processor_time():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def epoch(samples, batch_size, collate):
    """Return the seconds of a batch, those of the processors, and a sum of what was read."""
    before, total, count = processor_time(), 0, 0
    loader = DataLoader(samples, batch_size=batch_size, num_workers=1, collate_fn=collate)
    for batch in loader:
        total += int(batch.view(torch.uint8).flatten()[::4096].sum())
        count += 1
        if count == WARM_UP:
            start = time.perf_counter()
    seconds = (time.perf_counter() - start) / (count - WARM_UP)
    del loader
    return seconds, (processor_time() - before) / count, total


def row(title, other, ours, theirs, aim):
    a, b = map(statistics.median, (ours, theirs))
    print(f"{title}\t{other}\t{a:.9f}\t{b:.9f}\t{a / b:.3f}\t{aim or '-'}", flush=True)


def compare(title, samples, batch_size, aims):
    times = {way: [] for way in WAYS}
    for _ in range(ROUNDS):
        sums = set()
        for way, make in WAYS.items():
            *seconds, total = epoch(samples, batch_size, make())
            times[way].append(seconds)
            sums.add(total)
        assert len(sums) == 1
    what = [list(zip(*taken, strict=True)) for taken in times.values()]
    for i, kind in enumerate(("", ", processor time")):
        for j, other in enumerate(list(WAYS)[1:], 1):
            name = f"DataLoader: {title}{kind} ({tshare.backend()})"
            row(name, other, what[0][i], what[j][i], aims[i][j - 1])


def main():
    gc.disable()
    torch.set_num_threads(1)
    aims = ((0.25, 0.91), (0.35, None))
    for dtype in (torch.uint8, torch.float32):
        samples = Samples((3, 224, 224), dtype, 64 * 40)
        compare(f"64x3x224x224 {str(dtype)[6:]}", samples, 64, aims)
    compare("1 KiB", Samples((64,), torch.uint8, 16 * 1000), 16, ((1.0, None), (None, None)))


if __name__ == "__main__":
    main()
