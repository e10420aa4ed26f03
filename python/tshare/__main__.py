# SPDX-License-Identifier: MIT
"""The verbs info, list, show, unlink and weights of the command tshare, for machines that have only
the Python package.

    python -m tshare list --json

Output and exit statuses are those of the command with --bytes when its output is not a terminal:
see tshare(1). Columns, facts and members from /proc and debugfs are missing, and so are those of
the installed module.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import grp
import io
import json
import math
import os
import pwd
import re
import struct
import sys
import unicodedata
from itertools import islice, product
from operator import mul
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tshare

from ._tshare import backends, cuda_driver, raw_interface

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from . import Limits, Region, RegionInfo, Tensor

DEVICE = "/dev/tshare"
LIMITS = (
    "abi_version",
    "page_size",
    "huge_page_size",
    "bytes_limit",
    "bytes_used",
    "region_bytes_max",
    "contiguous",
    "dmabuf",
)
FLAGS = ("draft", "dma32", "contiguous", "readonly", "foreign", "pool")
# The most elements of a tensor that are printed, and the types that are printed.
VALUES = 8
PRINTED = re.compile(r"bool|u?int(8|16|32|64)|bfloat16|float(16|32|64)|complex(64|128)")
# The struct module's letters for these types; unsigned types have capital letters.
LETTERS = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "float16": "e",
    "float32": "f",
    "float64": "d",
    "complex64": "ff",
    "complex128": "dd",
}

# Bytes of a region's name.
NAME_MAX = 127

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_MISSING = 3


# Characters that reorder the text around them, end a line, or take no place, as in tools/text.c.
_INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ufeff\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e00ff"
)
# Characters that form emoji and letters with a non-ASCII character before them.
_JOINING = "\u180b-\u180d\u180f\u200c\u200d\ufe00-\ufe0f\U000e0100-\U000e01ef"
HIDDEN = re.compile(
    # Escapes are ASCII, also those of bytes that aren't UTF-8.
    f"(?P<joined>[^\0-\x9f\ud800-\udfff{_INVISIBLE}{_JOINING}][{_JOINING}]+)"
    f"|[{_INVISIBLE}{_JOINING}]"
    # A backslash that would look like the start of an escape.
    r"|\\(?=[uU])"
)


def _reveal(found: re.Match[str]) -> str:
    if found["joined"]:
        return found[0]
    code = ord(found[0])
    return f"\\U{code:08x}" if code > 0xFFFF else f"\\u{code:04x}"


def _escaped(char: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in char.encode(errors="surrogateescape"))


def _printable(text: str) -> str:
    """The text with escapes for control characters and hidden characters.

    A backslash that would begin an escape is escaped, too, so that escapes are unambiguous.
    """
    text = HIDDEN.sub(_reveal, text)
    return "".join(
        _escaped(char)
        if ord(char) < 0x20
        or 0x7F <= ord(char) < 0xA0
        or 0xDC80 <= ord(char) <= 0xDCFF
        or text.startswith(r"\x", place)
        else char
        for place, char in enumerate(text)
    )


def _cell(text: str) -> str:
    """The text with escapes, also for characters that the C library calls unprintable."""
    text = HIDDEN.sub(_reveal, text)
    return "".join(
        _escaped(char)
        if unicodedata.category(char) in ("Cc", "Cs", "Cn") or text.startswith(r"\x", place)
        else char
        for place, char in enumerate(text)
    )


def _width(text: str) -> int:
    """Number of columns that the text takes on a terminal."""
    return sum(
        0
        if unicodedata.category(char) in ("Mn", "Me", "Cf")
        else 1 + (unicodedata.east_asian_width(char) in "WF")
        for char in text
    )


def _print_table(rows: Sequence[Sequence[object]], right: Sequence[int] = ()) -> None:
    """Print rows with two spaces between columns; those in `right` are aligned to the right."""
    texts = [[_cell(str(cell)) for cell in row] for row in rows]
    widths = [max(map(_width, column)) for column in zip(*texts, strict=True)]
    for row in texts:
        padding = [" " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)]
        # Nothing follows the last column.
        padding[-1] = ""
        print(
            "  ".join(
                space + cell if i in right else cell + space
                for i, (cell, space) in enumerate(zip(row, padding, strict=True))
            )
        )


def _failure(verb: str, text: str) -> int:
    print(f"tshare {verb}: {_printable(text)}", file=sys.stderr)
    return EXIT_FAILED


def _edit_distance(a: bytes, b: bytes) -> int:
    """Letters to insert, remove, replace or swap with the next one to turn a into b."""
    before: list[int] = []
    above = list(range(len(b) + 1))
    for i, letter in enumerate(a, 1):
        row = [i]
        for j, other in enumerate(b, 1):
            least = min(above[j] + 1, row[-1] + 1, above[j - 1] + (letter != other))
            if before and j > 1 and a[i - 2] == other and letter == b[j - 2]:
                least = min(least, before[j - 2] + 1)
            row.append(least)
        before, above = above, row
    return above[-1]


def _failure_of_name(verb: str, name: str, error: OSError | ValueError) -> int:
    """Print an error, and perhaps the name of the region that was meant."""
    _failure(verb, _reason(error))
    if not isinstance(error, FileNotFoundError):
        return EXIT_FAILED
    word = os.fsencode(name)
    if 0 < len(word) <= NAME_MAX:
        distance, found = 2 if len(word) < 6 else 3 if len(word) < 9 else 4, b""
        for info in tshare.list():
            candidate = os.fsencode(info.name or "")
            found_distance = _edit_distance(word, candidate)
            if found_distance < min(distance, len(candidate)):
                distance, found = found_distance, candidate
        if found:
            print(f"Did you mean '{_printable(os.fsdecode(found))}'?", file=sys.stderr)
    return EXIT_MISSING


def _reason(error: OSError | ValueError) -> str:
    return getattr(error, "strerror", None) or str(error)


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=2))


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _group(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


def _flags(info: RegionInfo) -> str:
    lifetime = [info.lifetime] if info.lifetime != "maker" else []
    return ",".join(lifetime + [flag for flag in FLAGS if getattr(info, flag)]) or "-"


# info


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text().rstrip("\n")
    except OSError:
        return None


def _module_state() -> str:
    if Path("/sys/module/tshare").is_dir():
        state = _read("/sys/module/tshare/initstate")
        if state is None:
            return "built in"
        return {"coming": "being loaded", "going": "being unloaded"}.get(state, "loaded")
    known = _read(f"/lib/modules/{os.uname().release}/modules.dep") or ""
    return "not loaded" if re.search(r"(^|/)tshare\.ko[^/:]*:", known, re.M) else "not installed"


def _signature_required() -> bool:
    """Whether the kernel takes only signed modules, as a locked-down kernel does, too."""
    if (_read("/sys/module/module/parameters/sig_enforce") or "").startswith("Y"):
        return True
    lockdown = _read("/sys/kernel/security/lockdown")
    return lockdown is not None and "[none]" not in lockdown


def _device() -> dict[str, Any] | None:
    try:
        stat = os.stat(DEVICE)
    except OSError:
        return None
    return {
        "path": DEVICE,
        "mode": f"{stat.st_mode & 0o7777:04o}",
        "uid": stat.st_uid,
        "gid": stat.st_gid,
    }


def _backend_json(found: Limits | str, used: bool) -> dict[str, Any]:
    if isinstance(found, str):
        return {"usable": False, "used": used, "reason": found}
    return {"usable": True, "used": used, **{name: getattr(found, name) for name in LIMITS}}


def _bytes(count: int) -> str:
    if count == 2**64 - 1:
        return "none"
    number, unit = float(count), ""
    for larger in "KMGT":
        # A number that rounds to 1024.0 is one of the next unit.
        if number < (1023.95 if unit else 1024):
            break
        number, unit = number / 1024, larger
    exact = f"{count} bytes"
    return f"{number:.1f}".removesuffix(".0") + f"{unit} ({exact})" if unit else exact


def _backend_facts(name: str, found: Limits | str, used: bool) -> list[tuple[str, object]]:
    if isinstance(found, str):
        return [(name, f"not usable: {found}")]
    return [
        (name, "used" if used else "usable, but not used"),
        *([("  ABI version", found.abi_version)] if found.abi_version else []),
        ("  pages", f"{found.page_size} bytes, up to {found.huge_page_size}"),
        ("  limit", _bytes(found.bytes_limit)),
        ("  in use", _bytes(found.bytes_used)),
        ("  largest region", _bytes(found.region_bytes_max)),
        ("  contiguous", "yes" if found.contiguous else "no"),
        ("  dma-buf", "yes" if found.dmabuf else "no"),
    ]


def _cuda_json(found: tuple[int, int] | str) -> dict[str, Any]:
    if isinstance(found, str):
        return {"usable": False, "reason": found}
    return {"usable": True, "driver_version": found[0], "device_count": found[1]}


def _cuda_fact(found: tuple[int, int] | str) -> str:
    if isinstance(found, str):
        return f"not usable: {found.removeprefix('CUDA: ')}"
    version, devices = found
    return f"usable: driver for CUDA {version // 1000}.{version % 1000 // 10}, devices: {devices}"


def _info(as_json: bool) -> int:
    error = used = None
    try:
        used = tshare.backend()
    except (OSError, ValueError) as problem:
        error = _reason(problem)
    kernel, module, device = os.uname().release, _module_state(), _device()
    module_version = _read("/sys/module/tshare/version")
    if as_json:
        found = {name: _backend_json(limits, name == used) for name, limits in backends()}
        _print_json(
            {
                "version": tshare.__version__,
                "kernel": kernel,
                "module": module,
                "module_version": module_version,
                "module_signature_required": _signature_required(),
                "device": device,
                "backends": found,
                "cuda": _cuda_json(cuda_driver()),
            }
        )
    else:
        place = f"{DEVICE} does not exist"
        if device:
            owner, group = _user(device["uid"]), _group(device["gid"])
            place = f"{DEVICE}, owner {owner}, group {group}, mode {device['mode']}"
        facts: list[tuple[str, object]] = [
            ("tshare", tshare.__version__),
            ("kernel", kernel),
            ("module", module),
            *([("  version", module_version)] if module_version is not None else []),
            ("device", place),
        ]
        for name, limits in backends():
            facts += _backend_facts(name, limits, name == used)
        facts.append(("CUDA", _cuda_fact(cuda_driver())))
        _print_table(facts)
    return _failure("info", error) if error else EXIT_OK


# list


def _region_json(info: RegionInfo) -> dict[str, Any]:
    return {
        "name": info.name or "",
        "id": info.id,
        "size": info.size,
        "tensor_count": info.tensor_count,
        "uid": info.uid,
        "gid": info.gid,
        "mode": f"{info.mode:04o}",
        "node": info.node,
        "lifetime": info.lifetime,
        **{flag: getattr(info, flag) for flag in FLAGS},
    }


def _list(as_json: bool) -> int:
    infos = sorted(tshare.list(), key=lambda info: os.fsencode(info.name or ""))
    if as_json:
        _print_json([_region_json(info) for info in infos])
        return EXIT_OK
    rows = [
        (info.size, info.tensor_count, f"{info.mode:04o}", _user(info.uid), _flags(info), info.name)
        for info in infos
    ]
    if rows:
        _print_table([("SIZE", "TENSORS", "MODE", "OWNER", "FLAGS", "NAME"), *rows], right=(0, 1))
    return EXIT_OK


# show


def _is_contiguous(shape: Sequence[int], strides: Sequence[int]) -> bool:
    expected, contiguous = 1, True
    for length, stride in zip(reversed(shape), reversed(strides), strict=True):
        if not length:
            return True
        contiguous &= length == 1 or stride == expected
        expected *= length
    return contiguous


class _Described:
    """Description of a tensor in its region, with strides in elements."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        self.name, numbers, self.shape, self.strides, self.offset, *_ = tensor._spec
        self.dtype: str = tensor.dtype
        if self.dtype.startswith("dlpack"):
            self.dtype = str(numbers)
        self.contiguous = _is_contiguous(self.shape, self.strides)

    def json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "dtype": self.dtype,
            "shape": self.shape,
            "strides": self.strides,
            "byte_offset": self.offset,
            "nbytes": self.tensor.nbytes,
            "contiguous": self.contiguous,
        }

    def row(self) -> Sequence[object]:
        return (
            self.name,
            self.dtype,
            _dims(self.shape),
            "" if self.contiguous else _dims(self.strides),
            self.offset,
            self.tensor.nbytes,
            self._values(),
        )

    def _values(self) -> str:
        if not PRINTED.fullmatch(self.dtype):
            return ""
        size, address = self.tensor.itemsize, _address(self.tensor)
        first = [
            _value(
                self.dtype,
                ctypes.string_at(address + size * sum(map(mul, place, self.strides)), size),
            )
            for place in islice(product(*map(range, self.shape)), VALUES)
        ]
        more = ["..."] if math.prod(self.shape) > VALUES else []
        return " ".join(first + more)


def _address(tensor: Tensor) -> int:
    """Return the address of the first element; the array interface has no type for bfloat16."""
    if tensor.dtype == "bfloat16":
        return int(raw_interface(tensor)["data"][0])
    return int(tensor.__array_interface__["data"][0])


def _dims(dims: Sequence[int]) -> str:
    return f"({', '.join(map(str, dims))})"


def _value(dtype: str, element: bytes) -> str:
    """Return the value of an element as C's printf() writes it."""
    if dtype == "bfloat16":
        dtype, element = "float32", b"\0\0" + element
    letters = LETTERS[dtype.removeprefix("u")]
    values = struct.unpack(letters.upper() if dtype.startswith("u") else letters, element)
    if dtype.startswith("complex"):
        return f"{_float(values[0])}{_float(values[1], '+')}j"
    return _float(values[0]) if dtype.startswith("float") else str(int(values[0]))


def _float(value: float, sign: str = "") -> str:
    if math.isnan(value):
        return f"{'-' if math.copysign(1, value) < 0 else sign}nan"
    return f"{value:{sign}g}"


def _open(name: str) -> Region:
    """Open for writing if possible, since info() reports the access of this opening."""
    try:
        return tshare.Region.open(name)
    except PermissionError:
        return tshare.Region.open(name, readonly=True)


def _show(name: str, as_json: bool) -> int:
    try:
        region = _open(name)
    except (OSError, ValueError) as error:
        return _failure_of_name("show", name, error)
    with region:
        info = region.info()
        tensors = [_Described(tensor) for tensor in region.values()]
        if as_json:
            _print_json(
                {
                    **_region_json(info),
                    "backend": region.backend,
                    "segments": info.segments or None,
                    "phys_addr": info.phys_addr or None,
                    "tensors": [tensor.json() for tensor in tensors],
                }
            )
            return EXIT_OK
        _print_table(
            [
                ("region", region.name),
                ("backend", region.backend),
                ("id", info.id),
                ("size", f"{info.size} bytes"),
                ("owner", _user(info.uid)),
                ("mode", f"{info.mode:04o}"),
                ("flags", _flags(info)),
                *([("node", info.node)] if info.node is not None else []),
                *([("segments", info.segments)] if info.segments else []),
                *([("address", f"{info.phys_addr:#x}")] if info.phys_addr else []),
                ("generation", region.generation),
            ]
        )
        if tensors:
            print()
            head = ("TENSOR", "TYPE", "SHAPE", "STRIDES", "OFFSET", "SIZE", "VALUES")
            _print_table([head, *(tensor.row() for tensor in tensors)], right=(4, 5))
    return EXIT_OK


# unlink


def _unlink(names: Sequence[str]) -> int:
    status = EXIT_OK
    for name in names:
        try:
            tshare.unlink(name)
        except (OSError, ValueError) as error:
            failed = _failure_of_name("unlink", name, error)
            # A region that is missing matters less than any other failure.
            status = status if status == EXIT_FAILED else failed
    return status


def _versions() -> str:
    """Return the versions of the package, of the library in it, and of the module."""
    try:
        module = Path("/sys/module/tshare/version").read_text().strip()
    except OSError:
        module = "not loaded"
    return f"tshare {tshare.__version__}, library {tshare.__version__}, module {module}"


def _parse(arguments: Sequence[str] | None) -> tuple[str, Callable[[], int]]:
    parser = argparse.ArgumentParser(
        prog="python -m tshare",
        description="List, show and remove named regions of shared memory that hold tensors.",
    )
    parser.add_argument("-V", "--version", action="version", version=_versions())
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")

    def add(verb: str, summary: str, as_json: str | None) -> argparse.ArgumentParser:
        added = verbs.add_parser(verb, help=summary, description=summary)
        if as_json:
            added.add_argument("-j", "--json", action="store_true", help=as_json)
        return added

    add(
        "info",
        "show the state of the module, the backends with their limits, and CUDA",
        "print a JSON object",
    )
    add("list", "list the named regions that you may read", "print a JSON array")
    show = add(
        "show",
        "show a region, its tensors and their first values",
        "print a JSON object, without values",
    )
    show.add_argument("name", metavar="NAME")
    unlink = add("unlink", "remove names; the memory stays until its last user closes it", None)
    unlink.add_argument("names", metavar="NAME", nargs="+")

    verbs.add_parser("weights", help="load model weights once for all processes", add_help=False)

    given = parser.parse_args(arguments)
    return given.verb, {
        "info": lambda: _info(given.json),
        "list": lambda: _list(given.json),
        "show": lambda: _show(given.name, given.json),
        "unlink": lambda: _unlink(given.names),
    }[given.verb]


def _do(verb: str, run: Callable[[], int]) -> int:
    try:
        return run()
    except (OSError, ValueError) as error:
        return _failure(verb, _reason(error))


def main(arguments: Sequence[str] | None = None) -> int:
    # Characters that the locale's encoding lacks are printed as escapes.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    given = sys.argv[1:] if arguments is None else arguments
    if given and given[0] == "weights":
        # weights prints before it ends, and has its own parser.
        from . import _weights_command

        return _weights_command.main(given[1:])
    verb, run = _parse(given)
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        status = _do(verb, run)
    # Output that can't be written, as to a full disk, makes the command fail.
    try:
        print(text.getvalue(), end="", flush=True)
    except OSError:
        # The interpreter flushes the buffer once more at its end, which must not fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _failure(verb, "standard output: write error")
    return status


if __name__ == "__main__":
    sys.exit(main())
