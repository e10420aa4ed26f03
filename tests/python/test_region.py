# SPDX-License-Identifier: MIT
import collections.abc
import errno
import functools
import operator
import os
import pickle
import sys
import threading
import types

import pytest

import tshare
from support import need

SPECS = {
    "w": ((3, 4), "float32"),
    "b": (5, "int8"),
    "scale": ((), "float64"),
}


@pytest.fixture
def region():
    return tshare.Region.create(None, SPECS)


def test_region_is_a_mapping_of_names_to_tensors(region):
    assert isinstance(region, collections.abc.Mapping)
    assert len(region) == 3
    assert list(region) == list(region.keys()) == ["w", "b", "scale"]
    assert [t.shape for t in region.values()] == [(3, 4), (5,), ()]
    assert {name: t.dtype for name, t in region.items()} == {
        "w": "float32",
        "b": "int8",
        "scale": "float64",
    }
    assert "w" in region
    assert "x" not in region
    assert 3 not in region
    assert region.get("w").shape == (3, 4)
    assert region.get("x") is None
    assert region.get("x", 5) == 5
    assert dict(**region).keys() == {"w", "b", "scale"}


@pytest.mark.parametrize("key", ["x", "", 3, None, "w\0", "x" * 200, "\ud800", ("w", "b"), ()])
def test_region_without_that_key_raises_key_error(region, key):
    with pytest.raises(KeyError) as caught:
        region[key]
    assert caught.value.args == (key,)


def test_tensors_of_a_region_do_not_overlap(region):
    memoryview(region["b"])[:] = memoryview(b"\1" * 5).cast("b")
    assert bytes(region["w"]) == bytes(48)
    assert bytes(region["scale"]) == bytes(8)


def test_tensors_are_named_as_in_the_region(name):
    region = tshare.Region.create(name, SPECS)
    assert region.name == name
    assert region["w"].name == "w"
    assert region["w"].region.name == name


def test_region_is_found_by_name(name):
    made = tshare.Region.create(name, SPECS)
    found = tshare.Region.open(name)
    assert found.id == made.id
    assert list(found) == list(made)
    memoryview(made["scale"])[()] = 2.5
    assert memoryview(found["scale"])[()] == 2.5


def test_region_opened_readonly_has_readonly_tensors(name):
    made = tshare.Region.create(name, SPECS)
    found = tshare.Region.open(name, readonly=True)
    assert found.readonly
    assert not made.readonly
    assert all(t.readonly for t in found.values())
    assert found.info().readonly


def test_region_is_found_by_descriptor(region):
    found = tshare.Region.from_fd(region.fileno())
    assert found.id == region.id
    assert list(found) == list(region)


def test_region_from_a_tensor_s_descriptor_is_its_region(region):
    assert tshare.Region.from_fd(region["w"]).id == region.id


def test_region_of_none_raises_file_not_found(name):
    with pytest.raises(FileNotFoundError) as caught:
        tshare.Region.open(name)
    assert caught.value.filename == name


def test_region_takes_options(name):
    region = tshare.Region.create(name, SPECS, mode=0o644, lifetime="persist", size=1 << 16)
    info = region.info()
    assert (info.name, info.mode, info.lifetime) == (name, 0o644, "persist")
    assert info.size == region.size == 1 << 16
    assert info.tensor_count == 3
    assert info.id == region.id
    region.unlink()


def test_region_is_whole_pages(region):
    assert region.size > 0
    assert region.size % tshare.limits().page_size == 0


def test_region_backend_is_the_session_s(region, backend):
    assert region.backend == backend


def test_region_of_many_tensors_holds_them_all():
    specs = {f"layer.{i}": ((2, i), "float32") for i in range(500)}
    region = tshare.Region.create(None, specs)
    assert list(region) == list(specs)
    assert region["layer.499"].shape == (2, 499)


def test_an_offset_of_zero_is_the_first_byte():
    region = tshare.Region.create(
        tensors={"a": (4, "uint8"), "b": (2, "uint8", None, 0), "c": (1, "uint8")}
    )
    assert places(region) == {"a": 0, "b": 0, "c": 64}


def test_region_takes_strides_and_offset_in_bytes():
    region = tshare.Region.create(
        None,
        {
            "columns": ((2, 3), "int32", (4, 8), 0),
            "rows": ((3, 2), "int32", None, 0),
            "backwards": (6, "int32", (-4,), 20),
        },
    )
    assert region["columns"].strides == (4, 8)
    assert region["backwards"].strides == (-4,)
    with memoryview(region["rows"]) as rows:
        rows[2, 1] = 5
    assert memoryview(region["columns"])[1, 2] == 5
    assert memoryview(region["backwards"]).tolist() == [5, 0, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ((-1, "uint8"), "shape"),
        (((2**40, 2**40), "uint8"), "shape"),
        ((8192, "uint8", None, 0), "shape"),
        ((2, "uint8", (4096,)), "strides"),
        ((2, "uint8", (-1,), 0), "strides"),
        ((2, "uint8", (2**62,)), "shape|strides"),
        ((2, "int32", (2,)), "strides"),
        ((2, "int32", (4, 4)), "strides"),
        ((2, "float4_e2m1fn", (1,)), "strides"),
        ((1, "uint8", None, 8192), "offset"),
        ((1, "uint8", None, -1), "offset"),
        ((1, "uint8", None, 2**63), "offset"),
        ((1, "nothing"), "dtype"),
    ],
)
def test_region_refuses_a_tensor_that_leaves_it(spec, message):
    with pytest.raises(ValueError, match=message):
        tshare.Region.create(None, {"t": spec}, size=4096)


@pytest.mark.parametrize("spec", [(), (1,), None, [1, "uint8"], (1, "uint8", None, 0, 0)])
def test_region_refuses_invalid_specs(spec):
    with pytest.raises(TypeError, match="tensors"):
        tshare.Region.create(None, {"t": spec})


@pytest.mark.parametrize("tensors", [3, "abc", [(1, "uint8")]])
def test_region_refuses_tensors_that_are_not_a_mapping(tensors):
    with pytest.raises(TypeError, match="tensors"):
        tshare.Region.create(None, tensors)


@pytest.mark.parametrize("key", [3, None, b"t"])
def test_region_refuses_a_tensor_s_name_that_is_not_a_str(key):
    with pytest.raises(TypeError, match="tensors"):
        tshare.Region.create(None, {key: (1, "uint8")})


@pytest.mark.parametrize("key", ["a\0b", "x" * 1024, "é" * 512])
def test_region_refuses_invalid_tensor_names(key):
    with pytest.raises(ValueError, match="name|tensors"):
        tshare.Region.create(None, {key: (1, "uint8")})


@pytest.mark.parametrize("key", ["x" * 1023, "é" * 511 + "x"])
def test_tensor_s_name_has_up_to_1023_bytes(key, name):
    tshare.Region.create(name, {key: (1, "uint8")})
    region = tshare.Region.open(name)
    assert list(region) == [key]
    assert region[key].name == key


def test_long_list_of_tensors_is_the_same_for_those_that_open_it(name):
    specs = {f"{'layer.' * (i % 20)}{i}": ((i % 7,) * (i % 5), "int16") for i in range(20000)}
    tshare.Region.create(name, specs)
    region = tshare.Region.open(name)
    assert len(region) == 20000
    assert list(region) == list(specs)
    assert all(region[key].shape == spec[0] for key, spec in specs.items())
    assert "layer.20000" not in region
    assert region.get("layer.20000") is None


@pytest.mark.parametrize(
    "read",
    [
        lambda r: functools.partial(r.__getitem__, "50000"),
        lambda r: functools.partial(r.__contains__, "none"),
        lambda r: functools.partial(r.get, "50000"),
        lambda r: r.__iter__,
    ],
)
def test_other_threads_run_while_a_long_list_of_tensors_is_read(name, read):
    made = tshare.Region.create(name, {str(i): (1, "uint8") for i in range(96085)})
    turns = []
    done = threading.Event()

    def take_turns():
        while not done.is_set():
            turns.append(None)

    def turns_meanwhile():
        """Return how many there are during a call, which no bytecode of ours surrounds."""
        with tshare.Region.open(name) as region:
            calls = [turns.__len__, read(region), turns.__len__]
            before, _, after = map(operator.call, calls)
        return after - before

    thread = threading.Thread(target=take_turns)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread.start()
    try:
        # On one processor the other thread may get none of a short time.
        assert any(turns_meanwhile() for _ in range(300))
    finally:
        done.set()
        thread.join()
        sys.setswitchinterval(interval)
    assert not made.closed


def test_damaged_list_of_tensors_is_eproto(name, backend):
    if backend == "kmod":
        pytest.skip("the module's lists are not a peer's to write")
    made = tshare.Region.create(name, {str(i): (1, "uint8") for i in range(1000)})
    # The first descriptor is behind the header and the counter.
    os.pwrite(made.fileno(), b"\xff" * 4, 256)
    region = tshare.Region.open(name)
    assert len(region) == 1000
    uses = [
        lambda: region["0"],
        lambda: region.get("999"),
        lambda: "500" in region,
        lambda: list(region),
        lambda: list(region.items()),
    ]
    for use in uses:
        with pytest.raises(OSError, match="damaged") as caught:
            use()
        assert caught.value.errno == errno.EPROTO


@pytest.mark.parametrize("key", ["params/dense/kernel", "/", "a/", ".", "..", "layer.0.weight"])
def test_tensor_s_name_may_be_a_path(key, name):
    tshare.Region.create(name, {key: (1, "uint8"), "other": (1, "uint8")})
    region = tshare.Region.open(name)
    assert list(region) == [key, "other"]
    assert region[key].name == key
    assert pickle.loads(pickle.dumps(tshare.by_name(region[key]))).name == key


@pytest.mark.parametrize("tensors", [None, SPECS])
@pytest.mark.parametrize("size", [0, -1, 2**63])
def test_region_refuses_invalid_size(size, tensors):
    with pytest.raises(ValueError, match="^size: must be between 1 and "):
        tshare.Region.create(None, tensors, size=size)


def test_region_refuses_more_than_there_is_memory():
    with pytest.raises(OSError, match=".") as caught:
        tshare.Region.create(None, size=2**45)
    assert caught.value.errno in (errno.ENOMEM, errno.EDQUOT)


def test_region_needs_tensors_or_a_size():
    with pytest.raises(ValueError, match="size"):
        tshare.Region.create(None)


def test_tensors_outlive_a_closed_region(region):
    t = region["b"]
    region.close()
    assert region.closed
    memoryview(t)[0] = 1
    assert t.region["b"].shape == (5,)


@pytest.mark.parametrize(
    "use",
    [
        len,
        list,
        lambda r: r["w"],
        lambda r: "w" in r,
        lambda r: r.get("w"),
        lambda r: r.name,
        lambda r: r.size,
        lambda r: r.id,
        lambda r: r.readonly,
        lambda r: r.backend,
        lambda r: r.fileno(),
        lambda r: r.info(),
        lambda r: r.unlink(),
        lambda r: r.__enter__(),
    ],
)
def test_closed_region_raises_value_error(region, use):
    region.close()
    region.close()
    with pytest.raises(ValueError, match="region is closed"):
        use(region)


def test_leaving_the_context_closes_the_region(region):
    with region as same:
        assert same is region
    assert region.closed
    assert "closed" in repr(region)


def test_region_repr_has_name_and_size(name):
    region = tshare.Region.create(name, SPECS)
    assert repr(region) == f"<tshare.Region name='{name}' size={region.size} tensors=3>"


NESTED = {
    "params": {"dense": {"kernel": ((2, 3), "float32"), "bias": (3, "float32")}},
    "empty": {},
    "step": ((), "int64"),
}


@pytest.mark.parametrize("kind", [dict, collections.OrderedDict, types.MappingProxyType])
def test_nested_mappings_become_paths(kind, name):
    tshare.Region.create(name, kind(NESTED))
    region = tshare.Region.open(name)
    assert list(region) == ["params/dense/kernel", "params/dense/bias", "step"]
    assert region["params/dense/kernel"].shape == (2, 3)


def test_region_in_a_mapping_is_one_of_its_mappings(region):
    memoryview(region["b"])[2] = 7
    other = tshare.Region.create(None, {"old": region, "new": (1, "uint8")})
    assert list(other) == ["old/w", "old/b", "old/scale", "new"]
    assert memoryview(other["old/b"])[2] == 7


def test_paths_that_meet_are_refused():
    with pytest.raises(ValueError, match="tensors: 'a/b' is the key of two tensors"):
        tshare.Region.create(None, {"a": {"b": (1, "uint8")}, "a/b": (1, "uint8")})


@pytest.mark.parametrize("key", [3, None, b"t"])
def test_keys_of_nested_mappings_are_str(key):
    for tensors in ({"a": {key: (1, "uint8")}}, {key: {"a": (1, "uint8")}}):
        with pytest.raises(TypeError, match="tensors: .* keys must be str"):
            tshare.Region.create(None, tensors)


def test_arrays_with_items_are_arrays():
    pandas = need("pandas")
    region = tshare.Region.create(None, {"s": pandas.Series([1, 2]), "d": pandas.DataFrame([[3]])})
    assert [t.shape for t in region.values()] == [(2,), (1, 1)]


def places(region):
    """Return the place of each tensor in its region."""
    return {name: t.byte_offset for name, t in region.items()}


def test_tied_tensors_are_stored_once():
    weight = bytearray(range(48))
    tensors = {"a": weight, "b": weight, "c": memoryview(weight), "other": bytearray(weight)}
    region = tshare.Region.create(None, tensors)
    assert places(region) == {"a": 0, "b": 0, "c": 0, "other": 64}
    memoryview(region["a"])[5] = 99
    assert memoryview(region["c"])[5] == 99
    assert bytes(region["other"]) == bytes(range(48))


@pytest.mark.parametrize("order", [["whole", "part"], ["part", "whole"]])
def test_part_of_a_tensor_is_stored_in_it(order):
    np = need("numpy")
    whole = np.arange(24, dtype="int32").reshape(4, 6)
    views = {"whole": whole, "part": whole[1:, ::-2]}
    region = tshare.Region.create(None, {name: views[name] for name in order})
    assert places(region) == {"whole": 0, "part": 4 * 11}
    for name, view in views.items():
        assert np.asarray(region[name]).tolist() == view.tolist()
        assert region[name].strides == view.strides
    np.asarray(region["whole"])[1, 5] = 77
    assert np.asarray(region["part"])[0, 0] == 77


def test_transposed_twin_is_stored_once():
    np = need("numpy")
    weight = np.arange(6, dtype="float32").reshape(2, 3)
    region = tshare.Region.create(None, {"out": weight.T, "in": weight})
    assert places(region) == {"out": 0, "in": 0}
    assert np.asarray(region["out"]).tolist() == weight.T.tolist()


def test_twins_with_gaps_are_stored_once():
    np = need("numpy")
    gaps = np.arange(12, dtype="int32").reshape(3, 4)[:, ::2]
    region = tshare.Region.create(None, {"a": gaps, "b": gaps, "c": gaps[1:]})
    assert places(region) == {"a": 0, "b": 0, "c": 64}
    for name in "ab":
        assert np.asarray(region[name]).tolist() == gaps.tolist()
    assert np.asarray(region["c"]).tolist() == gaps[1:].tolist()


def test_tensors_that_overlap_in_part_are_stored_by_themselves():
    data = memoryview(bytearray(range(48)))
    region = tshare.Region.create(None, {"a": data[:32], "b": data[16:], "c": data[20:30]})
    assert places(region) == {"a": 0, "b": 64, "c": 68}
    assert [bytes(t) for t in region.values()] == [
        bytes(v) for v in (data[:32], data[16:], data[20:30])
    ]


def test_tied_tensors_lie_among_others():
    tied = bytearray(b"tied")
    tensors = {
        "x": (100, "uint8"),
        "a": tied,
        "y": (4, "uint8", None, 512),
        "b": tied,
        "z": tied[:],
    }
    region = tshare.Region.create(None, tensors)
    assert places(region) == {"x": 0, "a": 128, "y": 512, "b": 128, "z": 576}
    assert [bytes(region[name]) for name in "abz"] == [b"tied"] * 3


def test_equal_constants_are_not_tied():
    np = need("numpy")
    constant = np.zeros(4)
    constant.flags.writeable = False
    same = b"same"
    region = tshare.Region.create(None, {"a": constant, "b": constant, "c": same, "d": same})
    assert len(set(places(region).values())) == 4


def test_tensors_without_elements_are_not_tied():
    np = need("numpy")
    empty = np.zeros((0, 3))
    region = tshare.Region.create(None, {"a": empty, "b": empty, "c": (1, "uint8")})
    assert [t.shape for t in region.values()] == [(0, 3), (0, 3), (1,)]


@pytest.mark.slow_in_guests
def test_state_of_tied_modules_is_stored_once():
    torch = need("torch")
    embedding, head = torch.nn.Embedding(10, 4), torch.nn.Linear(4, 10)
    head.weight = embedding.weight
    model = torch.nn.ModuleDict({"embedding": embedding, "head": head})
    region = tshare.Region.create(None, model.state_dict())
    offsets = places(region)
    assert offsets["embedding.weight"] == offsets["head.weight"] != offsets["head.bias"]
    for name, parameter in model.state_dict().items():
        assert torch.equal(torch.from_dlpack(region[name]), parameter)
