# SPDX-License-Identifier: MIT
"""The installed headers, beside those of the libraries that are there."""

import shutil
from pathlib import Path
from subprocess import run

import pytest

from support import need

ROOT = Path(__file__).resolve().parents[2]
OURS = "tshare-dlpack.h"
# Where libraries have a dlpack.h of DLPack's own project.
PLACES = {
    "torch": "include/ATen/dlpack.h",
    "tvm_ffi": "include/dlpack/dlpack.h",
    "pyarrow": "include/arrow/c/dlpack_abi.h",
}


@pytest.mark.parametrize("language", ["c", "c++"])
@pytest.mark.parametrize("ours_first", [True, False])
@pytest.mark.parametrize("library", PLACES)
def test_header_lives_beside_a_library_s_dlpack_h(library, ours_first, language):
    theirs = Path(need(library).__file__).parent / PLACES[library]
    compiler = shutil.which("cc")
    if not compiler or not theirs.exists():
        pytest.skip(f"no compiler, or {library} without its headers")
    first, second = (OURS, theirs) if ours_first else (theirs, OURS)
    said = run(
        [compiler, "-x", language, "-std=c11" if language == "c" else "-std=c++11"]
        + ["-Wall", "-Wextra", "-Werror", "-pedantic-errors", "-fsyntax-only"]
        + [f"-I{ROOT / 'include'}", f"-DFIRST=<{first}>", f"-DSECOND=<{second}>"]
        + [ROOT / "tests/unit/dlpack-both.c"],
        capture_output=True,
        text=True,
    )
    assert not said.returncode, said.stderr
