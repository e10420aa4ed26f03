# SPDX-License-Identifier: MIT
"""Tensors from actor to actor of Ray, in memory that those of a host share::

    import tshare.ray

    tshare.ray.register()

    @ray.remote
    class Learner:
        @ray.method(tensor_transport="tshare")
        def weights(self):
            return self.model.state_dict()

PyTorch's tensors on the CPU that an actor returns are opened by name where they arrive. Tensors in
a region that has a name are not copied; others are copied once, into a region that goes with its
last user. On another host the first receiver fetches them through Ray's object store, and the
others open its region. A host is where processes see the same names, see tshare.host_id().
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import pickle
import time
import traceback
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ._distributed_transfer import parts_of
from ._pickling import by_name
from ._tshare import Region, Tensor, asarray, host_id

try:
    import ray
    import torch
except ModuleNotFoundError as error:
    text = f"tshare.ray needs PyTorch and ray 2.60 or newer, and {error.name} isn't installed"
    raise ImportError(text, name=error.name) from None
if [*map(int, ray.__version__.split(".")[:2])] < [2, 60]:
    text = f"tshare.ray needs ray 2.60 or newer, and {ray.__version__} is installed"
    raise ImportError(text, name="ray")
from ray import experimental as _rdt  # noqa: E402

__all__ = ["register"]

# Bytes of tensors that an object of Ray holds on their way to another host. Object stores have room
# for a few of them, and one takes far longer than a call.
_BATCH_BYTES = 16 << 20

# Seconds for which Ray waits for a tensor.
_LIMIT = int(os.environ.get("RAY_rdt_fetch_fail_timeout_milliseconds", 60000)) / 1000


@dataclass
class _Metadata(_rdt.TensorTransportMetadata):
    host: str = ""
    tensors: bytes = b""
    # For other hosts: a region's name and layout, and the actor, unless it is a driver or a task.
    name: str = ""
    layout: dict[str, Any] = field(default_factory=dict)
    actor: bytes = b""

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Ray has told only those that take a reference as an argument of a method.
        register()
        self.__dict__.update(state)


# The tensors that this process has returned and Ray hasn't freed yet, by the object's id.
_kept: dict[str, tuple[list[torch.Tensor], _Metadata]] = {}


def _in_place(x: torch.Tensor) -> Tensor | None:
    """Return the tensor over the memory of x, if others can open that by a name."""
    with contextlib.suppress(BufferError):
        tensor = asarray(x, copy=False)
        info = tensor.region.info()
        return tensor if info.name and not info.draft and not tensor._in_frame else None
    return None


# The number of a tensor as a key, the index of its elements, and where the receiver has them.
_Part = tuple[str, tuple[slice, ...], slice]


def _batches(draft: Region) -> Iterator[list[_Part]]:
    """Cut the tensors into what one call of the actor returns, at most _BATCH_BYTES."""
    batch: list[_Part] = []
    room = _BATCH_BYTES
    for part in parts_of(draft, _BATCH_BYTES):
        size = part[-1].stop - part[-1].start
        if size > room:
            yield batch
            batch, room = [], _BATCH_BYTES
        batch.append(part)
        room -= size
    if batch:
        yield batch


def _parts(_: object, obj_id: str, name: str, batch: list[_Part]) -> list[pickle.PickleBuffer]:
    """Return the bytes of parts of an object's tensors, in the actor that has them."""
    # An actor that was restarted may have other tensors by this id.
    if obj_id not in _kept or _kept[obj_id][1].name != name:
        raise LookupError(f"{obj_id}: the actor has freed it, or was restarted")
    kept = _kept[obj_id][0]
    tensors = [asarray(kept[int(key)][index].contiguous()) for key, index, _ in batch]
    return [pickle.PickleBuffer(memoryview(t.region)[t.byte_offset :][: t.nbytes]) for t in tensors]


def _fill(draft: Region, obj_id: str, metadata: _Metadata, until: float) -> None:
    if not metadata.actor:
        text = f"{obj_id}: was put by a driver or a task, and other hosts get only what an actor"
        raise ValueError(f"{text} has put or returned")
    actor = ray.cloudpickle.loads(metadata.actor)
    # In a thread of the actor that waits for no other one: two may fetch from each other.
    call = actor.__ray_call__.options(concurrency_group="_ray_system_error")
    batches = list(_batches(draft))
    answers = (call.remote(_parts, obj_id, metadata.name, batch) for batch in batches)
    # One batch comes while the one before is copied.
    asked = deque(itertools.islice(answers, 1))
    with memoryview(draft) as view:
        for batch in batches:
            asked.extend(itertools.islice(answers, 1))
            parts = ray.get(asked.popleft(), timeout=max(until - time.monotonic(), 0))
            for (*_, place), part in zip(batch, parts, strict=True):
                view[place] = part


def _fetch(obj_id: str, metadata: _Metadata) -> Region:
    """Return the region of this host, which another process may be filling."""
    until = time.monotonic() + _LIMIT
    while True:
        try:
            draft = Region.create(metadata.name, metadata.layout, draft=True, lifetime="users")
        except FileExistsError:
            # The next draft is this process's, if the one that fills this draft ends, or if all
            # that used the region have closed it by now.
            with contextlib.suppress(FileNotFoundError, TimeoutError):
                region = Region.open(metadata.name, wait=0.2)
                if (uid := region.info().uid) == os.geteuid():
                    return region
                text = f"{obj_id}: its name was taken by user {uid}"
                raise PermissionError(errno.EPERM, text) from None
            if time.monotonic() > until:
                text = f"{obj_id}: another process still fetches it"
                raise TimeoutError(errno.ETIMEDOUT, text) from None
            continue
        with contextlib.ExitStack() as undo:
            undo.callback(draft.close)
            try:
                _fill(draft, obj_id, metadata, until)
            except BaseException as error:
                # Ray may keep the error, whose frames keep batches in the object store.
                traceback.clear_frames(error.__traceback__)
                raise
            draft.finish()
            undo.pop_all()
        return draft


def _open(obj_id: str, metadata: _Metadata) -> list[Tensor]:
    if metadata.host == host_id():
        try:
            return list(pickle.loads(metadata.tensors))
        except OSError as error:
            # The name leads to a newer region or to none, also if the actor has ended.
            if error.errno not in (errno.ENOENT, errno.ESTALE):
                raise
    region = _fetch(obj_id, metadata)
    return [region[key] for key in metadata.layout]


def _share(obj_id: str, given: list[torch.Tensor]) -> _Metadata:
    name, context = f"ray-{obj_id}-{os.urandom(4).hex()}", ray.get_runtime_context()
    pack: Any = ray.cloudpickle.dumps
    plain = [x.detach().resolve_conj().resolve_neg() for x in given]
    found = [_in_place(x) for x in plain]
    copied = {str(i): x for i, x in enumerate(plain) if found[i] is None}
    # A receiver may pass on what this process has freed by then.
    region = Region.create(f"{name}-copy", copied, lifetime="users") if copied else {}
    tensors = [region[str(i)] if tensor is None else tensor for i, tensor in enumerate(found)]
    metadata = _Metadata(
        tensor_meta=[(x.shape, x.dtype) for x in plain],
        tensor_device="cpu",
        host=host_id(),
        tensors=pickle.dumps([by_name(tensor) for tensor in tensors]),
        name=name,
        layout={str(i): (tensor.shape, str(tensor.dtype)) for i, tensor in enumerate(tensors)},
        actor=pack(context.current_actor) if context.get_actor_id() else b"",
    )
    kept = [region[str(i)].torch() if str(i) in copied else x for i, x in enumerate(plain)]
    _kept[obj_id] = kept, metadata
    return metadata


class _Transport(_rdt.TensorTransportManager):
    def tensor_transport_backend(self) -> str:
        return "TSHARE"

    @staticmethod
    def is_one_sided() -> bool:
        return True

    @staticmethod
    def can_abort_transport() -> bool:
        return True  # by itself: Ray would kill both actors otherwise

    def actor_has_tensor_transport(self, actor: Any) -> bool:
        return True

    def extract_tensor_transport_metadata(self, obj_id: str, rdt_object: list[Any]) -> _Metadata:
        for x in rdt_object:
            if x.device.type != "cpu":
                text = f"a tensor is on {x.device}, and tensor_transport='tshare' takes the CPU's"
                raise ValueError(f"{text} (return x.cpu(), or use 'cuda_ipc', 'nccl' or 'nixl')")
        # Ray may run a task twice, and has kept the tensors of the first time.
        return _kept[obj_id][1] if obj_id in _kept else _share(obj_id, rdt_object)

    def get_communicator_metadata(self, *_: Any, **__: Any) -> _rdt.CommunicatorMetadata:
        return _rdt.CommunicatorMetadata()

    def recv_multiple_tensors(
        self,
        obj_id: str,
        tensor_transport_metadata: Any,
        communicator_metadata: Any,
        target_buffers: list[Any] | None = None,
    ) -> list[Any]:
        found = [tensor.torch() for tensor in _open(obj_id, tensor_transport_metadata)]
        if target_buffers is None:
            return found
        with torch.no_grad():  # parameters are targets, too
            return [buffer.copy_(x) for buffer, x in zip(target_buffers, found, strict=True)]

    def send_multiple_tensors(self, *_: Any) -> None:
        raise NotImplementedError

    def garbage_collect(self, obj_id: str, tensor_transport_meta: Any, tensors: Any) -> None:
        _kept.pop(obj_id, None)

    def abort_transport(self, obj_id: str, communicator_metadata: Any) -> None:
        pass


def register() -> None:
    """Tell Ray of tensor_transport="tshare": before a class names it, and where actors are created.

    Does nothing if Ray knows it. The nodes of the actors need the package, too.
    """
    with contextlib.suppress(ValueError):
        _rdt.register_tensor_transport("tshare", ["cpu"], _Transport, torch.Tensor)
