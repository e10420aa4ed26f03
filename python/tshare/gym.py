# SPDX-License-Identifier: MIT
"""gymnasium's AsyncVectorEnv, whose processes exchange observations and rewards in a region::

    from tshare.gym import AsyncVectorEnv

The class derives from gymnasium's, takes the same arguments and behaves alike, except:

- Observations, actions and results lie in one region, the attribute region, and generations wake
  the processes that wait. Other commands go through a pipe, as do results of more than 16 KiB, such
  as a rendered picture.
- If an environment's process dies, the call that waits for it raises a ConnectionResetError that
  names it. The constructor raises an exception of a function of env_fns.
- A result that came after its timeout is dropped, not returned for the next call.
- If this process dies, its environments end.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import math
import os
import pickle
import traceback
from multiprocessing.reduction import ForkingPickler
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from ._tshare import Region

try:
    from gymnasium import __version__ as _version
except ModuleNotFoundError as error:
    if error.name != "gymnasium":
        raise
    _version = "0"
if [*map(int, _version.split(".")[:2])] < [1, 1]:
    _found = "it isn't installed" if _version == "0" else f"{_version} is installed"
    raise ImportError(f"tshare.gym needs gymnasium 1.1 or newer, and {_found}", name="gymnasium")

import numpy as np  # noqa: E402
from gymnasium import spaces  # noqa: E402
from gymnasium.error import CustomSpaceError  # noqa: E402
from gymnasium.vector import async_vector_env as _std  # noqa: E402
from gymnasium.vector import utils as _utils  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["AsyncVectorEnv"]

# Bytes for a pickled result; a longer one, such as a rendered picture, goes through the pipe.
_ROOM = 16 << 10

# Values of size, beside that of a pickled result.
_IN_PIPE, _ACTION = 0, -1

# Spaces whose elements are arrays or NumPy's numbers.
_ARRAYS = (spaces.Box, spaces.Discrete, spaces.MultiBinary, spaces.MultiDiscrete)


class _Board:
    """The region of all environments, whose generation the parent publishes.

    turn[i] is that of environment i's last command. size[i] says where the command is, and later
    its result.
    """

    def __init__(self, get_region: Any, observed: Any, acted: Any, count: int) -> None:
        self.specs: dict[str, tuple[int, str]] = {}
        turn, size, room = (self.Array(x, count * n) for x, n in (("q", 1), ("q", 1), ("B", _ROOM)))
        actions, shape = None, acted.shape
        if isinstance(acted, _ARRAYS):
            actions = self.Array(acted.dtype, count * math.prod(shape))
        self.memory: Any = None
        if observed is not None:
            self.memory = _utils.create_shared_memory(observed, n=count, ctx=cast("Any", self))
        self.region = get_region(self.specs)
        self.turn, self.size, self.room = (memoryview(x.get_obj()) for x in (turn, size, room))
        self.actions: Any = actions and actions.get_obj().reshape(count, *shape)

    def Array(self, code: Any, size: int) -> SimpleNamespace:  # noqa: N802
        """Take the place of multiprocessing.Array() for create_shared_memory()."""
        key, dtype = f"{len(self.specs)}", np.dtype(code)
        self.specs[key] = (size * dtype.itemsize, "uint8")
        array = functools.cache(lambda: np.asarray(self.region[key]).view(dtype))
        return SimpleNamespace(get_obj=array)


def _write(space: Any, index: int, value: Any, memory: Any) -> None:
    """Store an observation as write_to_shared_memory() does, which copies it twice."""
    size, flat = math.prod(space.shape), np.asarray(value, space.dtype).ravel()
    memory.get_obj().view(space.dtype)[index * size : (index + 1) * size] = flat


class _End:
    """An end of an environment's pipe, where commands and results take turns."""

    def __init__(self, board: _Board, index: int, pipe: Any, region: Region) -> None:
        self.board, self.index, self.pipe, self.region = board, index, pipe, region
        self.room = board.room[index * _ROOM :][:_ROOM]
        self.seen = 0


class _Parent(_End):
    waits = False

    def __init__(self, *end: Any, process: Any) -> None:
        super().__init__(*end)
        self.process = process

    @property
    def closed(self) -> bool:
        return self.region.closed

    def close(self) -> None:
        self.pipe.close()
        self.region.close()

    def begin(self) -> None:
        if self.closed:
            raise self.lose()
        if self.waits:
            # A wait for this result has timed out.
            self.recv()

    def send(self, command: tuple[str, Any]) -> None:
        self.begin()
        board, data = self.board, ForkingPickler.dumps(command)
        board.size[self.index] = _IN_PIPE
        board.turn[self.index] = board.region.generation + 1
        self.waits = True
        # Environments get their commands one after another, and one publish is for all.
        if self.index == len(board.turn) - 1 or len(data) > _ROOM:
            board.region.publish()
        try:
            self.pipe.send_bytes(data)
        except OSError:
            raise self.lose() from None

    def poll(self, timeout: float | None = 0.0) -> int:
        """Wait for a result, and return its generation or 0."""
        if self.board.region.generation < self.board.turn[self.index]:
            self.board.region.publish()
        try:
            return self.region.wait(self.seen, timeout)
        except TimeoutError:
            return 0
        except OSError as error:
            if error.errno != errno.EOWNERDEAD:
                raise
            raise self.lose() from None

    def recv(self) -> Any:
        self.seen, self.waits = self.poll(None), False
        size = self.board.size[self.index]
        try:
            data = self.room[:size] if size else self.pipe.recv_bytes()
        except (EOFError, OSError):
            raise self.lose() from None
        return pickle.loads(data)

    def lose(self) -> ConnectionResetError:
        self.close()
        self.process.join(1)
        pid, code = self.process.pid, self.process.exitcode
        text = f"environment {self.index}: its process {pid} has ended with {code}"
        return ConnectionResetError(errno.ECONNRESET, text)


class _Child(_End):
    done = 0
    is_step = False

    def recv(self) -> Any:
        board, index = self.board, self.index
        while not self.done < board.turn[index] <= self.seen:
            self.seen = board.region.wait(self.seen)
        self.done = board.turn[index]
        if board.size[index] == _ACTION:
            command = "step", board.actions[index].copy()
        else:
            command = self.pipe.recv()
        self.is_step = command[0] == "step"
        return command

    def send(self, message: tuple[Any, bool]) -> None:
        result, successful = message
        if successful and self.is_step:
            # NumPy's numbers and bools take ten times as long to pickle.
            numbers = [x.item() if isinstance(x, np.generic) else x for x in result[1:4]]
            message = (result[0], *numbers, *result[4:]), True
        try:
            data = pickle.dumps(message)
        except Exception:
            # Objects that only multiprocessing passes on.
            data = bytes(ForkingPickler.dumps(message))
        size = len(data) if len(data) <= _ROOM else _IN_PIPE
        self.board.size[self.index] = size
        self.room[:size] = data[:size]
        self.region.publish()
        if size == _IN_PIPE:
            self.pipe.send_bytes(data)


def _work(worker: Any, index: int, env_fn: Any, pipe: Any, other: Any, *rest: Any) -> None:
    """Run gymnasium's worker in an environment's process, with a _Child in place of its pipe."""
    name, *layout = pipe.recv()
    board = _Board(lambda _: Region.open(name), *layout)
    end = _Child(board, index, pipe, Region.open(f"{name}-{index}"))
    end.region.announce()
    pipe.send(None)
    for kind in _ARRAYS:
        # In this process alone.
        _utils.write_to_shared_memory.register(kind, _write)
    try:
        worker(index, env_fn, end, other, board.memory, *rest[1:])
    except Exception as error:
        # Of env_fn(), which gymnasium's worker calls before it takes its first command.
        if end.done:
            raise
        end.recv()
        rest[1].put((index, type(error), error, traceback.format_exc()))
        end.send((None, False))


class AsyncVectorEnv(_std.AsyncVectorEnv):
    """gymnasium's class of that name, whose processes exchange what they can in a region."""

    region: Region
    """The region with all observations."""

    def __init__(
        self,
        env_fns: Sequence[Callable[[], Any]],
        shared_memory: bool = True,
        copy: bool = True,
        context: str | None = None,
        daemon: bool = True,
        worker: Callable[..., None] | None = None,
        *args: Any,
        **options: Any,
    ) -> None:
        self._shares = shared_memory
        work = functools.partial(_work, worker or _std._async_worker)
        super().__init__(env_fns, False, copy, context, daemon, work, *args, **options)

    def _check_spaces(self) -> None:
        # The constructor calls this once the processes are there and the spaces are known.
        try:
            self._share()
            super()._check_spaces()  # type: ignore[no-untyped-call]
        except BaseException:
            self.close(terminate=True)
            raise

    def _share(self) -> None:
        name, count = f"gym-{os.getpid()}-{os.urandom(4).hex()}", self.num_envs
        observed = self.single_observation_space if self._shares else None
        layout = observed, self.single_action_space, count
        with contextlib.ExitStack() as names:
            try:
                self._board = board = _Board(functools.partial(Region.create, name), *layout)
            except CustomSpaceError as error:
                raise ValueError(f"shared_memory: must be False for this space: {error}") from None
            self.region = board.region
            names.callback(self.region.unlink)
            self.region.announce()
            workers = zip(self.parent_pipes, self.processes, strict=True)
            for i, (pipe, process) in enumerate(workers):
                region = Region.create(f"{name}-{i}", size=1)
                names.callback(region.unlink)
                end: Any = _Parent(board, i, pipe, region, process=process)
                self.parent_pipes[i] = end
                try:
                    pipe.send((name, *layout))
                    pipe.recv()
                except (EOFError, OSError):
                    names.close()
                    raise end.lose() from None
        self.shared_memory = self._shares
        if observed is not None:
            self.observations = _utils.read_from_shared_memory(observed, board.memory, n=count)

    def step_async(self, actions: Any) -> None:
        board, place, ends = self._board, self._board.actions, cast("list[Any]", self.parent_pipes)
        fits = type(actions) is np.ndarray is type(place) and actions.shape == place.shape
        is_free = not self.closed and self._state == _std.AsyncState.DEFAULT
        if not is_free or not fits or actions.dtype != place.dtype:
            super().step_async(actions)
            return
        for end in ends:
            end.begin()
        place[...] = actions
        for i, end in enumerate(ends):
            board.size[i], board.turn[i] = _ACTION, board.region.generation + 1
            end.waits = True
        board.region.publish()
        self._state = _std.AsyncState.WAITING_STEP

    def close_extras(self, timeout: float | None = None, terminate: bool = False) -> None:
        # Beside one that has died, others may still be at work, or have answered already.
        dead = any(end is not None and end.closed for end in self.parent_pipes)
        try:
            super().close_extras(timeout, terminate or dead)
        except ConnectionResetError:
            super().close_extras(terminate=True)
        if "region" in vars(self):
            self.region.close()
