# SPDX-License-Identifier: MIT
"""Files of safetensors with headers that are made by chance.

A good header is changed as an object, as text, or as a part of a file, and loaded. It is loaded
as it says, or refused by an error that names the file, and nothing is left. A failure prints a
seed: TSHARE_TEST_SEED=N makes that file again, and only that.
"""

import copy
import json
import os
import random
import time

import pytest

import tshare
from checkpoint import BITS, describe, join
from support import need
from tshare import weights

# How long to go on.
SECONDS = 60 if "TSHARE_TEST_LONG" in os.environ else 5

VALUES = [None, True, False, 0, 1, -1, 0.5, 1e300, "", "x", "U8", "F32", "\0", "x" * 1024, "\ud800"]
VALUES += [[], {}, [0, 0], [[]], {"x": 1}, [1] * 33, [0, 1 << 63], 10**30]
VALUES += [(1 << bits) + i for bits in (8, 31, 32, 53, 62, 63, 64) for i in (-1, 0)]

KEYS = ["__metadata__", "dtype", "shape", "data_offsets", "", "a\0b", "é" * 512, "\ud800", "more"]


def good(rng):
    """Return a header and its data."""
    tensors = {}
    for i in range(rng.randint(0, 4)):
        dtype = rng.choice([*BITS])
        # A multiple of 8 elements has whole bytes of any type.
        shape = rng.choice([(8,), (0,), (2, 0), (2, 8), (1, 1, 8), (rng.randint(1, 40) * 8,)])
        if BITS[dtype] >= 8:
            shape = rng.choice([shape, (), (3,)])
        tensors[rng.choice([f"t{i}", f"é{i}", f"layer.{i}.weight"])] = dtype, shape
    header, data = describe(tensors)
    if rng.random() < 0.3:
        header["__metadata__"] = {"format": "pt"}
    return header, data


def places(node):
    """Return each place inside nested objects and lists, as what holds it and its key."""
    found = []
    for key in list(node) if isinstance(node, dict) else range(len(node)):
        found.append((node, key))
        if isinstance(node[key], dict | list):
            found += places(node[key])
    return found


def change_object(rng, header):
    """Change something inside the header."""
    node, key = rng.choice(places(header) or [(header, "x")])
    value = copy.deepcopy(rng.choice([*VALUES, *header.values()]))
    match rng.randrange(6):
        case 0:
            node[key] = value
        case 1 if node:
            del node[key]
        case 2 if isinstance(node, dict):
            node[rng.choice(KEYS)] = node.pop(key, None)
        case 3 if isinstance(node, list):
            node.insert(key, rng.choice([node[key], value]))
        case 4 if node and type(node[key]) is int:
            node[key] = rng.choice([node[key] + 1, node[key] - 1, -node[key], node[key] * 8])
        case _:
            header[rng.choice(KEYS)] = value


def change_text(rng, text):
    """Change the header's text."""
    at = rng.randrange(len(text) + 1)
    match rng.randrange(6):
        case 0:
            return text[:at] + bytes([rng.randrange(256)]) + text[at + 1 :]
        case 1:
            return text[:at]
        case 2:
            return (
                text[:at]
                + rng.choice([b" ", b"\n", b"NaN", b"-", b"0", b'"', b"{", b"]"])
                + text[at:]
            )
        case 3:
            # Each key twice.
            return text[:-1] + b"," + text[1:]
        case 4:
            return text.decode(errors="replace").encode(rng.choice(["utf-16", "utf-8-sig"]))
    return rng.choice([b"[" * 50_000, b'{"":' * 50_000, b"1" * 5000]) + text


def change_file(rng, file):
    """Change what is around the header."""
    at = rng.randrange(len(file) + 1)
    match rng.randrange(3):
        case 0:
            return file[:at]
        case 1:
            return file + bytes(rng.randint(1, 100))
    length = int.from_bytes(file[:8], "little") + rng.choice([-8, -1, 1, 8, 1 << 32, 1 << 63])
    return (length % (1 << 64)).to_bytes(8, "little") + file[8:]


def make(seed):
    """Return the file that a seed stands for."""
    rng = random.Random(seed)
    header, data = good(rng)
    kind = rng.randrange(8)
    if kind < 5:
        for _ in range(rng.randint(1, 3)):
            change_object(rng, header)
    text = json.dumps(header).encode()
    if kind == 5:
        text = change_text(rng, text)
    file = join(text, data, rng.choice([1, 8]))
    return change_file(rng, file) if kind == 6 else file


def check_taken(file, loaded):
    """Check that what is loaded is what the file says."""
    length = int.from_bytes(file[:8], "little")
    header, data = json.loads(file[8 : 8 + length]), file[8 + length :]
    header.pop("__metadata__", None)
    assert loaded.keys() == header.keys()
    for key, tensor in loaded.items():
        begin, end = header[key]["data_offsets"]
        assert list(tensor.shape) == header[key]["shape"]
        with memoryview(tensor.region) as view:
            offset = tensor._spec[4]
            assert view[offset : offset + tensor.nbytes] == data[begin:end]


def attempt(path, name):
    """Load a file; return what is loaded, or None and the text of the error."""
    try:
        return weights.load(path, name), ""
    except ValueError as error:
        return None, str(error)


def check(path, name):
    """Load a file, and return whether it was taken."""
    loaded, text = attempt(path, name)
    if loaded is None:
        assert text.startswith(f"{path}: ")
    else:
        with loaded:
            check_taken(path.read_bytes(), loaded)
    assert not [info for info in tshare.list() if info.name == name]
    assert not [entry for entry in os.listdir("/dev/shm") if name in entry]
    return loaded is not None


@pytest.fixture
def seeds():
    """Seeds as long as there is time, or the one that is to be tried again."""
    if given := os.environ.get("TSHARE_TEST_SEED"):
        return [int(given)]

    def seeds():
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            yield random.getrandbits(48)

    return seeds()


def test_header_made_by_chance_is_taken_as_it_is_or_refused(tmp_path, name, seeds):
    safetensors = need("safetensors")
    path = tmp_path / "model.safetensors"
    for seed in seeds:
        file = make(seed)
        path.write_bytes(file)
        try:
            if check(path, name):
                # What is taken here is taken there.
                safetensors.deserialize(file)
        except Exception as error:
            pytest.fail(f"TSHARE_TEST_SEED={seed}: {error!r} for {file[:1000]!r}")
