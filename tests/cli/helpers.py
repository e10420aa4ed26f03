# SPDX-License-Identifier: MIT
"""Helpers for the tests of the command: the command itself, and a terminal with a screen."""

import contextlib
import json
import os
import re
import shlex
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]

VERBS = (
    *("help", "info", "create", "list", "show", "unlink", "save", "publish", "wait", "top"),
    *("exec", "pool", "load", "unload", "weights", "bench", "stream"),
)

# The verbs of "stream", with its name.
STREAM_VERBS = tuple(f"stream {verb}" for verb in ("list", "show", "hz", "record", "play"))


class Said(NamedTuple):
    """The output of the command; bytes that are no UTF-8 are surrogates."""

    out: str
    err: str


def text(data):
    return (data or b"").decode("utf-8", "surrogateescape")


def library_path(folder):
    """Return LD_LIBRARY_PATH with a folder before what it has."""
    return os.pathsep.join(filter(None, [str(folder), os.environ.get("LD_LIBRARY_PATH")]))


class Command:
    """The command that is tested, as a function that runs it to its end."""

    def __init__(self, path):
        self.path = path

    def __call__(self, *arguments, status=0, under=(), env=None, **options):
        """Return what it says, and check its exit status.

        under is a program with arguments that runs it, env what is added to the environment.
        """
        command = [*under, self.path, *arguments]
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        done = subprocess.run(command, env={**os.environ, **(env or {})}, check=False, **options)
        said = Said(text(done.stdout), text(done.stderr))
        got = f"exit status {done.returncode}, not {status}: {command}\n{said.err}"
        assert done.returncode == status, got
        return said

    def json(self, *arguments, **options):
        """Return what it prints as JSON with the option -j."""
        verbs = 2 if arguments[0] == "stream" else 1
        return json.loads(self(*arguments[:verbs], "-j", *arguments[verbs:], **options).out)

    def entry(self, name):
        """Return what "list" has of a region, or None."""
        return next((region for region in self.json("list") if region["name"] == name), None)


def until(condition, problem="it never happens"):
    """Return what condition() returns once that is true.

    A minute and more is what a busy machine may take, and no law of the command.
    """
    for _ in range(600):
        if result := condition():
            return result
        time.sleep(0.1)
    pytest.fail(problem() if callable(problem) else problem)


def state_of(pid):
    """Return a process's state as /proc has it: S if it sleeps, T if it is stopped."""
    return re.search(r"^State:\s+(\S)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)[1]


def catches(pid, number):
    """Return whether a process has a handler for a signal."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"^SigCgt:\s+(\w+)", status, re.MULTILINE)[1], 16) & 1 << number - 1


def npy(shape, descr, order="False"):
    """Return the header of a .npy file with that, of version 1.0."""
    text = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


class Screen:
    """A terminal of tmux's, with 50 lines, in which a shell runs a command.

    Then the shell prints the exit status, and whether the terminal's lines are edited as usual.
    """

    def __init__(self, server):
        self.server = server
        self.text = ""

    def tmux(self, *arguments, check=True):
        command = ["tmux", "-L", self.server, "-f", "/dev/null", *arguments]
        env = {**os.environ, "TERM": "xterm", "SHELL": "/bin/sh"}
        return text(subprocess.run(command, env=env, check=check, capture_output=True).stdout)

    def run(self, columns, *command):
        script = f"{shlex.join(map(str, command))}; echo status $?; stty -a | grep -o '[-]*icanon'"
        script += "; stty -a | grep -ow '[-]*echo'; sleep 600"
        self.tmux("new-session", "-d", "-x", str(columns), "-y", "50", script)

    def matches(self, regex, *options):
        self.text = self.tmux("capture-pane", "-p", *options, check=False)
        return re.search(regex, self.text, re.MULTILINE)

    def shows(self, regex, *options):
        """Return the screen's text once it matches."""
        until(
            lambda: self.matches(regex, *options),
            lambda: f"the screen never shows {regex}:\n{self.text}",
        )
        return self.text

    def press(self, *keys):
        self.tmux("send-keys", *keys)

    def modes(self, *names):
        """Return modes of the terminal, as "0" and "1"."""
        return self.tmux("display", "-p", " ".join(f"#{{{name}}}" for name in names)).split()

    def pid(self):
        """Return the process of the command that runs in it."""
        shell = self.tmux("display", "-p", "#{pane_pid}").strip()
        command = ["pgrep", "-P", shell, "-x", "tshare"]
        return int(subprocess.run(command, check=True, capture_output=True).stdout)

    def is_restored(self, status):
        """Check that the command has ended with a status, and left the terminal as it was."""
        for line in (f"^status {status}$", "^icanon$", "^echo$"):
            self.shows(line)
        assert self.modes("alternate_on", "cursor_flag", "wrap_flag") == ["0", "1", "1"]

    def close(self):
        with contextlib.suppress(subprocess.CalledProcessError):
            self.tmux("kill-server")
