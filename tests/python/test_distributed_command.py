# SPDX-License-Identifier: MIT
"""python -m tshare.distributed, and torchrun that starts it.

A host is a folder of shared memory of its own and, for torchrun, where the tests may make one, a
network namespace.
"""

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys

import pytest

import networks
from support import hosts_are_folders, need, run, version

torch = need("torch")

# A busy machine imports PyTorch six times.
TIMEOUT = 900

pytestmark = [pytest.mark.imports_torch, hosts_are_folders]

LIST = "import tshare; print(*[(x.name, x.lifetime) for x in tshare.list()])"


@pytest.fixture
def hosts(tmp_path):
    """The folders that two hosts have for shared memory."""
    folders = [tmp_path / "host0", tmp_path / "host1"]
    for folder in folders:
        folder.mkdir(mode=0o700)
    yield folders
    for folder in folders:
        listed(folder)
    assert [list(folder.iterdir()) for folder in folders] == [[], []]


@pytest.fixture
def model(tmp_path):
    """A file with a tensor of twelve numbers, whose sum is 66."""
    header = {"weight": {"dtype": "F32", "shape": [3, 4], "data_offsets": [0, 48]}}
    text = json.dumps(header).encode()
    path = tmp_path / "model.safetensors"
    data = torch.arange(12, dtype=torch.float32).numpy().tobytes()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def listed(folder, code=LIST):
    return run(code, env={**os.environ, "TSHARE_SHM_DIR": str(folder)})


def free_port():
    """Return a port that the kernel gives to nobody who asks for any."""
    for port in random.sample(range(20000, 30000), 100):
        with socket.socket() as sock, contextlib.suppress(OSError):
            sock.bind(("", port))
            return port
    raise AssertionError("no port is free")


@pytest.fixture
def ranks(start, hosts):
    """A function that starts the command in a rank of each host."""

    def ranks(*arguments, hosts=hosts):
        variables = {
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(free_port()),
            "WORLD_SIZE": str(len(hosts)),
            "OMP_NUM_THREADS": "1",
        }
        command = [sys.executable, "-m", "tshare.distributed", *arguments]
        return [
            start(
                *command,
                env={**os.environ, **variables, "RANK": str(rank), "TSHARE_SHM_DIR": str(host)},
            )
            for rank, host in enumerate(hosts)
        ]

    return ranks


def torchrun(host, folder, interface, address, port, *arguments):
    return (
        f"env TSHARE_SHM_DIR={folder} GLOO_SOCKET_IFNAME={interface} OMP_NUM_THREADS=1"
        f" {sys.executable} -m torch.distributed.run --nnodes 2 --node_rank {host}"
        f" --nproc_per_node 2 --master_addr {address} --master_port {port}"
        f" -m tshare.distributed {' '.join(map(str, arguments))}"
    )


def test_torchrun_fills_two_hosts_while_it_runs(hosts, model):
    if version(torch) < (2, 0):
        pytest.skip("PyTorch 1.13's torchrun fails on Python 3.11")
    port, own = free_port(), not networks.missing()
    address = networks.address(0) if own else "127.0.0.1"
    interface = networks.INTERFACE if own else "lo"
    commands = [
        torchrun(host, folder, interface, address, port, "w", "--from", model)
        for host, folder in enumerate(hosts)
    ]
    command = [*(networks.OWN if own else []), sys.executable, networks.__file__]
    with subprocess.Popen(
        [*command, "hosts" if own else "here", *commands],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        line = process.stdout.readline()
        sums = [
            listed(folder, "import tshare; print(tshare.Region.open('w')['weight'].numpy().sum())")
            for folder in hosts
        ]
        process.stdin.write("\n")
        process.stdin.close()
        process.wait(TIMEOUT)
    assert line.startswith("w: ")
    assert "bytes on 2 hosts, in " in line
    assert sums == ["66.0", "66.0"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_names_stay_until_the_command_is_interrupted(ranks, hosts, model, number):
    started = ranks("w", "--from", model, "--json")
    facts = ""
    while not facts.endswith("}\n"):
        facts += started[0].stdout.readline()
    facts = json.loads(facts)
    assert [listed(folder) for folder in hosts] == ["('w', 'users')"] * 2
    for process in started:
        process.send_signal(number)
    assert [process.wait(TIMEOUT) for process in started] == [0, 0]
    assert {key: facts[key] for key in ("name", "tensor_count", "hosts", "ranks")} == {
        "name": "w",
        "tensor_count": 2,
        "hosts": 2,
        "ranks": 2,
    }
    assert facts["rate"] == facts["size"] / facts["seconds"]


def test_persist_leaves_the_names_and_ends_and_another_run_replaces_them(ranks, hosts, model):
    started = ranks("w", "--from", model, "--persist")
    assert [process.wait(TIMEOUT) for process in started] == [0, 0]
    assert [listed(folder) for folder in hosts] == ["('w', 'persist')"] * 2
    # A second run finds the name taken on the other host, and replaces it there.
    first, second = ranks("w", "--from", model, "--persist")
    assert [first.wait(TIMEOUT), second.wait(TIMEOUT)] == [1, 1]
    started = ranks("w", "--from", model, "--persist", "--replace")
    assert [process.wait(TIMEOUT) for process in started] == [0, 0]
    assert [listed(folder) for folder in hosts] == ["('w', 'persist')"] * 2
    for folder in hosts:
        listed(folder, "import tshare; tshare.unlink('w')")


def test_unknown_file_is_an_error_of_all_ranks(ranks):
    for rank, process in enumerate(ranks("w", "--from", "/nonexistent.safetensors")):
        _, said = process.communicate(timeout=TIMEOUT)
        assert process.returncode == 1
        assert f"tshare.distributed: rank {rank}: " in said
        assert "/nonexistent.safetensors" in said


def test_unknown_name_is_an_error_of_all_ranks(ranks):
    for rank, process in enumerate(ranks("unknown")):
        _, said = process.communicate(timeout=TIMEOUT)
        assert process.returncode == 1
        assert f"tshare.distributed: rank {rank}: " in said
        assert "there is no region 'unknown'" in said


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (["w"], 1, "no rank (torchrun starts this program)"),
        (["w", "--persist"], 2, "--persist needs --from"),
        ([], 2, "NAME"),
    ],
    ids=["no rank", "persist", "no name"],
)
def test_mistake_is_named(start, arguments, status, text):
    process = start(sys.executable, "-m", "tshare.distributed", *arguments)
    _, said = process.communicate(timeout=TIMEOUT)
    assert process.returncode == status
    assert text in said
