# SPDX-License-Identifier: MIT
"""The script that gets the kernels to test on, with a cache and a build of the test's own."""

import os
import subprocess
import time
from pathlib import Path

import pytest

KERNEL = Path(__file__).resolve().parents[1] / "vm/kernel"

DAY = 24 * 60 * 60

# Does what the script needs of the kernel's makefile.
MAKE = """#!/bin/sh
for arg; do
	case $arg in
	O=*) out=${arg#O=} ;;
	bzImage) echo >> $BUILDS ;;
	esac
done
mkdir -p "$out/include/config" "$out/arch/x86/boot"
echo 6.1 > "$out/include/config/kernel.release"
touch "$out/arch/x86/boot/bzImage"
"""


@pytest.fixture
def kernels(tmp_path):
    """The cache, in which the sources are."""
    kernels = tmp_path / "tshare/kernels"
    merge = kernels / "source-6.1.1-1/scripts/kconfig/merge_config.sh"
    merge.parent.mkdir(parents=True)
    merge.write_text('#!/bin/sh\nexec cp "$5" "$4"\n')
    merge.chmod(0o755)
    (kernels / "source-6.1.1-1/.complete").touch()
    return kernels


@pytest.fixture
def get(kernels, tmp_path):
    """A function that gets the debug kernel, and returns it and how many have been built."""
    programs, builds = tmp_path / "bin", tmp_path / "builds"
    programs.mkdir()
    builds.touch()
    (programs / "make").write_text(MAKE)
    (programs / "make").chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "XDG_CACHE_HOME": str(tmp_path),
        "BUILDS": str(builds),
    }

    def get():
        done = subprocess.run(
            [KERNEL, "debug"], env=environment, stdout=subprocess.PIPE, text=True, check=True
        )
        return Path(done.stdout.strip()), builds.read_text().count("\n")

    return get


def other_kernel(kernels, configuration, days):
    """Make a debug kernel of another configuration, last used days ago."""
    mark = kernels / f"debug-6.1.1-1-{configuration}/.complete"
    mark.parent.mkdir()
    mark.touch()
    os.utime(mark, (time.time() - days * DAY,) * 2)
    return mark.parent


def test_debug_kernel_is_built_once_whatever_others_there_are(kernels, get):
    other_kernel(kernels, "zzzzzzzzzzzz", days=1)
    kernel, builds = get()
    assert (kernel / ".complete").exists()
    assert builds == 1
    assert get() == (kernel, 1)


def test_debug_kernel_of_another_checkout_stays(kernels, get):
    others = [other_kernel(kernels, name, days=13) for name in ("000000000000", "zzzzzzzzzzzz")]
    get()
    assert all(other.exists() for other in others)


def test_debug_kernel_that_is_unused_for_two_weeks_goes_with_the_next_build(kernels, get):
    other = other_kernel(kernels, "000000000000", days=15)
    get()
    assert not other.exists()


def test_debug_kernel_that_was_never_complete_goes_with_the_next_build(kernels, get):
    other = other_kernel(kernels, "000000000000", days=1)
    (other / ".complete").unlink()
    get()
    assert not other.exists()


def test_use_of_a_debug_kernel_is_noted(get):
    mark = get()[0] / ".complete"
    os.utime(mark, (0, 0))
    get()
    assert mark.stat().st_mtime > time.time() - DAY


def test_archive_out_of_reach_has_a_status_of_its_own(tmp_path):
    done = subprocess.run(
        [KERNEL, "6.8"],
        # Nothing listens there.
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path), "http_proxy": "http://127.0.0.1:9"},
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == 75
    assert done.stderr.splitlines()[-1] == "kernel: can't reach http://archive.ubuntu.com/ubuntu"
