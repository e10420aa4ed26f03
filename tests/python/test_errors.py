# SPDX-License-Identifier: MIT
"""Errors name the argument as the caller wrote it, say what is wrong, and what to do."""

import os
import types

import numpy as np
import pytest

import tshare

Region = tshare.Region
AMBIGUOUS = np.ones(2)
TENSOR = (2, "int32")


# o.t is a named tensor of 4 bytes, o.r its region, o.fd a descriptor of no region.
CALLS = [
    # Arguments that are missing, unknown or in the wrong place
    (lambda o: tshare.create("n"), TypeError, "create() missing required argument 'shape'"),
    (lambda o: tshare.open(), TypeError, "open() missing required argument 'name'"),
    (lambda o: Region.open(), TypeError, "open() missing required argument 'name'"),
    (lambda o: tshare.from_fd(), TypeError, "from_fd() missing required argument 'fd'"),
    (lambda o: Region.from_fd(), TypeError, "from_fd() missing required argument 'fd'"),
    (lambda o: tshare.asarray(), TypeError, "asarray() missing required argument 'x'"),
    (lambda o: tshare.from_dlpack(), TypeError, "from_dlpack() missing required argument 'x'"),
    (lambda o: o.r.get(), TypeError, "get() missing required argument 'key'"),
    (lambda o: o.r.wait(), TypeError, "wait() missing required argument 'seen'"),
    (lambda o: o.r.wait_async(), TypeError, "wait_async() missing required argument 'seen'"),
    (
        lambda o: o.t.finish(True),
        TypeError,
        "finish() takes at most 0 positional arguments, not 1 (pass repl",
    ),
    (
        lambda o: tshare.open("n", True),
        TypeError,
        "open() takes at most 1 positional arguments, not 2 (pas",
    ),
    (lambda o: o.r.get("a", 1, 2), TypeError, "get() takes at most 2 positional arguments, not 3"),
    (
        lambda o: tshare.create(None, 1, persist=True),
        TypeError,
        "create() got an unexpected keyword argum",
    ),
    # Truth values
    *[
        (call, ValueError, f"{argument}: The truth value of an array")
        for call, argument in [
            (lambda o: tshare.create(None, 1, draft=AMBIGUOUS), "draft"),
            (lambda o: tshare.create(None, 1, exist_ok=AMBIGUOUS), "exist_ok"),
            (lambda o: tshare.create(None, 1, dma32=AMBIGUOUS), "dma32"),
            (lambda o: tshare.create(None, 1, contiguous=AMBIGUOUS), "contiguous"),
            (lambda o: tshare.open("n", readonly=AMBIGUOUS), "readonly"),
            (lambda o: tshare.from_fd(o.t, readonly=AMBIGUOUS), "readonly"),
            (lambda o: o.r.export(readonly=AMBIGUOUS), "readonly"),
            (lambda o: o.r.finish(replace=AMBIGUOUS), "replace"),
            (lambda o: o.t.__dlpack__(copy=AMBIGUOUS), "copy"),
            (lambda o: tshare.asarray(o.t, copy=AMBIGUOUS), "copy"),
        ]
    ],
    # Options
    (lambda o: tshare.create(None, 1, dtype=None), TypeError, "dtype: must be a name"),
    (lambda o: tshare.create(None, 1, mode=None), TypeError, "mode: must be an int"),
    (
        lambda o: tshare.create(None, 1, mode=0o1000),
        ValueError,
        "mode: must have no bits beyond 0o666, unlike 0o1",
    ),
    (
        lambda o: tshare.create(None, 1, mode=-1),
        ValueError,
        "mode: must have no bits beyond 0o666, unlike -0o1",
    ),
    (lambda o: tshare.create(None, 1, lifetime=None), TypeError, "lifetime: must be a str"),
    (
        lambda o: tshare.create(None, 1, lifetime="users"),
        ValueError,
        "lifetime: only a name can outlive",
    ),
    (lambda o: tshare.create(None, 1, draft=True), ValueError, "draft: needs a name"),
    (lambda o: tshare.create(None, 1, exist_ok=True), ValueError, "exist_ok: needs a name"),
    # Names
    (lambda o: tshare.create("\ud800", 1), ValueError, r"name: '\ud800' has surrogates"),
    (lambda o: tshare.open("a/b"), ValueError, "name: has a '/': 'a/b'"),
    (lambda o: tshare.unlink(""), ValueError, "name: is empty"),
    # Descriptors
    (lambda o: tshare.from_fd("3"), TypeError, "fd: must be an int or have fileno()"),
    (lambda o: tshare.from_fd(-1), ValueError, "fd: must be between 0 and 2147483647, not -1"),
    (
        lambda o: tshare.from_fd(2**40),
        ValueError,
        "fd: must be between 0 and 2147483647, not 10995",
    ),
    (lambda o: Region.from_fd(o.fd), ValueError, "fd: {fd} is not a region's"),
    (
        lambda o: tshare.from_fd(Region.create(None, size=1)),
        ValueError,
        "fd: the region holds 0 tensors, no",
    ),
    (
        lambda o: Region.create("n", dmabuf="3"),
        TypeError,
        "dmabuf: must be an int or have fileno()",
    ),
    (
        lambda o: Region.create("n", dmabuf=-1),
        ValueError,
        "dmabuf: must be between 0 and 2147483647",
    ),
    (lambda o: Region.create("n", dmabuf=2**30), OSError, "dmabuf: 1073741824 is not open"),
    (lambda o: Region.create("n", dmabuf=o.fd), (OSError, ValueError), "dmabuf: "),
    (
        lambda o: Region.create(None, dmabuf=o.fd),
        ValueError,
        "name: is None; a region of a dma-buf needs a",
    ),
    (
        lambda o: Region.create("n", dmabuf=o.fd, size=4096),
        ValueError,
        "size: is the dma-buf's (pass None)",
    ),
    # Tensors of a region, also of one alone, which the library doesn't number
    (lambda o: Region.create(None, 3), TypeError, "tensors: must be a mapping"),
    (lambda o: Region.create(None, {3: TENSOR}), TypeError, "tensors: key: must be a str"),
    (
        lambda o: Region.create(None, {"a\0b": TENSOR}),
        ValueError,
        "tensors: key: must not contain a null",
    ),
    (
        lambda o: Region.create(None, {"\ud800": TENSOR}),
        ValueError,
        r"tensors: key: '\ud800' has surr",
    ),
    (
        lambda o: Region.create(None, {"é" * 512: TENSOR}),
        ValueError,
        "tensors: '" + "é" * 512 + "': name: lo",
    ),
    (lambda o: Region.create("é" * 64, {"a": TENSOR}), ValueError, "name: longer than 127 bytes"),
    (
        lambda o: Region.create(None, {"a": (2,)}),
        TypeError,
        "tensors: 'a': must be an array, or a tuple",
    ),
    (
        lambda o: Region.create(None, {"a": (-2, "int32")}),
        ValueError,
        "tensors: 'a': shape[0]: -2 is negati",
    ),
    (
        lambda o: Region.create(None, {"a": ("2", "int32")}),
        TypeError,
        "tensors: 'a': shape: must be an int",
    ),
    (
        lambda o: Region.create(None, {"a": (2, "i")}),
        ValueError,
        "tensors: 'a': dtype: 'i' is not a supp",
    ),
    (
        lambda o: Region.create(None, {"a": (*TENSOR, 2)}),
        ValueError,
        "tensors: 'a': strides: 2 is not a mul",
    ),
    (
        lambda o: Region.create(None, {"a": (*TENSOR, None, -1)}),
        ValueError,
        "tensors: 'a': offset: must be",
    ),
    (
        lambda o: Region.create(None, {"a": (*TENSOR, None, 9999)}, size=1),
        ValueError,
        "tensors: 'a': offset: beyond the region",
    ),
    (
        lambda o: Region.create(None, {"a": TENSOR, "b": (9999, "int8")}, size=1),
        ValueError,
        "tensors: 'b': shape, strides: reach beyond the region",
    ),
    (
        lambda o: Region.create(None, {"a": np.array(["text"])}),
        TypeError,
        "tensors: 'a': unsupported dtype <U4 (tensors hold only numbers)",
    ),
    (
        lambda o: Region.create(None, {str(i): TENSOR for i in range(1 << 20 | 1)}),
        ValueError,
        "tensors: 1048577 tensors are more than 1048576",
    ),
    (
        lambda o: Region.create(None, {"x" * 1000 + str(i): TENSOR for i in range(270_000)}),
        ValueError,
        "tensors: shapes and names of ",
    ),
    # The rest
    (lambda o: o.t.finish(replace=True), ValueError, "region: is not a draft"),
    (lambda o: tshare.open("n", wait=None), TypeError, "wait: must be a number of seconds"),
    (
        lambda o: tshare.open("n", other_than="n"),
        TypeError,
        "other_than: must be a Region or a Tensor",
    ),
    (lambda o: o.r.wait("0"), TypeError, "seen: must be an int"),
    (lambda o: o.r.export(1), ValueError, "offset: 1 bytes are not whole pages"),
    (lambda o: o.r.export(0, 1), ValueError, "size: 1 bytes are not whole pages"),
    (lambda o: tshare.asarray(np.array(["text"])), TypeError, "x: unsupported dtype <U4"),
    (
        lambda o: tshare.asarray(o.t, "n", copy=False),
        BufferError,
        "x: is outside of the region 'n' and has",
    ),
]


@pytest.mark.parametrize(("call", "error", "text"), CALLS, ids=[text for *_, text in CALLS])
def test_error_names_the_argument_of_the_caller(call, error, text, name):
    with open(os.devnull) as file, tshare.create(name, 4) as tensor:
        o = types.SimpleNamespace(t=tensor, r=tensor.region, fd=file.fileno())
        with pytest.raises(error) as caught:
            call(o)
        said = caught.value.strerror if isinstance(caught.value, OSError) else str(caught.value)
        assert said.startswith(text.format(fd=o.fd) if "{fd}" in text else text)


def test_error_of_an_export_that_can_not_be_written_says_how_to_make_one(name):
    made = tshare.create(name, 4)
    with pytest.raises(PermissionError, match=r"readonly: the region is .*; pass readonly=True"):
        Region.open(name, readonly=True).export()
    assert not made.closed


def test_error_of_a_taken_name_says_how_to_replace(name):
    tshare.create(name, 4)
    remedy = r"\(exist_ok=True; replace=True in fin"
    for call in (lambda: tshare.create(name, 4), lambda: Region.create(name, {"a": TENSOR})):
        with pytest.raises(FileExistsError, match=remedy) as caught:
            call()
        assert caught.value.strerror.startswith(f"name: '{name}' is taken by a ")
    tshare.create(name, 4, draft=True, exist_ok=True).finish()
