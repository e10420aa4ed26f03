# SPDX-License-Identifier: MIT
"""Data sets of Python objects."""

from __future__ import annotations

import operator
import os
import pickle
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self, SupportsIndex, TypeVar, overload

from ._pickling import by_name
from ._tshare import Region

_T = TypeVar("_T")

# Users who may write the bytes decide what code their readers run.
_WRITE_BY_OTHERS = 0o022


def _pickled(objects: Iterable[Any]) -> tuple[array[int], bytearray]:
    """Return where each object begins, with the end, and all of them one after the other."""
    if not isinstance(objects, Iterable) or isinstance(objects, Mapping):
        raise TypeError(f"objects: must be a list or another iterable, not {type(objects)!r}")
    starts, pickles = array("q", [0]), bytearray()
    for i, thing in enumerate(objects):
        try:
            pickles += pickle.dumps(thing, pickle.HIGHEST_PROTOCOL)
        except Exception as error:
            raise TypeError(f"objects[{i}]: can't be pickled ({error})") from error
        starts.append(len(pickles))
    return starts, pickles


class Dataset(Sequence[_T]):
    """A list of Python objects in shared memory, which is read-only: for a DataLoader's workers.

    The objects of a list have reference counts, which a forked worker writes to when it reads them:
    so each worker gets a copy of the list by and by. This has one tensor of all objects' pickles,
    and one of where each begins. An object is new each time that it is asked for::

        data = tshare.Dataset(samples, "train")      # any iterable
        data = tshare.Dataset.open("train")          # in another process

    Workers by fork() inherit it. multiprocessing's pickle has its descriptor or, if it has a name,
    the name, which other picklers take, too.
    """

    def __init__(
        self,
        objects: Iterable[_T],
        name: str | None = None,
        *,
        mode: SupportsIndex = 0o600,
        lifetime: str = "maker",
        exist_ok: bool = False,
    ) -> None:
        """Share objects, whose bytes are in memory twice for a moment.

        :param objects: A list or another iterable, of objects that can be pickled.
        :param name: Name by which others open it; None for none.
        :param mode: Permission bits; others may only read.
        :param lifetime: How long the name stays: "maker": until this process ends. "users": while
            any process has the region open. "persist": until it is unlinked.
        :param exist_ok: Replace a region of this user that has the name.
        :raises TypeError: objects is no iterable, or a mapping, or one of them can't be pickled.
        :raises ValueError: An argument is malformed.
        :raises FileExistsError: The name is taken.
        :raises OSError: As of tshare.create().
        """
        if operator.index(mode) & _WRITE_BY_OTHERS:
            raise ValueError("mode: others may not write objects, which could run what they like")
        starts, pickles = _pickled(objects)
        region = Region.create(
            name,
            {"starts": starts, "pickles": pickles},
            mode=mode,
            lifetime=lifetime,
            exist_ok=exist_ok,
        )
        self._attach(Region.from_fd(region.fileno(), readonly=True))

    def _attach(self, region: Region) -> None:
        self._region = region
        self._starts, self._pickles = memoryview(region["starts"]), memoryview(region["pickles"])

    @classmethod
    def open(cls, name: str, *, wait: float = 0.0) -> Dataset[Any]:
        """Open a named data set.

        :param name: Name given to Dataset().
        :param wait: Seconds to wait until it is there; math.inf for ever.
        :raises FileNotFoundError: No region has that name.
        :raises PermissionError: The region's mode denies it, or another user than root could have
            written it, whose pickles could run anything.
        :raises ValueError: The region is no data set.
        :raises TimeoutError: The seconds of wait have passed.
        """
        return _arrive(Region.open(name, readonly=True, wait=wait))

    @property
    def region(self) -> Region:
        """The region, which has the tensors "starts" and "pickles": to unlink its name, or pin."""
        return self._region

    def __len__(self) -> int:
        return len(self._starts) - 1

    @overload
    def __getitem__(self, index: SupportsIndex) -> _T: ...
    @overload
    def __getitem__(self, index: slice) -> list[_T]: ...
    def __getitem__(self, index: SupportsIndex | slice) -> _T | list[_T]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        at = range(len(self))[index]
        thing: _T = pickle.loads(self._pickles[self._starts[at] : self._starts[at + 1]])
        return thing

    def __iter__(self) -> Iterator[_T]:
        # Not as Sequence does it: there an IndexError while an object is made ends the loop.
        return (self[i] for i in range(len(self)))

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _: object) -> Self:
        return self

    def __repr__(self) -> str:
        return f"<tshare.Dataset of {len(self)} objects, name={self._region.info().name!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        named = self._region.info().name is not None
        return _arrive, (by_name(self._region) if named else self._region,)


def _arrive(region: Region) -> Dataset[Any]:
    """Return the data set in a region, however it came: names in pickles can be taken by others."""
    info = region.info()
    if info.uid not in (0, os.geteuid()) or info.mode & _WRITE_BY_OTHERS:
        raise PermissionError(
            f"name: {info.name!r} is, or may be written, by another user (uid {info.uid}), whose "
            "pickles could run anything"
        )
    if set(region) != {"starts", "pickles"}:
        raise ValueError(f"name: {info.name!r} is a region, but no data set")
    data: Dataset[Any] = Dataset.__new__(Dataset)
    data._attach(region)
    return data
