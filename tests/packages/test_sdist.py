# SPDX-License-Identifier: MIT
"""The source archive: complete, repeatable, and clear about what it lacks."""

import os
import shutil
import sys
import tarfile

import pytest

from conftest import EXAMPLE, build, pythons, run


def test_sdist_repeats_bit_for_bit(sdist, tree, tmp_path):
    elsewhere = tree()
    for file in elsewhere.rglob("*"):
        file.touch()
    umask = os.umask(0o077)
    try:
        (elsewhere / "VERSION").chmod(0o600)
        again = build("sdist", elsewhere, tmp_path)
    finally:
        os.umask(umask)
    assert again.name == sdist.name
    assert again.read_bytes() == sdist.read_bytes()


def test_sdist_makes_itself_again(sdist, source, tmp_path):
    """So it has all that it is made of."""
    copy = tmp_path / "copy"
    shutil.copytree(source, copy)
    (tmp_path / "out").mkdir()
    again = build("sdist", copy, tmp_path / "out")
    with tarfile.open(sdist) as one, tarfile.open(again) as other:
        assert one.getnames() == other.getnames()


def test_wheel_of_the_sdist_needs_no_meson(plain_wheel, venv):
    run(venv("/usr/bin/python3", plain_wheel), "-c", EXAMPLE)


def test_sdist_holds_tests_that_pass(source, plain_wheel, venv):
    tests = source / "tests/python"
    python = venv("/usr/bin/python3", plain_wheel, "numpy", "pytest", "setuptools")
    run(
        *(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", source),
        *("-m", "not imports_torch and not slow_in_guests", tests),
        env={**os.environ, "TSHARE_TEST_OPTIONAL": "1", "TSHARE_BACKEND": "shm"},
        cwd=source,
    )


@pytest.mark.parametrize("missing", ["pkg-config", "libsmartcols"])
def test_wheel_without_libsmartcols_has_all_but_the_command(
    source, tmp_path, path_without, venv, missing
):
    copy = tmp_path / "copy"
    shutil.copytree(source, copy)
    environment = {"PATH": path_without("pkg-config") if missing == "pkg-config" else "/usr/bin",
                   "PKG_CONFIG_LIBDIR": str(tmp_path)}  # fmt: skip
    said = run(
        *(sys.executable, "-m", "build", "--no-isolation", "--wheel", "-o", tmp_path / "out", copy),
        env={**os.environ, **environment},
    ).stdout
    assert said.count("tshare: left out the command: pkg-config finds no smartcols") == 1
    python = venv("/usr/bin/python3", *(tmp_path / "out").iterdir())
    assert not python.with_name("tshare").exists()
    run(python, "-c", EXAMPLE)
    said = run(python, "-m", "tshare", "info", check=False, env={"PATH": "/nowhere"})
    assert said.returncode == 1
    assert "the command is neither in this package nor in PATH" in said.stdout


def test_command_has_the_flags_of_the_environment(source, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(source, copy)
    build = [sys.executable, "setup.py", "-q", "build", "--build-scripts", tmp_path / "bin"]
    run(*build, cwd=copy, env={**os.environ, "LDFLAGS": "-Wl,-rpath,/of/LDFLAGS"})
    assert "/of/LDFLAGS" in run("readelf", "-d", tmp_path / "bin/tshare").stdout


def test_editable_package_has_the_command(source, tmp_path, venv):
    copy = tmp_path / "copy"
    shutil.copytree(source, copy)
    python = venv("/usr/bin/python3", "setuptools>=77", "wheel")
    run(python, "-m", "pip", "install", "-q", "--no-build-isolation", "-e", copy)
    run(python, "-c", EXAMPLE)
    assert '"shm"' in run(python, "-m", "tshare", "info", "--json").stdout


def wheel_fails(source, tmp_path, **environment):
    copy = tmp_path / "copy"
    shutil.copytree(source, copy)
    done = run(
        *(sys.executable, "-m", "build", "--no-isolation", "--wheel", copy),
        check=False,
        env={**os.environ, **environment},
    )
    assert done.returncode
    return done.stdout


def test_missing_compiler_is_named(source, tmp_path, path_without):
    path = path_without("*gcc*", "*clang*", "cc", "c89*", "c99*", "tcc")
    said = wheel_fails(source, tmp_path, PATH=path)
    assert "tshare: needs a C compiler" in said
    assert "install gcc" in said


@pytest.mark.parametrize(
    ("header", "package"),
    [
        ("Python.h", "python3-dev"),
        ("linux/types.h", "linux-libc-dev"),
        ("stdlib.h", "libc6-dev"),
    ],
)
def test_missing_headers_are_named(source, tmp_path, header, package):
    """The compiler says that it has no such file, as one does whose headers aren't installed."""
    compiler = tmp_path / "cc"
    compiler.write_text(
        "#!/bin/bash\n"
        'if [[ " $* " == *" -E "* ]]; then\n'
        f"	if grep -qF '<{header}>'; then echo 'no such file' >&2; exit 1; fi\n"
        "	exit 0\n"
        "fi\n"
        'exec gcc "$@"\n'
    )
    compiler.chmod(0o755)
    said = wheel_fails(source, tmp_path, CC=str(compiler))
    assert f"<{header}> can't be included" in said
    assert f"({package})" in said


def test_python_3_10_is_refused(sdist):
    python = pythons().get("3.10") or pytest.skip("there is no Python 3.10")
    said = run(python, "-m", "pip", "install", "--no-deps", sdist, check=False)
    assert said.returncode
    assert "requires a different Python" in said.stdout
    assert ">=3.11" in said.stdout
