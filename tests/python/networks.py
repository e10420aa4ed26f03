# SPDX-License-Identifier: MIT
"""Hosts for tests: network namespaces that a bridge joins, in namespaces of their own.

OWN starts the process that makes the hosts. They end with it.

usage: networks.py hosts|here COMMAND...

Runs each command on a host of its own, or all here, until a line of input comes.
"""

import ctypes
import os
import shlex
import signal
import subprocess
import sys

OWN = ["unshare", "--map-root-user", "--net"]

# The interface of each host.
INTERFACE = "eth0"

CLONE_NEWNET = 0x40000000

libc = ctypes.CDLL(None, use_errno=True)


def check(result):
    if result:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def run(*command):
    subprocess.run(command, check=True)


def start_host():
    """Return a process that has a network namespace of its own, and does nothing."""
    reader, writer = os.pipe()
    if not (pid := os.fork()):
        check(libc.unshare(CLONE_NEWNET))
        os.write(writer, b"1")
        while True:
            signal.pause()
    os.close(writer)
    is_made = os.read(reader, 1)
    os.close(reader)
    assert is_made, "no network namespace"
    return pid


def shape(rate, interface):
    limits = ["rate", rate, "burst", "256kb", "latency", "50ms"]
    return ["/sbin/tc", "qdisc", "add", "dev", interface, "root", "tbf", *limits]


def address(number):
    return f"10.11.13.{number + 1}"


def on_host(host):
    """Return what a command begins with that is to run on a host."""
    return ["nsenter", "--net", f"--target={host}"]


def make(count, rate=None):
    """Return the processes of hosts, whose links to the bridge are port0, port1 and so on here."""
    run("ip", "link", "set", "lo", "up")
    run("ip", "link", "add", "bridge0", "type", "bridge")
    run("ip", "link", "set", "bridge0", "up")
    hosts = []
    for number in range(count):
        hosts.append(start_host())
        port, there = f"port{number}", on_host(hosts[-1])
        peer = ["type", "veth", "peer", "name", INTERFACE, "netns", str(hosts[-1])]
        run("ip", "link", "add", port, *peer)
        run("ip", "link", "set", port, "master", "bridge0", "up")
        # Ranks of one host reach one another by it.
        run(*there, "ip", "link", "set", "lo", "up")
        run(*there, "ip", "addr", "add", f"{address(number)}/24", "dev", INTERFACE)
        run(*there, "ip", "link", "set", INTERFACE, "up")
        if rate:
            run(*shape(rate, port))
            run(*there, *shape(rate, INTERFACE))
    return hosts


def enter(host):
    """Move this thread to a host's network namespace."""
    fd = os.open(f"/proc/{host}/ns/net", os.O_RDONLY)
    check(libc.setns(fd, CLONE_NEWNET))
    os.close(fd)


def missing(rate=None):
    """Return why this machine has no such hosts, or None."""
    tries = {
        "network namespaces are forbidden": ["true"],
        "the kernel has no bridges": ["ip", "link", "add", "bridge0", "type", "bridge"],
        "the kernel has no veth": ["ip", "link", "add", "port0", "type", "veth"],
    }
    if rate:
        tries["the kernel has no tbf"] = shape(rate, "lo")
    for reason, command in tries.items():
        if subprocess.run([*OWN, *command], stderr=subprocess.DEVNULL).returncode:
            return reason
    return None


def run_until_a_line(begins, commands):
    """Run commands, of which each begins with something, and end them when a line comes."""
    started = [
        subprocess.Popen([*begin, *shlex.split(command)])
        for begin, command in zip(begins, commands, strict=True)
    ]
    sys.stdin.readline()
    for process in started:
        process.terminate()
    for process in started:
        process.wait()


if __name__ == "__main__":
    hosts = make(len(sys.argv) - 2) if sys.argv[1] == "hosts" else []
    run_until_a_line([on_host(host) for host in hosts] or [[]] * len(sys.argv[2:]), sys.argv[2:])
    for host in hosts:
        os.kill(host, signal.SIGKILL)
