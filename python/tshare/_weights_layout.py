# SPDX-License-Identifier: MIT
"""Selects the files and tensors for tshare.weights.load(), and places them in the region."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from . import _safetensors
from ._safetensors import METADATA, Entry, File

# Alignment of a file in the region, for huge pages and O_DIRECT.
_FILE_ALIGNMENT = 2 << 20
_BLOCK = 4096
_TENSOR_ALIGNMENT = 64

# Tensors this near to one another are read by one read, with the bytes between them.
_GAP = 64 << 10


# Arguments


def path_arg(given: object, name: str = "path") -> Path:
    if not isinstance(given, str | bytes | os.PathLike):
        raise TypeError(f"{name}: must be a path, not {type(given)}")
    path = os.fsdecode(given)
    # Path("") would be the current folder.
    if not path:
        raise ValueError(f"{name}: is empty")
    if "\0" in path:
        raise ValueError(f"{name}: has a NUL")
    return Path(path)


def names_arg(only: object) -> frozenset[str] | None:
    if only is None:
        return None
    if isinstance(only, str) or not isinstance(only, Iterable):
        raise TypeError(f"only: must be a collection of names, not {type(only)}")
    names = list(only)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"only: must have names, not {name!r}")
    return frozenset(names)


# Layout


class Segment(NamedTuple):
    """A part of a file, and its place in the region."""

    file_offset: int
    offset: int
    length: int


class Layout:
    """The places of files and tensors in a region."""

    def __init__(self) -> None:
        self.end = 0
        self.specs: dict[str, tuple[Any, ...]] = {}
        self.segments: list[tuple[File, list[Segment]]] = []
        self.metadata: dict[str, str] = {}
        self.unaligned: list[tuple[str, Entry, int]] = []
        self.copies: list[tuple[int, int, int]] = []

    def _take(self, length: int, alignment: int) -> int:
        start = -(-self.end // alignment) * alignment
        self.end = start + length
        return start

    def _place_whole(self, file: File) -> list[Segment]:
        return [Segment(0, self._take(file.size, _FILE_ALIGNMENT), file.size)]

    def _place_parts(self, file: File, entries: Collection[Entry]) -> list[Segment]:
        parts: list[list[int]] = []
        for entry in sorted(entries, key=lambda entry: entry.begin):
            begin = entry.begin // _BLOCK * _BLOCK
            end = min(-(-entry.end // _BLOCK) * _BLOCK, file.size)
            if parts and begin - parts[-1][1] <= _GAP:
                parts[-1][1] = max(parts[-1][1], end)
            else:
                parts.append([begin, end])
        segments: list[Segment] = []
        for begin, end in parts:
            alignment = _BLOCK if segments else _FILE_ALIGNMENT
            segments.append(Segment(begin, self._take(end - begin, alignment), end - begin))
        return segments

    def add(self, file: File, tensors: dict[str, Entry], whole: bool) -> None:
        """Place a whole file, or the parts with these tensors."""
        segments = self._place_whole(file) if whole else self._place_parts(file, tensors.values())
        self.segments.append((file, segments))
        place = iter(segments)
        segment = next(place, Segment(0, 0, 0))
        for name, entry in sorted(tensors.items(), key=lambda item: item[1].begin):
            while entry.begin > segment.file_offset + segment.length:
                segment = next(place)
            offset = segment.offset + entry.begin - segment.file_offset
            if entry.end == entry.begin:
                offset = segment.offset
            if offset % max(_safetensors.BITS[entry.dtype] // 8, 1):
                self.unaligned.append((name, entry, offset))
            else:
                self.specs[name] = (entry.shape, entry.dtype, None, offset)

    def add_copies(self) -> None:
        """Place copies of misaligned tensors, which no library takes, behind all files."""
        for name, entry, found in self.unaligned:
            length = entry.end - entry.begin
            offset = self._take(length, _TENSOR_ALIGNMENT)
            self.copies.append((found, offset, length))
            self.specs[name] = (entry.shape, entry.dtype, None, offset)

    def places(self) -> dict[str, tuple[int, int]]:
        """Return the offset and the size of each file, if whole files are placed."""
        return {file.path.name: (parts[0].offset, file.size) for file, parts in self.segments}

    def add_manifest(self, length: int) -> int:
        offset = self._take(length, _TENSOR_ALIGNMENT)
        self.specs[METADATA] = (length, "uint8", None, offset)
        return offset


class Source:
    """Files, and the tensors to load from them."""

    def __init__(self, path: str | os.PathLike[str], only: Collection[str] | None) -> None:
        self.path = path_arg(path)
        self.only = names_arg(only)
        self.files, self.index, self._shards = _safetensors.find(self.path)
        names = None if self.only is None else sorted(self.only)
        known = [file.identity for file in (*self.files, *([self.index] if self.index else []))]
        self.identity = hashlib.sha256(json.dumps([known, names]).encode()).hexdigest()

    def name(self, mode: int) -> str:
        """Return the default name; users have the same one if the mode lets them share."""
        stem = re.sub(r"[^A-Za-z0-9._-]", "_", self.path.resolve().name)[:60]
        owner = f"{os.geteuid()}-" if not mode & 0o077 else ""
        return f"weights-{owner}{stem}-{self.identity[:32]}"

    def owners(self) -> set[int]:
        """Return the users whose region of these files is trusted like the files."""
        return {0, os.geteuid(), *(file.owner for file in self.files)}

    def _contents(self) -> Iterator[tuple[File, dict[str, str], dict[str, Entry]]]:
        """Return for each file its metadata and its tensors."""
        for file in self.files:
            metadata, tensors = _safetensors.read_header(file)
            if missing := self._shards.get(file.path.name, set()) - tensors.keys():
                raise ValueError(
                    f"{file.path}: tensor {_safetensors.shown(min(missing))}: is in the index, "
                    "not in the file"
                )
            yield file, metadata, tensors

    def layout(self) -> Layout:
        layout = Layout()
        seen: dict[str, Path] = {}
        for file, metadata, tensors in self._contents():
            for name in tensors:
                if name in seen:
                    raise ValueError(
                        f"{file.path}: tensor {_safetensors.shown(name)}: is in {seen[name]}, too"
                    )
                seen[name] = file.path
            layout.metadata = {**metadata, **layout.metadata}
            if self.only is None:
                layout.add(file, tensors, True)
            elif chosen := {k: v for k, v in tensors.items() if k in self.only}:
                layout.add(file, chosen, False)
        if missing := (self.only or frozenset()) - seen.keys():
            raise ValueError(f"only: {min(missing)!r} is in none of the files of {self.path}")
        layout.add_copies()
        return layout
