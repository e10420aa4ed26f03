# SPDX-License-Identifier: MIT
"""The commands that the README and the manual show."""

import re

import pytest

from helpers import ROOT

pytestmark = pytest.mark.slow_in_guests


def test_readme_shows_commands_that_work(tshare, name):
    readme = (ROOT / "README.md").read_text()
    blocks = "".join(re.findall(r"^```sh$.*?^```$", readme, re.MULTILINE | re.DOTALL))
    # Without bench, which needs the Python package.
    commands = re.findall("^tshare (?!bench)([^#\n]*)", blocks, re.MULTILINE)
    assert len(commands) >= 4
    for command in commands:
        tshare(*command.replace("frames", name).split())


def test_the_manual_shows_commands_that_work(tshare, name, tmp_path):
    manual = (ROOT / "Documentation/man/tshare.1.rst").read_text()
    examples = re.search("^EXAMPLES$.*^SEE ALSO$", manual, re.MULTILINE | re.DOTALL)[0]
    # Commands that no other one depends on, and that don't depend on the machine.
    shown = r"^\| tshare ((?:create|list|save) .*|list)$"
    commands = re.findall(shown, examples, re.MULTILINE)
    assert len(commands) >= 5
    for command in commands:
        command = re.sub(r"^([a-z]+) (frames|model|b)\b", rf"\1 {name}-\2", command)
        tshare(*command.split(), cwd=tmp_path)
