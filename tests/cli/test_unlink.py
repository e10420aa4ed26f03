# SPDX-License-Identifier: MIT
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from helpers import Command, library_path


def test_unlink_removes_names(tshare, name):
    tshare("create", name, "4", "int8")
    tshare("create", f"{name}-2", "4", "int8")
    tshare("unlink", name, f"{name}-2")
    tshare("show", name, status=3)


def test_unlink_continues_after_a_failure(tshare, name):
    tshare("create", name, "4", "int8")
    assert f"{name}-no" in tshare("unlink", f"{name}-no", name, status=3).err
    tshare("show", name, status=3)


@pytest.mark.parametrize("words", ["NAME a/b", "a/b NAME"])
def test_unlink_of_several_names_reports_what_is_worse_than_a_missing_one(tshare, name, words):
    tshare("unlink", *words.replace("NAME", name).split(), status=1)


def test_unlink_needs_a_name(tshare):
    tshare("unlink", status=2)


def test_unlink_with_a_pattern_removes_what_matches(tshare, name):
    for region in (f"{name}-a1", f"{name}-a2", name):
        tshare("create", region, "4", "int8")
    said = tshare("unlink", "--glob", f"{name}-a?").out
    assert said == f"removed {name}-a1\nremoved {name}-a2\n"
    tshare("show", f"{name}-a1", status=3)
    tshare("show", name)


def test_unlink_with_a_pattern_matches_characters(tshare, name):
    env = {"LC_ALL": "C"}
    tshare("create", f"{name}-ä漢", "4", "int8")
    tshare("unlink", "-n", "-g", f"{name}-[ä]", status=3, env=env)
    tshare("unlink", "-n", "-g", f"{name}-??", env=env)
    assert f"removed {name}-ä漢" in tshare("unlink", "-g", f"{name}-[!é]漢", env=env).out


def test_unlink_with_a_pattern_matches_any_bytes(tshare, name):
    tshare("create", f"{name}-\udcff", "4", "int8")
    assert rf"removed {name}-\xff" in tshare("unlink", "-g", f"{name}-*").out


@pytest.mark.needs("root", "only root makes files of other users")
def test_unlink_with_a_pattern_removes_no_other_users_regions(tshare, name, own_regions):
    tshare("create", name, "4", "int8", env=own_regions)
    for file in Path(own_regions["TSHARE_SHM_DIR"], f"tshare.{name}").iterdir():
        os.chown(file, 65534, -1)
    said = tshare("unlink", "-g", f"{name}*", status=3, env=own_regions).err
    assert f"no region of yours matches '{name}*'" in said
    assert tshare("unlink", "--all", env=own_regions).out == ""
    tshare("show", name, env=own_regions)


def test_unlink_without_a_match_is_an_error(tshare, name):
    said = tshare("unlink", "-g", f"{name}*", status=3).err
    assert f"tshare unlink: no region of yours matches '{name}*'" in said


def test_unlink_that_is_dry_removes_nothing(tshare, name):
    tshare("create", name, "4", "int8")
    assert tshare("unlink", "-n", "-g", name).out == f"would remove {name}\n"
    tshare("show", name)


@pytest.mark.parametrize("mode", ["0600", "0"])
def test_unlink_of_all_removes_all_of_the_callers(tshare, name, own_regions, mode):
    tshare("create", "-q", name, "4", "int8", env=own_regions)
    tshare("create", "-q", "-m", mode, f"{name}-2", "4", "int8", env=own_regions)
    said = tshare("unlink", "--all", "--dry-run", env=own_regions).out
    assert f"would remove {name}-2" in said
    said = tshare("unlink", "--all", env=own_regions).out
    assert {f"removed {name}", f"removed {name}-2"} <= set(said.splitlines())
    assert os.listdir(own_regions["TSHARE_SHM_DIR"]) == []
    assert tshare("unlink", "-a", env=own_regions).out == ""


@pytest.fixture
def as_user(tshare, backend):
    """A function that runs the command as a user other than root, whose regions no other test has.

    Other users may not enter the folder of the build, nor write in that of the tests' regions.
    """
    with (
        tempfile.TemporaryDirectory() as folder,
        tempfile.TemporaryDirectory(dir="/dev/shm") as regions,
    ):
        os.chmod(folder, 0o755)
        os.chmod(regions, 0o777)
        own = Command(Path(shutil.copy(tshare.path, folder)))
        shutil.copy(tshare.path.parents[1] / "lib/libtshare.so.0", folder)
        group = os.stat("/dev/tshare").st_gid if backend == "kmod" else 64102
        user = ["setpriv", "--reuid", "64102", "--regid", str(group), "--clear-groups"]
        env = {"TSHARE_SHM_DIR": regions, "LD_LIBRARY_PATH": library_path(folder)}
        yield lambda *arguments, **options: own(*arguments, under=user, env=env, **options)


@pytest.mark.needs("root", "only root becomes another user")
def test_unlink_of_all_removes_what_its_owner_may_not_read(as_user, name):
    regions = [f"{name}-0", f"{name}-0200"]
    for region in regions:
        as_user("create", "-q", "-m", region.rpartition("-")[2], region, "4", "int8")
    assert as_user("unlink", "-na").out.splitlines() == [f"would remove {r}" for r in regions]
    assert as_user("unlink", "--all").out.splitlines() == [f"removed {r}" for r in regions]
    assert as_user("list").out == ""


@pytest.mark.slow_in_guests
@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("--id", "--id needs an ID"),
        ("--id --all", "--id excludes --all and --glob"),
        ("--all NAME", "tshare unlink: "),
        ("--all --glob x", "tshare unlink: "),
        ("-n NAME", "--dry-run needs --all or --glob"),
        ("--glob x NAME", "tshare unlink: "),
    ],
)
def test_unlink_rejects_what_contradicts(tshare, name, words, problem):
    assert problem in tshare("unlink", *words.replace("NAME", name).split(), status=2).err
