# SPDX-License-Identifier: MIT
"""What the README shows a Python programmer works as it stands there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from support import need

ROOT = Path(__file__).resolve().parents[2]

# Both see what the last line has written, in another process too.
CHECK = """
assert int(x.min()) == 0 and int(x[0].min()) == 255 and t.name == "frames"
"""


@pytest.mark.imports_torch
def test_first_example_of_the_readme_works():
    need("torch")
    code = re.search(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)[1]
    said = subprocess.run([sys.executable, "-c", code + CHECK], capture_output=True, text=True)
    assert not said.returncode, said.stderr
