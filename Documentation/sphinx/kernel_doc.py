# SPDX-License-Identifier: MIT
"""The directive kernel-doc: a header's comments as a part of a page.

    .. kernel-doc:: ../include/tshare.h

The kernel's own script, from Debian's linux-kbuild or where KERNELDOC says, reads the
comments of functions, structures and introductions. It knows neither constants nor opaque
types, so these are read here: a name, with its comment behind it. A comment that stands
alone, such as "Regions", begins a section, and one above constants introduces them.
"""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from included import Included
from sphinx.errors import ExtensionError

BEGINS = re.compile(r"\.\. (?:c:\w+:: |_.*:$)")
SECTION = re.compile(r"/\* (?P<title>[A-Z][^.*]*?)(?:[:;] [^*]*)?\.? \*/$")
CONSTANT = re.compile(
    r"#define\s+(?P<name>TSHARE_\w+)(?P<parameters>\(\w[^)]*\))?\s+(?P<value>.*?)"
    r"\s*(?:/\* (?P<comment>.*) \*/)?$"
)
OPAQUE = re.compile(r"struct (?P<name>\w+);(?:\s+/\* (?P<comment>.*) \*/)?$")
Lines = list[tuple[int, str]]


def script() -> str:
    """Return the path of the kernel's script."""
    named = os.environ.get("KERNELDOC")
    found = sorted(Path("/usr/lib").glob("linux-kbuild-*/scripts/kernel-doc"))
    if not named and not found:
        raise ExtensionError("kernel-doc is not installed (install linux-kbuild-6.1)")
    return named or str(found[-1])


def documented(header: Path) -> list[Lines]:
    """Return what kernel-doc makes of each comment, with the header's line numbers."""
    said = subprocess.run(
        [script(), "-rst", "-enable-lineno", "-sphinx-version", "3.0", str(header)],
        capture_output=True,
        text=True,
    )
    if said.returncode:
        raise ExtensionError(f"kernel-doc: {said.stderr.strip()}")
    blocks: list[Lines] = []
    for line in said.stdout.splitlines():
        place = re.fullmatch(r"\.\. LINENO (\d+)", line)
        if BEGINS.match(line):
            blocks.append([])
            number = None
        if place:
            # It stands behind the line that begins the block.
            if number is None:
                blocks[-1] = [(int(place[1]), text) for _, text in blocks[-1]]
            number = int(place[1])
        elif blocks:
            blocks[-1].append((number or 0, line))
    return [as_section(block) for block in blocks]


def as_section(block: Lines) -> Lines:
    """Make a section of an introduction, and a type of what kernel-doc takes for a macro."""
    number, first = block[0]
    label = re.fullmatch(r"\.\. _(.*):", first)
    if label:
        return title(number, label[1][0].upper() + label[1][1:]) + [
            line for line in block[1:] if line[1] != f"**{label[1]}**"
        ]
    if any("**Typedef**" in line for _, line in block[:3]):
        return [(number, first.replace("c:macro", "c:type"))] + [
            (place, line.replace("**Typedef**: ", "")) for place, line in block[1:]
        ]
    return block


def as_text(comment: str) -> str:
    """Escape what would begin emphasis, as in TSHARE_REGION_*, or end a reference."""
    return re.sub(r"\*|_(?!\w)", r"\\\g<0>", comment)


def title(number: int, text: str) -> Lines:
    return [(number, text), (number, "-" * len(text)), (number, "")]


def plain(header: Path) -> list[Lines]:
    """Return the sections, constants and opaque types, with the header's line numbers."""
    blocks = []
    source = header.read_text(encoding="utf-8").splitlines()
    known = set()
    for number, line in enumerate(source, 1):
        above, below = source[number - 2], source[number] if number < len(source) else ""
        section = SECTION.match(line)
        constant = CONSTANT.match(line)
        opaque = OPAQUE.match(line)
        if section and not above and not below and number > 2:
            blocks.append(title(number, section["title"]))
        elif constant and not line.endswith("\\") and constant["name"] not in known:
            known.add(constant["name"])
            introduction = re.fullmatch(r"/\* (.*) \*/", above)
            declaration = constant["name"] + (constant["parameters"] or "")
            comment = as_text(constant["comment"] or "")
            if not comment and not constant["parameters"]:
                comment = f"``{constant['value']}``"
            block = [(number, f".. c:macro:: {declaration}"), (number, "")]
            block.append((number, f"   {comment}"))
            if introduction:
                block[:0] = [(number - 1, as_text(introduction[1])), (number, "")]
            blocks.append(block)
        elif opaque and opaque["comment"]:
            blocks.append(
                [
                    (number, f".. c:struct:: {opaque['name']}"),
                    (number, ""),
                    (number, f"   Opaque: {opaque['comment']}."),
                ]
            )
    return blocks


class KernelDoc(Included):
    def lines(self, path: Path) -> Iterator[tuple[int, str]]:
        for block in sorted(documented(path) + plain(path)):
            for number, line in [*block, (block[-1][0], "")]:
                yield number - 1, line


def setup(app):
    app.add_directive("kernel-doc", KernelDoc)
    return {"parallel_read_safe": True}
