# SPDX-License-Identifier: MIT
"""What the package says of itself, and the oldest libraries that it takes."""

import email
import os
import tomllib
import zipfile

import pytest

from conftest import ROOT, run


@pytest.fixture(scope="session")
def members(plain_wheel):
    """The wheel's files, by their names without that of the package's version."""
    with zipfile.ZipFile(plain_wheel) as archive:
        return {
            name.partition(".dist-info/")[2] or name: archive.read(name).decode(errors="replace")
            for name in archive.namelist()
        }


@pytest.fixture(scope="session")
def metadata(members):
    return email.message_from_string(members["METADATA"])


def test_description_is_the_readme(metadata):
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload().strip() == (ROOT / "README.md").read_text().strip()


@pytest.mark.parametrize("field", ["Author", "Keywords", "License-Expression", "Summary"])
def test_metadata_has(metadata, field):
    assert metadata[field]


def test_classifiers_have_a_state_and_each_python(metadata):
    classifiers = metadata.get_all("Classifier")
    assert any(line.startswith("Development Status :: ") for line in classifiers)
    for minor in ("3.11", "3.12", "3.13"):
        assert f"Programming Language :: Python :: {minor}" in classifiers


def test_licence_names_its_holder(members):
    text = members["licenses/LICENSES/MIT.txt"]
    assert "The tshare developers" in text
    assert "<" not in text


def test_wheel_has_the_command(members):
    assert "entry_points.txt" not in members
    assert [name.partition(".data/")[2] for name in members if ".data/" in name] == [
        "scripts/tshare"
    ]


def test_package_has_the_command(plain_wheel, venv):
    python = venv("/usr/bin/python3", plain_wheel)
    version = (ROOT / "VERSION").read_text().strip()
    for command in ([python.with_name("tshare")], [python, "-m", "tshare"]):
        assert f"tshare {version}" in run(*command, "--version").stdout
        assert '"shm"' in run(*command, "info", "--json").stdout


def extras():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return project["optional-dependencies"]


def test_extras_have_lower_bounds():
    assert set(extras()) == {"bench", "jax", "numpy", "torch"}
    assert all(">=" in requirement for wanted in extras().values() for requirement in wanted)


def test_lowest_libraries_work(plain_wheel, venv):
    """PyTorch's lowest is Debian's, and has the suite python-debian."""
    wanted = {requirement for extra in extras().values() for requirement in extra}
    lowest = [text.replace(">=", "==") for text in wanted if not text.startswith("torch")]
    python = venv("/usr/bin/python3", plain_wheel, "pytest", *lowest)
    run(
        *(python, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
        *(ROOT / "tests/python" / f"test_{name}.py" for name in ("jax", "numpy")),
        env={**os.environ, "TSHARE_TEST_OPTIONAL": "1", "TSHARE_BACKEND": "shm"},
    )
    code = "from matplotlib.figure import Figure; from tshare.bench import plot"
    run(python, "-c", code)
