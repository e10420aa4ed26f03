# SPDX-License-Identifier: MIT
"""tshare.host_id()"""

import subprocess
import sys

import pytest

import tshare
from support import hosts_are_folders, run

PRINT = "import tshare; print(tshare.host_id())"


def test_processes_that_see_the_same_names_have_the_same_host_id():
    assert run(PRINT) == tshare.host_id()


@hosts_are_folders
def test_folders_have_host_ids_of_their_own(tmp_path, monkeypatch):
    found = {tshare.host_id()}
    for name in ("a", "b"):
        (tmp_path / name).mkdir(mode=0o700)
        monkeypatch.setenv("TSHARE_SHM_DIR", str(tmp_path / name))
        found.add(run(PRINT))
    assert len(found) == 3


def test_host_id_of_another_ipc_namespace_tells_whether_its_names_are_others():
    command = ["unshare", "--map-root-user", "--ipc", sys.executable, "-c", PRINT]
    if subprocess.run([*command[:3], "true"], capture_output=True).returncode:
        pytest.skip("may not make namespaces")
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert (found == tshare.host_id()) == (tshare.backend() == "shm")


def test_host_id_begins_with_the_boot_id():
    with open("/proc/sys/kernel/random/boot_id") as file:
        assert tshare.host_id().startswith(f"{file.read().strip()}/{tshare.backend()}:")
