# SPDX-License-Identifier: MIT
"""CPython's own tests of multiprocessing.shared_memory, with the import changed."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import stdlib


def find_source():
    """Return the path of _test_multiprocessing.py, which distributions package separately."""
    spec = importlib.util.find_spec("test")
    folders = [Path(folder) for folder in spec.submodule_search_locations] if spec else []
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    version = "{}.{}".format(*sys.version_info)
    folders.append(cache / "tshare/stdlib-tests" / version)
    for folder in folders:
        if (folder / "_test_multiprocessing.py").exists():
            return folder / "_test_multiprocessing.py"
    pytest.fail(
        f"no tests of Python {version}'s own in {folders}: run tests/runner/setup stdlib-tests"
    )


@pytest.fixture
def folder(tmp_path):
    source = find_source().read_text(encoding="utf-8")
    (tmp_path / "_test_multiprocessing.py").write_text(stdlib.redirect(source), encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_standard_tests_pass(folder, method):
    ran = subprocess.run(
        [sys.executable, stdlib.__file__, method, folder],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,
    )
    assert ran.returncode == 0, ran.stdout
    assert int(re.search(r"^Ran (\d+) tests", ran.stdout, re.M)[1]) >= 12, ran.stdout
    assert "resource_tracker" not in ran.stdout.replace("reuses_resource_tracker", ""), ran.stdout
