# SPDX-License-Identifier: MIT
"""The directive abi: a file of Documentation/ABI as a part of a page.

    .. abi:: ../ABI/testing/debugfs-tshare

Such a file has entries in the kernel's form. Of each, the value of What is the title, and
the Description is reStructuredText.
"""

import textwrap
from collections.abc import Iterator
from pathlib import Path

from included import Included

Entry = dict[str, list[tuple[int, str]]]


def entries(path: Path) -> list[Entry]:
    """Return the fields of each entry: their lines, with the file's line numbers."""
    found: list[Entry] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
        tag, colon, value = line.partition(":")
        if colon and line[0].isalpha():
            if tag == "What":
                found.append({})
            field = found[-1].setdefault(tag, [])
            # Text beside the tag moves into the column of the text below it.
            line = "\t\t" + value.lstrip()
        if found:
            field.append((number, line.expandtabs()))
    return found


class Abi(Included):
    def lines(self, path: Path) -> Iterator[tuple[int, str]]:
        for entry in entries(path):
            number, what = entry["What"][0]
            for line in (what.strip(), "-" * len(what.strip()), ""):
                yield number, line
            numbers = [number for number, _ in entry["Description"]]
            description = textwrap.dedent("\n".join(line for _, line in entry["Description"]))
            yield from zip(numbers, description.split("\n"), strict=True)
            yield numbers[-1], ""


def setup(app):
    app.add_directive("abi", Abi)
    return {"parallel_read_safe": True}
