# SPDX-License-Identifier: MIT
"""The part of tshare.weights that needs PyTorch, and imports it by this module at the first use."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Collection, Iterator, Mapping

import torch
from torch.utils.dlpack import from_dlpack

from ._pickling import _bytes_of
from ._tshare import Region, Tensor


def as_torch(name: str, tensor: Tensor) -> torch.Tensor:
    """Return a torch.Tensor over the memory of the tensor, which has this name in its file."""
    # torch() would warn of read-only memory, which all weights are.
    dtype = getattr(torch, tensor.dtype, None)
    shape = tensor.shape
    if tensor.dtype == "float4_e2m1fn" and shape and not shape[-1] % 2:
        # PyTorch's type holds two elements.
        dtype = getattr(torch, "float4_e2m1fn_x2", None)
        shape = (*shape[:-1], shape[-1] // 2)
    if dtype is None:
        raise TypeError(f"{name!r}: PyTorch {torch.__version__} has no type for {tensor.dtype}")
    found: torch.Tensor
    try:
        if shape == tensor.shape:
            found = from_dlpack(tensor)
            return found
    except (BufferError, RuntimeError):
        pass
    content = from_dlpack(_bytes_of(tensor.region, tensor._spec[4], tensor.nbytes))
    found = content.view(dtype).reshape(shape)
    return found


def _tied(module: torch.nn.Module) -> Iterator[list[str]]:
    """Return the names of each parameter or buffer that has several names."""
    names: dict[int, list[str]] = {}
    for found in (module.named_parameters, module.named_buffers):
        for name, tensor in found(remove_duplicate=False):
            names.setdefault(id(tensor), []).append(name)
    return (group for group in names.values() if len(group) > 1)


def _is_extra(name: str) -> bool:
    """Whether this is the name of get_extra_state()'s result, whose shape only the module knows."""
    return name.rpartition(".")[2] == "_extra_state"


def _check_types(module: object, weights: object) -> None:
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"module: must be a torch.nn.Module, not {type(module)}")
    if not isinstance(weights, Mapping | Region):
        raise TypeError(f"weights: must be a mapping of tensors, not {type(weights)}")
    for name in weights:
        if not isinstance(weights[name], Tensor):
            raise TypeError(
                f"weights: {name!r}: must be a tshare.Tensor, not {type(weights[name])} "
                "(load_state_dict() takes PyTorch's)"
            )


def _initialiser(module: torch.nn.Module, path: str) -> Callable[[], object] | None:
    """Return the function that computes a submodule's buffers: only its own code can.

    There are two conventions: transformers, from version 5 on, calls the model's _init_weights()
    for each module; PyTorch's FSDP calls the module's reset_parameters().
    """
    owner = module.get_submodule(path)
    parts = path.split(".") if path else []
    for count in range(len(parts), -1, -1):
        model = module.get_submodule(".".join(parts[:count]))
        if callable(initialise := getattr(model, "_init_weights", None)):
            return functools.partial(initialise, owner)
    reset = getattr(owner, "reset_parameters", None)
    return reset if callable(reset) else None


def _few(names: list[str]) -> str:
    """Return the names, or the first ones and how many more there are."""
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return ", ".join(names[:8]) + more


def _make_buffers(
    module: torch.nn.Module, path: str, names: list[str], undo: contextlib.ExitStack
) -> set[str]:
    """Let a submodule compute its buffers on "meta"; return the names of the computed ones."""
    buffers = module.get_submodule(path)._buffers
    parameters = module.get_submodule(path)._parameters
    initialise = _initialiser(module, path)
    others = {name: tensor for name, tensor in buffers.items() if name not in names} | parameters
    # The function writes to the other tensors, too. On "meta" nothing is lost.
    if initialise is None or any(t is not None and not t.is_meta for t in others.values()):
        return set()
    meta = {name: tensor for name, tensor in buffers.items() if name in names}
    undo.callback(buffers.update, meta)
    empty = {
        name: torch.empty_like(tensor, device="cpu")
        for name, tensor in meta.items()
        if tensor is not None
    }
    versions = {name: tensor._version for name, tensor in empty.items()}
    buffers.update(empty)
    # The caller may have made "meta" the default, as for the module.
    with torch.no_grad(), torch.device("cpu"):
        initialise()
    made = {n for n in names if buffers[n] is not empty[n] or empty[n]._version != versions[n]}
    buffers.update({name: tensor for name, tensor in meta.items() if name not in made})
    return made


def _make_unsaved(
    module: torch.nn.Module, saved: Collection[str], undo: contextlib.ExitStack
) -> list[str]:
    """Compute tensors on "meta" that aren't in state_dict(); return the names of the others."""
    left = []
    for path, owner in module.named_modules():
        prefix = f"{path}." if path else ""
        names = [
            name
            for name, tensor in owner.named_buffers(recurse=False)
            if tensor.is_meta and prefix + name not in saved
        ]
        made = _make_buffers(module, path, names, undo) if names else set()
        # Tensors that are plain attributes aren't in state_dict(), either.
        names += [k for k, v in vars(owner).items() if isinstance(v, torch.Tensor) and v.is_meta]
        left += [prefix + name for name in names if name not in made]
    return left


def assign(module: torch.nn.Module, weights: Mapping[str, Tensor], strict: bool) -> list[str]:
    """Do what tshare.weights.assign() documents."""
    _check_types(module, weights)
    own = module.state_dict()
    groups = [[name for name in group if name in own] for group in _tied(module)]
    first: dict[str, str] = {}
    for group in groups:
        given = next((name for name in group if name in weights), None)
        if given is not None:
            first.update(dict.fromkeys(group, given))
    missing = [
        name
        for name, value in own.items()
        if first.get(name, name) not in weights and isinstance(value, torch.Tensor)
    ]
    if strict and missing:
        raise ValueError(f"weights: {_few(missing)}: in the module, and missing")
    unknown = [name for name in weights if name not in own]
    if strict and unknown:
        raise ValueError(f"weights: {_few(unknown)}: no parameter or buffer of the module")
    found = {name: as_torch(name, weights[name]) for name in weights if name in own}
    state = {
        name: tensor.clone() if _is_extra(name) else tensor
        for name, tensor in found.items()
        if first.get(name, name) == name
    }
    for name, tensor in own.items():
        if _is_extra(name) or not isinstance(tensor, torch.Tensor) or name in missing:
            continue
        # The second name of a tied tensor counts, too, if weights has it.
        shape = tuple(found[name if name in found else first[name]].shape)
        if shape != tuple(tensor.shape):
            raise ValueError(
                f"weights: {name!r}: its shape is {shape}, the module's {tuple(tensor.shape)}"
            )
    with contextlib.ExitStack() as undo:
        left = _make_unsaved(module, own.keys(), undo)
        if strict and left:
            raise ValueError(
                f"module: {_few(left)}: on the device meta, in no file, and not computed by the "
                "module's reset_parameters() (set them before, or with strict=False afterwards)"
            )
        undo.pop_all()
    # load_state_dict() copies requires_grad to the new tensors; integers can't have it.
    for name, parameter in module.named_parameters(remove_duplicate=False):
        if first.get(name, name) in found:
            parameter.requires_grad_(False)
    module.load_state_dict(state, strict=False, assign=True)
    for name, given in first.items():
        if name != given:
            owner, _, leaf = name.rpartition(".")
            giver, _, given_leaf = given.rpartition(".")
            tensor = getattr(module.get_submodule(giver), given_leaf)
            setattr(module.get_submodule(owner), leaf, tensor)
    return missing + left
