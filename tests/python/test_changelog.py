# SPDX-License-Identifier: MIT
"""The tables of what a program has to change name what is gone, and what is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEADERS = "".join(path.read_text() for path in (ROOT / "include").glob("*.h"))
ROWS = re.findall(r"^ *\| (.*) \| (.*) \|$", (ROOT / "CHANGELOG.md").read_text(), re.M)


def names(cell):
    """Return the names of a cell such as `tshare_ctx_backend`, `_limits`, written out."""
    found = re.findall(r"`(\w+)`", cell)
    return [re.match(r"tshare_[a-z]+", found[0])[0] + n if n[0] == "_" else n for n in found]


def renames():
    """Yield the pairs of the old and the new name of a function."""
    for before, now in ROWS:
        if re.fullmatch(r"(`\w+`(, )?)+", before):
            old, new = names(before), names(now)
            if now.endswith("…"):
                new = [re.sub(r"^(tshare_[a-z]+)_", r"\1_get_", name) for name in old]
            yield from zip(old, new, strict=True)


def is_there(name):
    return re.search(rf"\b{name}\b", HEADERS)


@pytest.mark.parametrize(("old", "new"), list(renames()))
def test_renamed_function_is_there_by_its_new_name_alone(old, new):
    assert is_there(f"{new}\\(")
    assert not is_there(old)


WORDS = {word for _, now in ROWS for word in re.findall(r"\b(?:tshare|TSHARE)_\w+\b", now)}


@pytest.mark.parametrize("word", sorted(WORDS))
def test_what_a_program_is_to_write_is_there(word):
    assert is_there(word)
