# SPDX-License-Identifier: MIT
"""The command that pip installs, and python -m tshare, which runs it."""

import json
import os
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import tshare

BUILT = Path(__file__).resolve().parents[2] / "build/c/tools/tshare"
INSTALLED = Path(sysconfig.get_path("scripts"), "tshare").resolve()
MODULE = (sys.executable, "-m", "tshare")


def run(*command, **options):
    return subprocess.run([*command], capture_output=True, timeout=300, **options)


def stand_in(folder, text="stand-in"):
    """Make a command tshare that prints the text and its arguments."""
    folder.mkdir(exist_ok=True)
    program = folder / "tshare"
    program.write_text(f'#!/bin/sh\necho "{text} $@"\n')
    program.chmod(0o755)
    return program


def result(*command):
    done = run(*command)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def region(new_name):
    # A letter, an escape, a control character beyond ASCII, and a byte that isn't UTF-8.
    name = f"{new_name()} ü\x1b\x9b\udc9b"
    tshare.Region.create(name, {"x": ((2, 5), "float32"), "漢字": ((1,), "int8")})
    yield name
    tshare.unlink(name)


@pytest.mark.parametrize("command", [(INSTALLED,), MODULE])
def test_command_is_that_of_the_c_library(command, region):
    for arguments in (
        *(("--version",), ("help",), ("top", "--help"), ("weights", "--help"), ("bench", "--help")),
        *((), ("dance",), ("show",), ("show", "--json", region), ("show", region + "\udc9b")),
    ):
        assert result(*command, *arguments) == result(BUILT, *arguments)


@pytest.mark.parametrize("command", [(INSTALLED,), MODULE])
def test_command_has_the_package_s_regions_and_backend(command, region, backend):
    assert region in {found["name"] for found in json.loads(run(*command, "list", "-j").stdout)}
    said = json.loads(run(*command, "info", "--json").stdout)
    known = json.loads(run(BUILT, "info", "--json").stdout)
    assert said.keys() == known.keys()
    assert said["module"] == known["module"]
    assert said["backends"][backend]["used"]


def test_exit_status_is_the_command_s(name):
    assert run(*MODULE, "show", name).returncode == 3
    environment = {**os.environ, "TSHARE_BACKEND": "none"}
    assert run(*MODULE, "list", env=environment).returncode == 1


@pytest.mark.parametrize("command", [(BUILT,), MODULE])
def test_command_dies_of_a_closed_pipe(command):
    end, pipe = os.pipe()
    os.close(end)
    done = subprocess.run([*command, "help"], stdout=pipe, stderr=subprocess.PIPE, timeout=300)
    os.close(pipe)
    assert (done.returncode, done.stderr) == (-signal.SIGPIPE, b"")


@pytest.mark.parametrize("command", [(INSTALLED,), MODULE])
def test_weights_run_in_the_python_of_the_command(command, name):
    environment = {**os.environ, "PATH": "/nowhere"}
    environment.pop("TSHARE_PYTHON", None)
    said = run(*command, "weights", "show", name, env=environment)
    assert said.returncode == 3
    assert said.stderr.startswith(b"tshare weights: name: there is no region")


def test_weights_import_nothing_from_the_current_folder(name, tmp_path):
    (tmp_path / "json.py").write_text("raise SystemExit('imported')\n")
    said = run(INSTALLED, "weights", "show", name, cwd=tmp_path)
    assert said.stderr.startswith(b"tshare weights: name: there is no region")


def test_weights_run_the_package_of_the_current_folder_if_that_was_run(name, tmp_path):
    """As where pip has installed it with --target."""
    (tmp_path / "tshare").symlink_to(tshare.__path__[0])
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/tshare").symlink_to(INSTALLED)
    # Not that of the environment, which has the package, too.
    python = os.path.realpath(sys.executable)
    said = run(python, "-m", "tshare", "weights", "show", name, cwd=tmp_path)
    assert said.stderr.startswith(b"tshare weights: name: there is no region")


def test_python_that_is_named_runs_the_package():
    environment = {**os.environ, "TSHARE_PYTHON": "/nowhere/python"}
    assert b"/nowhere/python" in run(INSTALLED, "bench", env=environment).stderr


def test_installed_command_comes_before_that_in_path(tmp_path):
    stand_in(tmp_path)
    environment = {**os.environ, "PATH": str(tmp_path)}
    said = run(*MODULE, "--version", env=environment).stdout.decode()
    assert said.startswith(f"tshare {tshare.__version__}, ")


def test_installed_command_runs_behind_what_a_build_has_left(tmp_path):
    (tmp_path / "tshare.egg-info").mkdir()
    (tmp_path / "tshare.egg-info/PKG-INFO").write_text("Name: tshare\nVersion: 9\n")
    said = run(*MODULE, "--version", env={**os.environ, "PYTHONPATH": str(tmp_path)}).stdout
    assert said.decode().startswith(f"tshare {tshare.__version__}, ")


def test_program_that_exec_runs_is_told_of_no_python():
    environment = {key: os.environ[key] for key in os.environ if key != "TSHARE_PYTHON"}
    program = ("sh", "-c", "echo ${TSHARE_PYTHON-none}")
    said = run(*MODULE, "exec", "4", "uint8", "--", *program, env=environment)
    assert said.stdout == b"none\n"


# A package without a command


@pytest.fixture
def alone(tmp_path):
    """A function that runs python -m tshare where no package is installed, but one lies."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/tshare").symlink_to(tshare.__path__[0])

    def alone(*arguments):
        paths = {"PATH": str(tmp_path / "path"), "PYTHONPATH": str(tmp_path / "lib")}
        # Without site-packages.
        command = (sys.executable, "-S", "-m", "tshare", *arguments)
        return run(*command, env={**os.environ, **paths}, text=True)

    return alone


def test_missing_command_is_named(alone):
    said = alone("info")
    assert (said.returncode, said.stdout) == (1, "")
    assert said.stderr == (
        "tshare: the command is neither in this package nor in PATH (install Debian's package "
        "tshare; or libsmartcols-dev and pkg-config, and then this package anew)\n"
    )


def test_command_in_path_runs_where_the_package_has_none(alone, tmp_path):
    stand_in(tmp_path / "path")
    assert alone("show", "a b").stdout == "stand-in show a b\n"


def test_command_beside_the_package_runs(alone, tmp_path):
    """As pip installs it with --target."""
    stand_in(tmp_path / "path")
    stand_in(tmp_path / "lib/bin", "beside")
    assert alone("list").stdout == "beside list\n"


def test_command_that_can_not_be_run_is_named(alone, tmp_path):
    program = stand_in(tmp_path / "lib/bin")
    program.write_bytes(b"")
    said = alone("list")
    assert (said.returncode, said.stderr) == (1, f"tshare: {program}: Exec format error\n")


def test_command_in_path_that_comes_back_is_named(alone, tmp_path):
    program = stand_in(tmp_path / "path")
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -S -m tshare "$@"\n')
    said = alone("list")
    assert (said.returncode, said.stdout) == (1, "")
    assert said.stderr == f"tshare: {program} runs python -m tshare\n"


def test_command_in_path_that_fails_is_shown_as_it_fails(alone, tmp_path):
    program = stand_in(tmp_path / "path")
    program.write_text("#!/bin/sh\necho 'shim: not found' >&2\nexit 127\n")
    assert alone("list").stderr == "tshare: shim: not found\n"


def test_missing_library_is_named(tmp_path):
    """The loader takes the first file of the name, which is none of its format."""
    (tmp_path / "libsmartcols.so.1").touch()
    said = run(*MODULE, "list", env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}, text=True)
    assert (said.returncode, said.stdout) == (1, "")
    assert said.stderr.startswith(f"tshare: {INSTALLED}: error while loading shared libraries: ")
    assert "libsmartcols.so.1" in said.stderr
    assert said.stderr.endswith(
        "(install the library: Debian's packages are libsmartcols1 and libkmod2)\n"
    )
