# SPDX-License-Identifier: MIT
"""The book that "make docs" builds, by Sphinx."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "sphinx"))

project = "tshare"
author = "The tshare developers"
copyright = "2026, The tshare developers"
version = release = (HERE.parent / "VERSION").read_text(encoding="utf-8").strip()

extensions = ["myst_parser", "abi", "kernel_doc", "links", "stubs"]
exclude_patterns = ["sphinx"]
autodoc_member_order = "bysource"
autodoc_mock_imports = ["torch"]
smartquotes = False
primary_domain = None
html_theme = "furo"
html_title = f"tshare {release}"
html_copy_source = False
myst_heading_anchors = 2

# Names in signatures that are others', or the package's own and not public.
nitpick_ignore = [
    ("c:identifier", name)
    for name in (
        "CUstream_st",
        "FILE",
        "int32_t",
        "int64_t",
        "size_t",
        "uint32_t",
        "uint64_t",
    )
] + [
    ("py:class", name)
    for name in (
        "Generations",
        "_Path",
        "_SLT",
        "_SupportsCudaStream",
        "_SupportsDLPack",
        "_SupportsFileno",
        "_T",
        "collections.abc.Callable",
        "collections.abc.Collection",
        "collections.abc.Iterable",
        "collections.abc.Mapping",
        "os.PathLike",
        "tshare._dataset._T",
        "torch.Tensor",
        "torch.nn.Module",
    )
]
