# SPDX-License-Identifier: MIT
"""Mappings of mappings of tensors, such as Flax's parameters, by one key each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def _flatten(items: Iterable[Any], prefix: str, found: list[Any]) -> None:
    for item in items:
        # What is no pair of a name and something is refused where tensors are parsed.
        key, value = item if isinstance(item, tuple) and len(item) == 2 else (None, None)
        if not isinstance(key, str):
            if prefix or isinstance(value, Mapping):
                raise TypeError(f"tensors: {prefix!r}: its keys must be str, not {key!r}")
            found.append(item)
        elif isinstance(value, Mapping):
            _flatten(value.items(), f"{prefix}{key}/", found)
        else:
            found.append((prefix + key, value))


def flatten(tensors: Any) -> list[Any]:
    """The items of tensors and of the mappings in it, each key behind the path to it."""
    found: list[Any] = []
    _flatten(tensors.items(), "", found)
    seen = set()
    for item in found:
        key = item[0] if isinstance(item, tuple) and item else None
        if isinstance(key, str) and key in seen:
            raise ValueError(
                f"tensors: {key!r} is there twice, by itself and as a path of keys: rename one"
            )
        seen.add(key if isinstance(key, str) else None)
    return found
