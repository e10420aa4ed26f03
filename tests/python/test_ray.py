# SPDX-License-Identifier: MIT
"""tshare.ray, in a cluster of two raylets: directories of their own make them two hosts."""

import collections
import gc
import os
import pickle
import shutil
import signal
import tempfile
import time
import types
import weakref
from pathlib import Path

import numpy as np
import pytest

# Nothing is sent to Ray's makers, and no actor loses its GPUs.
os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}

import tshare
from support import hosts_are_folders, need, run

torch = need("torch")
ray = need("ray")

import tshare.ray  # noqa: E402

tshare.ray.register()

pytestmark = [pytest.mark.slow_in_guests, hosts_are_folders]

HOSTS = 2


class Worker:
    """An actor, whose methods run what a test gives."""

    def call(self, function, *args):
        return function(*args)

    @ray.method(tensor_transport="tshare")
    def give(self, function, *args):
        return function(*args)


@pytest.fixture(autouse=True)
def no_fd_leaks():
    """In place of the one for all tests: Ray's connections in this process come and go."""


@pytest.fixture(scope="module")
def cluster():
    from ray.cluster_utils import Cluster

    ray.cloudpickle.register_pickle_by_value(__import__(__name__))
    # Sockets lie there, whose paths have to be short.
    work = Path(tempfile.mkdtemp(prefix="ray-"))
    cluster = Cluster()
    patch = pytest.MonkeyPatch()
    patch.setenv("RAY_TMPDIR", str(work))
    try:
        for host in range(HOSTS):
            folder = work / f"host{host}"
            folder.mkdir(mode=0o700)
            cluster.add_node(
                num_cpus=1,
                resources={f"host{host}": 1000},
                object_store_memory=80 << 20,
                env_vars={"TSHARE_SHM_DIR": str(folder)},
                include_dashboard=False,
            )
        ray.init(address=cluster.address, logging_level="ERROR", log_to_driver=False)
        cluster.folder = work
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()
        patch.undo()
        shutil.rmtree(work, ignore_errors=True)


@pytest.fixture(scope="module")
def start_of_module(cluster):
    """A function that starts an actor on a host."""
    kind = ray.remote(num_cpus=0)(Worker)

    def start(host):
        return kind.options(resources={f"host{host}": 1}).remote()

    return start


@pytest.fixture(scope="module")
def actors(start_of_module):
    """Two actors on each host: the first two are on host 0."""
    return [start_of_module(host) for host in (0, 0, 1, 1)]


@pytest.fixture
def start(start_of_module):
    """A function that starts an actor of the test's own."""
    started = []

    def start(host):
        started.append(start_of_module(host))
        return started[-1]

    yield start
    for actor in started:
        ray.kill(actor)


def call(actor, function, *args):
    return ray.get(actor.call.remote(function, *args), timeout=120)


@pytest.fixture(autouse=True)
def nothing_is_left(actors):
    yield
    gc.collect()
    until = time.monotonic() + 20
    # Ray tells an actor some time after the last reference has gone.
    while left := [name for actor in actors for name in call(actor, forget)]:
        assert time.monotonic() < until, left
        time.sleep(0.1)


# What the actors run


def names():
    return [info.name for info in tshare.list()]


def forget():
    """Drop what tests had the actor keep, and return the names on its host."""
    state().clear()
    gc.collect()
    return names()


def state():
    """Return what the actor keeps from call to call."""
    return tshare.__dict__.setdefault("_held_by_test", {})


def ones(*shape):
    return torch.ones(shape)


def in_region(name, *shape):
    """Make a named region, and return PyTorch's tensor over it."""
    state()[name] = tshare.create(name, shape, "float32", lifetime="users", exist_ok=True).torch()
    return state()[name].fill_(1)


def at(name):
    return state()[name]


def put():
    # Ray may not have told this actor yet.
    tshare.ray.register()
    return [ray.put(torch.ones(3), _tensor_transport="tshare")]


def place(x):
    """Return what identifies the memory of x on its host, and who can write it."""
    t = tshare.asarray(x, copy=False)
    return t.region.id, t.region.name, t.readonly


def keep(x):
    state()["kept"] = x
    return place(x)


def kept():
    return state()["kept"]


def fill(x, value):
    x.fill_(value)


def total(x):
    return float(x.sum())


def pid():
    return os.getpid()


def kill(actor):
    os.kill(call(actor, pid), signal.SIGKILL)


# Where the memory is


def test_tensor_in_a_named_region_is_shared_in_place(actors):
    a, b, *_ = actors
    ref = a.give.remote(in_region, "named", 3, 4)
    assert call(b, place, ref)[1] == "named"
    call(b, fill, ref, 5)
    assert call(a, lambda: total(at("named"))) == 60


def test_other_tensor_is_copied_once_and_shared_by_all_receivers(actors, start):
    a, b, *_ = actors
    ref = a.give.remote(ones, 3, 4)
    first = call(b, keep, ref)
    assert first[1].startswith("ray-")
    assert call(start(0), place, ref) == first
    call(b, lambda: fill(kept(), 2))
    assert len(call(a, names)) == 1


def test_another_host_has_one_copy(actors):
    a, _, c, d = actors
    ref = a.give.remote(in_region, "named", 3, 4)
    there = ray.get([actor.call.remote(keep, ref) for actor in (c, d)], timeout=120)
    assert there[0] == there[1]
    assert there[0][1].startswith("ray-")
    assert len(call(c, names)) == 1
    call(c, lambda: fill(kept(), 2))
    assert call(d, lambda: total(kept())) == 24
    assert call(a, lambda: total(at("named"))) == 12


def test_driver_gets_tensors(actors):
    ref = actors[0].give.remote(ones, 3)
    assert torch.equal(ray.get(ref, timeout=120), torch.ones(3))


@pytest.mark.parametrize("kind", ["actor", "task"])
def test_whoever_gets_a_reference_knows_the_transport(actors, kind):
    """Ray tells it only to actors that have a method of it, or take an argument of it."""

    def get(refs):
        return total(ray.get(refs[0]))

    class Other:
        def get(self, refs):
            return get(refs)

    refs = call(actors[0], put)
    options = {"num_cpus": 0, "resources": {"host0": 1}}
    if kind == "actor":
        other = ray.remote(**options)(Other).remote()
        assert ray.get(other.get.remote(refs), timeout=60) == 3
    else:
        assert ray.get(ray.remote(**options)(get).remote(refs), timeout=60) == 3


def test_memory_outlives_the_object_and_the_sender(actors, start):
    b, sender = actors[1], start(0)
    ref = sender.give.remote(ones, 5)
    call(b, keep, ref)
    del ref
    kill(sender)
    assert call(b, lambda: total(kept())) == 5


def test_receiver_passes_on_what_the_sender_has_freed(actors, start):
    a, b, c, _ = actors
    call(b, keep, a.give.remote(ones, 6))
    ref = b.give.remote(kept)
    assert [call(actor, total, ref) for actor in (start(0), c)] == [6, 6]


def note_batches():
    parts, sizes = tshare.ray._parts, []

    def note(*args):
        found = parts(*args)
        sizes.append(sum(memoryview(part).nbytes for part in found))
        return found

    tshare.ray._parts = note
    state()["sizes"] = sizes


def lower_batches():
    tshare.ray._BATCH_BYTES = 100


def note_asked():
    longest = state()["longest"] = [0]

    class Noting(collections.deque):
        def popleft(self):
            longest[0] = max(longest[0], len(self))
            return super().popleft()

    tshare.ray.deque = Noting


def test_other_hosts_get_tensors_in_batches(start):
    def tensors():
        rows = torch.arange(12).reshape(2, 6)
        small = [torch.full((3,), i, dtype=torch.uint8) for i in range(50)]
        return [torch.arange(90).reshape(3, 30), rows.t(), torch.ones(0), torch.tensor(7), *small]

    sender, receiver = start(0), start(1)
    call(sender, note_batches)
    call(receiver, lower_batches)
    call(receiver, note_asked)
    assert call(receiver, flat, sender.give.remote(tensors)) == flat(tensors())
    # Object stores have room for few.
    assert call(receiver, lambda: state()["longest"]) == [2]
    sizes = call(sender, lambda: state()["sizes"])
    # Each row of 240 bytes takes three batches: 96, 96, 48. The rest has 254 bytes.
    assert max(sizes) <= 100
    assert sum(sizes) == 3 * 240 + 96 + 8 + 150
    assert len(sizes) < 16


# What is in it

KINDS = {
    "bfloat16": lambda: torch.tensor([1.5, -2], dtype=torch.bfloat16),
    "float8": lambda: torch.tensor([1.5, -2]).to(torch.float8_e4m3fn),
    "bool": lambda: torch.tensor([True, False]),
    "scalar": lambda: torch.tensor(3),
    "empty": lambda: torch.zeros(0, 3),
    "transposed": lambda: torch.arange(6).reshape(2, 3).t(),
    "strided": lambda: torch.arange(12)[1::3],
    "expanded": lambda: torch.arange(3).expand(2, 3),
    "complex": lambda: torch.tensor([1 + 2j, 3 - 1j]).conj(),
    "negated": lambda: torch.tensor([1 + 2j, 3 - 1j]).conj().imag,
    "requires_grad": lambda: torch.ones(2, requires_grad=True),
    "several": lambda: {"a": torch.ones(3), "b": [torch.zeros(2), 7], "c": torch.tensor([4])},
    "none": lambda: {"no": "tensor"},
}


def flat(x):
    if isinstance(x, torch.Tensor):
        return [str(x.dtype), tuple(x.shape), x.detach().to(torch.complex64).tolist()]
    if isinstance(x, dict | list):
        return [flat(each) for each in (x.values() if isinstance(x, dict) else x)]
    return x


@pytest.mark.parametrize("receiver", [1, 2], ids=["here", "there"])
@pytest.mark.parametrize("kind", KINDS)
def test_arrives_as_it_was(actors, kind, receiver):
    make = KINDS[kind]
    assert call(actors[receiver], flat, actors[0].give.remote(make)) == flat(make())


@pytest.mark.parametrize("receiver", [1, 2], ids=["here", "there"])
def test_view_of_a_region_arrives_as_it_was(actors, receiver):
    def view():
        x = in_region("named", 4, 6)
        x.copy_(torch.arange(24).reshape(4, 6))
        return x[1:, ::2].t()

    expected = torch.arange(24.0).reshape(4, 6)[1:, ::2].t()
    assert call(actors[receiver], flat, actors[0].give.remote(view)) == flat(expected)


@pytest.mark.filterwarnings("ignore:the tensor is read-only")
def test_read_only_tensor_stays_so_on_its_host(actors):
    a, b, c, _ = actors

    def readonly():
        in_region("named", 3)
        return tshare.open("named", readonly=True).torch()

    ref = a.give.remote(readonly)
    assert call(b, place, ref)[1:] == ("named", True)
    assert call(c, total, ref) == 3


def test_frame_of_a_stream_is_copied(actors):
    a, b, *_ = actors

    def frame():
        stream = state()["stream"] = tshare.Stream.create("frames", {"x": (3, "float32")}, 3)
        frame = state()["frame"] = stream.loan()
        return frame["x"].torch().fill_(1)

    assert call(b, place, a.give.remote(frame))[1].startswith("ray-")


@pytest.mark.parametrize("name", [None, "half"], ids=["nameless", "draft"])
def test_region_that_nobody_can_open_is_copied(actors, name):
    def make():
        region = tshare.Region.create(name, {"x": (3, "float32")}, draft=name is not None)
        state()["region"] = region
        return region["x"].torch().fill_(1)

    assert call(actors[1], place, actors[0].give.remote(make))[1].startswith("ray-")


@pytest.mark.parametrize("receiver", [1, 2], ids=["here", "there"])
def test_copy_is_of_the_time_of_the_return(actors, receiver):
    def give():
        state()["x"] = torch.ones(3)
        return at("x")

    ref = actors[0].give.remote(give)
    ray.wait([ref], fetch_local=False)
    call(actors[0], lambda: fill(at("x"), 5))
    assert call(actors[receiver], total, ref) == 3


def test_target_buffer_is_filled(actors):
    ref = actors[0].give.remote(ones, 3)
    buffer = torch.zeros(3)
    ray.experimental.set_target_for_ref(ref, [buffer])
    assert ray.get(ref, timeout=120) is buffer
    assert torch.equal(buffer, torch.ones(3))


def test_parameters_are_targets(actors):
    ref = actors[0].give.remote(lambda: [torch.ones(3)])
    parameter = torch.nn.Parameter(torch.zeros(3))
    ray.experimental.set_target_for_ref(ref, [parameter])
    assert ray.get(ref, timeout=120)[0] is parameter
    assert torch.equal(parameter, torch.ones(3))


def test_sender_can_wait_until_a_tensor_is_free(actors):
    a, b, *_ = actors

    def is_free(timeout):
        try:
            ray.experimental.wait_tensor_freed(at("named"), timeout)
        except TimeoutError:
            return False
        return True

    ref = a.give.remote(in_region, "named", 3)
    call(b, keep, ref)
    assert not call(a, is_free, 0.1)
    del ref
    assert call(a, is_free, 60)


def test_actor_puts_tensors(actors):
    a, b, c, _ = actors
    refs = call(a, put)
    assert [call(actor, lambda refs: total(ray.get(refs[0])), refs) for actor in (b, c)] == [3, 3]


def test_task_that_runs_twice_returns_the_first_tensors(actors):
    def twice():
        transport = tshare.ray._Transport()
        first = transport.extract_tensor_transport_metadata("id", [torch.ones(3)])
        second = transport.extract_tensor_transport_metadata("id", [torch.ones(3)])
        transport.garbage_collect("id", first, [])
        return first is second

    assert call(actors[0], twice)


def test_two_clusters_of_a_machine_can_use_one_id(actors):
    def share():
        tshare.ray._Transport().extract_tensor_transport_metadata("id", [torch.ones(3)])

    def free():
        tshare.ray._Transport().garbage_collect("id", None, [])

    for function in (share, free):
        for actor in actors[:2]:
            call(actor, function)


# What goes wrong


def fails(ref, actor):
    try:
        call(actor, total, ref)
    except Exception as error:
        return error
    return None


def test_tensor_on_another_device_is_refused(actors):
    error = fails(actors[0].give.remote(lambda: torch.ones(3, device="meta")), actors[1])
    assert isinstance(error, ValueError)
    assert "a tensor is on meta" in str(error)
    assert "return x.cpu()" in str(error)


def test_sparse_tensor_is_refused(actors):
    error = fails(actors[0].give.remote(lambda: torch.eye(2).to_sparse()), actors[1])
    assert isinstance(error, TypeError)
    assert "x.to_dense()" in str(error)


@pytest.mark.parametrize("receiver", [1, 2], ids=["here", "there"])
def test_sender_that_was_killed_is_an_error(actors, start, receiver):
    sender = start(0)
    ref = sender.give.remote(ones, 3)
    ray.wait([ref], fetch_local=False)
    kill(sender)
    while call(actors[0], names):
        time.sleep(0.01)
    assert isinstance(fails(ref, actors[receiver]), ray.exceptions.ActorDiedError)


def test_name_that_leads_elsewhere_by_now_is_no_error(actors):
    a, b, *_ = actors
    ref = a.give.remote(in_region, "named", 3)
    ray.wait([ref], fetch_local=False)
    newer = a.give.remote(lambda: in_region("named", 4))
    assert [call(b, total, each) for each in (ref, newer)] == [3, 4]


def test_region_that_can_not_be_opened_is_an_error():
    class Unopened:
        def __reduce__(self):
            return os.listdir, (os.devnull,)

    metadata = tshare.ray._Metadata(
        [], host=tshare.host_id(), tensors=pickle.dumps(Unopened()), name="other"
    )
    with pytest.raises(NotADirectoryError):
        tshare.ray._open("id", metadata)


def metadata_of(region, **options):
    tensors = pickle.dumps([tshare.by_name(tensor) for tensor in region.values()])
    layout = {key: (tensor.shape, str(tensor.dtype)) for key, tensor in region.items()}
    return tshare.ray._Metadata([], "cpu", tensors=tensors, layout=layout, **options)


def test_another_hosts_name_is_not_looked_for_here(name):
    # There may be one, even of a region with the same number.
    with tshare.Region.create(name, {"a": (3, "uint8")}) as region:
        here = metadata_of(region, host=tshare.host_id())
        there = metadata_of(region, host="elsewhere", name=f"{name}-copy")
        assert len(tshare.ray._open("id", here)) == 1
        with pytest.raises(ValueError, match="put by a driver"):
            tshare.ray._open("id", there)


def test_name_of_what_could_not_be_fetched_is_free_at_once(name):
    with tshare.Region.create(name, {"a": (3, "uint8")}) as region:
        metadata = metadata_of(region, host="elsewhere", name=f"{name}-copy")
        # The traceback keeps the draft.
        with pytest.raises(ValueError, match="put by a driver") as kept:
            tshare.ray._open("id", metadata)
        assert f"{name}-copy" not in [info.name for info in tshare.list()]
        assert kept.traceback


def test_name_that_leads_elsewhere_is_no_error_beside_a_copy(actors):
    a, b, *_ = actors
    ref = a.give.remote(lambda: [in_region("named", 3), torch.zeros(2)])
    ray.wait([ref], fetch_local=False)
    call(a, in_region, "named", 4)
    assert call(b, flat, ref) == flat([torch.ones(3), torch.zeros(2)])


def test_region_that_goes_before_a_receiver_looks_is_fetched_again(actors, start):
    def be_late():
        class Region:
            open = tshare.Region.open

            @staticmethod
            def create(*_, **__):
                tshare.ray.Region = tshare.Region
                raise FileExistsError

        tshare.ray.Region = Region

    late = start(1)
    call(late, be_late)
    assert ray.get(late.call.remote(total, actors[0].give.remote(ones, 3)), timeout=30) == 3


def test_region_of_another_user_is_refused(actors, start):
    def become_another():
        os.geteuid = lambda: 1 << 20

    a, _, c, _ = actors
    ref = a.give.remote(ones, 3)
    call(c, keep, ref)
    other = start(1)
    call(other, become_another)
    error = fails(ref, other)
    assert isinstance(error, PermissionError)
    assert "its name was taken by user" in str(error)


def stop_filling():
    tshare.ray._fill = lambda *_: time.sleep(1000)


def receives(actor, ref, beside):
    """Let an actor fetch what ref leads to, and return when one beside it sees the draft."""
    late = actor.call.remote(total, ref)
    until = time.monotonic() + 60
    while not call(beside, names):
        assert time.monotonic() < until
    return late


def test_killed_receiver_leaves_the_filling_to_the_next(actors, start):
    a, _, _, d = actors
    first = start(1)
    call(first, stop_filling)
    number = call(first, pid)
    ref = a.give.remote(ones, 3)
    late = receives(first, ref, d)
    next = d.call.remote(total, ref)
    assert ray.wait([next], timeout=0.5) == ([], [next])
    os.kill(number, signal.SIGKILL)
    assert ray.get(next, timeout=120) == 3
    with pytest.raises(ray.exceptions.ActorDiedError):
        ray.get(late, timeout=120)
    # It is as it was.
    assert call(a, pid)


def lower_limit():
    tshare.ray._LIMIT = 0.5


def test_sender_that_is_silent_is_an_error(actors, start):
    sender, receiver = start(0), start(1)
    call(receiver, lower_limit)
    ref = sender.give.remote(ones, 3)
    ray.wait([ref], fetch_local=False)
    os.kill(call(sender, pid), signal.SIGSTOP)
    assert isinstance(fails(ref, receiver), ray.exceptions.GetTimeoutError)


def answer_slowly():
    parts = tshare.ray._parts
    tshare.ray._parts = lambda *args: time.sleep(0.1) or parts(*args)


def test_sender_that_is_slow_is_an_error(actors, start):
    """Ray waits no longer for all of them, and would keep what comes later."""
    sender, receiver = start(0), start(1)
    for change in lower_limit, lower_batches:
        call(receiver, change)
    call(sender, answer_slowly)
    ref = sender.give.remote(ones, 50 * 25)
    assert isinstance(fails(ref, receiver), ray.exceptions.GetTimeoutError)


def test_error_keeps_nothing_in_the_object_store(monkeypatch):
    asked, got = weakref.WeakSet(), []

    class Call:
        def options(self, **_):
            return self

        def remote(self, *_):
            asked.add(answer := Call())
            return answer

    def get(_, timeout):
        if got:
            raise LookupError
        part = np.zeros(16, "uint8")
        got.append(weakref.ref(part))
        return [part]

    actor = types.SimpleNamespace(__ray_call__=Call())
    cloudpickle = types.SimpleNamespace(loads=lambda _: actor)
    monkeypatch.setattr(tshare.ray, "ray", types.SimpleNamespace(cloudpickle=cloudpickle, get=get))
    monkeypatch.setattr(tshare.ray, "_BATCH_BYTES", 16)
    layout = {"0": (64, "uint8")}
    metadata = tshare.ray._Metadata([], "cpu", name="id", layout=layout, actor=b"1")
    with pytest.raises(LookupError) as error:
        tshare.ray._fetch("id", metadata)
    assert error.tb
    assert got[0]() is None
    assert not asked


def test_receiver_that_is_silent_is_an_error_for_others(actors, start):
    a, _, _, d = actors
    first, next = start(1), start(1)
    call(first, stop_filling)
    call(next, lower_limit)
    number = call(first, pid)
    ref = a.give.remote(ones, 3)
    late = receives(first, ref, d)
    error = fails(ref, next)
    os.kill(number, signal.SIGKILL)
    assert isinstance(error, TimeoutError)
    assert "another process still fetches it" in str(error)
    with pytest.raises(ray.exceptions.ActorDiedError):
        ray.get(late, timeout=120)


def test_actor_that_has_freed_the_tensors_says_so(monkeypatch):
    monkeypatch.setitem(tshare.ray._kept, "again", ([], types.SimpleNamespace(name="another")))
    for id in "id", "again":
        with pytest.raises(LookupError, match=f"{id}: the actor has freed it, or was restarted"):
            tshare.ray._parts(None, id, "name", [])


def test_actor_that_waits_for_a_tensor_itself_can_be_fetched_from(actors, start):
    sender = start(0)
    ref = sender.give.remote(ones, 3)
    ray.wait([ref], fetch_local=False)
    in_ray_s_thread = sender.__ray_call__.options(concurrency_group="_ray_system")
    in_ray_s_thread.remote(lambda _: time.sleep(1000))
    assert ray.get(actors[2].call.remote(total, ref), timeout=30) == 3


def test_driver_puts_for_its_host_alone(cluster, actors):
    code = """
        import os, sys
        import ray, torch
        import tshare.ray

        tshare.ray.register()

        @ray.remote(num_cpus=0)
        class Worker:
            @ray.method(tensor_transport="tshare")
            def give(self):
                return torch.ones(1)

            def total(self, x):
                return float(x.sum())

        tshare.ray.register()
        ray.init(address=sys.argv[1], logging_level="ERROR", log_to_driver=False)
        workers = [Worker.options(resources={f"host{i}": 1}).remote() for i in range(2)]
        ref = ray.put(torch.ones(3), _tensor_transport="tshare")
        print(ray.get(workers[0].total.remote(ref)))
        try:
            ray.get(workers[1].total.remote(ref))
        except ValueError as error:
            print(str(error).strip().splitlines()[-1])
        """
    env = os.environ | {"TSHARE_SHM_DIR": str(cluster.folder / "host0")}
    first, second = run(code, cluster.address, env=env).splitlines()
    assert first == "3.0"
    assert "was put by a driver or a task, and other hosts get only what an actor" in second


def test_time_is_what_ray_waits():
    env = os.environ | {"RAY_rdt_fetch_fail_timeout_milliseconds": "2500"}
    assert run("import tshare.ray; print(tshare.ray._LIMIT)", env=env) == "2.5"


@pytest.mark.parametrize(
    ("ray", "text"),
    [
        ("None", "needs PyTorch and ray 2.60 or newer, and ray isn't installed"),
        ("types.SimpleNamespace(__version__='2.59.1')", "2.60 or newer, and 2.59.1 is installed"),
    ],
    ids=["missing", "old"],
)
def test_import_names_the_library_that_is_missing(ray, text):
    code = f"""
        import sys, types
        sys.modules["ray"] = {ray}
        try:
            import tshare.ray
        except ImportError as error:
            print(error.name, error)
        """
    assert run(code) == f"ray tshare.ray {text if 'PyTorch' in text else 'needs ray ' + text}"
