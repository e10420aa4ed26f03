# SPDX-License-Identifier: MIT
"""Files of tensors in the format safetensors: finds them, and reads their headers.

A file begins with eight bytes, the length of its header, little-endian. The header is an object
in JSON, in which each tensor has its type, its shape and its place in the bytes that follow.
Files are untrusted: each error is a ValueError that names the file, and the tensor.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import math
import os
import re
import reprlib
import stat
from collections.abc import Iterator
from io import FileIO
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

SUFFIX = ".safetensors"

# Other files in a folder of transformers, which loads the first two only without safetensors.
_PICKLED = ("pytorch_model.bin", "pytorch_model.bin.index.json")
_CONFIG = "config.json"
_ADAPTER_CONFIG = "adapter_config.json"
_SHARD = re.compile(
    rf"(?P<stem>.+)-\d+-of-(?P<count>\d{{1,9}})(?P<variant>(\.[^.]+)?){re.escape(SUFFIX)}$"
)

# The start of a Git LFS pointer, and the longest pointer.
_LFS = b"version https://git-lfs.github.com/spec/"
_LFS_MAX = 1024

# The format's own limit.
HEADER_MAX = 100_000_000

# The largest page size: the kernel drops whole pages from its cache.
_PAGE_MAX = 64 << 10

# Limits of libtshare's descriptors.
NAME_MAX = 1023
NDIM_MAX = 32

# The longest file name on Linux.
FILE_NAME_MAX = 255

# Bits of an element of each type. Region.create() takes these names, too.
BITS = {
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
    "BOOL": 8,
    "U8": 8,
    "I8": 8,
    "F8_E5M2": 8,
    "F8_E4M3": 8,
    "F8_E8M0": 8,
    "F8_E4M3FNUZ": 8,
    "F8_E5M2FNUZ": 8,
    "I16": 16,
    "U16": 16,
    "F16": 16,
    "BF16": 16,
    "I32": 32,
    "U32": 32,
    "F32": 32,
    "C64": 64,
    "F64": 64,
    "I64": 64,
    "U64": 64,
}

METADATA = "__metadata__"


# A value in a file may be as long as a header; an error shows its ends.
_shorter = reprlib.Repr()
_shorter.maxlist = NDIM_MAX
_shorter.maxstring = _shorter.maxother = 200


def shown(value: object) -> str:
    """Return repr() of a value from a file, shortened if it is long."""
    return _shorter.repr(value)


class Entry(NamedTuple):
    """A tensor in a file; offsets count from the file's first byte."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


class Header(NamedTuple):
    metadata: dict[str, str]
    tensors: dict[str, Entry]


class File(NamedTuple):
    """A file and its identity, which differs for another file, or a changed one."""

    path: Path
    identity: tuple[str, int, int, int, int]
    owner: int

    @property
    def size(self) -> int:
        return self.identity[3]


def identify(path: Path, status: os.stat_result) -> tuple[str, int, int, int, int]:
    return (path.name, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def find_file(path: Path) -> File:
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise ValueError(f"{path}: is no regular file")
    return File(path, identify(path, status), status.st_uid)


def changed(path: Path) -> OSError:
    return OSError(errno.ESTALE, "the file was changed while it was read", str(path))


def _open(path: str, flags: int) -> int:
    # If a FIFO was moved there, open() would wait for its writer.
    return os.open(path, flags | os.O_NONBLOCK)


@contextlib.contextmanager
def opened(file: File) -> Iterator[FileIO]:
    """Open a file that was found; OSError (ESTALE) if it was changed since, or is meanwhile."""
    with open(file.path, "rb", buffering=0, opener=_open) as found:
        if identify(file.path, os.fstat(found.fileno())) != file.identity:
            raise changed(file.path)
        yield found
        # Checked by path: another file may have been moved there.
        if identify(file.path, os.stat(file.path)) != file.identity:
            raise changed(file.path)


def _read(file: File, found: FileIO, length: int) -> bytes:
    content = b""
    while len(content) < length and (part := found.read(length - len(content))):
        content += part
    if len(content) < length:
        raise changed(file.path)
    return content


# JSON


def _integer(text: str) -> int | float:
    """Return a number without a fraction. -0 is a float, as for safetensors."""
    return -0.0 if text == "-0" else int(text)


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"{shown(key)} stands there twice")
            seen.add(key)
    return found


def _check_pointer(path: Path, content: bytes) -> None:
    """Refuse a Git LFS pointer, which "git lfs pull" would replace by a large file."""
    if content.startswith(_LFS):
        size = re.search(rb"^size (\d{1,19})$", content, re.MULTILINE)
        what = f"a file of {size[1].decode()} bytes" if size else "the file"
        raise ValueError(f"{path}: is a Git LFS pointer to {what} (fetch it by git lfs pull)")


def _parse(path: Path, what: str, content: bytes) -> dict[str, Any]:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: {what}: is not UTF-8 ({error})") from None
    try:
        parsed = json.loads(
            text,
            object_pairs_hook=_without_duplicates,
            parse_constant=_refuse_constant,
            parse_int=_integer,
        )
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: {what}: is no JSON to read: {error}") from None
    if not isinstance(parsed, dict):
        raise ValueError(f"{path}: {what}: must be a JSON object")
    return parsed


def _read_json(file: File, what: str) -> dict[str, Any]:
    if file.size > HEADER_MAX:
        raise ValueError(f"{file.path}: {what}: its {file.size} bytes are more than {HEADER_MAX}")
    with opened(file) as found:
        content = _read(file, found, file.size)
    _check_pointer(file.path, content)
    return _parse(file.path, what, content)


# The index


def _is_file_name(name: object) -> bool:
    return (
        isinstance(name, str)
        and "/" not in name
        and name.endswith(SUFFIX)
        and len(name) <= FILE_NAME_MAX
    )


def _read_index(index: File) -> dict[str, str]:
    """Return the name of each tensor's file."""
    path = index.path
    places = _read_json(index, "index").get("weight_map")
    if not isinstance(places, dict):
        raise ValueError(f"{path}: weight_map: must be an object")
    if not places:
        raise ValueError(f"{path}: weight_map: names no file")
    for name, file in places.items():
        if not _is_file_name(file):
            raise ValueError(
                f"{path}: weight_map: {shown(name)}: must be the name of a file *{SUFFIX} in the "
                f"same folder, not {shown(file)}"
            )
    return places


# Finding files


class Found(NamedTuple):
    """Files of tensors, in the order of their names."""

    files: list[File]
    # The index, and the tensors that it lists for each file.
    index_file: File | None
    shards: dict[str, set[str]]


def _is_index(name: str) -> bool:
    """Whether this is the name of an index: NAME.index.json, or NAME.index.VARIANT.json."""
    return re.search(r"\.index(\.[^.]+)?\.json$", name) is not None


def find(given: Path) -> Found:
    """Return the files at a path: a file, an index with its files, or the files of a folder.

    In a folder they are the files that transformers' from_pretrained() would load. If it would
    load none of them, the folder may have only one set of files.
    """
    if given.is_dir():
        return _find_in_folder(given)
    if _is_index(given.name):
        return _find_by_index(given)
    return Found([find_file(given)], None, {})


def _find_by_index(path: Path) -> Found:
    index = find_file(path)
    shards: dict[str, set[str]] = {}
    for name, shard in _read_index(index).items():
        shards.setdefault(shard, set()).add(name)
    files = []
    for shard in sorted(shards):
        try:
            files.append(find_file(path.parent / shard))
        except FileNotFoundError as error:
            raise FileNotFoundError(
                errno.ENOENT, f"the file is in {path.name}, and missing", error.filename
            ) from None
    return Found(files, index, shards)


def _named_by_config(folder: Path) -> Path | None:
    """Return the file or index that config.json names for from_pretrained(), if it does."""
    path = folder / _CONFIG
    if not path.exists():
        return None
    name = _read_json(find_file(path), "config").get("transformers_weights")
    if name is None:
        return None
    if not isinstance(name, str) or not name.endswith((SUFFIX, f"{SUFFIX}.index.json")):
        raise ValueError(f"{path}: transformers_weights: must be a file *{SUFFIX}, or an index")
    if "/" in name:
        raise ValueError(f"{path}: transformers_weights: must be in the folder, not {shown(name)}")
    return folder / name


def _first_choice(folder: Path) -> Path | None:
    """Return the file or index that from_pretrained() would load, if it is of safetensors."""
    # Without a config.json, from_pretrained() loads the adapter's model from elsewhere.
    if (folder / _ADAPTER_CONFIG).exists() and not (folder / _CONFIG).exists():
        return None
    names = (f"model{SUFFIX}", f"model{SUFFIX}.index.json")
    # Like transformers, ignore a link to nothing.
    there = (path for path in map(folder.joinpath, names) if path.exists())
    return _named_by_config(folder) or next(there, None)


def _sets_in_folder(folder: Path) -> list[list[Path]]:
    """Return the sets of files: each index with its files; shards without an index; others."""
    # macOS keeps a file's attributes in "._NAME".
    paths = sorted(path for path in folder.iterdir() if not path.name.startswith("._"))
    indexes = [path for path in paths if SUFFIX in path.name and _is_index(path.name)]
    sets = [[index] for index in indexes]
    named = {file.path for index in indexes for file in _find_by_index(index).files}
    shards: dict[tuple[str, ...], list[Path]] = {}
    for path in paths:
        if path.name.endswith(SUFFIX) and path not in named:
            shard = _SHARD.match(path.name)
            key = shard.group("stem", "count", "variant") if shard else (path.name,)
            shards.setdefault(key, []).append(path)
    for key, found in shards.items():
        if len(key) > 1 and len(found) != int(key[1]):
            raise FileNotFoundError(
                errno.ENOENT,
                f"has {len(found)} of {int(key[1])} files, and no index",
                str(found[0]),
            )
        sets.append(found)
    return sets


def _find_in_folder(folder: Path) -> Found:
    chosen = _first_choice(folder)
    if chosen is not None:
        return find(chosen)
    sets = _sets_in_folder(folder)
    pickled = [path for path in map(folder.joinpath, _PICKLED) if path.exists()]
    names = [paths[0].name for paths in sets] + [path.name for path in pickled]
    if not sets:
        what = f" ({names[0]} is of another format)" if pickled else ""
        raise FileNotFoundError(f"{folder}: has no file *{SUFFIX}{what}")
    if len(names) > 1:
        raise ValueError(f"{folder}: has several models: {', '.join(names)} (pass the path of one)")
    if len(sets[0]) == 1:
        return find(sets[0][0])
    return Found([find_file(path) for path in sets[0]], None, {})


# The header


def is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < 1 << 63


def _check_name(name: str) -> None:
    try:
        length = len(name.encode())
    except UnicodeEncodeError:
        raise ValueError("its name is not Unicode text") from None
    if not 0 < length <= NAME_MAX or "\0" in name:
        raise ValueError(f"its name must have 1 to {NAME_MAX} bytes, without a NUL")


def _check_entry(found: object, start: int, size: int) -> Entry:
    """Check a tensor's entry in a header; the file has size bytes of data from start on."""
    if not isinstance(found, dict):
        raise ValueError("must be an object")
    dtype, shape, offsets = (found.get(key) for key in ("dtype", "shape", "data_offsets"))
    bits = BITS.get(dtype) if isinstance(dtype, str) else None
    if not isinstance(dtype, str) or bits is None:
        raise ValueError(f"dtype: {shown(dtype)} is unknown")
    if not isinstance(shape, list) or not all(map(is_count, shape)):
        raise ValueError(f"shape: must be a list of counts, not {shown(shape)}")
    if len(shape) > NDIM_MAX:
        raise ValueError(f"shape: has more than {NDIM_MAX} dimensions")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(is_count, offsets)):
        raise ValueError(f"data_offsets: must be two counts, not {shown(offsets)}")
    begin, end = offsets
    if begin > end or end > size:
        raise ValueError(f"data_offsets: {offsets} are not inside the file's {size} bytes of data")
    # A copy of the tensor multiplies the other lengths even if one is 0.
    if math.prod(length or 1 for length in shape) * bits >= 1 << 63:
        raise ValueError(f"shape: {shape} has more elements than can be counted")
    if math.prod(shape) * bits != (end - begin) * 8:
        raise ValueError(
            f"shape: {shape} of {dtype} are not the {end - begin} bytes of data_offsets"
        )
    return Entry(dtype, tuple(shape), start + begin, start + end)


def _check_order(path: Path, tensors: dict[str, Entry], start: int, size: int) -> None:
    """Check that each byte of the data belongs to exactly one tensor."""
    at = start
    for name, entry in sorted(tensors.items(), key=lambda item: item[1][2:]):
        if entry.begin != at:
            what = "overlaps with another" if entry.begin < at else "begins behind a hole"
            raise ValueError(f"{path}: tensor {shown(name)}: data_offsets: {what}")
        at = entry.end
    if at != start + size:
        raise ValueError(f"{path}: header: {start + size - at} bytes at the end are no tensor's")


def _check_metadata(path: Path, metadata: object) -> dict[str, str]:
    if metadata is None:
        return {}
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise ValueError(f"{path}: {METADATA}: must be an object of strings")
    for text in itertools.chain(*metadata.items()):
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ValueError(f"{path}: {METADATA}: {shown(text)} is not Unicode text") from None
    return metadata


def read_header(file: File) -> Header:
    """Read and check the header of a file."""
    path = file.path
    if file.size < 8:
        raise ValueError(f"{path}: is too short for a file of safetensors")
    with opened(file) as binary:
        # No readahead: those pages would stay in the page cache.
        os.posix_fadvise(binary.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        first = _read(file, binary, 8)
        length = int.from_bytes(first, "little")
        if length > HEADER_MAX:
            _check_pointer(path, first + binary.read(_LFS_MAX))
            raise ValueError(
                f"{path}: is no file of safetensors: its first eight bytes, the length of the "
                f"header, are {length}, more than {HEADER_MAX}"
            )
        if length > file.size - 8:
            raise ValueError(f"{path}: header: the file ends before its {length} bytes")
        content = _read(file, binary, length)
        end = -(-(8 + length) // _PAGE_MAX) * _PAGE_MAX
        os.posix_fadvise(binary.fileno(), 0, end, os.POSIX_FADV_DONTNEED)
    found = _parse(path, "header", content)
    metadata = _check_metadata(path, found.pop(METADATA, None))
    start = 8 + length
    tensors = {}
    for name, entry in found.items():
        try:
            _check_name(name)
            tensors[name] = _check_entry(entry, start, file.size - start)
        except ValueError as error:
            raise ValueError(f"{path}: tensor {shown(name)}: {error}") from None
    _check_order(path, tensors, start, file.size - start)
    return Header(metadata, tensors)
