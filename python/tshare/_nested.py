# SPDX-License-Identifier: MIT
"""Nested mappings and tables, as create() takes them for a mapping of tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def _flatten(items: Iterable[Any], argument: str, prefix: str, found: list[Any]) -> bool:
    """Add the items to found, those of nested mappings by their paths.

    Return whether there were nested mappings.
    """
    nested = False
    for item in items:
        # The parser of the tensors refuses items other than pairs of a name and a value.
        key, value = item if isinstance(item, tuple) and len(item) == 2 else (None, None)
        if not isinstance(key, str):
            if prefix or isinstance(value, Mapping):
                raise TypeError(f"{argument}: {prefix!r}: its keys must be str, not {key!r}")
            found.append(item)
        # Most values are tuples, and are tested first: isinstance() with an ABC is slow.
        elif type(value) is not tuple and isinstance(value, Mapping):
            _flatten(value.items(), argument, f"{prefix}{key}/", found)
            nested = True
        else:
            found.append((prefix + key, value) if prefix else item)
    return nested


def _items(tensors: Any, argument: str) -> Iterable[Any]:
    if hasattr(tensors, "items"):
        items: Iterable[Any] = tensors.items()
        return items
    if hasattr(tensors, "column_names") and hasattr(tensors, "columns"):
        return zip(tensors.column_names, tensors.columns, strict=True)  # PyArrow
    if hasattr(tensors, "get_columns"):
        return [(column.name, column) for column in tensors.get_columns()]  # polars
    remedy = ""
    if hasattr(tensors, "state_dict"):
        remedy = " (pass module.state_dict())"
    raise TypeError(f"{argument}: must be a mapping or a table, not {type(tensors)}{remedy}")


def flatten(tensors: Any, argument: str) -> list[Any]:
    """Return the items of tensors and of the mappings in it, with paths as keys.

    :param argument: What errors call tensors.
    """
    found: list[Any] = []
    if not _flatten(_items(tensors, argument), argument, "", found):
        return found
    seen = set()
    for item in found:
        key = item[0] if isinstance(item, tuple) and item else None
        if isinstance(key, str) and key in seen:
            raise ValueError(
                f"{argument}: {key!r} is the key of two tensors, one of them nested (rename one)"
            )
        seen.add(key if isinstance(key, str) else None)
    return found
