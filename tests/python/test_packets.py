# SPDX-License-Identifier: MIT
"""examples/packets.c has the kernel put packets into a region, and packets.py reads them.

The network is a pair of veth interfaces, which the tests make in the virtual machine.
"""

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import tshare
from support import need

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build/c/examples/packets"
READER = ROOT / "examples/packets.py"

TIMEOUT = 300

# For experiments within one network.
ETHERTYPE = 0x88B5
SOURCE = bytes.fromhex("020000000001")
HEADER = b"\xff" * 6 + SOURCE + ETHERTYPE.to_bytes(2, "big")

# As root, in a virtual machine, as with the module.
pytestmark = pytest.mark.skipif(
    not tshare.limits().dmabuf, reason="makes interfaces, which only the virtual machine may have"
)


@pytest.fixture(scope="module")
def interfaces():
    """Two interfaces that lead to each other, and send nothing on their own."""
    ip = ["ip", "link"]
    subprocess.run([*ip, "add", "tshare-a", "type", "veth", "peer", "name", "tshare-b"], check=True)
    for interface in ("tshare-a", "tshare-b"):
        Path(f"/proc/sys/net/ipv6/conf/{interface}/disable_ipv6").write_text("1")
        subprocess.run([*ip, "set", interface, "up"], check=True)
    yield "tshare-a", "tshare-b"
    subprocess.run([*ip, "delete", "tshare-a"], check=True)


@pytest.fixture
def receiver(interfaces, start, name):
    """The program, which waits for packets."""
    process = start(PROGRAM, interfaces[0], name)
    line = process.stdout.readline()
    assert "waiting for the first packet" in line, line + process.communicate()[1]
    return process


@pytest.fixture
def send(interfaces):
    """A function that sends a packet."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sock:
        sock.bind((interfaces[1], ETHERTYPE))
        yield lambda payload: sock.send(HEADER + payload)


def stop(process, count):
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, errors) == (0, "")
    assert output.splitlines()[-1] == f"packets: {count} packets"


def payload(number):
    return number.to_bytes(4, "big") * (20 + number % 300)


# Chunks that the receiver has for new packets whenever it has published one: the oldest of 128 kept
# packets gives back its chunk right after that. The kernel drops what comes when none is left.
ROOM = 127


def send_all(send, name, count):
    """Send that many packets, as fast as the receiver takes them, until it has published all."""
    send(payload(0))
    with tshare.Region.open(name, readonly=True, wait=TIMEOUT) as region:
        for number in range(1, count):
            while region.generation <= number - ROOM:
                region.wait(region.generation, TIMEOUT)
            send(payload(number))
        while region.generation < count:
            region.wait(region.generation, TIMEOUT)


def test_each_packet_arrives_where_its_record_says(receiver, send, name):
    need("numpy")
    for number in range(100):
        send(payload(number))
    with tshare.Region.open(name, readonly=True, wait=TIMEOUT) as region:
        packets, records = region["packets"].numpy(), region["records"].numpy()
        assert packets.shape == (256, 2048)
        while region.generation < 100:
            region.wait(region.generation, TIMEOUT)
        for number in range(100):
            chunk, offset, length = records[number + 1].tolist()
            assert packets[chunk, offset : offset + length].tobytes() == HEADER + payload(number)
        assert len(set(records[1:101, 0].tolist())) == 100
    stop(receiver, 100)


def test_array_that_was_made_once_has_all_later_packets(receiver, send, name):
    need("numpy")
    send(payload(0))
    with tshare.Region.open(name, readonly=True, wait=TIMEOUT) as region:
        packets, records = region["packets"].numpy(), region["records"].numpy()
        # More than there are chunks.
        for number in range(1, 600):
            send(payload(number))
            while region.generation <= number:
                region.wait(region.generation, TIMEOUT)
            chunk, offset, length = records[(number + 1) % 256].tolist()
            assert packets[chunk, offset : offset + length].tobytes() == HEADER + payload(number)
    stop(receiver, 600)


def test_reader_sees_the_packets(receiver, start, send, name):
    need("numpy")
    reader = start(sys.executable, READER, name, 2)
    send(b"\1" * 50)
    send(b"\2" * 1000)
    output, errors = reader.communicate(timeout=TIMEOUT)
    assert (reader.returncode, errors) == (0, "")
    source = SOURCE.hex(":")
    assert output.splitlines() == [
        f"packets.py: 64 bytes from {source} to ff:ff:ff:ff:ff:ff, type 88b5",
        f"packets.py: 1014 bytes from {source} to ff:ff:ff:ff:ff:ff, type 88b5",
        "packets.py: 2 packets, and 0 that were overwritten",
    ]
    stop(receiver, 2)


def test_reader_counts_the_packets_that_were_overwritten(receiver, start, send, name):
    need("numpy")
    send_all(send, name, 300)
    # It comes late, and no packet comes meanwhile: the newest 128 are kept.
    reader = start(sys.executable, READER, name, 128)
    output, errors = reader.communicate(timeout=TIMEOUT)
    assert (reader.returncode, errors) == (0, "")
    *lines, last = output.splitlines()
    assert last == "packets.py: 128 packets, and 172 that were overwritten"
    assert [int(line.split()[1]) for line in lines] == [
        len(HEADER + payload(number)) for number in range(172, 300)
    ]
    stop(receiver, 300)


def test_killed_receiver_ends_the_readers(receiver, send, name):
    send(payload(0))
    with tshare.Region.open(name, readonly=True, wait=TIMEOUT) as region:
        generations = region.generations(0)
        next(generations)
        receiver.kill()
        list(generations)
        receiver.communicate()
    with pytest.raises(FileNotFoundError):
        tshare.Region.open(name)


def test_missing_interface_is_an_error(start, name):
    process = start(PROGRAM, "tshare-none", name)
    _, errors = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 1
    assert errors == "packets: tshare-none: No such device\n"
