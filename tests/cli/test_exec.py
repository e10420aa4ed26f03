# SPDX-License-Identifier: MIT
import json
import re
import signal

import pytest


def test_exec_passes_a_region_to_the_command(tshare, name):
    script = 'test "$TSHARE_NAME" = "$1" && test -e /proc/self/fd/"$TSHARE_FD" && "$0" show "$1"'
    command = ["sh", "-c", script, tshare.path, name]
    assert name in tshare("exec", "--name", name, "2x2", "int8", "--", *command).out


def test_exec_removes_the_region_at_the_end(tshare, name):
    tshare("exec", "--name", name, "2x2", "int8", "--", "true")
    tshare("show", name, status=3)


def test_exec_needs_no_name(tshare):
    script = 'test -z "$TSHARE_NAME" && test -n "$TSHARE_FD"'
    tshare("exec", "--size", "1M", "--", "sh", "-c", script)


def test_exec_returns_the_commands_status(tshare):
    tshare("exec", "4", "int8", "--", "sh", "-c", "exit 7", status=7)


def test_exec_returns_128_and_the_signal(tshare):
    tshare("exec", "4", "int8", "--", "sh", "-c", "kill -KILL $$", status=137)


def test_exec_returns_the_status_where_children_are_ignored(tshare):
    under = ["env", "--ignore-signal=CHLD"]
    tshare("exec", "4", "int8", "--", "sh", "-c", "exit 7", status=7, under=under)
    said = tshare("exec", "4", "int8", "--", "cat", "/proc/self/status", under=under).out
    ignored = int(re.search(r"^SigIgn:\s+(\w+)", said, re.MULTILINE)[1], 16)
    assert ignored & 1 << signal.SIGCHLD - 1


def test_exec_reports_a_missing_command(tshare, tmp_path):
    none = tmp_path / "none"
    assert f"{none}" in tshare("exec", "4", "int8", "--", none, status=127).err
    tshare("exec", "4", "int8", "--", tmp_path, status=126)


def test_exec_does_not_parse_the_commands_options(tshare):
    command = ["printf", "%s %s", "--json", "--help"]
    assert tshare("exec", "4", "int8", "--", *command).out == "--json --help"


def test_exec_forwards_signals(tshare, start, name):
    command = ["sh", "-c", "echo started; exec sleep 600"]
    process = start("exec", "--name", name, "4", "int8", "--", *command)
    assert process.stdout.readline() == b"started\n"
    tshare("show", name)
    process.terminate()
    assert process.wait() == 128 + signal.SIGTERM
    tshare("show", name, status=3)


@pytest.mark.parametrize("signal", ["HUP", "TERM"])
def test_exec_runs_until_the_command_that_was_ended_ends(tshare, signal):
    script = f'trap "exit 5" {signal}; kill -{signal} $PPID; while :; do sleep 0.1; done'
    under = ["env", f"--default-signal={signal}"]
    tshare("exec", "4", "int8", "--", "bash", "-c", script, status=5, under=under)


@pytest.mark.parametrize("signal", ["INT", "QUIT"])
def test_exec_runs_until_the_command_ends(tshare, signal):
    script = f"kill -{signal} $PPID; sleep 0.2; exit 6"
    under = ["env", f"--default-signal={signal}"]
    tshare("exec", "4", "int8", "--", "bash", "-c", script, status=6, under=under)


def test_exec_leaves_ignored_signals_ignored(tshare):
    script = "kill -HUP $$; kill -HUP $PPID; sleep 0.2; exit 5"
    under = ["env", "--ignore-signal=HUP"]
    tshare("exec", "4", "int8", "--", "sh", "-c", script, status=5, under=under)


def test_exec_does_not_forward_ignored_signals(tshare):
    command = ["env", "--default-signal=HUP", "sh", "-c", "kill -HUP $PPID; sleep 0.2; exit 5"]
    under = ["env", "--ignore-signal=HUP"]
    tshare("exec", "4", "int8", "--", *command, status=5, under=under)


def test_exec_takes_a_shape_besides_a_size(tshare, name):
    show = [tshare.path, "show", "-j", name]
    said = tshare("exec", "--size", "1M", "--name", name, "4x5", "int8", "--", *show).out
    region = json.loads(said)
    assert (region["size"], region["tensors"][0]["shape"]) == (1 << 20, [4, 5])
    said = tshare("exec", "--size", "1M", "--name", name, "--", *show).out
    assert json.loads(said)["tensors"] == []


def test_exec_needs_no_hyphens_before_the_command(tshare):
    tshare("exec", "4", "int8", "true")


@pytest.mark.slow_in_guests
@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("--size 1M 4 -- true", "tshare exec: needs SHAPE and DTYPE"),
        ("4 int8 5 -- true", "tshare exec: "),
        ("4 -- int8 true", "tshare exec: "),
    ],
)
def test_exec_rejects_other_words_before_the_command(tshare, words, problem):
    assert problem in tshare("exec", *words.split(), status=2).err


@pytest.mark.parametrize("words", ["", "4 int8", "4 int8 --"])
def test_exec_needs_a_shape_and_a_command(tshare, words):
    tshare("exec", *words.split(), status=2)
