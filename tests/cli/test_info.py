# SPDX-License-Identifier: MIT
"""The report of info on the backends, on CUDA, and on the module that is loaded or installed."""

import os
import re
import shutil
from pathlib import Path

import pytest

from helpers import library_path

# Why the module that is loaded is not the one that is installed any more, and what helps.
REPLACE = "run 'tshare unload' and 'tshare load' as root, or restart"

# EINVAL, which libkmod returns for a file that is cut off.
CUT = -22

LIVE = 1


def line(said, pattern):
    return re.search(f"^{pattern}$", said, re.MULTILINE)


def test_info_shows_which_backend_is_used(tshare):
    assert re.search(r"^(kmod|shm) +used", tshare("info").out, re.MULTILINE)


def test_info_gives_the_reason_why_a_backend_is_not_usable(tshare):
    backends = tshare.json("info")["backends"]
    assert all(backend["usable"] or backend["reason"] for backend in backends.values())


def test_info_names_the_owner_and_the_group_of_the_device(tshare):
    said = tshare("info").out
    if os.path.exists("/dev/tshare"):
        device = Path("/dev/tshare")
        assert f"/dev/tshare, owner {device.owner()}, group {device.group()}, mode" in said
    else:
        assert "/dev/tshare does not exist" in said


def test_info_fails_without_a_backend(tshare):
    none = {"TSHARE_BACKEND": "shm", "TSHARE_SHM_DIR": "/nonexistent"}
    assert "/nonexistent" in tshare("info", status=1, env=none).err


def test_info_has_sizes_for_people_and_in_bytes(tshare):
    assert line(tshare("info").out, r"  largest region +[0-9.]+[KMGT] \([0-9]+ bytes\)")


def test_info_is_json(tshare):
    info = tshare.json("info")
    assert sum(backend["used"] for backend in info["backends"].values()) == 1
    assert info["kernel"]


def test_info_shows_cuda(tshare, with_cuda):
    env = with_cuda("version=12080,devices=2")
    said = tshare("info", env=env).out
    assert line(said, r"CUDA +usable: driver for CUDA 12\.8, devices: 2")
    cuda = tshare.json("info", env=env)["cuda"]
    assert cuda == {"usable": True, "driver_version": 12080, "device_count": 2}


def test_info_gives_the_reason_why_cuda_is_not_usable(tshare, with_cuda, tmp_path):
    # A driver that is no library.
    shutil.copy(__file__, tmp_path / "libcuda.so.1")
    said = tshare("info", env={"LD_LIBRARY_PATH": library_path(tmp_path)}).out
    assert line(said, "CUDA +not usable: no NVIDIA driver: .*invalid ELF header.*")
    cuda = tshare.json("info", env=with_cuda("cuInit=803"))["cuda"]
    assert cuda == {"usable": False, "reason": cuda["reason"]}
    assert "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH" in cuda["reason"]


def test_info_shows_the_loaded_module_beside_the_installed_one(tshare, module):
    module.load("0.9.1")
    said = tshare("info", env=module.env(module.SIGNED, state=LIVE)).out
    assert line(said, "module +loaded")
    assert line(said, r"  version +0\.9\.1")
    assert line(said, r"  installed +0\.9\.1")
    assert line(said, "  signed +by me")


@pytest.mark.parametrize(
    ("loaded", "installed"),
    [(("0.9.0", "ABCD"), "0.9.1"), (("0.9.1", "1234"), "0.9.1, another build")],
)
def test_info_says_how_to_use_a_module_that_was_upgraded(tshare, module, loaded, installed):
    module.load(*loaded)
    said = tshare("info", env=module.env(module.SIGNED, state=LIVE)).out
    assert f"{installed}; to use it, {REPLACE}" in said


def test_info_is_json_of_both_modules(tshare, module):
    module.load("0.9.0")
    info = tshare.json("info", env=module.env(module.SIGNED, state=LIVE))
    assert (info["module"], info["module_version"]) == ("loaded", "0.9.0")
    assert info["module_installed"] == {
        "damaged": False,
        "version": "0.9.1",
        "signed": True,
        "signer": "me",
        "loaded": False,
    }
    assert info["module_signature_required"] is False


def test_info_is_json_of_no_module(tshare, module):
    info = tshare.json("info", env=module.env())
    assert info["module"] == "not installed"
    assert info["module_version"] is info["module_installed"] is None


def test_info_says_what_a_kernel_that_wants_signatures_asks_for(tshare, module):
    module.lock_down()
    said = tshare("info", env=module.env(module.UNSIGNED)).out
    assert line(said, "module +not loaded")
    assert "accepts only signed modules" in said
    assert "'mokutil --import" in tshare("info", env=module.env(module.SIGNED)).out
    info = tshare.json("info", env=module.env(module.SIGNED, state=LIVE))
    assert info["module_signature_required"] is True


def test_info_knows_an_enforced_signature_without_lockdown(tshare, module):
    module.write("sys/module/module/parameters/sig_enforce", "Y")
    assert "'mokutil --import" in tshare("info", env=module.env(module.SIGNED)).out


def test_info_says_how_to_replace_a_module_that_is_cut_off(tshare, module, version):
    said = tshare("info", env=module.env(module.SIGNED, cut=CUT)).out
    assert line(said, "module +not loaded")
    assert "its file is cut off or damaged" in said
    assert f"'dkms install --force tshare/{version}'" in said
    assert "\n  signed" not in said
    module.load("0.9.0")
    said = tshare("info", env=module.env(module.SIGNED, state=LIVE, cut=CUT)).out
    assert "'dkms install --force" in said
    assert "tshare unload" not in said


# EACCES is 13.
@pytest.mark.parametrize(("error", "damaged"), [(-13, False), (CUT, True)])
def test_info_does_not_blame_a_module_that_it_may_not_read(tshare, module, error, damaged):
    info = tshare.json("info", env=module.env(module.SIGNED, cut=error))
    assert info["module_installed"]["damaged"] is damaged
