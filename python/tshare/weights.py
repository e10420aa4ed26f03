# SPDX-License-Identifier: MIT
"""Model weights: read from the disk once, one copy a host::

    import tshare.weights

    weights = tshare.weights.load("model.safetensors")       # in each worker
    tshare.weights.assign(model, weights)                    # PyTorch, no copy

The first process reads the files into a region. The others sleep until the region is complete, and
map the same memory read-only. If the first process is killed, another one of its user reads the
files. The region ends with the last process that uses it.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from . import _safetensors
from ._safetensors import METADATA, File
from ._tshare import Region, Tensor
from ._tshare import list as list_regions
from ._weights_layout import Layout, Segment, Source, path_arg

if TYPE_CHECKING:
    from types import TracebackType

    import torch

__all__ = ["Weights", "assign", "load", "load_file", "open"]

_Path = str | os.PathLike[str]
_Progress = Callable[[int, int], object]

# Seconds after which a process that waits for another one looks again. Two deaths don't end a wait:
# while the name leads to a region that is to be replaced, that of the replacing process; and that
# of the process that was to give the name, just before the wait.
_LOOK_AGAIN = 1.0


# The manifest of a region


def _is_place(found: object) -> bool:
    return isinstance(found, list) and len(found) == 2 and all(map(_safetensors.is_count, found))


def _is_table(found: object, is_value: Callable[[object], bool]) -> bool:
    return isinstance(found, dict) and all(map(is_value, found.values()))


def _is_text(found: object) -> bool:
    return isinstance(found, str)


def _is_manifest(found: object) -> bool:
    """Whether this is a manifest as _load() writes it into __metadata__."""
    if not isinstance(found, dict):
        return False
    copied = found.get("copied")
    return (
        _is_text(found.get("identity"))
        and _is_table(found.get("metadata"), _is_text)
        and _is_table(found.get("sha256"), _is_text)
        and _is_table(found.get("places"), _is_place)
        and isinstance(copied, list)
        and all(map(_is_text, copied))
    )


def _manifest_of(region: Region) -> dict[str, Any] | None:
    """Return the manifest of the files; None for a region that load() has not made."""
    if METADATA not in region or region[METADATA].dtype != "uint8":
        return None
    try:
        found = json.loads(bytes(region[METADATA]))
    except (ValueError, RecursionError):
        return None
    return found if _is_manifest(found) else None


class Weights(Mapping[str, Tensor]):
    """The tensors of a model, read-only, in shared memory; from load().

    A mapping of their names to them. It holds the region, and so does each tensor.
    """

    def __init__(self, region: Region) -> None:
        manifest = _manifest_of(region)
        if manifest is None:
            raise ValueError("region: is no region of weights")
        self._region = region
        self._manifest = manifest

    @property
    def region(self) -> Region:
        """Region with the tensors, and one more of JSON, __metadata__."""
        return self._region

    @property
    def metadata(self) -> dict[str, str]:
        """The __metadata__ of the files."""
        return dict(self._manifest["metadata"])

    @property
    def copied(self) -> tuple[str, ...]:
        """Names of tensors that are not aligned in their files, and were copied behind them."""
        return tuple(self._manifest["copied"])

    def close(self) -> None:
        """Drop this object's reference to the memory; tensors taken from it keep theirs."""
        self._region.close()

    def __enter__(self) -> Weights:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __getitem__(self, key: str) -> Tensor:
        if key == METADATA:
            raise KeyError(key)
        return self._region[key]

    def __contains__(self, key: object) -> bool:
        return key != METADATA and key in self._region

    def __iter__(self) -> Iterator[str]:
        return (key for key in self._region if key != METADATA)

    def __len__(self) -> int:
        return len(self._region) - 1

    def __repr__(self) -> str:
        return f"<tshare.weights.Weights of {self._region!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return Weights, (self._region,)


# Digests


def _digests(sha256: str | Mapping[str, str] | None, source: Source) -> dict[str, str]:
    """Return the expected digest of each file, by its name."""
    if sha256 is None:
        return {}
    if not isinstance(sha256, str | Mapping):
        raise TypeError(f"sha256: must be a str or a mapping of them, not {type(sha256)}")
    if source.only is not None:
        raise ValueError("sha256: can't be checked if only a part of the files is read")
    names = [file.path.name for file in source.files]
    if isinstance(sha256, str):
        if len(names) != 1:
            raise ValueError(
                f"sha256: must be a mapping from names to digests for {len(names)} files"
            )
        sha256 = {names[0]: sha256}
    for name, digest in sha256.items():
        if name not in names:
            raise ValueError(f"sha256: there is no file {name!r}")
        if not isinstance(digest, str):
            raise TypeError(f"sha256: {name!r}: must be a str, not {type(digest)}")
        if not re.fullmatch("[0-9a-fA-F]{64}", digest):
            raise ValueError(f"sha256: {name!r}: must be 64 hexadecimal digits, not {digest!r}")
    return {name: digest.lower() for name, digest in sha256.items()}


def _check_digests(region: Region, places: Mapping[str, Any], digests: dict[str, str]) -> None:
    with memoryview(region) as view:
        for name, digest in digests.items():
            offset, size = places[name]
            with view[offset : offset + size] as content:
                found = hashlib.sha256(content).hexdigest()
            if found != digest:
                raise ValueError(f"{name}: its SHA-256 is {found}, not {digest}")


# Loading


class _Report:
    """Calls progress with the bytes read so far, and those of all segments."""

    def __init__(self, progress: _Progress | None, total: int) -> None:
        self.progress = progress
        self.total = total
        self.before = 0
        self.last = -1

    def __call__(self, done: int) -> None:
        # read() reports the end of a segment twice, and the next one begins there.
        if self.progress and self.before + done > self.last:
            self.last = self.before + done
            self.progress(self.last, self.total)


def _read_file(region: Region, file: File, segments: list[Segment], report: _Report) -> None:
    with _safetensors.opened(file) as found:
        for segment in segments:
            try:
                region.read(
                    found,
                    segment.file_offset,
                    segment.offset,
                    segment.length,
                    direct=True,
                    progress=report,
                )
            except OSError as error:
                if error.errno == errno.ENODATA:
                    raise _safetensors.changed(file.path) from None
                raise OSError(error.errno, error.strerror, str(file.path)) from error
            report.before += segment.length


def _fill(
    region: Region,
    layout: Layout,
    manifest: bytes,
    digests: dict[str, str],
    progress: _Progress | None,
) -> None:
    total = sum(part.length for _, segments in layout.segments for part in segments)
    report = _Report(progress, total)
    for file, segments in layout.segments:
        _read_file(region, file, segments, report)
    with memoryview(region) as view:
        for source, target, length in layout.copies:
            view[target : target + length] = view[source : source + length]
        offset = layout.specs[METADATA][3]
        view[offset : offset + len(manifest)] = manifest
    _check_digests(region, layout.places(), digests)


def _check_draft(name: str, owners: set[int], was_seen: bool) -> bool:
    """Return whether the draft of this name is listed; PermissionError if it is a stranger's.

    :param was_seen: False if no draft of this name was listed a moment ago.
    """
    users = {info.uid for info in list_regions() if info.name == name and info.draft}
    # A draft that stays and is never listed is unreadable for this process.
    if users - owners or not (users or was_seen):
        raise PermissionError(errno.EPERM, "the draft of this name is another user's", name)
    return bool(users)


def _look(name: str, owners: set[int]) -> Region | None:
    """Return the finished region that has the name, or None; waits for a draft first."""
    seen = True
    while True:
        try:
            with contextlib.suppress(BlockingIOError):
                return Region.open(name, readonly=True)
            seen = _check_draft(name, owners, seen)
            # The draft may have ended before this call, which then waits although no process is
            # about to give the name.
            with contextlib.suppress(TimeoutError):
                return Region.open(name, readonly=True, wait=_LOOK_AGAIN)
        except FileNotFoundError:
            # No region has the name, or the process that was to finish the draft has ended.
            return None


def _has_maker(name: str, found: Region | None) -> bool:
    """Whether a process makes the region of this name, or the successor of found."""
    if found is not None:
        return any(info.draft and info.name == name for info in list_regions())
    try:
        Region.open(name, readonly=True).close()
    except BlockingIOError:
        pass
    except FileNotFoundError:
        return False
    return True


def _await_other(name: str, found: Region | None) -> bool:
    """Wait while another process makes the region of this name, or the successor of found.

    :return: False if no process does: then this process can't remove what claims the name.
    """
    try:
        Region.open(name, readonly=True, wait=_LOOK_AGAIN, other_than=found).close()
    except TimeoutError:
        return _has_maker(name, found)
    except FileNotFoundError:
        # The process that was to finish a draft has ended.
        pass
    return True


def _was_replaced(name: str, found: Region | None) -> bool:
    """Whether the name now leads to another finished region."""
    if found is None:
        return False
    try:
        Region.open(name, readonly=True, other_than=found).close()
    except (BlockingIOError, FileNotFoundError):
        return False
    return True


def _accept(
    name: str, region: Region, source: Source, digests: dict[str, str], replace: bool
) -> Weights | None:
    """Return the tensors of a region that holds these files, or None if it is to be replaced."""
    if region.info().uid not in source.owners():
        raise PermissionError(errno.EPERM, "the region of this name is another user's", name)
    manifest = _manifest_of(region)
    if manifest is None or manifest["identity"] != source.identity:
        if not replace:
            raise FileExistsError(
                errno.EEXIST,
                "the region of this name holds something else than these files (replace=True "
                "replaces it)",
                name,
            )
        return None
    checked = manifest["sha256"]
    unchecked = {file: digest for file, digest in digests.items() if checked.get(file) != digest}
    _check_digests(region, manifest["places"], unchecked)
    return Weights(region)


def _load(
    name: str,
    source: Source,
    digests: dict[str, str],
    found: Region | None,
    is_taken: bool,
    **options: Any,
) -> Weights | None:
    """Read the files into a draft and finish it; None if another process does so.

    :param is_taken: Raise FileExistsError if the name is taken, but not by a process that makes a
        draft: none did so when the name was taken before.
    """
    progress = options.pop("progress")
    layout = source.layout()
    manifest = json.dumps(
        {
            "identity": source.identity,
            "metadata": layout.metadata,
            "copied": [name for name, _, _ in layout.unaligned],
            "places": layout.places() if source.only is None else {},
            "sha256": digests,
        }
    ).encode()
    layout.add_manifest(len(manifest))
    try:
        region = Region.create(
            name, layout.specs, draft=True, exist_ok=found is not None, **options
        )
    except FileExistsError:
        # Another process may have begun since.
        if is_taken and not _has_maker(name, found):
            raise
        return None
    except ValueError as error:
        # The tensors are too many for a region, or their names too long.
        if str(error).startswith("tensors: "):
            raise ValueError(f"{source.path}: {error}") from None
        raise
    try:
        # As long as this draft exists, no other process can replace the region of this name.
        # Another process may have done so before, perhaps with the same files.
        if _was_replaced(name, found):
            region.unlink()
            return None
        _fill(region, layout, manifest, digests, progress)
        readonly = Region.from_fd(region, readonly=True)
        region.finish(replace=found is not None)
        return Weights(readonly)
    except BaseException:
        # Now, as the traceback holds references that keep the draft.
        with contextlib.suppress(OSError):
            region.unlink()
        raise
    finally:
        region.close()


def load(
    path: _Path,
    name: str | None = None,
    *,
    only: Collection[str] | None = None,
    replace: bool = False,
    node: int | None = None,
    mode: int = 0o600,
    lifetime: str = "users",
    progress: _Progress | None = None,
    sha256: str | Mapping[str, str] | None = None,
) -> Weights:
    """Return the tensors of files in the format safetensors, which the host has once.

    The first process reads the files, and the others wait for it. All of them have the same
    memory, read-only.

    :param path: A file, an index of several (``*.index.json``), or a folder: of that, the files
        that from_pretrained() of transformers would load, or else the only ones there.
    :param name: Name of the region; None for one that is made of the files' device, inode, size
        and time of modification, and of only, so that changed files have another region.
    :param only: Names of the tensors that are wanted; None for all. Of the files' data, the blocks
        of 4 KiB with these are read, and up to 64 KiB between two of them.
    :param replace: Replace a region that has the name and holds other files. Processes that use
        it keep it.
    :param node: NUMA node that the memory must be on.
    :param mode: Permission bits of the region: 0o644 lets other users have it, too.
    :param lifetime: How long the name stays: "users", while any process has the region open,
        or "persist", until it is unlinked.
    :param progress: Called with the bytes that were read so far and those of all, in the process
        that reads the files.
    :param sha256: SHA-256 of the file in hexadecimal digits, or a mapping from the files' names
        to theirs.
    :raises FileNotFoundError: A file is missing.
    :raises FileExistsError: The region of that name holds something else; or the name is taken, and
        only another user can remove it, as after one of their processes was killed.
    :raises PermissionError: The region or draft of this name is another user's, or can't be
        opened.
    :raises ValueError: A file is damaged, or has more tensors than a region; a folder has several
        models; sha256 or only doesn't fit the files.
    :raises OSError: ESTALE: a file was changed while it was read. EIO: the disk fails. ENOMEM:
        there is no room.
    """
    if not isinstance(mode, int):
        raise TypeError(f"mode: must be an int, not {type(mode)}")
    if progress is not None and not callable(progress):
        raise TypeError(f"progress: must be callable, not {type(progress)}")
    source = Source(path, only)
    digests = _digests(sha256, source)
    if name is None:
        name = source.name(mode)
    options = {"node": node, "mode": mode, "lifetime": lifetime, "progress": progress}
    is_taken = False
    while True:
        found, weights = _look(name, source.owners()), None
        try:
            if found is not None:
                weights = _accept(name, found, source, digests, replace)
            if weights is None:
                weights = _load(name, source, digests, found, is_taken, **options)
            if weights is not None:
                return weights
            is_taken = not _await_other(name, found)
        finally:
            if found is not None and (weights is None or weights.region is not found):
                found.close()


def open(name: str, *, wait: float = 0.0) -> Weights:
    """Open a region that load() has made, by its name. The files aren't needed.

    :param name: Name of the region.
    :param wait: Seconds to wait until a finished region has the name; math.inf for ever.
    :raises FileNotFoundError: No region has that name.
    :raises BlockingIOError: Without wait: the region is still being read.
    :raises ValueError: load() has not made the region of that name.
    """
    region = Region.open(name, readonly=True, wait=wait)
    try:
        return Weights(region)
    except ValueError:
        region.close()
        raise ValueError(f"name: {name!r} is no region of weights") from None


# PyTorch


def load_file(
    filename: _Path, device: str | int = "cpu", *, backend: str = "mmap"
) -> dict[str, torch.Tensor]:
    """Return the tensors of a file for PyTorch, as safetensors.torch.load_file() does.

    The memory is that of load(), and must not be written: PyTorch ignores that it is
    read-only, and a write ends the process with SIGSEGV.

    :param filename: The path for load().
    :param device: Where the tensors are to be; a copy on any device but the CPU.
    :param backend: Ignored: how safetensors would read the file.
    """
    weights = load(path_arg(filename, "filename"))
    from . import _weights_torch

    found = {name: _weights_torch.as_torch(name, tensor) for name, tensor in weights.items()}
    if str(device) != "cpu":
        found = {name: tensor.to(device) for name, tensor in found.items()}
    return found


def assign(
    module: torch.nn.Module, weights: Mapping[str, Tensor], *, strict: bool = True
) -> list[str]:
    """Make these tensors the parameters and buffers of a module, without a copy.

    The module may have been made on the device "meta", where it takes no memory. Tied weights
    stay tied, and one of their names in weights is enough. The parameters don't require gradients
    afterwards, since the memory can't be written.

    The module computes a buffer on "meta" that no file has (persistent=False): by _init_weights()
    of a model of transformers, from version 5 on, or by reset_parameters().

    Extra state that is a tensor is passed to the module's set_extra_state(), as a copy, since the
    module may write to it. A file can't have extra state of another kind, and the module keeps
    its own.

    :param module: The module.
    :param weights: The result of load(), or another mapping of tensors.
    :param strict: False lets the module keep tensors that weights lacks or that can't be computed,
        and ignores tensors that the module lacks.
    :return: The names of the tensors that the module has kept; empty if strict.
    :raises ValueError: A tensor of the module is not in weights, or the other way round; or it
        is on "meta", is in no file and can't be computed. A tensor has another shape, also
        without strict. The module is unchanged then.
    """
    from . import _weights_torch

    return _weights_torch.assign(module, weights, strict)
