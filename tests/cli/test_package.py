# SPDX-License-Identifier: MIT
"""bench and weights, which run the Python package: here on a stand-in for its interpreter."""

import shutil
from pathlib import Path

import pytest

from helpers import Command, library_path

pytestmark = pytest.mark.slow_in_guests


@pytest.fixture
def stand_in(tmp_path):
    """A function that makes an interpreter, and returns an environment which names it.

    It exits with a status when it is asked for the package, and else prints its arguments.
    """

    def stand_in(status, name="python"):
        path = tmp_path / name
        ask = f'[ "$1" = -c ] && exit {status}'
        path.write_text(f'#!/bin/sh\n{ask}\nprintf "%s " "$@"\n')
        path.chmod(0o755)
        return {"TSHARE_PYTHON": str(path)}

    return stand_in


def test_bench_runs_the_package_with_its_arguments(tshare, stand_in):
    said = tshare("bench", "--quick", "--csv", "a b", env=stand_in(4)).out
    assert said == "-m tshare.bench --quick --csv a b "


@pytest.mark.parametrize("named", ["", None])
def test_bench_runs_python3_where_no_other_is_named(tshare, stand_in, tmp_path, monkeypatch, named):
    stand_in(4, "python3")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.delenv("TSHARE_PYTHON", raising=False)
    if named is not None:
        monkeypatch.setenv("TSHARE_PYTHON", named)
    assert tshare("bench").out == "-m tshare.bench "


def test_bench_runs_the_python_of_its_environment(tshare, stand_in, tmp_path, monkeypatch):
    """The command that pip has installed lies beside the Python that has the package."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "pyvenv.cfg").touch()
    stand_in(4, "bin/python3")
    monkeypatch.delenv("TSHARE_PYTHON", raising=False)
    own = Command(Path(shutil.copy(tshare.path, tmp_path / "bin")))
    said = own("bench", env={"LD_LIBRARY_PATH": library_path(tshare.path.parents[1] / "lib")}).out
    assert said == "-m tshare.bench "


def test_bench_reports_a_missing_python(tshare, tmp_path):
    none = str(tmp_path / "none")
    said = tshare("bench", status=1, env={"TSHARE_PYTHON": none}).err
    assert none in said
    assert "TSHARE_PYTHON" in said


def test_bench_reports_a_program_that_is_no_python(tshare):
    said = tshare("bench", status=1, env={"TSHARE_PYTHON": "/bin/true"}).err
    assert "/bin/true is no Python (set TSHARE_PYTHON to Python 3.11 or newer)" in said


def test_bench_reports_a_python_without_the_package(tshare, stand_in):
    said = tshare("bench", status=1, env=stand_in(3)).err
    assert "no package tshare (install Debian's python3-tshare; or run 'pip install .'" in said


def test_bench_reports_that_the_machine_s_python_has_no_package(tshare):
    env = {"TSHARE_PYTHON": "/usr/bin/python3", "PYTHONPATH": ""}
    assert "no package" in tshare("bench", status=1, env=env).err


def test_bench_finds_the_package_where_children_are_ignored(tshare, stand_in):
    said = tshare("bench", "--quick", env=stand_in(4), under=["env", "--ignore-signal=CHLD"]).out
    assert said == "-m tshare.bench --quick "


@pytest.mark.parametrize(
    ("argument", "problem"),
    [("4", "unexpected argument '4'"), ("--max-size", "option '--max-size' needs a value")],
)
def test_bench_rejects_other_arguments(tshare, argument, problem):
    assert problem in tshare("bench", argument, status=2).err


@pytest.mark.parametrize(
    "arguments",
    [["load", "a b", "--persist", "--name", "x"], ["verify", "-j", "a", "b"]],
)
def test_weights_runs_the_package_with_its_arguments(tshare, stand_in, arguments):
    said = tshare("weights", *arguments, env=stand_in(4)).out
    assert said == f"-m tshare._weights_command {' '.join(arguments)} "


def test_weights_reports_a_python_without_the_package(tshare, stand_in):
    said = tshare("weights", "show", "x", status=1, env=stand_in(3)).err
    assert "no package tshare (" in said


@pytest.mark.parametrize(
    ("words", "problem"),
    [("", "load, show or verify is missing"), ("lode x", "unexpected argument 'lode'")],
)
def test_weights_rejects_other_arguments(tshare, words, problem):
    assert problem in tshare("weights", *words.split(), status=2).err


# The current folder, which may be anybody's


def make_package(folder):
    """Make a package tshare in a folder, which prints the folder's name as the benchmark."""
    (folder / "tshare").mkdir(parents=True)
    (folder / "tshare/__init__.py").touch()
    (folder / "tshare/bench.py").write_text(f"import json\nprint({folder.name!r})\n")


@pytest.fixture
def package(tmp_path):
    """An environment with a package in PYTHONPATH."""
    make_package(tmp_path / "path")
    return {"TSHARE_PYTHON": "/usr/bin/python3", "PYTHONPATH": str(tmp_path / "path")}


def test_bench_imports_no_package_from_the_current_folder(tshare, package, tmp_path):
    make_package(tmp_path / "current")
    assert tshare("bench", env=package, cwd=tmp_path / "current").out == "path\n"


@pytest.mark.parametrize("file", ["tshare.py", "json.py", "importlib.py"])
def test_bench_imports_no_file_from_the_current_folder(tshare, package, tmp_path, file):
    (tmp_path / file).write_text("raise SystemExit('imported')\n")
    assert tshare("bench", env=package, cwd=tmp_path).out == "path\n"


def test_bench_imports_from_the_current_folder_if_pythonpath_has_it(tshare, package, tmp_path):
    env = {**package, "PYTHONPATH": "."}
    assert tshare("bench", env=env, cwd=tmp_path / "path").out == "path\n"


def test_bench_finds_no_package_in_a_python_before_3_11(tshare, package, tmp_path):
    """Such a Python ignores PYTHONSAFEPATH."""
    older = tmp_path / "older"
    script = "import sys; sys.version_info = (3, 10); exec(sys.argv.pop(1))"
    older.write_text(f'#!/bin/sh\nexec /usr/bin/python3 -c "{script}" "$2" "$3"\n')
    older.chmod(0o755)
    said = tshare("bench", status=1, env={**package, "TSHARE_PYTHON": str(older)}).err
    assert "no package tshare (install Debian's python3-tshare" in said
