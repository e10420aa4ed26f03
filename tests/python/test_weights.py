# SPDX-License-Identifier: MIT
"""Files of safetensors, which one process reads for all."""

import contextlib
import errno
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import textwrap
from pathlib import Path

import pytest

import tshare
from checkpoint import BITS, content, describe, join, save, save_shards
from support import need, rounds, run, spawn
from tshare import _safetensors, weights

TENSORS = {
    "a": ("F32", (3, 4)),
    "scalar": ("I64", ()),
    "empty": ("F16", (0, 5)),
    "b": ("U8", (7,)),
}


@pytest.fixture
def path(tmp_path):
    return save(tmp_path / "model.safetensors", TENSORS)


@pytest.fixture
def load(path, name):
    """load() of the file, with a name of this test's."""

    def load(given=None, **options):
        return weights.load(given or path, name, **options)

    return load


def raw(tensor):
    region = tensor.region
    offset = tensor._spec[4]
    with memoryview(region) as view:
        return bytes(view[offset : offset + tensor.nbytes])


def is_free(name):
    """Whether nothing has the name, no draft either."""
    with tshare.create(name, 1) as made:
        made.unlink()
    return True


# What is loaded


def test_load_returns_a_readonly_mapping_of_the_tensors(load):
    loaded = load()
    assert sorted(loaded) == sorted(TENSORS)
    assert len(loaded) == len(TENSORS)
    assert "a" in loaded
    assert "c" not in loaded
    for name, (dtype, shape) in TENSORS.items():
        assert loaded[name].readonly
        assert loaded[name].shape == shape
        assert raw(loaded[name]) == content(dtype, shape)


def test_what_describes_the_files_is_no_tensor(load):
    loaded = load()
    assert "__metadata__" in loaded.region
    assert "__metadata__" not in loaded
    assert "__metadata__" not in list(loaded)
    with pytest.raises(KeyError):
        loaded["__metadata__"]


@pytest.mark.parametrize("dtype", BITS)
def test_each_type_has_the_bytes_that_safetensors_has(tmp_path, name, dtype):
    safetensors = need("safetensors")
    tensors = {"x": (dtype, (3, 8)), "y": (dtype, (8,)), "none": (dtype, (2, 0))}
    path = save(tmp_path / "model.safetensors", tensors)
    expected = dict(safetensors.deserialize(path.read_bytes()))
    loaded = weights.load(path, name)
    assert loaded.keys() == expected.keys()
    for key, tensor in loaded.items():
        assert list(tensor.shape) == expected[key]["shape"]
        assert raw(tensor) == bytes(expected[key]["data"])


def test_type_that_a_library_lacks_is_an_error_at_access(tmp_path, name):
    need("numpy")
    path = save(tmp_path / "model.safetensors", {"x": ("F6_E2M3", (4,)), "y": ("U8", (2,))})
    loaded = weights.load(path, name)
    with pytest.raises(ValueError, match="packed"):
        loaded["x"].numpy()
    assert loaded["y"].numpy().tolist() == [0, 1]


def test_metadata_is_that_of_the_file(tmp_path, name):
    path = save(tmp_path / "model.safetensors", TENSORS, {"format": "pt"})
    assert weights.load(path, name).metadata == {"format": "pt"}


def test_metadata_of_several_files_is_the_first_one_s_first(tmp_path, name):
    save(tmp_path / "m-1-of-2.safetensors", {"a": ("U8", (1,))}, {"format": "pt", "a": "1"})
    save(tmp_path / "m-2-of-2.safetensors", {"b": ("U8", (1,))}, {"format": "np", "b": "2"})
    assert weights.load(tmp_path, name).metadata == {"format": "pt", "a": "1", "b": "2"}


def test_region_has_each_file_unchanged_at_a_multiple_of_2_mib(tmp_path, name):
    save(tmp_path / "m-1-of-2.safetensors", {"a": ("F32", (1000, 700))})
    save(tmp_path / "m-2-of-2.safetensors", {"b": ("I16", (5,))})
    with weights.load(tmp_path, name) as loaded, memoryview(loaded.region) as view:
        for place, file in ((0, "m-1-of-2.safetensors"), (4 << 20, "m-2-of-2.safetensors")):
            expected = (tmp_path / file).read_bytes()
            assert view[place : place + len(expected)] == expected


def test_unaligned_tensor_is_copied_and_reported(tmp_path, name):
    tensors = {"odd": ("U8", (3,)), "x": ("F64", (5,)), "y": ("F16", (2,))}
    path = save(tmp_path / "model.safetensors", tensors)
    loaded = weights.load(path, name)
    assert loaded.copied == ("x", "y")
    for key, (dtype, shape) in tensors.items():
        assert raw(loaded[key]) == content(dtype, shape)
        assert loaded[key]._spec[4] % loaded[key].itemsize == 0
    assert weights.load(path, name).copied == ("x", "y")
    aligned = save(tmp_path / "aligned.safetensors", {"x": ("F64", (5,))})
    assert weights.load(aligned).copied == ()


def test_index_and_folder_lead_to_all_shards(tmp_path, name):
    shards = {"1.safetensors": {"a": ("F32", (3,))}, "2.safetensors": {"b": ("F32", (2,))}}
    index = save_shards(tmp_path, shards)
    by_index = weights.load(index, name)
    assert sorted(by_index) == ["a", "b"]
    assert weights.load(tmp_path, name).region.id == by_index.region.id


def test_files_of_an_index_are_loaded_whole_as_from_pretrained_does(tmp_path, name):
    index = save_shards(tmp_path, {"1.safetensors": {"a": ("F32", (3,))}})
    save(tmp_path / "1.safetensors", {"a": ("F32", (3,)), "b": ("U8", (1,))})
    assert sorted(weights.load(index, name)) == ["a", "b"]


def test_tensor_that_two_files_of_an_index_have_is_refused(tmp_path, name):
    shards = {"1.safetensors": {"a": ("F32", (3,))}, "2.safetensors": {"b": ("F32", (2,))}}
    index = save_shards(tmp_path, shards)
    save(tmp_path / "2.safetensors", {"a": ("U8", (2,)), "b": ("F32", (2,))})
    with pytest.raises(
        ValueError, match=r"2\.safetensors: tensor 'a': is in .*1\.safetensors, too"
    ):
        weights.load(index, name)


def test_file_that_the_index_does_not_name_is_not_read(tmp_path, name):
    index = save_shards(tmp_path, {"1.safetensors": {"a": ("F32", (3,))}})
    (tmp_path / "2.safetensors").write_bytes(b"damaged")
    assert sorted(weights.load(index, name)) == ["a"]


def test_changed_index_is_another(tmp_path, name):
    index = save_shards(tmp_path, {"1.safetensors": {"a": ("F32", (3,))}})
    with weights.load(index, name):
        with pytest.raises(FileExistsError):
            weights.load(touch(index), name)


# Which files of a folder


ONE, TWO = {"a": ("F32", (1,))}, {"b": ("F32", (1,))}
INDEX = "model.safetensors.index.json"

# What is in a folder, each file with a tensor of its own name, and which of it is loaded.
# An index is given as the files that it names.
FOLDERS = {
    "the file before the index": (["model", ("model", "old-1", "old-2")], ["model"]),
    "the file before an index whose shards are gone": (["model", ("model", "-gone")], ["model"]),
    "the index": ([("model", "model-1-of-2", "model-2-of-2")], ["model-1-of-2", "model-2-of-2"]),
    "the file before a variant": (["model", "model.fp16"], ["model"]),
    "the index before a variant's": (
        [("model", "model-1-of-1"), ("model.fp16", "model.fp16-1-of-1")],
        ["model-1-of-1"],
    ),
    "a variant's index": ([("model.fp16", "x.fp16-1-of-1")], ["x.fp16-1-of-1"]),
    "an adapter beside a model": (
        ["model", "adapter_model", "adapter_config.json", "config.json"],
        ["model"],
    ),
    "an adapter alone": (["adapter_model", "adapter_config.json"], ["adapter_model"]),
    "consolidated beside the file": (["consolidated", "model"], ["model"]),
    "consolidated beside the index": (
        ["consolidated", ("model", "model-1-of-1")],
        ["model-1-of-1"],
    ),
    "consolidated, with an index of its own": (
        [("consolidated", "consolidated-1-of-1"), ("model", "model-1-of-1")],
        ["model-1-of-1"],
    ),
    "consolidated alone": (["consolidated"], ["consolidated"]),
    "shards without an index": (["model-1-of-2", "model-2-of-2"], ["model-1-of-2", "model-2-of-2"]),
    "safetensors before pickles": (["model", "pytorch_model.bin"], ["model"]),
    "what config.json names": (["model", "other", ("config.json", "other")], ["other"]),
}


def make_folder(folder, content):
    """Make what an entry of FOLDERS or UNCLEAR lists."""
    for what in content:
        stem, *shards = [what] if isinstance(what, str) else what
        if stem == "config.json":
            named = {"transformers_weights": f"{shards[0]}.safetensors"} if shards else {}
            (folder / stem).write_text(json.dumps(named))
        elif stem.endswith((".json", ".bin")):
            (folder / stem).write_text("{}")
        elif not shards:
            save(folder / f"{stem}.safetensors", {stem: ("U8", (1,))})
        else:
            places = {shard: f"{shard}.safetensors" for shard in shards}
            stem, _, variant = stem.partition(".")
            index = ".".join(
                [stem, "safetensors", "index", *([variant] if variant else []), "json"]
            )
            (folder / index).write_text(json.dumps({"metadata": {}, "weight_map": places}))
            for shard in shards:
                if not shard.startswith("-"):
                    save(folder / places[shard], {shard: ("U8", (1,))})


@pytest.mark.parametrize("kind", FOLDERS)
def test_folder_is_what_from_pretrained_loads(tmp_path, name, kind):
    content, expected = FOLDERS[kind]
    make_folder(tmp_path, content)
    assert sorted(weights.load(tmp_path, name)) == expected


# What is in a folder, and what the error names.
UNCLEAR = {
    "two files": (["x", "y"], "x.safetensors, y.safetensors"),
    "a file and an index of others": (
        ["consolidated", ("x", "x-1-of-1")],
        "x.safetensors.index.json, consolidated.safetensors",
    ),
    "two indexes": (
        [("x", "x-1-of-1"), ("x.fp16", "x.fp16-1-of-1")],
        "x.safetensors.index.fp16.json, x.safetensors.index.json",
    ),
    "shards and a file": (
        ["consolidated", "model-1-of-2", "model-2-of-2"],
        "consolidated.safetensors, model-1-of-2.safetensors",
    ),
    "two sets of shards": (
        ["model-1-of-1", "model-1-of-1.fp16"],
        "model-1-of-1.fp16.safetensors, model-1-of-1.safetensors",
    ),
    "variants alone": (["x.bf16", "x.fp16"], "x.bf16.safetensors, x.fp16.safetensors"),
    "a pickle that from_pretrained() would load": (
        ["consolidated", "pytorch_model.bin"],
        "consolidated.safetensors, pytorch_model.bin",
    ),
    "a model that an adapter's folder isn't": (
        ["adapter_config.json", "adapter_model", "model"],
        "adapter_model.safetensors, model.safetensors",
    ),
}


@pytest.mark.parametrize("kind", UNCLEAR)
def test_folder_with_several_models_is_refused(tmp_path, name, kind):
    content, named = UNCLEAR[kind]
    make_folder(tmp_path, content)
    text = f"{tmp_path}: has several models: {named} (pass the path of one)"
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        weights.load(tmp_path, name)


def test_shard_that_is_missing_without_an_index_is_an_error(tmp_path, name):
    make_folder(tmp_path, ["model-1-of-3", "model-3-of-3"])
    with pytest.raises(FileNotFoundError, match="has 2 of 3 files, and no index") as caught:
        weights.load(tmp_path, name)
    assert caught.value.filename == str(tmp_path / "model-1-of-3.safetensors")


def test_link_to_nothing_is_no_file_of_the_folder_as_for_transformers(tmp_path, name):
    make_folder(tmp_path, [("model", "model-1-of-1")])
    (tmp_path / "model.safetensors").symlink_to("none")
    assert sorted(weights.load(tmp_path, name)) == ["model-1-of-1"]


def test_folder_of_pickles_alone_names_them(tmp_path, name):
    make_folder(tmp_path, ["pytorch_model.bin"])
    with pytest.raises(FileNotFoundError, match=r"\(pytorch_model\.bin is of another format\)"):
        weights.load(tmp_path, name)


@pytest.mark.parametrize("bad", [5, "../model.safetensors", "x/y.safetensors", "adapter_model.bin"])
def test_file_that_config_names_must_be_one_of_the_folder_s(tmp_path, name, bad):
    make_folder(tmp_path, ["model"])
    (tmp_path / "config.json").write_text(json.dumps({"transformers_weights": bad}))
    with pytest.raises(ValueError, match=r"config\.json: transformers_weights: must be "):
        weights.load(tmp_path, name)


@pytest.mark.parametrize(
    "index", ["model.safetensors.index.json", "model.safetensors.index.fp16.json"]
)
def test_path_of_an_index_is_what_it_names(tmp_path, name, index):
    save_shards(tmp_path, {"1.safetensors": ONE}).rename(tmp_path / index)
    save(tmp_path / "model.safetensors", TWO)
    assert sorted(weights.load(tmp_path / index, name)) == ["a"]


def test_file_that_no_index_names_makes_no_difference(tmp_path):
    save_shards(tmp_path, {"1.safetensors": ONE})
    with weights.load(tmp_path) as loaded:
        save(tmp_path / "other.safetensors", TWO)
        assert weights.load(tmp_path).region.id == loaded.region.id


@pytest.mark.parametrize("with_index", [False, True])
def test_attributes_that_macos_keeps_of_files_are_no_files(tmp_path, name, with_index):
    if with_index:
        index = save_shards(tmp_path, {"model.safetensors": {"a": ("F32", (3,))}})
        (tmp_path / f"._{index.name}").write_bytes(b"\0\5\x16\7")
    else:
        save(tmp_path / "model.safetensors", {"a": ("F32", (3,))})
    with weights.load(tmp_path, name) as loaded:
        (tmp_path / "._model.safetensors").write_bytes(b"\0\5\x16\7")
        # The same files: that one is none of them.
        assert weights.load(tmp_path, name).region.id == loaded.region.id


def test_hidden_file_is_one_of_the_folder_s(tmp_path, name):
    save(tmp_path / ".model.safetensors", {"a": ("F32", (3,))})
    assert sorted(weights.load(tmp_path, name)) == ["a"]


def test_tensor_without_elements_is_never_copied(tmp_path, name):
    tensors = {"odd": ("U8", (3,)), "none": ("F64", (0,))}
    loaded = weights.load(save(tmp_path / "model.safetensors", tensors), name)
    assert loaded.copied == ()
    assert loaded["none"].shape == (0,)


def test_what_only_leaves_out_is_not_read(tmp_path, name):
    mib = 1 << 20
    tensors = {"a": ("U8", (mib,)), "b": ("F32", (16,)), "c": ("U8", (mib,)), "d": ("I16", (3,))}
    path = save(tmp_path / "model.safetensors", tensors)
    counts = []
    loaded = weights.load(path, name, only=["b", "d"], progress=lambda *n: counts.append(n))
    assert sorted(loaded) == ["b", "d"]
    assert raw(loaded["b"]) == content("F32", (16,))
    assert raw(loaded["d"]) == content("I16", (3,))
    done, total = counts[-1]
    assert done == total < 20_000
    with pytest.raises(FileExistsError):
        weights.load(path, name)


@pytest.mark.parametrize(("between", "parts"), [(60_000, 1), (80_000, 2)])
def test_what_is_close_is_read_at_once(tmp_path, name, between, parts):
    tensors = {"a": ("U8", (8,)), "between": ("U8", (between,)), "b": ("U8", (8,))}
    path = save(tmp_path / "model.safetensors", tensors)
    counts = []
    with weights.load(path, name, only=["a", "b"], progress=lambda *n: counts.append(n)) as loaded:
        assert raw(loaded["a"]) == raw(loaded["b"]) == content("U8", (8,))
    assert len(counts) == parts
    assert (counts[-1][1] == path.stat().st_size) == (parts == 1)


@pytest.mark.slow_in_guests
def test_many_tensors_fit(tmp_path, name):
    tensors = {f"model.layers.{i}.weight": ("U8", (1,), b"x") for i in range(207_360)}
    header = {
        key: {"dtype": "U8", "shape": [1], "data_offsets": [i, i + 1]}
        for i, key in enumerate(tensors)
    }
    path = tmp_path / "model.safetensors"
    path.write_bytes(join(header, b"x" * len(tensors)))
    with weights.load(path, name):
        loaded = weights.load(path, name)
        assert len(loaded) == len(tensors)
        assert bytes(loaded["model.layers.207359.weight"]) == b"x"


@pytest.mark.slow_in_guests
def test_more_tensors_than_a_region_has_are_an_error_that_names_the_file(path, name, monkeypatch):
    class Full:
        """A region of one tensor too many."""

        open = tshare.Region.open

        @staticmethod
        def create(name, specs, **options):
            many = {str(i): (0, "uint8") for i in range(1 << 20)}
            return tshare.Region.create(name, many | specs, **options)

    monkeypatch.setattr(weights, "Region", Full)
    with pytest.raises(
        ValueError, match=r"tensors: 1048581 tensors are more than 1048576$"
    ) as caught:
        weights.load(path, name)
    assert str(caught.value).startswith(f"{path}: ")


# One copy for all


def test_second_load_has_the_same_memory_and_reads_nothing(load):
    counts = []
    first = load(progress=lambda *n: counts.append(n))
    assert counts[-1][0] == counts[-1][1]
    counts.clear()
    second = load(progress=lambda *n: counts.append(n))
    assert second.region.id == first.region.id
    assert not counts
    assert second.region.readonly


def test_default_name_is_of_the_files_and_of_only(path):
    with weights.load(path) as first, weights.load(path) as second:
        assert first.region.id == second.region.id
        assert "model.safetensors" in first.region.name
        with weights.load(path, only=["a"]) as part:
            assert part.region.name != first.region.name
        save(path, {"a": ("U8", (1,))})
        with weights.load(path) as changed:
            assert changed.region.name != first.region.name


def test_name_goes_with_its_last_user(path, name):
    first, second = weights.load(path, name), weights.load(path, name)
    first.close()
    assert tshare.Region.open(name, readonly=True).info().lifetime == "users"
    tensor = second["a"]
    second.close()
    assert tshare.Region.open(name, readonly=True)
    del tensor
    assert is_free(name)


def test_persistent_name_stays(path, name):
    weights.load(path, name, lifetime="persist").close()
    assert tshare.Region.open(name, readonly=True).info().lifetime == "persist"
    tshare.unlink(name)


def test_name_of_other_files_is_taken_unless_replaced(tmp_path, load, name):
    old = load()
    other = save(tmp_path / "other.safetensors", {"z": ("U8", (3,))})
    with pytest.raises(FileExistsError) as caught:
        load(other)
    assert caught.value.filename == name
    new = load(other, replace=True)
    assert list(new) == ["z"]
    assert raw(old["a"]) == content("F32", (3, 4))
    assert load(other).region.id == new.region.id


def touch(path):
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1_000_000_000))
    return path


def replace_by_a_copy(path):
    return shutil.copy2(path, path.with_name("copy")).replace(path)


def rename(path):
    return path.rename(path.with_name("other.safetensors"))


@pytest.mark.parametrize("change", [touch, replace_by_a_copy, rename])
def test_file_that_was_changed_is_another(path, name, change):
    with weights.load(path, name):
        with pytest.raises(FileExistsError):
            weights.load(change(path), name)


def test_refused_region_is_not_held_by_the_error(load, name):
    with tshare.create(name, 3, lifetime="users"), pytest.raises(FileExistsError) as caught:
        load()
    assert caught.value.__traceback__
    assert is_free(name)


def test_name_of_another_region_is_taken_unless_replaced(load, name):
    with tshare.create(name, 3):
        with pytest.raises(FileExistsError):
            load()
        assert sorted(load(replace=True)) == sorted(TENSORS)


MANIFEST = {"identity": "", "metadata": {}, "copied": [], "places": {}, "sha256": {}}


@pytest.mark.parametrize(
    "manifest",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[" * 100_000,
        b"[]",
        *(MANIFEST | {key: 5} for key in MANIFEST),
        MANIFEST | {"metadata": {"format": 5}},
        MANIFEST | {"copied": [5]},
        MANIFEST | {"places": {"model.safetensors": [0]}},
        MANIFEST | {"places": {"model.safetensors": ["0", "9"]}},
        MANIFEST | {"places": {"model.safetensors": [-9, 9]}},
        MANIFEST | {"sha256": {"model.safetensors": None}},
    ],
)
def test_region_that_says_other_things_of_itself_is_no_region_of_weights(load, name, manifest):
    text = manifest if isinstance(manifest, bytes) else json.dumps(manifest).encode()
    with tshare.Region.create(name, {"__metadata__": (len(text), "uint8")}) as region:
        with memoryview(region["__metadata__"]) as view:
            view[:] = text
        with pytest.raises(ValueError, match=f"^name: '{name}' is no region of weights$"):
            weights.open(name)
        with pytest.raises(FileExistsError):
            load()
        assert sorted(load(replace=True)) == sorted(TENSORS)


def test_metadata_of_another_type_is_not_that_of_weights(name):
    with tshare.Region.create(name, {"__metadata__": (4, "float4_e2m1fn")}) as region:
        with pytest.raises(ValueError, match="is no region of weights"):
            weights.open(name)
        with pytest.raises(ValueError, match="^region: is no region of weights"):
            weights.Weights(region)


def test_loaded_tensors_travel(load, travel):
    loaded = load()
    arrived = travel(loaded)
    assert arrived.region.id == loaded.region.id
    assert raw(arrived["a"]) == raw(loaded["a"])
    assert raw(travel(loaded["b"])) == content("U8", (7,))


# Opens the session while it may, and becomes another user then.
OTHER_USER = """
import os, sys
import tshare

tshare.backend()
tshare.list()
os.setgroups([])
os.setgid(64001)
os.setuid(64001)
"""


def need_root():
    if os.geteuid():
        pytest.skip("needs root, to be two users")


@contextlib.contextmanager
def made_by_another_user(name, mode, draft=False):
    """While another user has a region of that name, which is none of weights."""
    code = """
    region = tshare.create(sys.argv[1], 3, mode=int(sys.argv[2]), draft=sys.argv[3] == "True")
    print("made", flush=True)
    sys.stdin.readline()
    """
    other = spawn(OTHER_USER + textwrap.dedent(code), name, mode, draft)
    assert other.stdout.readline() == "made\n"
    yield
    other.communicate("\n", timeout=300)


@pytest.mark.parametrize(("mode", "expected"), [(0o600, "none"), (0o644, "read")])
def test_mode_decides_whether_others_read(load, name, mode, expected):
    need_root()
    loaded = load(mode=mode)
    code = """
    try:
        with tshare.Region.open(sys.argv[1], readonly=True) as region:
            print("read" if bytes(region["b"]) == bytes(range(7)) else "wrong")
    except PermissionError:
        print("none")
    try:
        tshare.Region.open(sys.argv[1])
    except PermissionError:
        sys.exit()
    print("write")
    """
    assert run(OTHER_USER + textwrap.dedent(code), name) == expected
    loaded.close()


def test_region_of_another_user_is_not_taken_for_the_files(path, load, name):
    need_root()
    with made_by_another_user(name, 0o666):
        for replace in (False, True):
            with pytest.raises(PermissionError, match="another user's") as caught:
                load(replace=replace)
            assert caught.value.filename == name


def test_region_of_the_user_who_owns_the_files_is_as_good_as_they(path, load, name):
    need_root()
    os.chown(path, 64001, 64001)
    # It is looked at, and found to hold something else.
    with made_by_another_user(name, 0o644), pytest.raises(FileExistsError):
        load()


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o604])
def test_default_name_has_the_user_unless_others_may_read(path, mode):
    with weights.load(path, mode=mode) as loaded:
        is_own = loaded.region.name.startswith(f"weights-{os.geteuid()}-")
        assert is_own == (mode == 0o600)


@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_draft_of_another_user_is_not_waited_for(load, name, mode):
    need_root()
    with made_by_another_user(name, mode, draft=True):
        with pytest.raises(PermissionError, match="draft of this name is another user's") as caught:
            load()
        assert caught.value.filename == name
    assert sorted(load()) == sorted(TENSORS)


# A user who may not see the draft of another one's.
STRANGER = """
try:
    weights.load(sys.argv[1], sys.argv[2], mode=0o644)
except PermissionError as error:
    print(error.filename)
"""


def test_draft_that_can_not_be_seen_is_not_waited_for(tmp_path, name):
    need_root()
    with tempfile.TemporaryDirectory(prefix="weights-", dir="/var/tmp") as folder:
        os.chmod(folder, 0o755)
        path = save(Path(folder) / "model.safetensors", TENSORS)
        path.chmod(0o644)
        os.chown(path, 64001, 64001)
        with tshare.Region.create(name, size=1, draft=True):
            code = "from tshare import weights\n" + OTHER_USER + STRANGER
            assert run(code, path, name) == name


# Prints whether it has read the file, how many bytes its read calls have brought, and a digest.
WORKER = """
import hashlib, sys
from tshare import weights

def bytes_read():
    with open("/proc/self/io") as file:
        return int(file.readline().removeprefix("rchar: "))

reads = []
path, name, replace = sys.argv[1:]
print("ready", flush=True)
sys.stdin.readline()
before = bytes_read()
loaded = weights.load(path, name, replace=replace == "replace", progress=lambda *n: reads.append(n))
count = bytes_read() - before
region = loaded.region
digest = hashlib.sha256(memoryview(region["__metadata__"]))
for key in sorted(loaded):
    digest.update(bytes(loaded[key]))
print(bool(reads), count, digest.hexdigest(), flush=True)
sys.stdin.readline()
"""


def start_workers(count, path, name, replace=""):
    workers = [spawn(WORKER, path, name, replace) for _ in range(count)]
    for worker in workers:
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        worker.stdin.write("\n")
        worker.stdin.flush()
    return workers


def test_of_workers_that_start_at_once_one_reads(tmp_path, new_name):
    path = save(tmp_path / "model.safetensors", {"x": ("U8", (5 << 20,), os.urandom(5 << 20))})
    size = path.stat().st_size
    for _ in range(rounds(4, long=100)):
        name = new_name()
        workers = start_workers(8, path, name)
        lines = [worker.stdout.readline().split() for worker in workers]
        for worker in workers:
            worker.communicate("\n", timeout=300)
        assert [line[0] for line in lines].count("True") == 1
        # Each may have read the header, to lay a region out before it found that another has.
        assert size <= sum(int(line[1]) for line in lines) < size + (1 << 20)
        assert len({line[2] for line in lines}) == 1
        assert is_free(name)


SLOW = """
import os, sys, time
from tshare import weights

def progress(done, total):
    print("reading", flush=True)
    sys.stdin.readline()

weights.load(sys.argv[1], sys.argv[2], progress=progress)
"""


def test_killed_loader_is_replaced_by_another(path, name):
    expected = content("F32", (3, 4))
    for _ in range(rounds(4)):
        loader = spawn(SLOW, path, name)
        assert loader.stdout.readline() == "reading\n"
        with pytest.raises(BlockingIOError):
            tshare.Region.open(name)
        worker = start_workers(1, path, name)[0]
        loader.send_signal(signal.SIGKILL)
        loader.communicate(timeout=300)
        assert worker.stdout.readline().startswith("True ")
        assert raw(weights.load(path, name)["a"]) == expected
        worker.communicate("\n", timeout=300)
        assert is_free(name)


def test_draft_that_ends_before_load_waits_for_it_is_not_waited_for(path, name, monkeypatch):
    draft = tshare.Region.create(name, size=1, draft=True)

    class Ending:
        """A region whose draft ends just after it was found."""

        create, from_fd = tshare.Region.create, tshare.Region.from_fd

        @staticmethod
        def open(*arguments, **options):
            try:
                return tshare.Region.open(*arguments, **options)
            except BlockingIOError:
                draft.close()
                raise

    monkeypatch.setattr(weights, "Region", Ending)
    assert raw(weights.load(path, name)["a"]) == content("F32", (3, 4))
    assert draft.closed


@pytest.fixture
def shared():
    """The folder of the names on shared memory; None on the module, which frees them itself."""
    folder = os.environ.get("TSHARE_SHM_DIR", "/dev/shm")
    return folder if tshare.backend() == "shm" else None


# Says why it can't load.
REFUSED = """
try:
    weights.load(sys.argv[1], sys.argv[2], mode=0o644)
except FileExistsError as error:
    print(error.filename, error.strerror)
"""


@pytest.mark.parametrize("mode", ["0o600", "0o644"])
def test_what_a_killed_loader_of_another_user_leaves_is_an_error(name, shared, mode):
    need_root()
    if shared is None:
        pytest.skip("the module removes what a killed process leaves")
    with (
        tempfile.TemporaryDirectory(prefix="weights-", dir="/var/tmp") as folder,
        tempfile.TemporaryDirectory(dir=shared) as sticky,
    ):
        os.chmod(folder, 0o755)
        os.chmod(sticky, 0o1777)
        path = save(Path(folder) / "model.safetensors", TENSORS)
        path.chmod(0o644)
        environment = {**os.environ, "TSHARE_SHM_DIR": sticky}
        # What is imported on the way may be out of the other user's reach.
        load = "import sys\nfrom tshare import weights\nweights.load(sys.argv[1]).close()\n"
        slow = SLOW.replace("progress=", f"mode={mode}, progress=")
        loader = spawn(slow, path, name, env=environment)
        assert loader.stdout.readline() == "reading\n"
        # Before the loader's end: as root it would still remove what that leaves.
        ready = 'print("ready", flush=True)\nsys.stdin.readline()\n'
        other = spawn(load + OTHER_USER + ready + REFUSED, path, name, env=environment)
        assert other.stdout.readline() == "ready\n"
        loader.kill()
        loader.communicate(timeout=300)
        said = other.communicate("\n", timeout=60)[0].strip()
        assert said.startswith(f"{name} ")
        assert said.endswith("only its user can remove it")
        # A user who may remove it loads in its place.
        assert run(load + REFUSED, path, name, env=environment) == ""
        assert not os.listdir(sticky)


@pytest.mark.parametrize("replace", [False, True])
def test_place_of_a_draft_that_something_else_has_is_an_error(
    load, name, shared, tmp_path, replace
):
    if shared is None:
        pytest.skip("the module's names are not in a folder")
    other = load(save(tmp_path / "other.safetensors", TENSORS)) if replace else None
    place = Path(shared) / f"tshare.{name}" / "next"
    place.parent.mkdir(exist_ok=True)
    place.touch()
    try:
        with pytest.raises(FileExistsError, match="which is no region's; remove that") as caught:
            load(replace=replace)
        assert caught.value.filename == name
    finally:
        place.unlink()
    assert sorted(load(replace=replace)) == sorted(TENSORS)
    if other:
        other.close()


def test_draft_that_is_made_just_before_load_makes_one_is_waited_for(path, name, monkeypatch):
    draft = tshare.Region.create(name, size=1, draft=True)
    looks = []

    class Late:
        """A region of which load() looks just before its draft is made, two times."""

        create, from_fd = tshare.Region.create, tshare.Region.from_fd

        @staticmethod
        def open(*arguments, **options):
            if "wait" not in options:
                looks.append(options)
                if len(looks) in (1, 3):
                    raise FileNotFoundError
                if len(looks) == 5:
                    draft.close()
            return tshare.Region.open(*arguments, **options)

    monkeypatch.setattr(weights, "Region", Late)
    monkeypatch.setattr(weights, "_LOOK_AGAIN", 0.05)
    assert raw(weights.load(path, name)["a"]) == content("F32", (3, 4))
    assert draft.closed


def test_draft_that_is_to_replace_a_region_is_waited_for(tmp_path, path, name, monkeypatch):
    other = weights.load(save(tmp_path / "other.safetensors", TENSORS), name)
    draft = tshare.Region.create(name, size=1, draft=True, exist_ok=True)
    tries = []

    class Late:
        """A region whose draft ends when load() has waited for it twice."""

        open, from_fd = tshare.Region.open, tshare.Region.from_fd

        @staticmethod
        def create(*arguments, **options):
            tries.append(options)
            if len(tries) == 3:
                draft.close()
            return tshare.Region.create(*arguments, **options)

    monkeypatch.setattr(weights, "Region", Late)
    monkeypatch.setattr(weights, "_LOOK_AGAIN", 0.05)
    with weights.load(path, name, replace=True) as loaded:
        assert loaded.region.id != other.region.id
    assert draft.closed
    other.close()


def test_a_maker_that_comes_when_another_has_died_is_waited_for(tmp_path, name, monkeypatch):
    path = save(tmp_path / "model.safetensors", {"x": ("U8", (4,), b"1234")})
    look, drafts, ends = weights._look, [], iter([False, True])

    def look_too_early(*arguments):
        found = look(*arguments)
        if len(drafts) < 2:
            drafts.append(tshare.Region.create(name, size=1, draft=True))
        return found

    def see_it_end(*_):
        drafts[-1].unlink()
        drafts[-1].close()
        return next(ends)

    monkeypatch.setattr(weights, "_look", look_too_early)
    monkeypatch.setattr(weights, "_await_other", see_it_end)
    with weights.load(path, name) as loaded:
        assert bytes(loaded["x"].numpy()) == b"1234"
    assert len(drafts) == 2


def test_loaders_killed_at_random_leave_nothing_half_read(tmp_path, name):
    data = os.urandom(6 << 20)
    path = save(tmp_path / "model.safetensors", {"x": ("U8", (6 << 20,), data)})
    for i in range(rounds(8)):
        workers = start_workers(3, path, name)
        victim = random.Random(i).choice(workers)
        with contextlib.suppress(subprocess.TimeoutExpired):
            victim.wait(random.Random(i).random() / 20)
        victim.kill()
        for worker in workers:
            if worker is not victim:
                assert worker.stdout.readline()
        with weights.load(path, name) as loaded:
            assert raw(loaded["x"]) == data
        for worker in workers:
            worker.communicate("\n", timeout=300)
        assert is_free(name)


COMPUTER = """
import sys, time
import tshare
from tshare import weights

name, end = sys.argv[1:]
region = tshare.Region.open(name, readonly=True, wait=300)
seen = []
print("ready", flush=True)
while True:
    values = set(bytes(region["x"])) | set(bytes(region["y"]))
    assert len(values) == 1, values
    value = values.pop()
    if value == int(end):
        break
    try:
        region = tshare.Region.open(name, readonly=True, wait=0.01, other_than=region)
    except TimeoutError:
        pass
print("done", flush=True)
"""


def test_each_result_under_replace_is_of_one_version(tmp_path, name):
    def version(number):
        data = bytes([number]) * 300_000
        tensors = {"x": ("U8", (300_000,), data), "y": ("U8", (300_000,), data)}
        return save(tmp_path / f"{number}.safetensors", tensors)

    last = rounds(20)
    loaded = weights.load(version(1), name)
    workers = [spawn(COMPUTER, name, last) for _ in range(8)]
    for worker in workers:
        assert worker.stdout.readline() == "ready\n"
    for number in range(2, last + 1):
        loaded = weights.load(version(number), name, replace=True)
    for worker in workers:
        output, _ = worker.communicate(timeout=300)
        assert (worker.returncode, output) == (0, "done\n")
    loaded.close()
    assert is_free(name)


def test_waiting_replacers_agree_on_one(path, tmp_path, name):
    old = weights.load(path, name)
    other = save(tmp_path / "other.safetensors", {"z": ("U8", (5 << 20,), bytes(5 << 20))})
    workers = start_workers(4, other, name, "replace")
    lines = [worker.stdout.readline().split() for worker in workers]
    for worker in workers:
        worker.communicate("\n", timeout=300)
    assert [line[0] for line in lines].count("True") == 1
    assert sorted(old) == sorted(TENSORS)


@pytest.mark.parametrize("size", [1, 9 << 20])
def test_progress_counts_up_and_no_count_comes_twice(tmp_path, name, size):
    for file in "12":
        save(tmp_path / f"m-{file}-of-2.safetensors", {file: ("U8", (size,), bytes(size))})
    counts = []
    with weights.load(tmp_path, name, progress=lambda *count: counts.append(count)):
        pass
    total = sum(file.stat().st_size for file in tmp_path.iterdir())
    assert counts == sorted(set(counts))
    assert {count[1] for count in counts} == {total}
    assert counts[-1] == (total, total)


# Digests


def test_sha256_is_checked_by_the_reader_and_by_others(path, load):
    right = hashlib.sha256(path.read_bytes()).hexdigest()
    with pytest.raises(ValueError, match=r"model\.safetensors: its SHA-256 is"):
        load(sha256="0" * 64)
    loaded = load()
    with pytest.raises(ValueError, match=r"model\.safetensors: its SHA-256 is"):
        load(sha256="0" * 64)
    assert load(sha256=right).region.id == loaded.region.id
    loaded = load(sha256={"model.safetensors": right.upper()})


@pytest.mark.parametrize("sha256", ["12", {"other": "0" * 64}, {"model.safetensors": "x" * 64}])
def test_sha256_must_be_one_of_a_file(load, sha256):
    with pytest.raises(ValueError, match="^sha256: "):
        load(sha256=sha256)
    with pytest.raises(ValueError, match="^sha256: "):
        load(sha256="0" * 64, only=["a"])


# Bad input


def entry(dtype="U8", shape=(4,), offsets=(0, 4)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


BAD = {
    "too short": (b"abc", "too short"),
    "header beyond the end": ((1000).to_bytes(8, "little") + b"{}", "header: the file ends"),
    "header too long": ((100_000_001).to_bytes(8, "little") + b"{}", "more than 100000000"),
    "no UTF-8": (join(b'{"\xff": 1}', b""), "not UTF-8"),
    "no JSON": (join(b"{", b""), "no JSON"),
    "NaN": (join(b'{"x": NaN}', b""), "NaN is not JSON"),
    "nested": (join(b"[" * 100_000, b""), "no JSON"),
    "minus zero": (
        join(b'{"x": {"dtype": "U8", "shape": [-0], "data_offsets": [0, 0]}}', b""),
        "tensor 'x': shape: must be",
    ),
    "no object": (join(b"[]", b""), "must be a JSON object"),
    "duplicate": (join(b'{"x": 1, "x": 1}', b""), "'x' stands there twice"),
    "metadata": (join({"__metadata__": {"x": 1}}, b""), "__metadata__: must be"),
    "metadata's key": (join(b'{"__metadata__": {"\\ud800": "x"}}', b""), "not Unicode text"),
    "metadata's text": (join(b'{"__metadata__": {"x": "\\ud800"}}', b""), "not Unicode text"),
    "no tensor": (join({"x": 5}, b""), "tensor 'x': must be an object"),
    "no dtype": (join({"x": {"shape": []}}, b""), "tensor 'x': dtype: None"),
    "dtype": (join({"x": entry("F128")}, b"1234"), "tensor 'x': dtype: 'F128' is unknown"),
    "shape": (join({"x": entry(shape=(-4,))}, b"1234"), "tensor 'x': shape: must be"),
    "shape of bools": (join({"x": entry(shape=(True,))}, b"1"), "tensor 'x': shape: must be"),
    "dimensions": (join({"x": entry(shape=[1] * 33)}, b"1"), "more than 32 dimensions"),
    "offsets": (join({"x": entry(offsets=(0,))}, b"1234"), "tensor 'x': data_offsets: must"),
    "backwards": (join({"x": entry(offsets=(4, 0))}, b"1234"), "data_offsets: .* not inside"),
    "beyond": (join({"x": entry(offsets=(0, 8))}, b"1234"), "data_offsets: .* not inside"),
    "truncated": (join({"x": entry()}, b"123"), "data_offsets: .* not inside"),
    "size": (join({"x": entry(shape=(3,))}, b"1234"), "tensor 'x': shape: .* are not the 4 bytes"),
    "overflow": (join({"x": entry(shape=(1 << 62, 4))}, b"1234"), "more elements than can be"),
    "empty overflow": (
        join({"x": entry(shape=(0, 1 << 62, 4), offsets=(0, 0))}, b""),
        "more elements than can be",
    ),
    "hole": (join({"x": entry(), "y": entry(offsets=(5, 9))}, b"123456789"), "'y': .* a hole"),
    "overlap": (join({"x": entry(), "y": entry(offsets=(3, 7))}, b"1234567"), "'y': .* overlaps"),
    "rest": (join({"x": entry()}, b"12345"), "1 bytes at the end are no tensor's"),
    "long name": (join({"x" * 1024: entry()}, b"1234"), "its name must have 1 to 1023 bytes"),
    "empty name": (join({"": entry()}, b"1234"), "its name must have"),
    "NUL": (join({"x\0": entry()}, b"1234"), "its name must have"),
    "surrogate": (join(b'{"\\ud800": 1}', b""), "its name is not Unicode"),
}


@pytest.mark.parametrize("bad", BAD)
def test_damaged_file_is_named_and_leaves_nothing(tmp_path, name, bad):
    file, text = BAD[bad]
    path = tmp_path / "bad.safetensors"
    path.write_bytes(file)
    with pytest.raises(ValueError, match=text) as caught:
        weights.load(path, name)
    assert str(caught.value).startswith(f"{path}: ")
    assert is_free(name)


LONG = 1_000_000


@pytest.mark.parametrize(
    "header",
    [
        {"x" * LONG: entry()},
        {"x": entry(dtype="F" * LONG)},
        {"x": entry(shape=[-1] * LONG)},
        {"x": entry(offsets=[0] * LONG)},
        b'{"' + 2 * (b"x" * LONG + b'": 1, "') + b'": 1}',
        {"__metadata__": {"x": "\ud800" * LONG}},
    ],
    ids=["name", "dtype", "shape", "data_offsets", "twice", "metadata"],
)
def test_error_is_short_whatever_the_header_holds(tmp_path, name, header):
    path = tmp_path / "model.safetensors"
    path.write_bytes(join(header, b"1234"))
    with pytest.raises(ValueError, match=r"^[^\n]*model\.safetensors: ") as caught:
        weights.load(path, name)
    assert len(str(caught.value)) < len(str(path)) + 500


@pytest.mark.parametrize(
    "places", [{"a": "F" * LONG}, {"a": "F" * LONG + ".safetensors"}, {"x" * LONG: "a.safetensors"}]
)
def test_error_is_short_whatever_the_index_holds(tmp_path, name, places):
    index = save_shards(tmp_path, {"a.safetensors": {}}, places.items())
    with pytest.raises(ValueError, match="safetensors") as caught:
        weights.load(index, name)
    assert len(str(caught.value)) < len(str(index)) + 500


def test_file_of_another_kind_is_called_that(tmp_path, name):
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"PK\3\4" + bytes(range(100)))
    with pytest.raises(ValueError, match=r"model\.safetensors: is no file of safetensors"):
        weights.load(path, name)


@pytest.mark.parametrize("what", ["model.safetensors", INDEX])
@pytest.mark.parametrize(
    ("size", "text"), [("4976698672", "a file of 4976698672 bytes"), ("x", "the file")]
)
def test_pointer_of_git_lfs_is_called_that(tmp_path, name, what, size, text):
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize {size}\n"
    (tmp_path / what).write_text(pointer)
    text = f"{tmp_path / what}: is a Git LFS pointer to {text} (fetch it by git lfs pull)"
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        weights.load(tmp_path, name)


def test_damaged_index_is_named(tmp_path, name):
    index = tmp_path / "model.safetensors.index.json"
    save(tmp_path / "a.safetensors", {"a": ("U8", (1,))})
    for text in ("[]", "{", '{"weight_map": 1}', '{"weight_map": {"a": "../a.safetensors"}}'):
        index.write_text(text)
        with pytest.raises(ValueError, match=r"model\.safetensors\.index\.json: "):
            weights.load(index, name)
    index.write_text(json.dumps({"weight_map": {"b": "a.safetensors"}}))
    with pytest.raises(ValueError, match=r"a\.safetensors: tensor 'b': is in the index"):
        weights.load(tmp_path, name)
    assert is_free(name)


@pytest.mark.parametrize("what", [INDEX, "."])
def test_index_that_names_no_file_is_an_error(tmp_path, name, what):
    (tmp_path / INDEX).write_text('{"metadata": {}, "weight_map": {}}')
    text = f"{tmp_path / INDEX}: weight_map: names no file"
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        weights.load(tmp_path / what, name)
    assert is_free(name)


def make_fifo(path):
    os.mkfifo(path)


def make_link_to_zeros(path):
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("make", [make_fifo, make_link_to_zeros])
@pytest.mark.parametrize("bad", ["model.safetensors", INDEX])
def test_what_is_no_regular_file_is_refused_before_it_is_opened(tmp_path, name, bad, make):
    save(tmp_path / "b.safetensors", TENSORS)
    make(tmp_path / bad)
    # In a process that a wait for ever, or memory without end, wouldn't take the tests with it.
    code = """
    import resource, sys
    from tshare import weights
    resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30))
    for path in sys.argv[2:]:
        try:
            weights.load(path, sys.argv[1])
        except ValueError as error:
            print(error)
    """
    lines = run(code, name, tmp_path, tmp_path / bad).splitlines()
    assert lines == [f"{tmp_path / bad}: is no regular file"] * 2


def test_index_that_is_too_long_is_not_read(tmp_path, name):
    index = save_shards(tmp_path, {"a.safetensors": {"a": ("U8", (1,))}})
    os.truncate(index, 100_000_001)
    with pytest.raises(ValueError, match="index: its 100000001 bytes are more than 100000000"):
        weights.load(index, name)


@pytest.mark.parametrize("which", ["a.safetensors", "model.safetensors.index.json"])
def test_file_that_is_replaced_before_its_header_is_read_is_refused(
    tmp_path, name, monkeypatch, which
):
    index = save_shards(tmp_path, {"a.safetensors": {"a": ("U8", (1,))}})
    find_file = _safetensors.find_file

    def find_and_replace(path):
        found = find_file(path)
        if path.name == which:
            other = tmp_path / "other"
            other.write_bytes(path.read_bytes())
            os.replace(other, path)
        return found

    monkeypatch.setattr(_safetensors, "find_file", find_and_replace)
    with pytest.raises(OSError, match="changed while it was read") as caught:
        weights.load(index, name)
    assert (caught.value.errno, caught.value.filename) == (errno.ESTALE, str(tmp_path / which))
    assert is_free(name)


def test_fifo_that_takes_the_place_of_a_file_is_not_waited_for(path, name):
    # In a process that a wait for ever wouldn't take the tests with it.
    code = """
    import os, sys
    from tshare import _safetensors, weights

    def find_and_replace(path, find=_safetensors.find):
        found = find(path)
        os.unlink(path)
        os.mkfifo(path)
        return found

    _safetensors.find = find_and_replace
    try:
        weights.load(*sys.argv[1:])
    except OSError as error:
        print(error.errno, error.filename)
    """
    assert run(code, path, name) == f"{errno.ESTALE} {path}"


def test_missing_files_are_named(tmp_path, name):
    with pytest.raises(FileNotFoundError, match="none"):
        weights.load(tmp_path / "none.safetensors", name)
    with pytest.raises(FileNotFoundError, match="has no file"):
        weights.load(tmp_path, name)
    shards = {"1.safetensors": {"a": ("U8", (1,))}, "2.safetensors": {"b": ("U8", (1,))}}
    index = save_shards(tmp_path, shards, [("c", "3.safetensors")])
    with pytest.raises(FileNotFoundError, match="missing") as caught:
        weights.load(index, name)
    assert caught.value.filename == str(tmp_path / "3.safetensors")


def test_file_without_tensors_is_loaded(tmp_path, name):
    path = save(tmp_path / "model.safetensors", {}, {"format": "pt"})
    loaded = weights.load(path, name)
    assert len(loaded) == 0
    assert weights.load(path, name).metadata == {"format": "pt"}


def test_only_names_tensors_of_the_files(load):
    with pytest.raises(ValueError, match="^only: 'c' is in none"):
        load(only=["a", "c"])
    with pytest.raises(TypeError, match="^only: "):
        load(only="a")


@pytest.mark.parametrize(
    ("argument", "value", "error"),
    [
        *(("path", value, TypeError) for value in (None, 5, ["model.safetensors"])),
        *(("path", value, ValueError) for value in ("", b"", "model\0.safetensors")),
        *(("only", value, TypeError) for value in (5, [1], [None, "a"], [["a"]], b"a")),
        *(("sha256", value, TypeError) for value in (5, [], {"model.safetensors": None})),
        *(("mode", value, TypeError) for value in ("600", None, 1.5)),
        *(("progress", value, TypeError) for value in (5, "print")),
    ],
)
def test_load_names_the_argument_that_is_wrong(path, name, argument, value, error):
    arguments = {"path": path, "name": name} | {argument: value}
    # With a region of the name as without one.
    for _ in range(2):
        with pytest.raises(error, match=f"^{argument}: "):
            weights.load(**arguments)
        keep = weights.load(path, name)
    keep.close()


@pytest.mark.parametrize("kind", [str, os.fsencode, lambda path: path])
def test_path_is_text_or_bytes_or_a_path(path, name, kind):
    assert sorted(weights.load(kind(path), name)) == sorted(TENSORS)


def test_file_that_is_changed_while_it_is_read_is_refused(path, name):
    def change(done, total):
        with open(path, "ab") as file:
            file.write(b"more")

    with pytest.raises(OSError, match="changed while it was read") as caught:
        weights.load(path, name, progress=change)
    assert caught.value.errno == errno.ESTALE
    assert caught.value.filename == str(path)
    assert is_free(name)


def test_file_that_is_replaced_while_it_is_read_is_refused(path, name):
    def change(done, total):
        other = save(path.with_name("other"), TENSORS)
        os.replace(other, path)

    with pytest.raises(OSError, match="changed while it was read"):
        weights.load(path, name, progress=change)
    assert is_free(name)


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_interrupted_load_leaves_nothing(path, name, error):
    def interrupt(done, total):
        raise error

    with pytest.raises(error):
        weights.load(path, name, progress=interrupt)
    assert is_free(name)


def test_failing_disk_is_an_error_that_names_the_file(path, name, monkeypatch):
    class Failing:
        """What loads, but for its reads."""

        @staticmethod
        def create(*arguments, **options):
            region = tshare.Region.create(*arguments, **options)
            return type(
                "Region", (), {"read": Failing.read, "unlink": region.unlink, "close": region.close}
            )()

        def read(self, *arguments, **options):
            raise OSError(errno.EIO, "fd: pread: Input/output error")

        open = tshare.Region.open

    monkeypatch.setattr(weights, "Region", Failing)
    with pytest.raises(OSError, match="Input/output error") as caught:
        weights.load(path, name)
    assert (caught.value.errno, caught.value.filename) == (errno.EIO, str(path))
    assert is_free(name)


def test_no_room_is_an_error_that_leaves_nothing(tmp_path, name, backend):
    if backend != "shm":
        pytest.skip("the module has no files to be limited")
    path = save(tmp_path / "model.safetensors", {"x": ("U8", (3 << 20,), bytes(3 << 20))})
    code = """
    import resource, sys
    from tshare import weights
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
    try:
        weights.load(sys.argv[1], sys.argv[2])
    except OSError as error:
        print(error.errno)
    """
    assert run(code, path, name) == str(errno.EFBIG)
    assert is_free(name)


# Headers that are made from good ones by chance


def mutated(rng, file):
    file = bytearray(file)
    for _ in range(rng.randint(1, 4)):
        kind, at = rng.randrange(4), rng.randrange(len(file))
        if kind == 0:
            file[at] = rng.randrange(256)
        elif kind == 1:
            file[at] = ord(rng.choice('0123456789[]{}",:-eE. '))
        elif kind == 2:
            del file[at : at + rng.randint(1, 8)]
        else:
            file[at:at] = file[at : at + rng.randint(1, 8)]
        if not file:
            file.append(0)
    return bytes(file)


def refusal(path, name):
    """Return the text with which a file is refused, or None and what is loaded."""
    try:
        return None, weights.load(path, name)
    except ValueError as error:
        return str(error), None


@pytest.mark.slow_in_guests
def test_random_headers_are_refused_or_taken_as_safetensors_does(tmp_path, name):
    safetensors = need("safetensors")
    header, data = describe(TENSORS | {"f4": ("F4", (4,)), "c": ("C64", (2,))})
    good = join(header | {"__metadata__": {"format": "pt"}}, data)
    path = tmp_path / "model.safetensors"
    rng = random.Random(1)
    taken = 0
    for _ in range(rounds(400)):
        file = mutated(rng, good)
        path.write_bytes(file)
        text, loaded = refusal(path, name)
        if loaded is None:
            assert text.startswith(f"{path}: ")
        else:
            # safetensors takes the file, too, and finds the same tensors.
            expected = safetensors.deserialize(file)
            assert sorted(loaded) == sorted(key for key, _ in expected)
            for key, found in expected:
                assert raw(loaded[key]) == bytes(found["data"])
                assert list(loaded[key].shape) == found["shape"]
            loaded.close()
            taken += 1
        assert is_free(name)
    assert taken
