# SPDX-License-Identifier: MIT
"""Weights for PyTorch, beside safetensors' own functions."""

import pytest

from checkpoint import BITS, save, save_shards
from support import need, version
from tshare import weights

torch = need("torch")
safetensors_torch = need("safetensors.torch")

if version(torch) < (2, 9):
    pytest.skip("PyTorch before 2.9 takes no read-only memory", allow_module_level=True)

MISSING = {"F6_E2M3", "F6_E3M2"}


def as_bytes(tensor):
    return bytes(tensor.contiguous().reshape(-1).view(torch.uint8).tolist())


@pytest.mark.parametrize("dtype", sorted(BITS.keys() - MISSING))
def test_load_file_returns_what_safetensors_does(tmp_path, dtype):
    tensors = {"x": (dtype, (3, 8)), "empty": (dtype, (2, 0))}
    path = save(tmp_path / "model.safetensors", tensors)
    found = weights.load_file(path)
    expected = safetensors_torch.load_file(path)
    assert found.keys() == expected.keys()
    for key, tensor in found.items():
        assert (tensor.dtype, tensor.shape) == (expected[key].dtype, expected[key].shape)
        assert not tensor.numel() or as_bytes(tensor) == as_bytes(expected[key])


@pytest.mark.parametrize("dtype", sorted(MISSING))
def test_type_that_pytorch_lacks_is_named(tmp_path, dtype):
    path = save(tmp_path / "model.safetensors", {"x": (dtype, (4,))})
    with pytest.raises(TypeError, match="'x': PyTorch .* has no type for float6"):
        weights.load_file(path)


def test_load_file_of_one_file_is_one_copy(tmp_path):
    path = save(tmp_path / "model.safetensors", {"x": ("F32", (4,))})
    first, second = weights.load_file(path), weights.load_file(path, "cpu", backend="pread")
    with weights.load(path) as loaded:
        with memoryview(loaded.region) as view:
            assert view[loaded["x"]._spec[4] :][:16] == as_bytes(first["x"])
    assert torch.equal(first["x"], second["x"])


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(20, 8)
        self.norm = torch.nn.BatchNorm1d(8)
        self.head = torch.nn.Linear(8, 20, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, x):
        return self.head(self.norm(self.embed(x)))


def made(seed=0):
    torch.manual_seed(seed)
    model = Tied().eval()
    model.norm.running_mean.uniform_()
    return model


def on_meta():
    with torch.device("meta"):
        return Tied().eval()


@pytest.mark.filterwarnings("error:the tensor is read-only")
def test_assigned_module_computes_the_same(tmp_path, name):
    model, x = made(), torch.arange(20)
    path = tmp_path / "model.safetensors"
    safetensors_torch.save_model(model, path)
    empty = on_meta()
    with weights.load(path, name) as loaded:
        weights.assign(empty, loaded)
    assert torch.equal(empty(x), model(x))
    assert empty.head.weight is empty.embed.weight
    assert not any(parameter.requires_grad for parameter in empty.parameters())
    assert not any(tensor.is_meta for tensor in empty.state_dict().values())


def test_assigned_module_has_the_region_s_memory(tmp_path, name):
    path = tmp_path / "model.safetensors"
    safetensors_torch.save_model(made(), path)
    models = on_meta(), on_meta()
    with weights.load(path, name) as loaded:
        for model in models:
            weights.assign(model, loaded)
        addresses = {key: tensor.torch().data_ptr() for key, tensor in loaded.items()}
    for model in models:
        state = model.state_dict()
        assert all(state[key].data_ptr() == address for key, address in addresses.items())


def test_shards_make_the_module_that_was_saved(tmp_path, name):
    model, x = made(1), torch.arange(20)
    state = {key: tensor for key, tensor in model.state_dict().items() if key != "head.weight"}
    shards = {}
    for i, (key, tensor) in enumerate(state.items()):
        shards.setdefault(f"model-{i % 2}.safetensors", {})[key] = tensor
    save_shards(
        tmp_path, {file: {} for file in shards}, [(k, f) for f in shards for k in shards[f]]
    )
    for file, tensors in shards.items():
        safetensors_torch.save_file(tensors, tmp_path / file)
    empty = on_meta()
    with weights.load(tmp_path, name) as loaded:
        weights.assign(empty, loaded)
    assert torch.equal(empty(x), model(x))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            lambda state: state.pop("norm.weight"),
            "^weights: norm.weight: in the module",
        ),
        (
            lambda state: state.update(more=torch.ones(1)),
            "^weights: more: no parameter or buffer",
        ),
        (
            lambda state: state.update({"norm.bias": torch.ones(3)}),
            r"'norm.bias': its shape is \(3,\)",
        ),
        (
            lambda state: state.update({"head.weight": torch.ones(3)}),
            r"'head.weight': its shape is \(3,\)",
        ),
    ],
)
def test_what_does_not_fit_is_named_and_leaves_the_module(tmp_path, name, change, text):
    state = dict(made().state_dict())
    del state["head.weight"]
    change(state)
    path = tmp_path / "model.safetensors"
    safetensors_torch.save_file(state, path)
    empty = on_meta()
    with weights.load(path, name) as loaded, pytest.raises(ValueError, match=text):
        weights.assign(empty, loaded)
    assert all(tensor.is_meta for tensor in empty.state_dict().values())


@pytest.mark.parametrize(
    ("module", "given", "text"),
    [
        ({}, {}, "^module: must be a torch.nn.Module, not <class 'dict'>"),
        (torch.nn.Linear, {}, "^module: "),
        (torch.nn.Linear(1, 1), None, "^weights: must be a mapping"),
        (
            torch.nn.Linear(1, 1),
            torch.nn.Linear(1, 1).state_dict(),
            r"^weights: 'weight': must be a tshare.Tensor, not .*load_state_dict\(\)",
        ),
    ],
)
def test_assign_names_the_argument_that_is_wrong(module, given, text):
    with pytest.raises(TypeError, match=text):
        weights.assign(module, given)


def test_load_file_names_the_argument_that_is_wrong():
    with pytest.raises(TypeError, match="^filename: must be a path"):
        weights.load_file(None)


def test_load_file_copies_to_another_device(tmp_path):
    path = save(tmp_path / "model.safetensors", {"x": ("F32", (4,))})
    assert weights.load_file(path, "meta")["x"].is_meta


class TiedBuffer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        shared = torch.ones(3)
        self.register_buffer("first", shared)
        self.register_buffer("second", shared)


def test_tied_buffer_stays_tied(tmp_path, name):
    path = save(tmp_path / "model.safetensors", {"second": ("F32", (3,))})
    module = TiedBuffer()
    with weights.load(path, name) as loaded:
        weights.assign(module, loaded)
    assert module.first is module.second
    assert as_bytes(module.first) == bytes(range(12))


class Extra(torch.nn.Module):
    """Has state besides its parameters, which may be anything."""

    def __init__(self, extra):
        super().__init__()
        self.norm = torch.nn.LayerNorm(4)
        self.extra = extra

    def get_extra_state(self):
        return self.extra

    def set_extra_state(self, state):
        self.extra = state


@pytest.mark.parametrize("extra", [None, {"version": 2}, b"bytes"])
def test_extra_state_that_no_file_can_hold_is_left_alone(tmp_path, name, extra):
    path = tmp_path / "model.safetensors"
    state = torch.nn.LayerNorm(4).state_dict()
    safetensors_torch.save_file({f"0.norm.{key}": value for key, value in state.items()}, path)
    module = torch.nn.Sequential(Extra(extra))
    with weights.load(path, name) as loaded:
        weights.assign(module, loaded)
        assert module[0].norm.weight.data_ptr() == loaded["0.norm.weight"].torch().data_ptr()
    assert module[0].extra is extra


@pytest.mark.parametrize("extra", [None, torch.zeros(0), torch.zeros(2)])
def test_extra_state_of_the_file_is_set_whatever_its_shape(tmp_path, name, extra):
    path = tmp_path / "model.safetensors"
    safetensors_torch.save_file(Extra(torch.arange(5)).state_dict(), path)
    module = Extra(extra)
    with weights.load(path, name) as loaded:
        weights.assign(module, loaded)
    assert module.extra.tolist() == [0, 1, 2, 3, 4]


def test_extra_state_can_be_written(tmp_path, name):
    path = tmp_path / "model.safetensors"
    safetensors_torch.save_file({"0._extra_state": torch.arange(5)}, path)
    module = torch.nn.Sequential(Extra(torch.zeros(1)))
    module[0].norm = None
    with weights.load(path, name) as loaded:
        weights.assign(module, loaded)
        # On the memory of the region this would end the process.
        assert module[0].extra.data_ptr() != loaded["0._extra_state"].torch().data_ptr()
        module[0].extra += 1
        assert bytes(loaded["0._extra_state"]) == bytes(torch.arange(5).numpy())


def test_extra_state_that_is_a_tensor_and_missing_is_named(tmp_path, name):
    path = tmp_path / "model.safetensors"
    state = torch.nn.LayerNorm(4).state_dict()
    safetensors_torch.save_file({f"norm.{key}": value for key, value in state.items()}, path)
    module = Extra(torch.zeros(2))
    before = module.norm.weight
    with weights.load(path, name) as loaded:
        with pytest.raises(ValueError, match="^weights: _extra_state: in the module, and missing$"):
            weights.assign(module, loaded)
    assert module.norm.weight is before


class Quantised(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(4)
        self.weight = torch.nn.Parameter(torch.zeros(4))


@pytest.mark.parametrize("dtype", [torch.int8, torch.bool, torch.float8_e4m3fn, torch.bfloat16])
def test_assigned_parameter_has_the_type_of_the_file(tmp_path, name, dtype):
    state = Quantised().state_dict() | {"weight": torch.tensor([0, 1, 1, 0]).to(dtype)}
    path = tmp_path / "model.safetensors"
    safetensors_torch.save_file(state, path)
    module = Quantised()
    with weights.load(path, name) as loaded:
        weights.assign(module, loaded)
    assert module.weight.dtype == dtype
    assert as_bytes(module.weight.detach()) == as_bytes(state["weight"])
    assert not any(parameter.requires_grad for parameter in module.parameters())


# Buffers that are in no file


class Angles(torch.nn.Module):
    """Has two buffers that aren't saved, and how they are computed as a subclass does."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(2))
        self.register_buffer("angles", torch.arange(3.0), persistent=False)
        self.register_buffer("other", torch.ones(2), persistent=False)

    def compute(self):
        torch.nn.init.zeros_(self.weight)
        self.angles.copy_(torch.arange(3.0))
        self.other = torch.ones(2)


class Reset(Angles):
    def reset_parameters(self):
        self.compute()


class HalfReset(Angles):
    def reset_parameters(self):
        self.other = torch.ones(2)


class FailingReset(Angles):
    def reset_parameters(self):
        self.other = torch.ones(2)
        raise RuntimeError("can't")


class Model(torch.nn.Sequential):
    """Initialises its modules as a model of transformers does."""

    def _init_weights(self, module):
        if isinstance(module, Angles):
            module.compute()


@pytest.fixture
def assign_meta(tmp_path, name):
    """A function that makes a module on "meta", and assigns what its state_dict() has there."""

    def assign_meta(make, inside=False, **options):
        path = tmp_path / "model.safetensors"
        safetensors_torch.save_file(make().state_dict(), path)
        with torch.device("meta"):
            module = make()
        with weights.load(path, name) as loaded:
            if inside:
                with torch.device("meta"):
                    return module, weights.assign(module, loaded, **options)
            return module, weights.assign(module, loaded, **options)

    return assign_meta


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize(
    "make",
    [
        Reset,
        lambda: torch.nn.Sequential(torch.nn.Linear(1, 1), Reset()),
        lambda: Model(torch.nn.Sequential(Angles())),
        lambda: torch.nn.Sequential(Model(Angles()), torch.nn.BatchNorm1d(2)),
    ],
)
def test_buffer_that_is_in_no_file_is_computed_by_the_module(assign_meta, make, inside):
    module, left = assign_meta(make, inside)
    assert left == []
    expected = dict(make().named_buffers())
    for key, buffer in module.named_buffers():
        assert torch.equal(buffer, expected[key])
    angles = next(part for part in module.modules() if isinstance(part, Angles))
    assert angles.weight.tolist() == [1, 1]


class Attribute(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(2))
        self.scale = torch.ones(1)


NOT_COMPUTED = {
    "alone": (Angles, ["angles", "other"]),
    "in a module": (lambda: torch.nn.Sequential(Angles()), ["0.angles", "0.other"]),
    "half": (HalfReset, ["angles"]),
    "an attribute": (lambda: torch.nn.Sequential(Attribute()), ["0.scale"]),
}


@pytest.mark.parametrize("kind", NOT_COMPUTED)
def test_buffer_that_can_not_be_computed_is_named(assign_meta, kind):
    make, names = NOT_COMPUTED[kind]
    with pytest.raises(ValueError, match=f"^module: {', '.join(names)}: on the device meta"):
        assign_meta(make)
    module, left = assign_meta(make, strict=False)
    assert left == names
    values = dict(module.named_buffers())
    assert all(values[key].is_meta for key in names if key in values)
    assert not any(parameter.is_meta for parameter in module.parameters())


def test_names_are_cut_where_they_are_many(assign_meta):
    def make():
        return torch.nn.Sequential(*(Attribute() for _ in range(20)))

    with pytest.raises(ValueError, match=r"^module: 0\.scale, .*, 7\.scale and 12 more: "):
        assign_meta(make)


@pytest.mark.parametrize("kind", [HalfReset, FailingReset])
def test_module_that_is_refused_is_as_it_was(tmp_path, name, kind):
    path = tmp_path / "model.safetensors"
    safetensors_torch.save_file(kind().state_dict(), path)
    with torch.device("meta"):
        module = kind()
    before = {**module._buffers, **module._parameters}
    with weights.load(path, name) as loaded, pytest.raises((ValueError, RuntimeError)):
        weights.assign(module, loaded)
    after = {**module._buffers, **module._parameters}
    assert all(after[key] is before[key] for key in before)


def test_module_that_has_memory_is_not_initialised_again(tmp_path, name):
    module = Reset()
    module.angles = module.angles.to("meta")
    module.other[0] = 5
    path = tmp_path / "model.safetensors"
    safetensors_torch.save_file(module.state_dict(), path)
    with weights.load(path, name) as loaded:
        with pytest.raises(ValueError, match="^module: angles: on the device meta"):
            weights.assign(module, loaded)
    assert module.other.tolist() == [5, 1]
    assert module.weight.tolist() == [1, 1]


def test_without_strict_what_is_missing_or_unknown_is_left(tmp_path, name):
    path = tmp_path / "model.safetensors"
    safetensors_torch.save_file({"weight": torch.ones(2, 3), "more": torch.ones(1)}, path)
    module = torch.nn.Linear(3, 2)
    bias = module.bias
    with weights.load(path, name) as loaded:
        assert weights.assign(module, loaded, strict=False) == ["bias"]
        assert module.weight.data_ptr() == loaded["weight"].torch().data_ptr()
    assert module.bias is bias
    assert bias.requires_grad
    assert not module.weight.requires_grad


def test_without_strict_shapes_are_compared_all_the_same(tmp_path, name):
    path = save(tmp_path / "model.safetensors", {"weight": ("F32", (2, 4))})
    with weights.load(path, name) as loaded:
        with pytest.raises(ValueError, match=r"'weight': its shape is \(2, 4\)"):
            weights.assign(torch.nn.Linear(3, 2), loaded, strict=False)
