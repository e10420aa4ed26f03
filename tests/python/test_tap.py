# SPDX-License-Identifier: MIT
"""The harness of the unit tests, with tests of the test's own."""

import os
import subprocess
from pathlib import Path

import pytest

UNIT = Path(__file__).resolve().parents[1] / "unit"

PROGRAM = """
#include <stdio.h>
#include <unistd.h>
#include "tap.h"

static void nothing(void) { }
static int sleeps(void *data) { sleep(1000); return 0; }

TEST(passes) { CHECK(6 * 7 == 42); }
TEST(fails) { CHECK(6 * 7 == 43); }
TEST(waits_for_its_child) { CHECK(!in_child(sleeps, NULL)); }
TEST(is_late) { for (int left = 3; left;) left = sleep(left); }

int main(void) { return tap_main(nothing, nothing); }
"""

pytestmark = pytest.mark.slow_in_guests


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tap")
    (folder / "it.c").write_text(PROGRAM)
    subprocess.run(
        ["cc", "-D_GNU_SOURCE", f"-I{UNIT}", folder / "it.c", UNIT / "tap.c", "-o", folder / "it"],
        check=True,
        timeout=300,
    )
    return folder / "it"


def run(program, only, **environment):
    """Return the exit status, the output's lines behind the plan, and the errors' lines."""
    done = subprocess.run(
        [program],
        env={**os.environ, "TSHARE_TEST_ONLY": only, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    return done.returncode, done.stdout.splitlines()[2:], done.stderr.splitlines()


def test_good_test_passes(program):
    assert run(program, "passes") == (0, ["ok 1 - passes"], [])


def test_condition_that_fails_is_in_the_output_and_in_the_errors(program):
    status, output, errors = run(program, "fails")
    assert status == 1
    assert output[0].endswith("it.c:10: fails: 6 * 7 == 43")
    assert output[1:] == ["not ok 1 - fails"]
    assert errors == output[:1]


def test_condition_is_printed_once_where_errors_go_into_the_output(program):
    done = subprocess.run(
        [program],
        env={**os.environ, "TSHARE_TEST_ONLY": "fails"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.stdout.count("6 * 7 == 43") == 1


def test_misspelt_name_is_an_error(program):
    status, output, errors = run(program, "pases")
    assert (status, output) == (2, [])
    assert errors == ["TSHARE_TEST_ONLY: there is no test 'pases' here"]


def test_late_test_is_named_and_goes_on(program, tmp_path):
    (tmp_path / "late").touch()
    status, output, _ = run(
        program, "is_late", TSHARE_TEST_LIMIT="10", TSHARE_TEST_LATE=str(tmp_path / "late")
    )
    assert (status, output) == (0, ["# late: is_late has run for 2 s", "ok 1 - is_late"])
    assert (tmp_path / "late").read_text().splitlines() == output[:1]


def test_hang_ends_the_program_and_its_child(program):
    # Its child has the output open, too, and run() waits for that to be closed.
    status, output, _ = run(program, "waits_for_its_child", TSHARE_TEST_LIMIT="3")
    assert status == 1
    assert output[-2:] == [
        "# late: waits_for_its_child: no end after 3 s",
        "not ok 1 - waits_for_its_child",
    ]
