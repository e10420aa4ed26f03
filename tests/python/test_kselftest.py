# SPDX-License-Identifier: MIT
"""The script that runs the kselftests, with a program and a machine of the test's own."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

RUN = Path(__file__).resolve().parents[1] / "kselftest/run"


@pytest.fixture
def run(tmp_path):
    """A function that runs one program, and returns the last line and how often run slept.

    cat is a command of the test's: the script reads by it how much memory is pinned.
    """
    bin, programs = tmp_path / "bin", tmp_path / "build/kselftest"
    here, slept = tmp_path / "tests/kselftest", tmp_path / "slept"

    def install(path, script):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def run(program, cat):
        install(programs / "program", program)
        install(bin / "cat", cat)
        install(bin / "modprobe", "exit 1")
        install(bin / "sleep", f"echo sleep >> {slept}")
        here.mkdir(parents=True)
        shutil.copy(RUN, here)
        environment = {**os.environ, "PATH": f"{bin}:{os.environ['PATH']}"}
        done = subprocess.run(
            [here / "run", "program"], env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout.splitlines()[-1], slept.read_text().count("\n") if slept.exists() else 0

    return run


def test_memory_that_is_still_pinned_is_waited_for(run, tmp_path):
    left = f"echo x >> {tmp_path}/reads; [ $(wc -l < {tmp_path}/reads) -gt 2 ] && echo 0 || echo 1"
    assert run("echo 1..1; echo ok 1 - first", left) == ("1 passed, 0 failed, 0 skipped", 2)


def test_module_that_is_not_loaded_is_not_waited_for(run):
    program = "echo '1..0 # SKIP no /dev/tshare'; exit 4"
    assert run(program, "exit 1") == ("0 passed, 0 failed, 1 skipped", 0)


# fuzz is run by tests/fuzz/kmod, shred is a command for other tests, util is part of all, and the
# rest need machines that only tests/runner/run knows.
ELSEWHERE = {"asleep", "fuzz", "kexec", "offline", "shred", "shredded", "util"}


def test_each_program_is_run():
    listed = re.findall(r"^(?:patching|others)=\(([^)]*)\)", RUN.read_text(), re.MULTILINE)
    programs = " ".join(listed).split()
    assert len(programs) == len(set(programs))
    assert {path.stem for path in RUN.parent.glob("*.c")} == {*programs, *ELSEWHERE}
