# SPDX-License-Identifier: MIT
"""The archives of a release, as "make dist" makes them."""

import os
import subprocess
import tarfile

import pytest

from conftest import ROOT, run

VERSION = (ROOT / "VERSION").read_text().strip()


@pytest.fixture(scope="session")
def commit(tree):
    """A function that makes a repository of the files that git knows."""

    def make():
        folder = tree()
        git = ["git", "-C", folder, "-c", "user.name=me", "-c", "user.email=me@example.invalid"]
        for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "All"]):
            run(*git, *arguments)
        return folder

    return make


def make_dist(repository, **environment):
    run(
        *(repository / "tests/packages/dist", repository / "build/dist"),
        env={**os.environ, **environment},
    )
    return {file.name: file.read_bytes() for file in (repository / "build/dist").iterdir()}


@pytest.fixture(scope="session")
def dist(commit):
    return make_dist(commit())


def test_dist_has_three_kinds_of_sources(dist):
    assert set(dist) == {
        f"tshare-{VERSION}.tar.gz",
        f"tshare-{VERSION}.tar.xz",
        f"tshare_{VERSION}-1.debian.tar.xz",
        f"tshare_{VERSION}-1.dsc",
        f"tshare_{VERSION}.orig.tar.gz",
    }


def test_dist_repeats_bit_for_bit(dist, commit):
    repository = commit()
    for file in repository.rglob("*"):
        if ".git" not in file.parts:
            file.touch()
    umask = os.umask(0o077)
    try:
        assert make_dist(repository, TZ="Pacific/Kiritimati", LC_ALL="C") == dist
    finally:
        os.umask(umask)


def test_dist_has_all_files_but_debians(dist, tmp_path):
    archive = tmp_path / "sources"
    archive.write_bytes(dist[f"tshare-{VERSION}.tar.xz"])
    with tarfile.open(archive) as opened:
        files = {m.name.partition("/")[2] for m in opened.getmembers() if not m.isdir()}
    known = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert files == {file for file in known.stdout.splitlines() if not file.startswith("debian/")}


def test_dist_has_sources_that_meson_takes(dist, tmp_path):
    archive = tmp_path / "sources"
    archive.write_bytes(dist[f"tshare-{VERSION}.tar.xz"])
    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path)
    source = tmp_path / f"tshare-{VERSION}"
    run("/usr/bin/meson", "setup", "-Dtests=false", tmp_path / "build", source)
    run("ninja", "-C", tmp_path / "build", f"lib/libtshare.so.{VERSION}")


def test_dist_refuses_what_is_not_committed(commit):
    repository = commit()
    (repository / "new.c").touch()
    done = run(repository / "tests/packages/dist", repository / "build/dist", check=False)
    assert done.returncode == 1
    assert "commit or remove first:\n?? new.c" in done.stdout
