# SPDX-License-Identifier: MIT
"""The script that reads the results of KUnit, with a kernel log and suites of the test's own."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

KUNIT = Path(__file__).resolve().parents[1] / "kunit"

SUITE = """\
[    1.000000]     KTAP version 1
[    1.000000]     # Subtest: {name}
[    1.000000]     1..2
[    1.000000]     ok 1 first
[    1.000000]     {second} 2 second
[    1.000000] # {name}: pass:2 fail:0 skip:0 total:2
[    1.000000] ok 1 {name}
"""


@pytest.fixture
def run(tmp_path):
    """A function that returns the status and the lines of the script for that log."""
    here, bin = tmp_path / "tests", tmp_path / "bin"
    for folder in (here, bin, tmp_path / "kmod/tests"):
        folder.mkdir(parents=True)
    shutil.copy(KUNIT, here)
    for file in ("alloc.c", "alloc-pool.c"):
        (tmp_path / "kmod/tests" / file).touch()
    dmesg = bin / "dmesg"

    def run(log):
        (tmp_path / "log").write_text(log)
        dmesg.write_text(f"#!/bin/sh\ncat {tmp_path}/log\n")
        dmesg.chmod(0o755)
        environment = {**os.environ, "PATH": f"{bin}:{os.environ['PATH']}"}
        done = subprocess.run(
            [here / "kunit"], env=environment, capture_output=True, text=True, check=False
        )
        lines = done.stdout.splitlines()
        return done.returncode, [line for line in lines if not line.startswith("#")]

    return run


def suite(name, second="ok"):
    return SUITE.format(name=name, second=second)


OF_ALLOC = ["ok 1 - tshare_alloc.first", "ok 2 - tshare_alloc.second"]
OF_POOL = ["ok 3 - tshare_alloc_pool.first", "ok 4 - tshare_alloc_pool.second"]


def test_all_suites_are_reported(run):
    status, lines = run(suite("tshare_alloc") + suite("tshare_alloc_pool"))
    assert (status, lines) == (0, [*OF_ALLOC, *OF_POOL, "1..4"])


def test_suite_that_did_not_run_is_a_failure(run):
    status, lines = run(suite("tshare_alloc"))
    assert (status, lines) == (
        1,
        [*OF_ALLOC, "not ok 3 - tshare_alloc_pool: did not run", "1..3"],
    )


def test_log_without_suites_is_a_failure(run):
    assert run("")[0] == 1


def test_failed_test_is_a_failure(run):
    status, lines = run(suite("tshare_alloc", "not ok") + suite("tshare_alloc_pool"))
    assert status == 1
    assert lines[1] == "not ok 2 - tshare_alloc.second"


def test_suite_that_was_cut_off_is_a_failure(run):
    log = suite("tshare_alloc") + suite("tshare_alloc_pool")
    assert run(log[: log.rindex("    ok 1 first")])[0] == 1
