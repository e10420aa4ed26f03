# SPDX-License-Identifier: MIT
"""What setup.py builds for each Python, and interpreters that can import the extension."""

import importlib.metadata
import re
import runpy
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import tshare
from support import need, run

setuptools = need("setuptools")

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def described(monkeypatch):
    """A function that returns setup.py's arguments to setuptools, by kind of Python."""

    def describe(free_threaded):
        known = sysconfig.get_config_var
        asked = {}
        monkeypatch.setattr(
            sysconfig,
            "get_config_var",
            lambda name: int(free_threaded) if name == "Py_GIL_DISABLED" else known(name),
        )
        monkeypatch.setattr(setuptools, "setup", lambda **arguments: asked.update(arguments))
        monkeypatch.chdir(ROOT)
        runpy.run_path("setup.py")
        return asked

    return describe


def test_musl_is_refused(monkeypatch, described):
    known = sysconfig.get_config_var
    monkeypatch.setattr(
        sysconfig,
        "get_config_var",
        lambda name: "x86_64-alpine-linux-musl" if name == "HOST_GNU_TYPE" else known(name),
    )
    with pytest.raises(SystemExit, match="needs the GNU C library"):
        described(False)


@pytest.mark.parametrize(("name", "value"), [("platform", "darwin"), ("maxsize", (1 << 31) - 1)])
def test_other_systems_are_refused(monkeypatch, described, name, value):
    monkeypatch.setattr(sys, name, value)
    with pytest.raises(SystemExit, match="needs 64-bit Linux"):
        described(False)


def test_version_is_that_of_the_library_and_of_the_package():
    version = (ROOT / "VERSION").read_text().strip()
    assert tshare.__version__ == version
    assert importlib.metadata.version("tshare") == version


def test_one_wheel_is_for_all_versions_of_python(described):
    asked = described(False)
    assert asked["options"] == {"bdist_wheel": {"py_limited_api": "cp311"}}
    for extension in asked["ext_modules"]:
        assert extension.py_limited_api
        assert ("Py_LIMITED_API", "0x30b0000") in extension.define_macros


def test_free_threaded_python_has_a_wheel_of_its_own(described):
    asked = described(True)
    assert not asked["options"]
    for extension in asked["ext_modules"]:
        assert not extension.py_limited_api
        assert "Py_LIMITED_API" not in dict(extension.define_macros)


def test_extensions_need_no_limited_api(described, tmp_path):
    include = sysconfig.get_paths()["include"]
    make = ["python/ext/docstrings.py", "python/tshare/_tshare.pyi", tmp_path / "docstrings.h"]
    subprocess.run([sys.executable, *make], cwd=ROOT, check=True)
    for extension in described(True)["ext_modules"]:
        macros = [f"-D{name}={value or ''}" for name, value in extension.define_macros]
        folders = [f"-I{folder}" for folder in (include, tmp_path, *extension.include_dirs)]
        subprocess.run(
            ["gcc", "-std=gnu11", "-fsyntax-only", *macros, *folders, *extension.sources],
            cwd=ROOT,
            check=True,
        )


def test_extension_links_the_library_of_the_system_if_it_is_asked_to(described, monkeypatch):
    monkeypatch.setenv("TSHARE_SYSTEM_LIBRARY", "1")
    asked = described(False)
    assert asked["ext_modules"][0].libraries == ["tshare"]
    # The command is a package of its own there.
    assert asked["scripts"] == []


def test_extension_has_the_library_in_it_if_it_is_not_asked(described, monkeypatch):
    monkeypatch.delenv("TSHARE_SYSTEM_LIBRARY", raising=False)
    asked = described(False)
    extension = asked["ext_modules"][0]
    assert "lib/region/region.c" in extension.depends
    assert "tshare" not in extension.libraries
    assert "tools/main.c" in asked["scripts"]


def test_extension_sees_the_installed_headers_alone(described):
    """So it can't call what is inside the library."""
    assert described(False)["ext_modules"][0].include_dirs == ["include", "include/uapi"]


IMPORT = "try:\n import tshare\nexcept ImportError as error:\n print(error, flush=True)"

# From Python 3.13 on, the interpreter itself refuses.
REFUSED = re.compile("only by the main interpreter|does not support loading in subinterpreters")

PREPARE = f"""
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

other = interpreters.create()
import_there = lambda: interpreters.run_string(other, {IMPORT!r})
"""


def test_subinterpreter_that_imports_first_does_no_harm():
    code = PREPARE + "import_there()\nimport tshare\nprint(tshare.create(None, 3).shape)"
    refused, shape = run(code).splitlines()
    assert REFUSED.search(refused)
    assert shape == "(3,)"


def test_subinterpreter_that_imports_later_does_no_harm():
    code = PREPARE + (
        "import tshare\nimport_there()\ninterpreters.destroy(other)\n"
        "print(tshare.create(None, 3).shape)"
    )
    refused, shape = run(code).splitlines()
    assert REFUSED.search(refused)
    assert shape == "(3,)"
