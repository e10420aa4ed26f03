# SPDX-License-Identifier: MIT
"""python -m tshare: runs the command tshare.

The package ships the command, unless it was built without what the command needs, or for a
distribution that has a package of the command. Then the command in PATH runs.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from importlib import metadata
from pathlib import Path

# In the environment of a command that is only asked whether it starts.
CHECKED = "TSHARE_MAIN_CHECKED"


def _shipped() -> str | None:
    """Return the path of the command that was installed with the package, if there is one."""
    # Several: what a build has left in the sources may come first in sys.path.
    found = [
        os.path.realpath(str(file.locate()))
        for distribution in metadata.distributions(name="tshare")
        for file in distribution.files or []
        if file.parts[-2:] == ("bin", "tshare")
    ]
    # The record of "pip install --target" names another folder than the one that pip fills.
    found.append(str(Path(__file__).parents[1] / "bin" / "tshare"))
    return next(filter(os.path.isfile, found), None)


def _find() -> str:
    return (
        _shipped()
        or shutil.which("tshare")
        or sys.exit(
            "tshare: the command is neither in this package nor in PATH (install Debian's package "
            "tshare; or libsmartcols-dev and pkg-config, and then this package anew)"
        )
    )


def _check(command: str) -> None:
    """End with one sentence if the command can't be started, or comes back here."""
    if os.environ.get(CHECKED):
        sys.exit(f"{command} runs python -m tshare")
    try:
        done = subprocess.run(
            [command, "--version"],
            capture_output=True,
            text=True,
            env={**os.environ, CHECKED: "1"},
        )
    except OSError as error:
        sys.exit(f"tshare: {command}: {error.strerror}")
    said = done.stderr.strip()
    # The loader's message names the library.
    if done.returncode and "shared libraries" in said:
        said += " (install the library: Debian's packages are libsmartcols1 and libkmod2)"
    if done.returncode:
        sys.exit(f"tshare: {said or f'{command} fails'}")


def main() -> None:
    command = _find()
    _check(command)
    # These verbs run Python again. A program that "exec" runs may be another environment's.
    if sys.argv[1:2] in (["weights"], ["bench"]):
        os.environ["TSHARE_PYTHON"] = sys.executable
        # Then Python doesn't search the current folder, which may be where this package lies.
        folder = str(Path(__file__).parents[1])
        if folder == os.getcwd():
            paths = (folder, os.environ.get("PYTHONPATH"))
            os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    # Python ignores these, and a program that replaces it would, too.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.execv(command, [command, *sys.argv[1:]])


if __name__ == "__main__":
    main()
