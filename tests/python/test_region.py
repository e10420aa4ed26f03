# SPDX-License-Identifier: MIT
import collections.abc
import errno
import pickle

import pytest

import tshare

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


@pytest.mark.parametrize("key", ["x", "", 3, None, "w\0", "x" * 200, "\ud800"])
def test_region_without_that_key_raises_key_error(region, key):
    with pytest.raises(KeyError):
        region[key]


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
    region = tshare.Region.create(name, SPECS, mode=0o644, persist=True, size=1 << 16)
    info = region.info()
    assert (info.name, info.mode, info.persist) == (name, 0o644, True)
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
def test_region_refuses_a_spec_that_is_none(spec):
    with pytest.raises(TypeError, match="tensors"):
        tshare.Region.create(None, {"t": spec})


@pytest.mark.parametrize("tensors", [3, "abc", [(1, "uint8")]])
def test_region_refuses_tensors_that_are_no_mapping(tensors):
    with pytest.raises(TypeError, match="tensors"):
        tshare.Region.create(None, tensors)


@pytest.mark.parametrize("key", [3, None, b"t"])
def test_region_refuses_a_tensor_s_name_that_is_not_a_str(key):
    with pytest.raises(TypeError, match="tensors"):
        tshare.Region.create(None, {key: (1, "uint8")})


@pytest.mark.parametrize("key", ["a\0b", "x" * 128])
def test_region_refuses_a_tensor_s_name_that_is_none(key):
    with pytest.raises(ValueError, match="name|tensors"):
        tshare.Region.create(None, {key: (1, "uint8")})


@pytest.mark.parametrize("key", ["params/dense/kernel", "/", "a/", ".", "..", "layer.0.weight"])
def test_tensor_s_name_may_be_a_path(key, name):
    tshare.Region.create(name, {key: (1, "uint8"), "other": (1, "uint8")})
    region = tshare.Region.open(name)
    assert list(region) == [key, "other"]
    assert region[key].name == key
    assert pickle.loads(pickle.dumps(region[key])).name == key


@pytest.mark.parametrize("size", [0, -1, 2**63])
def test_region_refuses_a_size_that_is_none(size):
    with pytest.raises(ValueError, match="size"):
        tshare.Region.create(None, size=size)


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
def test_closed_region_says_so(region, use):
    region.close()
    region.close()
    with pytest.raises(ValueError, match="region is closed"):
        use(region)


def test_leaving_the_context_closes_the_region(region):
    with region as same:
        assert same is region
    assert region.closed
    assert "closed" in repr(region)


def test_region_repr_tells_name_and_size(name):
    region = tshare.Region.create(name, SPECS)
    assert repr(region) == f"<tshare.Region name='{name}' size={region.size} tensors=3>"
