# SPDX-License-Identifier: MIT
"""examples/replicate.py gives each host one copy.

A host is a folder of shared memory of its own and, for torchrun, where the tests may make one, a
network namespace, which a veth interface joins to the other's.
"""

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import tshare
from support import need, version

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/replicate.py"

# A busy machine imports PyTorch six times.
TIMEOUT = 900

ADDRESSES = ["10.11.12.1", "10.11.12.2"]

# In a network namespace; makes a second one, and runs a command, $1 or $2, in each. The second
# waits until the first has made the interfaces.
TWO_HOSTS = """
set -e
unshare --net sh -ec 'read -r _
	ip link set lo up
	ip addr add {1}/24 dev host1
	ip link set host1 up
	exec $1' sh "$2" < "$3" &
exec 9> "$3"
while [ "$(readlink /proc/$!/ns/net)" = "$(readlink /proc/self/ns/net)" ]; do sleep 0.05; done
ip link set lo up
ip link add host0 type veth peer name host1 netns $!
ip addr add {0}/24 dev host0
ip link set host0 up
echo >&9
$1
wait $!
""".format(*ADDRESSES)

OWN_NETWORK = ["unshare", "--map-root-user", "--net"]

# The module has the names of the whole machine.
pytestmark = pytest.mark.skipif(
    tshare.limits().dmabuf, reason="only on shared memory can a machine act as two"
)


@pytest.fixture
def hosts(tmp_path):
    """The folders that two hosts have for shared memory."""
    folders = [tmp_path / "host0", tmp_path / "host1"]
    for folder in folders:
        folder.mkdir(mode=0o700)
    yield folders
    assert [list(folder.iterdir()) for folder in folders] == [[], []]


def check(done, *deeds):
    """Each rank has printed what it did, and has the tensors."""
    assert not done.returncode, done.stdout + done.stderr
    lines = sorted(line for line in done.stdout.splitlines() if line.startswith("rank "))
    assert lines == [
        f"rank {rank} {deed} tensors with the sums weight 66, bias 4"
        for rank, deed in enumerate(deeds)
    ], done.stdout + done.stderr


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def may_make_networks():
    script = "ip link add host0 type veth peer name host1"
    done = subprocess.run([*OWN_NETWORK, "sh", "-c", script], stderr=subprocess.DEVNULL)
    return not done.returncode


def torchrun(host, folder, interface, address, port):
    return (
        f"env TSHARE_SHM_DIR={folder} GLOO_SOCKET_IFNAME={interface} OMP_NUM_THREADS=1"
        f" {sys.executable} -m torch.distributed.run --nnodes 2 --node_rank {host}"
        f" --nproc_per_node 2 --master_addr {address} --master_port {port} {EXAMPLE}"
    )


def run(command, *arguments, **options):
    return subprocess.run(
        [*command, *arguments], capture_output=True, text=True, timeout=TIMEOUT, **options
    )


@pytest.mark.imports_torch
def test_torchrun_has_one_copy_a_host(hosts, tmp_path):
    if version(need("torch")) < (2, 0):
        pytest.skip("PyTorch 1.13's torchrun fails on Python 3.11")
    ready, port = tmp_path / "ready", free_port()
    os.mkfifo(ready)
    if may_make_networks():
        commands = [
            torchrun(host, folder, f"host{host}", ADDRESSES[0], port)
            for host, folder in enumerate(hosts)
        ]
        done = run([*OWN_NETWORK, "sh", "-c", TWO_HOSTS, "sh"], *commands, ready)
    else:
        commands = [
            torchrun(host, folder, "lo", "127.0.0.1", port) for host, folder in enumerate(hosts)
        ]
        done = run(["sh", "-c", "$2 & $1 && wait $!", "sh"], *commands)
    check(done, "received", "opened", "received", "opened")


@pytest.mark.slow_in_guests
def test_mpiexec_has_one_copy_a_host(hosts):
    need("mpi4py")  # without MPI, which would start here
    mpiexec = shutil.which("mpiexec", path=Path(sys.executable).parent)
    processes = []
    for rank in range(4):
        folder = f"TSHARE_SHM_DIR={hosts[rank % 2]}"
        processes += [
            *([":"] if rank else []),
            *("-n", "1", "env", folder, sys.executable, EXAMPLE, "--mpi"),
        ]
    # MPICH then takes every other process for one of another host's.
    env = {**os.environ, "MPIR_CVAR_ODD_EVEN_CLIQUES": "1"}
    check(run([mpiexec], *processes, env=env), "received", "received", "opened", "opened")
