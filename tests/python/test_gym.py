# SPDX-License-Identifier: MIT
"""tshare.gym, beside gymnasium's own class; test_gymnasium.py runs gymnasium's tests."""

import functools
import gc
import os
import pickle
import signal
import time
import tracemalloc
from multiprocessing import TimeoutError as LateError
from multiprocessing import resource_sharer

import numpy as np
import pytest

import tshare
from support import address, need, run, spawn

gymnasium = need("gymnasium")
spaces = gymnasium.spaces
vector = gymnasium.vector

from tshare.gym import AsyncVectorEnv  # noqa: E402

PICTURE = spaces.Box(0, 255, (21, 16, 3), np.uint8)
MOVES = spaces.Discrete(4)


class Env(gymnasium.Env):
    """Counts its steps; each observation is full of that, and an episode has four."""

    def __init__(self, index=0, observed=PICTURE, acted=MOVES, info=None):
        self.index, self.observation_space, self.action_space = index, observed, acted
        self.info, self.count, self.actions = info or {}, 0, []
        self.render_mode = "rgb_array"

    def observation(self):
        if self.observation_space is PICTURE:
            return np.full(PICTURE.shape, self.count, np.uint8)
        self.observation_space.seed(self.count)
        return self.observation_space.sample()

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count = seed or 0
        return self.observation(), self.info

    def step(self, action):
        self.count += 1
        self.actions.append(action)
        reward = np.float32(self.count) if self.index else self.count / 2
        return self.observation(), reward, self.count % 4 == 0, np.bool_(False), self.info

    def render(self):
        return np.full((500, 500, 3), self.index, np.uint8)

    def act(self):
        """Return the last action and its type."""
        return self.actions[-1], type(self.actions[-1])

    def end(self):
        os._exit(3)

    def sleep(self, seconds):
        time.sleep(seconds)
        return self.index

    def fail(self):
        raise LookupError(f"environment {self.index} fails")

    def echo(self, x):
        return x


def several(count=3, **options):
    return [functools.partial(Env, i, **options) for i in range(count)]


@pytest.fixture(scope="module", autouse=True)
def descriptors_of_multiprocessing(helper_processes):
    """Of gymnasium's own class, which keeps its memory for the next one."""
    vector.AsyncVectorEnv(several()).close()


@pytest.fixture
def start_envs():
    """A function that makes vector environments, which are closed after the test."""
    made = []

    def start(env_fns=None, kind=AsyncVectorEnv, **options):
        made.append(kind(several() if env_fns is None else env_fns, **options))
        return made[-1]

    yield start
    for envs in made:
        envs.close()


@pytest.fixture
def envs(start_envs):
    return start_envs()


@pytest.fixture(autouse=True)
def nothing_is_left():
    yield
    gc.collect()
    assert not names_of(os.getpid())


def names_of(pid):
    """Return the names that a process has made, by tshare.list() and by the file system."""
    names = [info.name for info in tshare.list()]
    names += os.listdir("/dev/shm") if os.path.isdir("/dev/shm") else []
    return [name for name in names if f"gym-{pid}-" in name]


def equal(a, b):
    """Whether two results are the same, in their types, too."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, np.ndarray) and a.dtype != object:
        return a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(a, np.ndarray):
        return a.shape == b.shape and all(map(equal, a.flat, b.flat))
    return bool(a == b)


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("info", [None, {"lives": 3, "x": np.arange(3), "id": "a"}])
def test_results_are_those_of_gymnasium(start_envs, mode, shared, info):
    options = {"env_fns": several(info=info), "shared_memory": shared, "autoreset_mode": mode}
    pair = [start_envs(kind=kind, **options) for kind in (AsyncVectorEnv, vector.AsyncVectorEnv)]
    assert equal(*[envs.reset(seed=2, options={"a": 1}) for envs in pair])
    pair[0].action_space.seed(1)
    for _ in range(10):
        actions = pair[0].action_space.sample()
        assert equal(*[envs.step(actions) for envs in pair])
        assert equal(*[envs.call("act") for envs in pair])


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(-1, 1, (), np.float64),
        spaces.Box(0, 1, (2, 3), np.float16),
        spaces.Discrete(5, start=-2),
        spaces.MultiBinary(7),
        spaces.MultiDiscrete([[2, 3], [3, 2]]),
        spaces.Dict(
            {"a": spaces.Box(0, 1, (3,)), "b": spaces.Tuple([spaces.Discrete(3), PICTURE])}
        ),
        spaces.Text(5),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("error")
def test_spaces_are_those_of_gymnasium(start_envs, space):
    env_fns = several(observed=space, acted=space)
    pair = [start_envs(env_fns, kind=kind) for kind in (AsyncVectorEnv, vector.AsyncVectorEnv)]
    assert pair[0].observation_space == pair[1].observation_space
    assert pair[0].action_space == pair[1].action_space
    assert equal(*[envs.reset(seed=5) for envs in pair])
    pair[0].action_space.seed(1)
    for _ in range(3):
        actions = pair[0].action_space.sample()
        assert equal(*[envs.step(actions) for envs in pair])
        assert equal(*[envs.call("act") for envs in pair])


class OtherForms(Env):
    """Returns observations of other types and shapes than the space has."""

    def observation(self):
        forms = [[[1, 2], [3, 4]], np.arange(4), np.arange(4.0).reshape(2, 2), (5, 6, 7, 8)]
        return forms[self.count % 4]


def test_observations_of_another_form_are_converted(start_envs):
    env_fns = [functools.partial(OtherForms, 0, spaces.Box(0, 9, (2, 2), np.float32))] * 2
    pair = [start_envs(env_fns, kind=kind) for kind in (AsyncVectorEnv, vector.AsyncVectorEnv)]
    assert equal(*[envs.reset()[0] for envs in pair])
    for _ in range(4):
        assert equal(*[envs.step(np.zeros(2, np.int64)) for envs in pair])


class Measures(Env):
    """Tells how much memory was allocated at a time after it had returned an observation."""

    def step(self, action):
        result = super().step(action)
        tracemalloc.start()
        return result

    def peak(self):
        return tracemalloc.get_traced_memory()[1]


def test_observations_are_copied_once(start_envs):
    space = spaces.Box(0, 255, (1 << 20,), np.uint8)
    envs = start_envs([functools.partial(Measures, observed=space)])
    envs.reset()
    envs.step(np.zeros(1, np.int64))
    assert envs.call("peak")[0] < 1 << 20


@pytest.mark.parametrize(
    "actions",
    [[0, 1, 2], np.array([0, 1, 2], np.int32), np.ones((3, 2)), np.ones((3, 1), np.int64)],
)
def test_actions_of_another_form_arrive_as_they_are(start_envs, actions):
    pair = [start_envs(kind=kind) for kind in (AsyncVectorEnv, vector.AsyncVectorEnv)]
    for envs in pair:
        envs.reset()
        envs.step(actions)
    assert equal(*[envs.call("act") for envs in pair])


def test_an_action_stays_as_it_was(start_envs):
    envs = start_envs(several(acted=spaces.Box(0, 9, (2,), np.int64)))
    envs.reset()
    envs.step(np.full((3, 2), 1))
    envs.step(np.full((3, 2), 2))
    assert [list(a) for a in envs.get_attr("actions")[0]] == [[1, 1], [2, 2]]


def test_observations_lie_in_the_region(envs, start_envs):
    envs.reset(seed=7)
    start = address(tshare.asarray(memoryview(envs.region), copy=False))
    place = envs.observations.__array_interface__["data"][0]
    assert 0 <= place - start <= envs.region.size - envs.observations.nbytes
    assert envs.reset()[0] is not envs.observations
    assert start_envs(copy=False).reset()[0].base is not None


def test_without_copy_the_next_step_changes_the_observations(start_envs):
    envs = start_envs(copy=False)
    observations, _ = envs.reset()
    envs.step(envs.action_space.sample())
    assert np.all(observations == 1)
    assert observations is envs.observations


def test_names_are_gone_once_the_environments_run(envs):
    envs.reset()
    assert not names_of(os.getpid())


def test_attributes_can_be_set_and_methods_be_called(envs):
    envs.set_attr("index", [4, 5, 6])
    assert envs.get_attr("index") == (4, 5, 6)
    assert envs.call("echo", x=2) == (2, 2, 2)


def test_results_of_a_call_keep_their_types(envs):
    x = (1, np.float32(2), np.int8(3), np.bool_(False), None)
    assert equal(envs.call("echo", x), (x, x, x))


def test_numbers_of_a_step_are_pickled_as_pythons(envs):
    envs.reset()
    envs.step(np.zeros(3, np.int64))
    # NumPy's take 150 bytes more, and ten times as long.
    assert max(envs._board.size) < 100


@pytest.mark.parametrize("size", [0, 1 << 14, 1 << 20])
def test_messages_may_be_long(envs, size):
    assert envs.call("echo", bytes(size)) == (bytes(size),) * 3


def test_command_that_goes_to_some_alone_does_not_hold_up_the_next(envs):
    with pytest.raises((AttributeError, pickle.PicklingError)):
        envs.set_attr("index", [7, lambda: None, 9])
    assert envs.get_attr("index") == (7, 1, 2)


def test_command_counts_once_it_is_published(envs):
    envs.reset()
    region, board, end = envs.region, envs._board, envs.parent_pipes[1]
    board.size[1], board.turn[1] = -1, region.generation + 2
    region.publish()
    with pytest.raises(TimeoutError):
        end.region.wait(end.seen, 0.2)
    region.publish()
    assert end.recv()[0][1] == 1


def test_pictures_are_rendered(envs):
    pictures = envs.render()
    assert [(x.shape, x.max()) for x in pictures] == [((500, 500, 3), i) for i in range(3)]


def test_what_only_multiprocessing_pickles_is_passed_on(envs):
    with tshare.create(None, 3) as t:
        results = envs.call("echo", t)
        t.numpy()[:] = 7
        assert [r.numpy().tolist() for r in results] == [[7] * 3] * 3
    resource_sharer.stop()


def test_environments_start_by_each_method(start_envs, context):
    envs = start_envs(context=context.get_start_method())
    assert envs.reset(seed=3)[0][:, 0, 0, 0].tolist() == [3, 4, 5]


def worker(index, env_fn, pipe, parent_pipe, *rest):
    parent_pipe.close()
    while True:
        command, data = pipe.recv()
        if command == "_check_spaces":
            pipe.send(((True, True), True))
        else:
            pipe.send((index if command == "_call" else None, True))
        if command == "close":
            return


def test_worker_may_be_the_users(start_envs):
    assert start_envs(worker=worker).call("anything") == (0, 1, 2)


def breaks_off(index, env_fn, pipe, parent_pipe, *rest):
    parent_pipe.close()
    pipe.recv()
    pipe.send(((True, True), True))
    pipe.recv()
    raise LookupError("the worker is broken")


@pytest.mark.filterwarnings("ignore")
def test_worker_that_breaks_off_is_named(start_envs):
    envs = start_envs(several(1), worker=breaks_off)
    with pytest.raises(ConnectionResetError, match="environment 0: .* has ended with 1"):
        envs.call("anything")


# Errors of environments


@pytest.mark.filterwarnings("ignore")
def test_error_of_an_environment_is_raised(envs):
    envs.reset()
    with pytest.raises(LookupError, match=r"environment \d fails"):
        envs.call("fail")


class NeverCloses(Env):
    def close(self):
        if self.count:
            raise LookupError("this environment can't be closed")


def test_close_ends_an_environment_that_fails_in_it(start_envs):
    envs = start_envs([NeverCloses] * 2, context="fork")
    envs.reset(seed=1)
    envs.close()
    assert [process.exitcode for process in envs.processes] == [1, 1]


def broken():
    if os.getpid() == broken.parent:
        return Env()
    raise LookupError("this environment can't be made")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seconds", [0, 0.5])
def test_error_of_a_function_is_raised(monkeypatch, seconds):
    """It may come before the first command, or after that."""
    check = vector.AsyncVectorEnv._check_spaces

    def check_late(self):
        time.sleep(seconds)
        check(self)

    monkeypatch.setattr(vector.AsyncVectorEnv, "_check_spaces", check_late)
    broken.parent = os.getpid()
    with pytest.raises(LookupError, match="can't be made"):
        AsyncVectorEnv([Env, broken, Env], context="fork")


def exits():
    os._exit(5) if os.getpid() != exits.parent else None
    return Env()


def test_process_that_ends_at_once_is_named():
    exits.parent = os.getpid()
    with pytest.raises(ConnectionResetError, match=r"environment 1: its process \d+ .* with 5"):
        AsyncVectorEnv([Env, exits, Env], context="fork")


class EndsAtOnce:
    """A function that ends the process to which it is pickled."""

    def __call__(self):
        return Env()

    def __reduce__(self):
        return os._exit, (7,)


@pytest.mark.slow_in_guests
def test_process_that_does_not_start_is_named():
    with pytest.raises(ConnectionResetError, match=r"environment 1: its process \d+ .* with 7"):
        AsyncVectorEnv([Env, EndsAtOnce()], context="spawn")


def test_killed_environment_is_named(envs):
    envs.reset()
    process = envs.processes[1]
    process.kill()
    text = f"environment 1: its process {process.pid} has ended with -9"
    with pytest.raises(ConnectionResetError, match=text):
        envs.step(envs.action_space.sample())
    envs.close()
    assert not any(process.is_alive() for process in envs.processes)


def test_command_to_a_killed_environment_names_it(envs):
    envs.reset()
    envs.processes[1].kill()
    envs.processes[1].join()
    with pytest.raises(ConnectionResetError, match="environment 1: .* has ended with -9"):
        envs.call("echo", 1)


def test_environment_that_exits_is_named(start_envs):
    envs = start_envs(several(1))
    with pytest.raises(ConnectionResetError, match="environment 0: .* has ended with 3"):
        envs.call("end")
    envs._state = vector.async_vector_env.AsyncState.DEFAULT
    with pytest.raises(ConnectionResetError, match="environment 0: "):
        envs.call("echo", 1)


def ends_while_it_sends(index, env_fn, pipe, parent_pipe, *rest):
    parent_pipe.close()
    pipe.recv()
    pipe.send(((True, True), True))
    pipe.recv()
    pipe.pipe.send_bytes = lambda data: os._exit(os.write(pipe.pipe.fileno(), bytes(3)))
    pipe.send((bytes(1 << 20), True))


@pytest.mark.filterwarnings("ignore")
def test_environment_that_ends_while_it_sends_is_named(start_envs):
    envs = start_envs(several(1), worker=ends_while_it_sends)
    with pytest.raises(ConnectionResetError, match="environment 0: .* has ended with 3"):
        envs.call("anything")


def test_close_drops_the_region_but_not_the_observations(envs):
    observations = envs.reset(seed=1)[0]
    envs.close()
    assert envs.region.closed
    assert equal(envs.observations, observations)


def test_close_ends_all_after_a_kill(envs):
    envs.reset()
    os.kill(envs.processes[0].pid, signal.SIGKILL)
    envs.close()
    assert not any(process.is_alive() for process in envs.processes)


@pytest.mark.parametrize("method", ["_check_spaces", "reset_async", "close"])
def test_environments_end_with_their_parent(method):
    parent = spawn(
        f"""
        import sys, time
        import test_gym
        def stop(envs, **options):
            print(*[process.pid for process in envs.processes], flush=True)
            time.sleep(1000)
        test_gym.vector.AsyncVectorEnv.{method} = stop
        envs = test_gym.AsyncVectorEnv(test_gym.several(), context="fork")
        envs.reset()
        envs.close()
        """,
        cwd=os.path.dirname(__file__),
    )
    pids = [int(pid) for pid in parent.stdout.readline().split()]
    parent.kill()
    parent.communicate()
    until = time.monotonic() + 60
    while any(map(is_running, pids)):
        assert time.monotonic() < until
        time.sleep(0.01)
    assert not names_of(parent.pid)
    assert len(pids) == 3


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_late_result_is_dropped(envs):
    envs.reset()
    envs.call_async("sleep", 0.2)
    with pytest.raises(LateError):
        envs.call_wait(timeout=0.01)
    assert envs.call("echo", "next") == ("next",) * 3
    envs.call_async("sleep", 0)
    assert envs.call_wait(timeout=60) == (0, 1, 2)


def test_late_result_is_dropped_before_a_step(envs):
    envs.reset()
    envs.call_async("sleep", 0.2)
    with pytest.raises(LateError):
        envs.call_wait(timeout=0.01)
    assert envs.step(np.zeros(3, np.int64))[1].tolist() == [0.5, 1, 1]


# Bad input


def test_step_while_a_call_is_pending_is_refused(envs):
    envs.reset()
    envs.call_async("sleep", 0)
    with pytest.raises(gymnasium.error.AlreadyPendingCallError):
        envs.step_async(np.zeros(3, np.int64))
    assert envs.call_wait(timeout=60) == (0, 1, 2)


def test_space_of_no_fixed_size_is_refused(start_envs):
    env_fns = several(observed=spaces.Sequence(spaces.Discrete(3)))
    with pytest.raises(TypeError, match=r"dynamic shape.*disable `shared_memory`"):
        AsyncVectorEnv(env_fns)
    envs = start_envs(env_fns, shared_memory=False)
    assert all(x in env_fns[0]().observation_space for x in envs.reset()[0])


class Unknown(gymnasium.Space):
    def sample(self):
        return 0

    def __eq__(self, other):
        return isinstance(other, Unknown)


def test_space_of_the_users_is_refused():
    with pytest.raises(ValueError, match="shared_memory: must be False for this space: .*Unknown"):
        AsyncVectorEnv(several(observed=Unknown()))


def test_spaces_that_differ_are_refused():
    with pytest.raises(RuntimeError, match="observation spaces are not equivalent"):
        AsyncVectorEnv([*several(2), functools.partial(Env, observed=spaces.Discrete(2))])


@pytest.mark.parametrize(
    ("module", "found"),
    [
        ("None", "it isn't installed"),
        ("stub('0.29.1')", "0.29.1 is installed"),
        ("stub('1.0.0')", "1.0.0 is installed"),
    ],
)
def test_missing_gymnasium_is_named(module, found):
    code = """
    import sys, types
    def stub(version):
        module = types.ModuleType("gymnasium")
        module.__version__ = version
        return module
    sys.modules["gymnasium"] = MODULE
    try:
        import tshare.gym
    except ImportError as error:
        print(error.name, error)
    """
    text = f"gymnasium tshare.gym needs gymnasium 1.1 or newer, and {found}"
    assert run(code.replace("MODULE", module)) == text


def test_library_that_gymnasium_misses_is_named():
    code = """
    import sys
    sys.modules["numpy"] = None
    try:
        import tshare.gym
    except ImportError as error:
        print(error.name)
    """
    assert run(code) == "numpy"


@pytest.mark.skipif(tshare.backend() == "kmod", reason="the module's names are not in a folder")
def test_missing_folder_of_shared_memory_is_an_error():
    code = """
    import gymnasium, multiprocessing
    from tshare.gym import AsyncVectorEnv
    try:
        AsyncVectorEnv([lambda: gymnasium.make("CartPole-v1")] * 2)
    except OSError as error:
        print(error, len(multiprocessing.active_children()))
    """
    text = run(code, env={**os.environ, "TSHARE_SHM_DIR": "/nowhere"})
    assert "/nowhere: no such directory" in text
    assert text.endswith(" 0")
