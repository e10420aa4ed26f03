# SPDX-License-Identifier: MIT
"""The wheel: one for every Python from 3.11 on, and every Linux with glibc 2.28."""

import json
import os
import platform
import sys
from pathlib import Path

import pytest

from conftest import EXAMPLE, pythons, run

SUPPORTED = ("3.11", "3.12", "3.13")


def tool(*command):
    return run(*command, env={**os.environ, "PATH": f"{Path(sys.executable).parent}:/usr/bin"})


def test_name_says_which_pythons_and_systems(wheel):
    assert "-cp311-abi3-" in wheel.name
    assert f"manylinux_2_28_{platform.machine()}" in wheel.name


def test_wheel_uses_the_stable_abi_alone(wheel):
    tool("abi3audit", "--strict", wheel)


def test_wheel_has_what_a_wheel_should(wheel):
    tool("check-wheel-contents", wheel)


def test_archives_can_be_published(wheel, sdist):
    tool("twine", "check", "--strict", wheel, sdist)


@pytest.mark.parametrize("minor", SUPPORTED)
def test_wheel_runs_on(wheel, venv, minor):
    python = pythons().get(minor) or pytest.skip(f"there is no Python {minor}")
    inside = venv(python, "--no-index", "--no-deps", wheel)
    run(inside, "-c", EXAMPLE)
    run(inside, "-m", "tshare", "info")


def test_command_of_the_wheel_asks_sysfs_for_the_module(wheel, venv):
    """It is built without libkmod, which small containers lack."""
    python = venv("/usr/bin/python3", "--no-index", "--no-deps", wheel)
    assert "libkmod" not in run("readelf", "-d", python.with_name("tshare")).stdout
    said = json.loads(run(python, "-m", "tshare", "info", "--json").stdout)
    loaded = os.path.exists("/sys/module/tshare")
    assert said["module"] == ("loaded" if loaded else "not loaded")


def test_wheel_is_not_for_python_3_10(wheel, tmp_path):
    python = pythons().get("3.10") or pytest.skip("there is no Python 3.10")
    said = run(python, "-m", "pip", "install", "--no-deps", "-t", tmp_path, wheel, check=False)
    assert said.returncode
    assert "is not a supported wheel on this platform" in said.stdout
