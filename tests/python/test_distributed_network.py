# SPDX-License-Identifier: MIT
"""tshare.distributed between hosts that are network namespaces on a bridge."""

import time

import pytest

import networks
from ranks import Server
from support import hosts_are_folders, need

need("torch")

pytestmark = [pytest.mark.imports_torch, pytest.mark.slow_in_guests, hosts_are_folders]

HOSTS = 8


@pytest.fixture(scope="module", params=[None], ids=["unlimited"])
def server(request):
    """The process that starts ranks; the parameter is the rate of the links."""
    if reason := networks.missing(request.param):
        pytest.skip(reason)
    server = Server(HOSTS, request.param)
    yield server
    server.close()


@pytest.fixture
def start(server, start_group):
    """A function that starts a group, with a rank on the host of each number."""
    return lambda code, *hosts, **variables: start_group(server, code, hosts, hosts, **variables)


@pytest.mark.parametrize(
    ("server", "count"),
    [(None, 2), (None, 3), (None, 8), ("200mbit", 4)],
    indirect=["server"],
    ids=["2", "3", "8", "4 with links of 200 Mbit per second"],
)
def test_regions_and_rows_cross_the_links(start, count):
    code = """
kept = make() if rank == 1 else None
region = distributed.replicate("w", 1, chunk=CHUNK)
result = [is_made(region)]
if rank == 0:
    kept = tshare.Region.create("rows", {"a": np.arange(1_000_003)})
mine = distributed.scatter("rows", chunk=CHUNK, replace=True)["a"].numpy()
hosts = [*dict.fromkeys(numbers)]
right = np.array_split(np.arange(1_000_003), len(hosts))[hosts.index(numbers[rank])]
result.append(bool((mine == right).all()))
dist.barrier()
"""
    numbers = [*range(count), 1]
    assert start(code, *numbers, numbers=numbers).results() == [[True, True]] * (count + 1)


@pytest.mark.parametrize(
    ("call", "down"),
    [("replicate", 0), ("replicate", 1), ("replicate", 7), ("scatter", 7)],
    ids=["middle", "source", "end", "one with rows"],
)
def test_link_that_is_set_down_is_an_error_of_all_and_leaves_the_names(
    start, server, tmp_path, down, call
):
    code = """
kept = make() if rank == 1 else None
before = [(each.name, each.id) for each in tshare.list()]
if rank == down:
    def wait_until_gone(memory):
        open(go, "w").close()
        while not os.path.exists(gone):
            time.sleep(0.01)
    on_chunk(5, wait_until_gone, "isend" if rank == 1 else "irecv", 4096)
begin = time.monotonic()
result = [error_of(getattr(distributed, call), "w", 1, chunk=4096, replace=True, timeout=limit)]
result += [time.monotonic() - begin, before == [(each.name, each.id) for each in tshare.list()]]
"""
    gone = tmp_path / "gone"
    # On a busy machine the time may be over before the transfer is under way.
    for limit in (6, 30, 90):
        go = tmp_path / f"go{limit}"
        variables = {"down": down, "call": call, "go": str(go), "gone": str(gone), "limit": limit}
        group = start(code, *range(HOSTS), **variables)
        while not go.exists() and not group.left():
            time.sleep(0.01)
        if go.exists():
            break
        group.end()
    port = f"port{down}"
    server.ask({"run": ["ip", "link", "set", port, "down"]})
    gone.touch()
    found = group.results()
    server.ask({"run": ["ip", "link", "set", port, "up"]})
    # A lookup of an address that began before would fail the connections of the next test.
    for host in server.networks:
        flush = ["ip", "neigh", "flush", "dev", networks.INTERFACE]
        server.ask({"run": [*networks.on_host(host), *flush]})
    for error, took, is_before in found:
        assert error[0] in ("TimeoutError", "ConnectionResetError")
        # Long before TCP would give up the connection.
        assert took < limit + 60
        assert is_before
