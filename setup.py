# SPDX-License-Identifier: MIT
"""Builds the extension, with the C library compiled into it.

The wheel needs no library on the machine. What is not about C is in
pyproject.toml, but for the licence, whose spelling depends on setuptools.
"""

from glob import glob

import setuptools
from setuptools import Extension, setup

PYTHON_ABI = 0x030B0000

if int(setuptools.__version__.split(".")[0]) >= 77:
    licence = {"license_expression": "MIT"}
else:
    licence = {"license": "MIT"}

setup(
    **licence,
    license_files=["LICENSES/MIT.txt"],
    ext_modules=[
        Extension(
            "tshare._tshare",
            sources=[
                *sorted(glob("python/ext/*.c")),
                *sorted(glob("lib/*.c")),
                "kmod/desc.c",
            ],
            depends=[
                *glob("python/ext/*.h"),
                *glob("lib/*.h"),
                *glob("include/**/*.h", recursive=True),
                "kmod/desc.h",
            ],
            include_dirs=["include", "include/uapi", "lib", "kmod"],
            define_macros=[
                ("_GNU_SOURCE", None),
                ("Py_LIMITED_API", hex(PYTHON_ABI)),
                # The library's functions are for the extension alone.
                ("TSHARE_EXPORT", ""),
            ],
            extra_compile_args=["-std=gnu11", "-Wall", "-Wextra", "-fvisibility=hidden"],
            extra_link_args=["-pthread"],
            libraries=["dl"],
            py_limited_api=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
