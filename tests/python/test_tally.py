# SPDX-License-Identifier: MIT
"""The script that counts results, and prints the line that a run ends with."""

import importlib.util
import os
import shutil
import subprocess
import sys
import textwrap
from importlib.machinery import SourceFileLoader
from pathlib import Path
from xml.etree import ElementTree

import pytest

TALLY = Path(__file__).resolve().parents[1] / "runner/tally"

SKIPS = """\
# Which tests may be skipped.

libfoo is not installed
needs_a_bar: no bar
"""

# What pytest runs for of_pytest().
FILES = {
    "good": "def test_one(): pass\ndef test_two(): pass\n",
    "bad": """
        import pytest

        def test_passes():
            pass

        def test_fails():
            assert 6 * 7 == 43

        @pytest.fixture
        def broken():
            raise OSError("no such thing")

        def test_has_no_fixture(broken):
            pass
    """,
    "unloadable": "import no_such_module",
    "foo": """
        import pytest

        def test_foo():
            pytest.skip("libfoo is not installed")

        def test_passes():
            pass
    """,
    "whole": """
        import pytest

        pytest.skip("libfoo is not installed", allow_module_level=True)
    """,
    "quote": """
        import pytest

        pytest.skip("it's said: libfoo is not installed", allow_module_level=True)
    """,
}


@pytest.fixture
def tally(tmp_path, capsys, monkeypatch):
    """A function that counts what is in files, given as texts by their names.

    Returns the exit status and the lines that are printed. Where the text is None, there is no
    file. SKIPS is what may be skipped.
    """
    shutil.copy(TALLY, tmp_path)
    (tmp_path / "skips").write_text(SKIPS)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loader = SourceFileLoader("tally", str(tmp_path / "tally"))
    script = importlib.util.module_from_spec(importlib.util.spec_from_loader("tally", loader))
    loader.exec_module(script)

    def tally(texts, *options):
        for name, text in texts.items():
            if text is not None:
                (tmp_path / name).write_text(text)
        names = [str(tmp_path / name) for name in texts]
        status = script.main([*names, *(o if o[0] == "-" else str(tmp_path / o) for o in options)])
        return status, capsys.readouterr().out.splitlines()

    return tally


@pytest.fixture(scope="module")
def of_pytest(tmp_path_factory):
    """A function that returns what pytest reports of one of FILES."""
    path = tmp_path_factory.mktemp("pytest")
    for name, code in FILES.items():
        (path / f"test_{name}.py").write_text(textwrap.dedent(code))
    subprocess.run(
        [sys.executable, "-B", "-m", "pytest", "-p", "no:cacheprovider", "-c", "/dev/null",
         "--rootdir", path, "--continue-on-collection-errors", "--junitxml", path / "it.xml", path],
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True, check=False, timeout=300,
    )  # fmt: skip

    def of_pytest(name):
        report = ElementTree.parse(path / "it.xml")
        for suite in report.iter("testsuite"):
            for case in list(suite):
                if f"test_{name}" not in (case.get("classname"), case.get("name")):
                    suite.remove(case)
        return ElementTree.tostring(report.getroot(), encoding="unicode")

    return of_pytest


def suite(cases, output=""):
    """What meson writes of a program whose protocol is TAP."""
    return f'<testsuites><testsuite name="it">{cases}{output}</testsuite></testsuites>'


def test_what_passes_is_counted_and_green(tally, of_pytest):
    status, lines = tally(
        {
            "python.xml": of_pytest("good"),
            "unit.xml": suite('<testcase name="1 - it_works" classname="it" />'),
            "module.tap": "TAP version 13\n1..2\nok 1 - it_works\nok 2 wait.for_ever\n",
        }
    )
    assert status == 0
    assert lines == ["5 passed, 0 failed, 0 skipped"]


def test_failure_in_a_report_is_red_and_has_its_output(tally, of_pytest):
    status, lines = tally({"python.xml": of_pytest("bad")})
    assert status == 1
    assert "failed: python.xml: test_bad.test_fails" in lines
    assert any("assert (6 * 7) == 43" in line for line in lines)
    assert "failed: python.xml: test_bad.test_has_no_fixture" in lines
    assert any("OSError: no such thing" in line for line in lines)
    assert lines[-1] == "1 passed, 2 failed, 0 skipped"


def test_file_that_can_t_be_imported_is_red(tally, of_pytest):
    status, lines = tally({"python.xml": of_pytest("unloadable")})
    assert status == 1
    assert any("No module named 'no_such_module'" in line for line in lines)
    assert lines[-1] == "0 passed, 1 failed, 0 skipped"


def test_output_beside_a_failure_is_printed(tally):
    case = """<testcase name="it"><failure /><system-out>said</system-out>
        <system-err>warned</system-err></testcase>"""
    status, lines = tally({"unit.xml": suite(case)})
    assert status == 1
    assert lines == [
        "failed: unit.xml: it",
        "    said",
        "    warned",
        "0 passed, 1 failed, 0 skipped",
    ]


TWO_AND_THREE = [
    "failed, 2 in all:",
    "    unit.xml: 2 - two",
    "    unit.xml: 3 - three",
    "1 passed, 2 failed, 0 skipped",
]


def test_failure_of_a_program_with_tap_has_its_own_output(tally):
    cases = """<testcase name="1 - one" /><testcase name="2 - two"><failure /></testcase>
        <testcase name="3 - three"><failure /></testcase>"""
    output = """<system-out>TAP version 13
1..3
said of one
ok 1 - one
# two.c:7: 6 * 7 == 43
not ok 2 - two
not ok 3 - three
</system-out>"""
    status, lines = tally({"unit.xml": suite(cases, output)})
    assert status == 1
    assert lines == [
        "failed: unit.xml: 2 - two",
        "    # two.c:7: 6 * 7 == 43",
        "failed: unit.xml: 3 - three",
        *TWO_AND_THREE,
    ]


def test_condition_that_is_in_the_output_and_the_errors_is_printed_once(tally):
    case = '<testcase name="1 - one"><failure /></testcase>'
    output = """<system-out># one.c:7: one: 6 * 7 == 43
not ok 1 - one</system-out><system-err># one.c:7: one: 6 * 7 == 43
warned</system-err>"""
    _, lines = tally({"unit.xml": suite(case, output)})
    assert lines[1:-1] == ["    # one.c:7: one: 6 * 7 == 43", "    warned"]


@pytest.mark.parametrize(
    ("said", "errors", "reason"),
    [
        # It crashed, or a sanitizer ended it.
        ("1..1\nok 1 - one", "AddressSanitizer: no\n\n(test program exited with status code -6)",
         "test program exited with status code -6"),
        # It was killed when its time was over, or it ended in the middle.
        ("1..4\nok 1 - one", "AddressSanitizer: no", "1 of 4 results"),
    ],
)  # fmt: skip
def test_program_that_ends_badly_is_red_whatever_passed(tally, said, errors, reason):
    case = '<testcase name="1 - one" classname="it" />'
    output = f"<system-out>{said}</system-out><system-err>{errors}</system-err>"
    status, lines = tally({"unit.xml": suite(case, output)})
    assert status == 1
    assert lines[0] == f"failed: unit.xml: it: {reason}"
    assert "    ok 1 - one" in lines
    assert "    AddressSanitizer: no" in lines
    assert lines[-1] == "1 passed, 1 failed, 0 skipped"


# As long as AddressSanitizer's, whose end is a legend.
LEAK = "==7==ERROR: LeakSanitizer: detected memory leaks"
REPORT = [LEAK, *(f"frame {number}" for number in range(50))]


def test_report_that_a_failed_test_s_child_has_made_is_printed_from_its_beginning(tally):
    cases = """<testcase name="1 - one" /><testcase name="2 - two"><failure /></testcase>
        <testcase name="3 - three"><failure /></testcase>"""
    errors = "\n".join(["chatter", *REPORT, "", "(test program exited with status code 1)"])
    output = f"""<system-out>1..3
ok 1 - one
# two.c:7: !in_child(fn)
not ok 2 - two
not ok 3 - three</system-out><system-err>{errors}</system-err>"""
    _, lines = tally({"unit.xml": suite(cases, output)})
    assert lines == [
        "failed: unit.xml: 2 - two",
        "    # two.c:7: !in_child(fn)",
        *(f"    {line}" for line in REPORT[:25]),
        "failed: unit.xml: 3 - three",
        *TWO_AND_THREE,
    ]


@pytest.mark.parametrize(
    "first",
    [LEAK, "WARNING: ThreadSanitizer: data race (pid=7)", "a.c:7:3: runtime error: shift by 64"],
)
def test_report_of_a_program_that_crashed_is_printed_from_its_beginning(tally, first):
    case = '<testcase name="1 - one" classname="it" />'
    errors = "\n".join(["chatter", first, *REPORT[1:], "(test program exited with status code 6)"])
    output = f"<system-out>1..1\nok 1 - one</system-out><system-err>{errors}</system-err>"
    _, lines = tally({"unit.xml": suite(case, output)})
    report = [f"    {line}" for line in [first, *REPORT[1:25]]]
    assert lines[1:-1] == ["    1..1", "    ok 1 - one", *report]


def test_sixty_lines_of_a_kernel_s_complaint_are_printed(tally):
    said = ["run: the kernel complains, see it.console:", *(f"line {n}" for n in range(100))]
    log = "\n".join(["chatter", *(f"# {line}" for line in said), "not ok - it: exit status 70", ""])
    _, lines = tally({"kunit.tap": log})
    assert lines[1:-1] == [f"    # {line}" for line in said[:61]]


def test_errors_of_a_program_without_a_report_are_cut_to_their_end(tally):
    case = '<testcase name="1 - one" classname="it"><failure /></testcase>'
    errors = "\n".join(REPORT[1:])
    output = f"<system-out>not ok 1 - one</system-out><system-err>{errors}</system-err>"
    _, lines = tally({"unit.xml": suite(case, output)})
    assert lines[1:-1] == [f"    {line}" for line in REPORT[-25:]]


def test_program_that_says_itself_what_failed_fails_once(tally):
    case = '<testcase name="1 - one" classname="it"><failure /></testcase>'
    output = """<system-out>1..1
not ok 1 - one</system-out><system-err>(test program exited with status code 1)</system-err>"""
    assert tally({"unit.xml": suite(case, output)})[1][-1] == "0 passed, 1 failed, 0 skipped"


def test_failure_in_tap_is_red_and_has_its_own_output(tally):
    log = """\
        1..4
        said of one
        ok 1 - one
        # two.c:7: 6 * 7 == 43
        not ok 2 - two
        ok 3 - three
        not ok 4 - four
    """
    status, lines = tally({"module.tap": textwrap.dedent(log)})
    assert status == 1
    assert lines == [
        "failed: module.tap: two",
        "    # two.c:7: 6 * 7 == 43",
        "failed: module.tap: four",
        "failed, 2 in all:",
        "    module.tap: two",
        "    module.tap: four",
        "2 passed, 2 failed, 0 skipped",
    ]


def test_long_output_is_cut_to_its_end(tally):
    said = [f"line {number}" for number in range(100)]
    _, lines = tally({"module.tap": "\n".join([*said, "not ok 1 - long", ""])})
    assert lines[1:-1] == [f"    {line}" for line in said[-25:]]


def test_failures_come_last_whatever_follows_them(tally):
    status, lines = tally(
        {
            "first.tap": "said\nnot ok 1 - one\n",
            "second.tap": "ok 1 - two # SKIP libfoo is not installed\nok 2 - three\n",
        }
    )
    assert status == 1
    assert lines == [
        "skipped: two: libfoo is not installed",
        "failed: first.tap: one",
        "    said",
        "1 passed, 1 failed, 1 skipped",
    ]


def test_allowed_skip_is_green(tally, of_pytest):
    meson = (
        '<testcase name="2 - two"><skipped /><system-out>libfoo is not installed</system-out>'
        "</testcase>"
    )
    status, lines = tally(
        {
            "python.xml": of_pytest("foo"),
            "unit.xml": suite(meson),
            "module.tap": "ok 1 - one # SKIP libfoo is not installed\n",
        }
    )
    assert status == 0
    assert lines == [
        "skipped: 3 tests: libfoo is not installed",
        "1 passed, 0 failed, 3 skipped",
    ]


def test_skip_is_allowed_by_its_test_s_name_too(tally):
    log = "ok 1 - needs_a_bar # SKIP no bar\n"
    assert tally({"module.tap": log})[0] == 0
    assert tally({"module.tap": log.replace("a_bar", "another_bar")})[0] == 1


@pytest.mark.parametrize(
    "text",
    [
        "ok 1 - one # SKIP no reason\n",
        "1..0 # SKIP no reason\n",
        suite('<testcase name="one"><skipped /><system-out>no reason</system-out></testcase>'),
        suite('<testcase name="one"><skipped message="no reason">x.py:1</skipped></testcase>'),
    ],
    ids=["tap", "whole tap", "meson", "pytest"],
)
def test_skip_that_no_line_allows_is_red(tally, text):
    name = "one.xml" if text.startswith("<") else "one.tap"
    status, lines = tally({name: text})
    assert status == 1
    assert lines == [
        f"failed: {name}: one: no reason (no line of tests/runner/skips allows this skip)",
        "0 passed, 1 failed, 0 skipped",
    ]


@pytest.mark.parametrize(("file", "said"), [("whole", ""), ("quote", "it's said: ")])
def test_skip_of_a_whole_file_has_pytest_s_reason(tally, of_pytest, file, said):
    report = of_pytest(file)
    status, lines = tally({"python.xml": report})
    assert status == 0
    assert lines == [
        f"skipped: test_{file}: {said}libfoo is not installed",
        "0 passed, 0 failed, 1 skipped",
    ]
    status, lines = tally({"python.xml": report.replace("libfoo", "libbar")})
    assert status == 1
    assert f"test_{file}: {said}libbar is not installed (no line of" in lines[0]


def test_comment_allows_no_skip(tally):
    assert tally({"a.tap": "ok 1 - one # SKIP # Which tests may be skipped.\n"})[0] == 1


def test_tap_that_is_skipped_as_a_whole_has_its_file_s_name(tally):
    status, lines = tally({"foo.tap": "1..0 # SKIP libfoo is not installed\n"})
    assert status == 0
    assert lines[0] == "skipped: foo: libfoo is not installed"


def test_failure_is_red_whatever_may_be_skipped(tally):
    status, lines = tally({"a.tap": "not ok 1 - libfoo is not installed\n"})
    assert status == 1
    assert lines[-1] == "0 passed, 1 failed, 0 skipped"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("it.tap", ""),
        ("it.tap", "TAP version 13\n1..3\n"),
        ("it.tap", None),
        ("it.xml", suite("")),
        ("it.xml", None),
    ],
)
def test_file_without_results_is_red(tally, name, text):
    status, lines = tally({name: text})
    assert status == 1
    assert lines == [f"failed: {name}: {name}: no results", "0 passed, 1 failed, 0 skipped"]


def test_what_a_suite_reported_at_first_is_printed_and_does_not_count(tally, tmp_path):
    (tmp_path / "first.tap").write_text("ok 1 - one\nsaid\nnot ok 2 - two\n")
    status, lines = tally({"again.tap": "ok 1 - one\nok 2 - two\n"}, "--first", "first.tap", "none")
    assert status == 0
    assert lines == [
        "failed at first: first.tap: two",
        "    said",
        "failed at first: none: none: no results",
        "failed at first, 2 in all:",
        "    first.tap: two",
        "    none: none: no results",
        "2 passed, 0 failed, 0 skipped",
    ]


@pytest.mark.parametrize(("result", "status"), [("ok", 0), ("not ok", 1)])
def test_script_exits_with_the_result(tmp_path, result, status):
    (tmp_path / "it.tap").write_text(f"{result} 1 - it\n")
    ended = subprocess.run([sys.executable, TALLY, tmp_path / "it.tap"], check=False, timeout=300)
    assert ended.returncode == status
