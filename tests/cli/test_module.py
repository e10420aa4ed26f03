# SPDX-License-Identifier: MIT
"""load and unload, on the stub of libkmod: no test loads a module."""

import pytest

PARAMETERS = "parmtype=pool_mib:array of ulong\nparmtype=max_mib:ulong"

# What libkmod returns for a file that is cut off, EINVAL, and errors that kernels return.
CUT = -22
EPERM, ENOEXEC, EINVAL, EKEYREJECTED = 1, 8, 22, 129

REAL = ("no module", "the module is there")


@pytest.mark.slow_in_guests
def test_load_rejects_invalid_parameters(tshare):
    assert "PARAMETER=VALUE" in tshare("load", "foo", status=2).err


@pytest.mark.slow_in_guests
@pytest.mark.parametrize("parameter", ["pool_mb", "pool", "pool_mi", "pool_mibs", ""])
def test_load_rejects_parameters_that_the_module_lacks(tshare, module, parameter):
    env = module.env(PARAMETERS)
    said = tshare("load", "max_mib=8", f"{parameter}=4", status=2, env=env).err
    assert f"tshare load: the module has no parameter '{parameter}'" in said


@pytest.mark.parametrize(("parameter", "near"), [("pool_mb", "pool_mib"), ("foo", None)])
def test_load_suggests_near_parameters(tshare, module, parameter, near):
    said = tshare("load", f"{parameter}=4", status=2, env=module.env(PARAMETERS)).err
    assert f"Did you mean '{near}'?" in said if near else "Did you mean" not in said


def test_load_takes_parameters_of_the_module_and_of_every_module(tshare, module):
    parameters = ["pool_mib=4,4", "max-mib=8", "dyndbg=+p", "async_probe=1"]
    tshare("load", *parameters, env=module.env(PARAMETERS))


def test_load_of_a_module_that_is_cut_off_does_not_check_parameters(tshare, module):
    env = module.env(PARAMETERS, cut=CUT, error=-ENOEXEC)
    assert "its file is cut off or damaged" in tshare("load", "foo=1", status=1, env=env).err


# A kernel that is locked down says EPERM.
@pytest.mark.parametrize("error", [EPERM, EKEYREJECTED])
def test_load_tells_a_refused_signature_from_a_missing_one(tshare, module, error):
    module.lock_down()
    said = tshare("load", status=1, env=module.env(module.SIGNED, error=-error)).err
    assert "is installed, but" in said
    assert "'mokutil --import" in said
    said = tshare("load", status=1, env=module.env(module.UNSIGNED, error=-error)).err
    assert "installed but not signed" in said
    assert "openssl" in said


def test_load_tells_a_refused_signature_from_a_missing_module(tshare, module):
    module.lock_down()
    said = tshare("load", status=1, env=module.env(error=-EPERM)).err
    assert "is not installed for kernel" in said


# What kernels say of such files.
@pytest.mark.parametrize("error", [EPERM, ENOEXEC, EINVAL, EKEYREJECTED])
def test_load_tells_a_module_that_is_cut_off_from_a_refused_one(tshare, module, version, error):
    module.lock_down()
    said = tshare("load", status=1, env=module.env(module.SIGNED, cut=CUT, error=-error)).err
    assert "its file is cut off or damaged" in said
    assert f"'dkms install --force tshare/{version}'" in said


@pytest.mark.parametrize(
    ("error", "problem"),
    [(ENOEXEC, "was not built for kernel"), (EINVAL, "rejected its parameters")],
)
def test_load_says_why_the_kernel_refused_a_module_that_is_whole(tshare, module, error, problem):
    module.lock_down()
    said = tshare("load", status=1, env=module.env(module.SIGNED, error=-error)).err
    assert problem in said


@pytest.mark.parametrize("cut", [{}, {"cut": CUT}])
def test_load_without_privileges_asks_for_root(tshare, module, cut):
    module.lock_down()
    env = module.env(module.SIGNED, error=-EPERM, uid=1000, **cut)
    assert "run it as root" in tshare("load", status=1, env=env).err


def test_load_reports_a_kernel_that_loads_no_modules(tshare, module):
    module.lock_down()
    module.write("proc/sys/kernel/modules_disabled", 1)
    said = tshare("load", status=1, env=module.env(module.SIGNED, error=-EPERM)).err
    assert "kernel.modules_disabled" in said


@pytest.mark.needs(*REAL)
def test_load_reports_a_module_that_is_not_installed(tshare):
    assert "tshare" in tshare("load", status=1).err


@pytest.mark.needs(*REAL)
def test_unload_reports_a_module_that_is_not_loaded(tshare):
    assert "tshare" in tshare("unload", status=1).err
