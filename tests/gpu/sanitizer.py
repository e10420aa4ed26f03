# SPDX-License-Identifier: MIT
"""NVIDIA's compute-sanitizer over a check in which kernels work on a region."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from checks import SkipError, check

WHERE = "/usr/local/cuda/bin/compute-sanitizer"


@check
def memcheck():
    tool = shutil.which("compute-sanitizer") or shutil.which(WHERE)
    if not tool:
        raise SkipError("compute-sanitizer is not installed")
    shown = subprocess.run(
        [
            tool, "--tool", "memcheck", "--report-api-errors", "no",
            sys.executable, Path(__file__).parent / "child.py", "imports.subtensors",
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    print(shown.stdout, shown.stderr)
    found = re.search(r"ERROR SUMMARY: (\d+) error", shown.stdout + shown.stderr)
    if not found:
        raise SkipError(f"compute-sanitizer doesn't work here: {shown.stdout[-500:]}")
    assert '"result": "passed"' in shown.stdout, f"the check has failed: {shown.stdout[-500:]}"
    assert found[1] == "0", f"{found[0]}: {shown.stdout[-1000:]}"
