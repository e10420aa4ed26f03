# SPDX-License-Identifier: MIT
"""The script of the checks that need a GPU: what it does where there is none."""

import importlib.util
import json
import os
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

from support import STUB

GPU = Path(__file__).resolve().parents[1] / "gpu"


def start(program, *args, **env):
    return subprocess.run(
        [sys.executable, "-B", GPU / program, *args],
        capture_output=True, text=True, check=False, timeout=300, env={**os.environ, **env},
    )  # fmt: skip


@pytest.fixture
def script(monkeypatch):
    """The script as a module."""
    monkeypatch.syspath_prepend(str(GPU))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loader = SourceFileLoader("gpu_run", str(GPU / "run"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("gpu_run", loader))
    loader.exec_module(module)
    return module


def test_without_a_gpu_it_says_so_and_exits_with_77(tmp_path):
    ended = start("run", "--out", tmp_path / "out", CUDA_VISIBLE_DEVICES="")
    assert ended.returncode == 77
    assert ended.stdout.startswith("tests/gpu/run: no GPU of NVIDIA's: ")
    assert ended.stdout.count("\n") == 1
    assert ended.stderr == ""
    assert not list(tmp_path.iterdir())


def test_unknown_check_is_refused():
    ended = start("run", "imports.paths", "rung")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "rung: no such check" in ended.stderr


def test_group_names_its_checks():
    listed = start("run", "--list", "external", "facts.gpu").stdout.split()
    assert listed == ["facts.gpu", "external.udmabuf", "external.dma_heaps", "external.cuda_s_own"]


def result_of(check):
    """Make a check on the stub of NVIDIA's driver, and return its result."""
    ended = start("child.py", check, LD_LIBRARY_PATH=str(STUB.parent))
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout.splitlines()[-1])


def test_check_prints_its_result_and_figures():
    result = result_of("facts.gpu")
    assert (result["result"], result["driver_version"]) == ("recorded", 13000)
    assert result["attributes"]["read_only_host_register"] == 1
    assert result_of("facts.info")["result"] == "passed"


def test_check_that_fails_says_where():
    # The stub runs no kernels.
    result = result_of("imports.paths")
    assert result["result"] == "failed"
    assert "cuModuleLoadData" in result["detail"]
    assert "(line " in result["detail"]


def test_check_that_hangs_is_killed_with_what_it_started(script, tmp_path):
    # The grandchild has the pipe, too: finish() returns when both are gone.
    code = "import subprocess, time; subprocess.Popen(['sleep', '1000']); time.sleep(1000)"
    with open(tmp_path / "log", "wb") as log:
        assert script.finish([sys.executable, "-c", code], 1, log) == (None, "")


def test_check_without_a_result_has_failed(script, monkeypatch, tmp_path):
    class Check:
        name = "no.such"

    with open(tmp_path / "log", "wb") as log:
        result = script.make(Check, 60, log)
    assert result["result"] == "failed"
    assert "exit status 1" in result["detail"]
