# SPDX-License-Identifier: MIT
"""top, in a terminal of tmux's."""

import os
import pty
import re
import signal
import subprocess
from pathlib import Path

import pytest

from helpers import state_of, until

pytestmark = pytest.mark.slow_in_guests


@pytest.fixture
def top(tshare, screen):
    """A function that runs top in a new terminal, and returns that when the view is there."""

    def top(columns, *options, shows="by size"):
        view = screen(columns, tshare.path, "top", *options)
        view.shows(shows)
        return view

    return top


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_top_fits_the_terminal(tshare, name, top, columns):
    tshare("create", name, "4", "int8")
    view = top(columns, shows=f" {name}")
    assert max(map(len, view.shows("^SIZE .* NAME$").splitlines())) <= columns
    assert view.modes("alternate_on") == ["1"]
    view.press("q")
    view.is_restored(0)


def test_top_shortens_names_in_the_middle(tshare, name, top):
    long = f"{name}-{100 * 'x'}"
    tshare("create", "-q", f"{long}-1", "4", "int8")
    tshare("create", "-q", f"{long}-2", "4", "int8")
    for columns in (20, 40, 60, 80, 100, 120, 160):
        said = top(columns, shows=r" c[^ ]*\.\.\.[^ ]*1$").text
        assert re.search(r" c[^ ]*\.\.\.[^ ]*2$", said, re.MULTILINE)
    top(200, shows=f" {long}-1$")


def test_top_shortens_its_summary(top):
    said = top(40, shows="^[0-9]+ region.* by ").text
    assert "r a n" not in said
    assert not said.splitlines()[0].endswith("n")


def test_top_shows_its_summary_above_more_regions_than_lines(tshare, name, top):
    for i in range(100, 160):
        tshare("create", "-q", f"{name}-{i}", "4", "int8")
    assert "regions" in top(80, shows=f"by size(?s:.*){name}-1").text.splitlines()[0]


def test_top_has_more_columns_on_a_wide_terminal(tshare, name, top):
    tshare("create", name, "4", "int8")
    top(40, shows="^SIZE  RATE  STATE  NAME$")
    wide = "^SIZE  OWNER +USERS  MAKER .*AGE  GENERATION  RATE  STATE  FLAGS .*NAME$"
    top(200, shows=wide)


def test_top_sorts_by_the_key_that_is_pressed(tshare, name, top):
    small, large = f"{name}-1", f"{name}-2"
    tshare("create", small, "--size", "4K")
    tshare("create", large, "--size", "64M")
    view = top(80, "--sort", "name", shows="by name")
    view.shows(f"{small}$(?s:.*){large}$")
    view.press("s")
    view.shows(f"by size(?s:.*){large}$(?s:.*){small}$")
    view.press("a")
    view.shows("by age")
    view.press("q")
    view.is_restored(0)


def test_top_sees_what_changes(tshare, name, top, publisher_exits):
    view = top(80, "-d", "0.1")
    assert name not in view.text
    tshare("create", name, "4", "int8")
    view.shows(f" {name}")
    publisher_exits()
    view.shows(f" 1 .* dead .*{name}")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_top_restores_the_terminal_after_a_signal(top, number):
    view = top(80)
    os.kill(view.pid(), number)
    view.is_restored(128 + number)


def test_top_leaves_ignored_signals_ignored(tshare, screen):
    view = screen(80, "sh", "-c", 'trap "" INT TSTP; exec "$0" top', tshare.path)
    view.shows("by size")
    pid = view.pid()
    status = Path(f"/proc/{pid}/status").read_text()
    ignored = int(re.search(r"^SigIgn:\s+(\w+)", status, re.MULTILINE)[1], 16)
    for number in (signal.SIGINT, signal.SIGTSTP):
        assert ignored & 1 << number - 1
        os.kill(pid, number)
    view.press("a")
    view.shows("by age")
    view.press("q")
    view.is_restored(0)


def test_top_ends_when_its_terminal_is_gone(start):
    ours, theirs = pty.openpty()
    top = start(
        *("top", "-d", "0.1"),
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "TERM": "xterm"},
    )
    os.close(theirs)
    os.read(ours, 1)
    os.close(ours)
    assert (top.wait(), top.stderr.read()) == (1, b"tshare top: standard output: write error\n")


def test_top_restores_the_terminal_while_it_is_stopped(top):
    view = top(80)
    pid = view.pid()
    os.kill(pid, signal.SIGTSTP)
    until(lambda: state_of(pid) == "T")
    assert view.modes("alternate_on", "cursor_flag") == ["0", "1"]
    os.kill(pid, signal.SIGCONT)
    view.shows("by size")
    view.press("q")
    view.is_restored(0)


def test_top_is_bold_unless_no_color_is_set(tshare, name, screen):
    tshare("create", name, "4", "int8")
    screen(80, tshare.path, "top").shows("\x1b\\[1m.*SIZE", "-e")
    said = screen(80, "env", "NO_COLOR=1", tshare.path, "top").shows(f" {name}", "-e")
    assert "\x1b[1m" not in said


def test_top_without_a_terminal_prints_one_table(tshare, name, screen):
    tshare("create", name, "4", "int8")
    said = tshare("top", "--sort", "age").out
    assert re.search("^SIZE  OWNER .*NAME$", said, re.MULTILINE)
    assert f"  {name}\n" in said
    assert "\x1b" not in said
    dumb = screen(80, "env", "TERM=dumb", tshare.path, "top")
    assert f" {name}\n" in dumb.shows("^status 0$")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("x", "tshare top: "),
        ("--sort sizze", "Did you mean 'size'?"),
        ("-d 0", "--delay: '0' is not 0.1 to 3600 seconds"),
    ],
)
def test_top_rejects_other_arguments(tshare, words, problem):
    assert problem in tshare("top", *words.split(), status=2).err
