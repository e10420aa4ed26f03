# SPDX-License-Identifier: MIT
"""The archives that are tested, built once."""

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Any time; the archives are the same if it is.
EPOCH = "1700000000"
# Uses what is compiled.
EXAMPLE = (
    "import tshare; t = tshare.create(None, (2, 3), 'float32'); memoryview(t)[1, 2] = 5;"
    " assert tshare.asarray(memoryview(t)).shape == (2, 3)"
)
# Seconds after which a command is taken for one that hangs.
LIMIT = 900


def run(*command, check=True, **options):
    done = subprocess.run(
        [*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=LIMIT, **options,
    )  # fmt: skip
    if check:
        assert not done.returncode, done.stdout
    return done


def pythons():
    """The path of each Python of this machine, by its version "3.11"; Debian's and pyenv's."""
    found = {}
    homes = [Path("/usr"), *Path.home().glob(".pyenv/versions/3.*")]
    for program in (path for home in homes for path in home.glob("bin/python3.*")):
        minor = program.name.removeprefix("python")
        if minor.removeprefix("3.").isdecimal():
            found.setdefault(minor, program)
    return found


def build(kind, source, into, **environment):
    """Build with the setuptools of this environment; return the one archive."""
    run(
        *(sys.executable, "-m", "build", "--no-isolation", f"--{kind}", "-o", into, source),
        env={**os.environ, "SOURCE_DATE_EPOCH": EPOCH, **environment},
    )
    (archive,) = into.iterdir()
    return archive


@pytest.fixture(scope="session")
def tree(tmp_path_factory):
    """A function that makes a copy of the files that git knows."""

    def copy():
        folder = tmp_path_factory.mktemp("tree")
        files = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, stdout=subprocess.PIPE, check=True
        ).stdout
        subprocess.run(
            ["cp", "--parents", "-t", folder, *files.decode().strip("\0").split("\0")],
            cwd=ROOT,
            check=True,
        )
        return folder

    return copy


@pytest.fixture(scope="session")
def sdist(tree, tmp_path_factory):
    return build("sdist", tree(), tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="session")
def source(sdist, tmp_path_factory):
    """What is in the source archive."""
    folder = tmp_path_factory.mktemp("source")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder)
    (top,) = folder.iterdir()
    return top


@pytest.fixture(scope="session")
def path_without(tmp_path_factory):
    """A function that makes a folder of all programs but those named."""

    def make(*patterns):
        folder = tmp_path_factory.mktemp("bin")
        hidden = {found.name for pattern in patterns for found in Path("/usr/bin").glob(pattern)}
        for program in Path("/usr/bin").iterdir():
            if program.name not in hidden:
                (folder / program.name).symlink_to(program)
        return str(folder)

    return make


@pytest.fixture(scope="session")
def plain_wheel(source, tmp_path_factory, path_without):
    """The wheel that pip makes of the source archive, on a machine with a C compiler alone."""
    return build("wheel", source, tmp_path_factory.mktemp("plain"),
                 PATH=path_without("meson*", "ninja*"))  # fmt: skip


@pytest.fixture(scope="session")
def wheel(source, tmp_path_factory):
    """The wheel that would be published."""
    folder = tmp_path_factory.mktemp("wheel")
    environment = {**os.environ, "PYTHON": sys.executable, "SOURCE_DATE_EPOCH": EPOCH}
    run(ROOT / "tests/packages/wheel", source, folder, env=environment)
    (archive,) = folder.iterdir()
    return archive


@pytest.fixture
def venv(tmp_path):
    """A function that makes an environment of a Python, with packages and nothing else."""

    def make(python, *packages):
        run(python, "-m", "venv", tmp_path / "venv")
        inside = tmp_path / "venv/bin/python"
        run(inside, "-m", "pip", "install", "-q", *packages)
        return inside

    return make
