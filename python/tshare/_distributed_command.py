# SPDX-License-Identifier: MIT
"""The command of tshare.distributed, which torchrun starts: fills every host with a region."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

import torch.distributed as dist

from . import distributed, weights
from ._tshare import Region, host_id

if TYPE_CHECKING:
    from collections.abc import Sequence

_ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="torchrun ... -m tshare.distributed",
        description="Give each host of a job one copy of a region, which rank 0 has.",
    )
    parser.add_argument("name", metavar="NAME")
    parser.add_argument(
        "--from", dest="path", metavar="PATH", help="let rank 0 load files of safetensors first"
    )
    parser.add_argument(
        "--persist", action="store_true", help="leave the regions, and end (needs --from)"
    )
    parser.add_argument(
        "--replace", action="store_true", help="replace regions that have the name on other hosts"
    )
    parser.add_argument("-j", "--json", action="store_true", help="print a JSON object")
    given = parser.parse_args(arguments)
    if given.persist and not given.path:
        parser.error("--persist needs --from: copies have the lifetime of rank 0's region")
    return given


def _load(given: argparse.Namespace) -> Region | None:
    """Return the region of the files, at rank 0."""
    if not given.path or dist.get_rank():
        return None
    lifetime = "persist" if given.persist else "users"
    return weights.load(given.path, given.name, lifetime=lifetime).region


def _share(failure: str | None) -> None:
    """End all ranks with the failure that rank 0 has had before replicate()."""
    box = [failure]
    dist.broadcast_object_list(box, src=0)
    if box[0]:
        raise OSError(box[0])


def _print(facts: dict[str, Any], as_json: bool) -> None:
    if as_json:
        text = json.dumps(facts, indent=2)
    else:
        hosts = "host" if facts["hosts"] == 1 else "hosts"
        text = (
            f"{facts['name']}: {facts['size']} bytes on {facts['hosts']} {hosts}, in "
            f"{facts['seconds']:.3f} s, {facts['rate'] / 1e6:.0f} MB/s"
        )
    print(text, flush=True)


def _catch_ends() -> int:
    """Return a descriptor that is readable after a signal, in whatever thread that arrives."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)
    for number in _ENDS:
        signal.signal(number, lambda *_: None)
    return reader


def _run(given: argparse.Namespace) -> None:
    kept, failure = None, None
    try:
        kept = _load(given)
    except (OSError, ValueError) as error:
        failure = str(error)
    _share(failure)
    begin = time.monotonic()
    with distributed.replicate(given.name, replace=given.replace) as region:
        took = time.monotonic() - begin
        # The region holds the memory of the files, and so their name.
        if kept is not None:
            kept.close()
        ended = _catch_ends()
        hosts: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(hosts, host_id())
        if dist.get_rank() == 0:
            facts = {
                "name": given.name,
                "size": region.size,
                "tensor_count": len(region),
                "hosts": len(set(hosts)),
                "ranks": len(hosts),
                "seconds": took,
                "rate": region.size / took,
            }
            _print(facts, given.json)
        if region.info().lifetime != "persist":
            os.read(ended, 1)


def main(arguments: Sequence[str] | None = None) -> int:
    given = _parse(arguments)
    if "RANK" not in os.environ:
        print("tshare.distributed: no rank (torchrun starts this program)", file=sys.stderr)
        return 1
    dist.init_process_group("gloo")
    try:
        _run(given)
    except (OSError, ValueError) as error:
        print(f"tshare.distributed: rank {dist.get_rank()}: {error}", file=sys.stderr)
        return 1
    finally:
        dist.destroy_process_group()
    return 0
