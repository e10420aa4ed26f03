# SPDX-License-Identifier: MIT
"""Files in the format safetensors, also such as no library writes."""

import json
import math

BITS = {"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6}
BITS |= dict.fromkeys(["BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0"], 8)
BITS |= dict.fromkeys(["F8_E4M3FNUZ", "F8_E5M2FNUZ"], 8)
BITS |= dict.fromkeys(["I16", "U16", "F16", "BF16"], 16)
BITS |= dict.fromkeys(["I32", "U32", "F32"], 32)
BITS |= dict.fromkeys(["C64", "F64", "I64", "U64"], 64)


def content(dtype, shape, first=0):
    """Return the bytes of a tensor, which count up from the first one."""
    count = math.prod(shape) * BITS[dtype] // 8
    if dtype == "BOOL":
        return bytes((first + i) % 2 for i in range(count))
    return bytes((first + i) % 251 for i in range(count))


def describe(tensors):
    """Return the header and the data of tensors that lie one behind the other."""
    header, data = {}, b""
    for name, (dtype, shape, *given) in tensors.items():
        part = given[0] if given else content(dtype, shape)
        header[name] = {
            "dtype": dtype,
            "shape": list(shape),
            "data_offsets": [len(data), len(data) + len(part)],
        }
        data += part
    return header, data


def join(header, data, padding=8):
    """Return a file; the header is what JSON can be made of, or bytes."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    text += b" " * (-len(text) % padding)
    return len(text).to_bytes(8, "little") + text + data


def save(path, tensors, metadata=None, padding=8):
    header, data = describe(tensors)
    if metadata is not None:
        header["__metadata__"] = metadata
    path.write_bytes(join(header, data, padding))
    return path


def save_shards(folder, shards, more=()):
    """Write files and an index of them; more are pairs of a tensor and its file."""
    places = {}
    for file, tensors in shards.items():
        save(folder / file, tensors)
        places |= dict.fromkeys(tensors, file)
    places |= dict(more)
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": places}))
    return index
