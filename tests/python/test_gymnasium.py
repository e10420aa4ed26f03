# SPDX-License-Identifier: MIT
"""gymnasium's own tests of vector environments, with tshare's class in place of its."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support import need

gymnasium = need("gymnasium")

pytestmark = pytest.mark.slow_in_guests

REPOSITORY = "https://github.com/Farama-Foundation/Gymnasium"

FILES = ["async_vector_env", "autoreset_mode", "observation_mode", "vector_env", "vector_env_info"]

# Loaded before the tests are, which import the class from gymnasium.vector.
PLUGIN = """
import gymnasium.vector
import tshare.gym
gymnasium.vector.AsyncVectorEnv = tshare.gym.AsyncVectorEnv
"""


@pytest.fixture
def folder(tmp_path):
    """The sources of the gymnasium that is installed, whose package has no tests."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    path = cache / "tshare/gymnasium" / gymnasium.__version__
    if not path.exists():
        tag = f"v{gymnasium.__version__}"
        clone = ["git", "clone", "-q", "--depth", "1", "--branch", tag, REPOSITORY, tmp_path / tag]
        environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}
        if subprocess.run(clone, env=environment, timeout=600).returncode:
            pytest.skip("GitHub can't be reached: gymnasium's tests are there")
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(tmp_path / tag, path)
    return path


def test_tests_of_gymnasium_pass(folder, tmp_path):
    (tmp_path / "replaces_the_class.py").write_text(PLUGIN)
    paths = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull]
        + ["-p", "replaces_the_class", "--rootdir", folder]
        + [f"tests/vector/test_{name}.py" for name in FILES],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,
    )
    assert ran.returncode == 0, ran.stdout
    assert int(re.search(r"(\d+) passed", ran.stdout)[1]) >= 200, ran.stdout
