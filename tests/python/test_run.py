# SPDX-License-Identifier: MIT
"""The script that runs the suites, with suites of the test's own."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

RUNNER = Path(__file__).resolve().parents[1] / "runner"

# Says what is in the file of its n-th run, if there is one, else of the last, and as a guest has
# the kernel say it, too; and fails if a line says "not ok".
SUITE = """#!/bin/bash
echo {name} >> {folder}/started
count=$(grep -cx {name} {folder}/started)
file={folder}/{name}.$count
[ -e "$file" ] || file={folder}/{name}
cat "$file"
[ ! -e "{folder}/{name}.sleeps" ] || sleep "$(cat "{folder}/{name}.sleeps")"
while [ $# -gt 0 ]; do
	[ "$1" != --console ] || cp "$file" "$2"
	shift
done
! grep -q '^not ok' "$file"
"""

# The suites that begin with one script of their own, which needs no kernel.
SCRIPTS = {
    "vm": "tests/vm/selftest",
    "demo": "examples/demo",
    "lint": "tests/lint/run",
    "abi": "tests/abi/run",
    "install": "tests/install/run",
    "checks": "tests/checks",
    "kunit": "tests/vm/run",
}


@pytest.fixture
def run(tmp_path):
    """A function that runs suites which say these texts, each a run's or a list of several runs'.

    Returns the exit status, the lines that are printed, and the suites in the order of their start.
    """
    said = tmp_path / "said"
    said.mkdir()
    (tmp_path / "Makefile").write_text("lib:\n")
    for name, path in SCRIPTS.items():
        script = tmp_path / path
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(SUITE.format(name=name, folder=said))
        script.chmod(0o755)
    shutil.copytree(RUNNER, tmp_path / "tests/runner")

    def run(**suites):
        for name, texts in suites.items():
            first, *others = [texts] if isinstance(texts, str) else texts
            (said / f"{name}.1").write_text(first)
            (said / name).write_text(others[-1] if others else first)
        done = subprocess.run(
            [tmp_path / "tests/runner/run", *suites],
            # As a make of several jobs that runs it would have them.
            env={**os.environ, "MAKEFLAGS": " -j2 --jobserver-auth=3,4"},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert not done.stderr
        lines = [line for line in done.stdout.splitlines() if not line.startswith("make")]
        return done.returncode, lines, (said / "started").read_text().split()

    return run


GOOD, BAD = "ok 1 - it\n", "said\nnot ok 1 - it\n"


def results(lines):
    """The lines of suites, without their times."""
    return [line.split(" in ")[0].split() for line in lines if " s of processors" in line]


def test_suites_that_pass_are_green(run):
    status, lines, started = run(vm=GOOD, lint=GOOD)
    assert status == 0
    assert sorted(started) == ["lint", "vm"]
    assert sorted(results(lines)) == [["lint", "passed"], ["vm", "passed"]]
    assert lines[-1] == "2 passed, 0 failed, 0 skipped"


def test_suite_that_fails_runs_again_and_what_failed_at_first_is_printed(run):
    status, lines, started = run(vm=[BAD, GOOD], lint=GOOD)
    assert status == 0
    assert started[2:] == ["vm"]
    assert lines[-5] == "vm runs again, alone"
    assert results(lines)[2:] == [["vm", "passed"]]
    assert lines[-3:] == [
        "failed at first: vm.tap: it",
        "    said",
        "2 passed, 0 failed, 0 skipped",
    ]


def test_suite_that_fails_again_is_red(run):
    status, lines, started = run(vm=BAD)
    assert status == 1
    assert started == ["vm", "vm"]
    assert lines[-4:] == [
        "    said",
        "failed: vm.tap: it",
        "    said",
        "0 passed, 1 failed, 0 skipped",
    ]


@pytest.mark.parametrize("suite", ["lint", "abi", "install", "checks"])
def test_suite_in_which_nothing_is_chance_runs_once(run, suite):
    status, lines, started = run(**{suite: [BAD, GOOD]})
    assert status == 1
    assert started == [suite]
    assert lines[-1] == "0 passed, 1 failed, 0 skipped"


@pytest.mark.parametrize(
    "finding",
    [
        "run: the kernel complains, see console.log:",
        "run: the guest crashed; end of console.log:",
        "run: no end after 2700 s; end of console.log:",
        "# late: it_hangs: no end after 120 s",
        " 3/62 tshare:unit / shm-dead    TIMEOUT        900.04s   killed by signal 15",
        "E       Failed: Timeout >900.0s",
        "# run: the kernel complains, see console.log:",
        "==7==ERROR: AddressSanitizer: heap-use-after-free",
        "WARNING: ThreadSanitizer: data race (pid=7)",
        "SUMMARY: AddressSanitizer: heap-use-after-free lib/desc.c:7 in it",
        "lib/desc.c:7:7: runtime error: signed integer overflow",
    ],
)
def test_what_is_found_once_is_red(run, finding):
    status, lines, started = run(vm=[f"{finding}\n{BAD}", GOOD])
    assert status == 1
    assert started == ["vm"]
    assert lines[-1] == "0 passed, 1 failed, 0 skipped"


@pytest.mark.parametrize(
    "finding",
    ["run: the guest crashed", "==7==ERROR: AddressSanitizer", "a.c:7:7: runtime error: "],
)
def test_name_of_a_test_is_no_finding(run, finding):
    status, _, started = run(vm=[f"test_it.py::test_it[{finding}] PASSED\n{BAD}", GOOD])
    assert status == 0
    assert started == ["vm", "vm"]


def test_several_suites_that_fail_run_again_and_one_of_them_may_be_steady(run):
    status, lines, started = run(vm=[BAD, GOOD], demo=[BAD, GOOD], lint=BAD)
    assert status == 1
    assert sorted(started[3:]) == ["demo", "vm"]
    assert lines[-1] == "2 passed, 1 failed, 0 skipped"


def test_many_suites_that_fail_do_not_run_again(run):
    status, lines, started = run(vm=[BAD, GOOD], demo=[BAD, GOOD], lint=BAD, abi=BAD)
    assert status == 1
    assert len(started) == 4
    assert lines[-1] == "0 passed, 4 failed, 0 skipped"


def test_suite_that_is_silent_is_named_with_its_last_line(run, tmp_path, monkeypatch):
    monkeypatch.setenv("TSHARE_TEST_LATE_AFTER", "2")
    (tmp_path / "said/lint.sleeps").write_text("6")
    status, lines, _ = run(lint="ok 1 - it\nok 2 - another\n")
    assert status == 0
    assert lines[0] == "lint: nothing for 2 s after: ok 2 - another"
    assert results(lines) == [["lint", "passed"]]


def test_kernel_s_log_is_kept_when_a_guest_runs_again(run, tmp_path):
    status, _, _ = run(kunit=[BAD, GOOD])
    assert status == 0
    kept = tmp_path / "build/tests"
    assert (kept / "first/kunit.console").read_text() == BAD
    assert (kept / "kunit.console").read_text() == GOOD


def test_unknown_suite_is_an_error(run, tmp_path):
    done = subprocess.run(
        [tmp_path / "tests/runner/run", "vm", "nonsense"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "unknown suite 'nonsense'" in done.stderr


def test_help_describes_each_suite_where_it_runs():
    """Every suite of make check before "With --all also", every other one behind it."""
    script = (RUNNER / "run").read_text()
    done = subprocess.run([RUNNER / "run", "--help"], stdout=subprocess.PIPE, text=True, check=True)
    halves = done.stdout.split("With --all also:")
    for name, half in zip(("suites", "more_suites"), halves, strict=True):
        listed = re.search(rf"^{name}=\((.*?)\)", script, re.M | re.S)[1].split()
        assert sorted(re.findall(r"^  (\S+)", half, re.M)) == sorted(listed)
