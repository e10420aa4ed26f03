# SPDX-License-Identifier: MIT
"""What the library declares of CUDA's driver, beside NVIDIA's own headers."""

import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OURS = (ROOT / "lib/cuda/abi.h").read_text()
ENUMERATORS = re.findall(r"\b(CU\w+) = \d+", OURS)
TYPES = [
    *re.findall(r"^typedef .*?(CU\w+);$", OURS, re.M),
    *re.findall(r"^typedef void \(\*(CU\w+)\)\(.*\);$", OURS, re.M),
    *re.findall(r"^} (CU\w+);$", OURS, re.M),
]
HANDLES = re.findall(r"^#define (CU_\w+) +\(", OURS, re.M)
STRUCTS = re.findall(r"^typedef struct \{\n(.*?)^\} (CU\w+);$", OURS, re.M | re.S)
TABLE = OURS[OURS.index("#define CUDA_FUNCTIONS") : OURS.rindex("#endif")]
FUNCTIONS = re.findall(
    r"X\((cu\w+), (cu\w+), (\d+), \((.*?)\)\)(?= X| /\*|$)",
    " ".join(TABLE.replace("\\", "").split()),
)


@pytest.fixture(scope="module")
def include():
    """Return the folder of NVIDIA's headers, which the wheel nvidia-cuda-runtime has."""
    found = sorted(Path(sysconfig.get_path("purelib"), "nvidia").glob("*/include/cuda.h"))
    if not found:
        pytest.skip("nvidia-cuda-runtime is not installed")
    if not shutil.which("cc"):
        pytest.skip("no compiler, or CUDA without its headers")
    return found[0].parent


def renamed(text):
    """Return our declarations with other names, so that both can be in one program."""
    return re.sub(r"\b(CU\w+)\b", r"our_\1", text)


def compile_with(include, lines, *options):
    """Compile lines behind both headers, and return what the compiler prints."""
    source = "\n".join(["#include <stddef.h>", renamed(OURS), "#include <cuda.h>", *lines, ""])
    done = subprocess.run(
        ["cc", "-x", "c", "-std=gnu11", "-I", include, *options, "-"],
        input=source,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def agree(include, *pairs):
    """Assert that expressions have the same value in our header as in NVIDIA's."""
    lines = [f'_Static_assert((long long)({a}) == (long long)({b}), "{b}");' for a, b in pairs]
    compile_with(include, lines, "-fsyntax-only")


def parameters(text):
    """Return the types of a function's parameters, without their names."""
    return [re.sub(r"\w+$", "", " ".join(p.split())).strip() for p in text.split(",")]


def test_all_declarations_were_found():
    assert len(ENUMERATORS) == OURS.count(" = ")
    assert len(TYPES) == OURS.count("typedef ")
    assert len(HANDLES) == OURS.count("#define CU_")
    assert len(STRUCTS) == OURS.count("typedef struct {")
    assert len(FUNCTIONS) == OURS.count("X(cu")


@pytest.mark.parametrize("name", ENUMERATORS + HANDLES)
def test_a_constant_has_nvidias_value(include, name):
    agree(include, (f"our_{name}", name))


@pytest.mark.parametrize("name", TYPES)
def test_a_type_has_nvidias_size(include, name):
    agree(include, (f"sizeof(our_{name})", f"sizeof({name})"))


@pytest.mark.parametrize(("body", "name"), STRUCTS, ids=[name for _, name in STRUCTS])
def test_a_struct_has_nvidias_offsets(include, body, name):
    members = re.findall(r"^\t[^\t}].*?(\w+)(?:\[\d+\])?;$|^\t\} (\w+);$", body, re.M)
    members = [a or b for a, b in members]
    if "handle" in members:
        members += ["handle.fd", "handle.win32.handle", "handle.win32.name"]
    assert members
    agree(include, *((f"offsetof(our_{name}, {m})", f"offsetof({name}, {m})") for m in members))


@pytest.mark.parametrize(
    ("name", "ours"), [(f[0], f[3]) for f in FUNCTIONS], ids=[f[0] for f in FUNCTIONS]
)
def test_a_function_has_nvidias_parameters(include, name, ours):
    header = (include / "cuda.h").read_text()
    theirs = parameters(re.search(rf"CUresult CUDAAPI {name}\((.*?)\);", header, re.S)[1])
    ours = [renamed(type_) for type_ in parameters(ours)]
    assert len(ours) == len(theirs)
    pairs = [(f"sizeof({a})", f"sizeof({b})") for a, b in zip(ours, theirs, strict=True)]
    for a, b in zip(ours, theirs, strict=True):
        assert a.endswith("*") == b.endswith("*")
        if a.endswith("*") and "void *" not in a:
            pairs.append((f"sizeof(*({a})0)", f"sizeof(*({b})0)"))
    agree(include, *pairs)


@pytest.mark.parametrize(
    ("name", "symbol", "since"), [f[:3] for f in FUNCTIONS], ids=[f[0] for f in FUNCTIONS]
)
def test_a_function_has_nvidias_symbol_since_its_version(include, name, symbol, since):
    """cuda.h defines the name as the symbol where they differ."""
    printed = compile_with(include, [f"symbol_of {name}"], "-E")
    assert f"symbol_of {symbol}" in printed.splitlines()
    assert f"PFN_{name}_v{since})" in (include / "cudaTypedefs.h").read_text()
