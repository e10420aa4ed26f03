# SPDX-License-Identifier: MIT
"""Mappings of mappings of tensors, such as Flax's parameters, by one key each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def _flatten(items: Iterable[Any], prefix: str, found: list[Any]) -> bool:
    """Whether there are mappings among the items, all of whose items are added to found."""
    nested = False
    for item in items:
        # What is no pair of a name and something is refused where tensors are parsed.
        key, value = item if isinstance(item, tuple) and len(item) == 2 else (None, None)
        if not isinstance(key, str):
            if prefix or isinstance(value, Mapping):
                raise TypeError(f"tensors: {prefix!r}: its keys must be str, not {key!r}")
            found.append(item)
        # Most are tuples, of which the question takes longer than all the rest.
        elif type(value) is not tuple and isinstance(value, Mapping):
            _flatten(value.items(), f"{prefix}{key}/", found)
            nested = True
        else:
            found.append((prefix + key, value) if prefix else item)
    return nested


def flatten(tensors: Any) -> list[Any]:
    """The items of tensors and of the mappings in it, each key behind the path to it."""
    found: list[Any] = []
    if not _flatten(tensors.items(), "", found):
        return found
    seen = set()
    for item in found:
        key = item[0] if isinstance(item, tuple) and item else None
        if isinstance(key, str) and key in seen:
            raise ValueError(
                f"tensors: {key!r} is there twice, by itself and as a path of keys: rename one"
            )
        seen.add(key if isinstance(key, str) else None)
    return found
