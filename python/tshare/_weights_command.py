# SPDX-License-Identifier: MIT
"""The verb weights of the command tshare, which runs this module: loads files of weights, and shows
and verifies loaded ones.
"""

from __future__ import annotations

import argparse
import difflib
import io
import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _safetensors, weights
from ._tshare import Region
from ._tshare import list as list_regions
from ._weights_layout import path_arg

if TYPE_CHECKING:
    from collections.abc import Sequence

# Exit statuses, as in tshare(1).
EXIT_OK = 0
EXIT_FAILED = 1
EXIT_MISSING = 3

# Bytes that are compared at a time.
_PIECE = 4 << 20

_BAR = 40

# Signals that end a process which keeps weights for others.
_ENDS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}


def _printable(text: str) -> str:
    """Return the text with escapes for what a terminal obeys, or doesn't show."""
    return "".join(
        char
        if char.isprintable() and char != "\\"
        else char.encode("unicode_escape").decode("ascii")
        for char in text
    )


def _failure(text: str) -> int:
    print(f"tshare weights: {_printable(text)}", file=sys.stderr)
    return EXIT_FAILED


def _failure_of_name(name: str, text: str) -> int:
    """Print an error, and perhaps the name of the region that was meant."""
    _failure(text)
    names = [info.name for info in list_regions() if info.name]
    for near in difflib.get_close_matches(name, names, 1, 0.8):
        print(f"Did you mean '{_printable(near)}'?", file=sys.stderr)
    return EXIT_MISSING


def _show_bar(done: int, total: int) -> None:
    filled = _BAR * done // total if total else _BAR
    end = "\n" if done == total else ""
    print(
        f"\r[{'#' * filled:{_BAR}}] {done} of {total} bytes", end=end, file=sys.stderr, flush=True
    )


def _facts(loaded: weights.Weights) -> dict[str, Any]:
    info = loaded.region.info()
    return {
        "name": info.name,
        "id": info.id,
        "size": info.size,
        "tensor_count": len(loaded),
        "lifetime": info.lifetime,
        "files": {name: size for name, (_, size) in loaded._manifest["places"].items()},
        "metadata": loaded.metadata,
        "copied": list(loaded.copied),
    }


def _print_facts(loaded: weights.Weights, as_json: bool) -> None:
    facts = _facts(loaded)
    if as_json:
        print(json.dumps(facts, indent=2))
        return
    lines = [
        ("region", facts["name"]),
        ("size", f"{facts['size']} bytes"),
        ("tensors", facts["tensor_count"]),
        ("lifetime", facts["lifetime"]),
        *(("file", f"{name}, {size} bytes") for name, size in facts["files"].items()),
        *(("metadata", f"{key}: {value}") for key, value in facts["metadata"].items()),
        *(("copied", name) for name in facts["copied"]),
    ]
    for label, value in lines:
        print(f"{label:8}  {_printable(str(value))}")


def _load(given: argparse.Namespace) -> int:
    loaded = weights.load(
        given.path,
        given.name,
        replace=given.replace,
        lifetime="persist" if given.persist else "users",
        progress=_show_bar if sys.stderr.isatty() else None,
    )
    with loaded:
        if not given.persist:
            # A signal sent as soon as the facts are printed waits for sigwait().
            signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)
        _print_facts(loaded, given.json)
        sys.stdout.flush()
        if not given.persist:
            if sys.stderr.isatty():
                held = (
                    f"tshare weights: holds {loaded.region.name} until it is interrupted (Ctrl-C)"
                )
                print(_printable(held), file=sys.stderr, flush=True)
            signal.sigwait(_ENDS)
    return EXIT_OK


def _show(given: argparse.Namespace) -> int:
    with weights.open(given.name) as loaded:
        _print_facts(loaded, given.json)
    return EXIT_OK


def _first_difference(region: Region, path: Path, offset: int, size: int) -> int | None:
    """Return a file's first byte that differs in the region, or is missing."""
    at = 0
    with open(path, "rb", buffering=0) as file, memoryview(region) as view:
        while piece := file.read(_PIECE):
            with view[offset + at : offset + min(at + len(piece), size)] as held:
                if held != piece:
                    same = os.path.commonprefix([bytes(held), piece])
                    return at + len(same)
            at += len(piece)
    return None if at == size else at


def _verify(given: argparse.Namespace) -> int:
    files = [file.path for file in _safetensors.find(path_arg(given.path)).files]
    with weights.open(given.name) as loaded:
        places = loaded._manifest["places"]
        if not places:
            raise ValueError(f"{given.name}: has only parts of files, which can't be compared")
        if len(files) != len(places):
            raise ValueError(
                f"{given.path}: leads to {len(files)} files, and {given.name} has {len(places)}"
            )
        # Both are in the order of names: a copy of the files may have other names.
        for path, (offset, size) in zip(files, places.values(), strict=True):
            at = _first_difference(loaded.region, path, offset, size)
            if at is not None:
                raise ValueError(f"{path}: differs from byte {at} on")
    if given.json:
        print(json.dumps({"name": given.name, "files": list(places), "same": True}, indent=2))
    else:
        print(_printable(f"{given.name}: has the bytes of {', '.join(places)}"))
    return EXIT_OK


def main(arguments: Sequence[str] | None = None) -> int:
    # Characters that the locale's encoding lacks are printed as escapes.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    parser = argparse.ArgumentParser(
        prog="tshare weights", description="Load model weights once for all processes."
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    load = verbs.add_parser("load", help="read files of safetensors into a region")
    load.add_argument("path", metavar="PATH")
    load.add_argument("--name", help="name of the region (default: made of the files)")
    load.add_argument("--persist", action="store_true", help="leave the region, and end")
    load.add_argument("--replace", action="store_true", help="replace a region of other files")
    show = verbs.add_parser("show", help="show what a region was loaded from")
    show.add_argument("name", metavar="NAME")
    verify = verbs.add_parser("verify", help="compare a region with its files, byte for byte")
    verify.add_argument("name", metavar="NAME")
    verify.add_argument("path", metavar="PATH")
    for verb in (load, show, verify):
        verb.add_argument("-j", "--json", action="store_true", help="print a JSON object")
    given = parser.parse_args(arguments)
    try:
        return {"load": _load, "show": _show, "verify": _verify}[given.verb](given)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except (OSError, ValueError) as error:
        text = getattr(error, "strerror", None) or str(error)
        file = getattr(error, "filename", None)
        if isinstance(error, FileNotFoundError) and given.verb != "load" and file == given.name:
            return _failure_of_name(given.name, text)
        # Arguments of load() are options here.
        text = re.sub(r"\b(replace)=True\b", r"--\1", text)
        return _failure(f"{file}: {text}" if file else text)


if __name__ == "__main__":
    sys.exit(main())
