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


# Leaves what is set by the last fragment that says anything of it. No kernel has OVERRIDDEN.
MERGE = """#!/bin/sh
config=$4
shift 4
grep -hE '^(# )?CONFIG_' "$@" | tac | awk -v overridden="$OVERRIDDEN" '
	match($0, /CONFIG_[A-Z0-9a-z_]*/) {
		name = substr($0, RSTART, RLENGTH)
		if (!seen[name]++ && /^CONFIG_/ && name != overridden)
			print
	}' > "$config"
"""


@pytest.fixture
def kernels(tmp_path):
    """The cache, in which the sources are."""
    kernels = tmp_path / "tshare/kernels"
    for source in ("source-6.1.1-1", "source-newest-7.3.4-1"):
        merge = kernels / source / "scripts/kconfig/merge_config.sh"
        merge.parent.mkdir(parents=True)
        merge.write_text(MERGE)
        merge.chmod(0o755)
        (kernels / source / ".complete").touch()
    return kernels


@pytest.fixture
def get(kernels, tmp_path):
    """A function that gets a kernel, and returns it and how many have been built."""
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

    def get(name="debug", overridden="", status=0):
        done = subprocess.run(
            [KERNEL, name],
            env={**environment, "OVERRIDDEN": overridden},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == status, done.stderr
        if status:
            return done.stderr
        return Path(done.stdout.strip()), builds.read_text().count("\n")

    return get


def other_kernel(kernels, configuration, days, version="6.1.1-1"):
    """Make a debug kernel of another configuration, last used days ago."""
    mark = kernels / f"debug-{version}-{configuration}/.complete"
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


def test_newest_debug_kernel_that_is_being_built_stays(kernels, get):
    other = other_kernel(kernels, "000000000000", days=1, version="newest-7.3.4-1")
    (other / ".complete").unlink()
    get()
    assert other.exists()


# What says of which sources a kernel is, and an option that it has and the debug kernel hasn't.
BUILT = {"debug-newest": ("7.3.4-1", "CONFIG_MEMCG=y"), "kcsan": ("7.3.4-1", "CONFIG_KCSAN=y")}


@pytest.mark.parametrize("name", BUILT)
def test_built_kernels_have_their_own_sources_and_options(get, name):
    version, option = BUILT[name]
    debug, _ = get()
    kernel, builds = get(name)
    assert kernel.name.startswith(f"{name}-{version}-")
    assert builds == 2
    assert option in (kernel / "build/.config").read_text().splitlines()
    assert option not in (debug / "build/.config").read_text().splitlines()


@pytest.mark.parametrize("name", ["debug", *BUILT])
def test_option_that_the_kernel_overrides_is_an_error(get, name):
    said = get(name, overridden="CONFIG_NUMA", status=2).splitlines()
    assert said[-2:] == [
        "kernel: not in the configuration: CONFIG_NUMA=y",
        f"kernel: the configuration of {name} asks for what can't be had",
    ]


def test_option_that_a_later_fragment_unsets_may_be_missing(get):
    kernel, _ = get("debug-newest")
    assert "CONFIG_PROC_SYSCTL" not in (kernel / "build/.config").read_text()


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
