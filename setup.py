# SPDX-License-Identifier: MIT
"""Builds the extension, with the C library compiled into it, and the benchmark's loop.

The wheel needs no library on the machine, and is one for all versions of Python
from 3.11 on. A free-threaded Python has no limited API (PEP 703), and gets a
wheel of its own ABI. What is not about C is in pyproject.toml, but for the
licence, whose spelling depends on setuptools.
"""

import gzip
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from glob import glob
from pathlib import Path

import setuptools
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist

if not sys.platform.startswith("linux") or sys.maxsize < 1 << 32:
    sys.exit("tshare: needs 64-bit Linux")
if "musl" in (sysconfig.get_config_var("HOST_GNU_TYPE") or ""):
    sys.exit("tshare: needs the GNU C library, and this Python was built for musl")

PYTHON_ABI = 0x030B0000

if int(setuptools.__version__.split(".")[0]) >= 77:
    licence = {"license_expression": "MIT"}
else:
    licence = {"license": "MIT"}

limited = not sysconfig.get_config_var("Py_GIL_DISABLED")
limited_api = [("Py_LIMITED_API", hex(PYTHON_ABI))] if limited else []
compile_args = ["-std=gnu11", "-Wall", "-Wextra", "-fvisibility=hidden"]

STUB = "python/tshare/_tshare.pyi"
DOCSTRINGS = "python/ext/docstrings.py"


# For distributions, which have the library as a package of its own: links it, with the flags of
# LDFLAGS, instead of compiling it into the extension.
if os.environ.get("TSHARE_SYSTEM_LIBRARY") == "1":
    library_sources, library_macros, library_folders = [], [], []
    libraries = ["tshare"]
else:
    # Lines are relative to lib/.
    lines = Path("lib/sources").read_text().splitlines()
    library_sources = [os.path.normpath(f"lib/{line}") for line in lines if line[0] != "#"]
    # The library's functions are for the extension alone.
    library_macros = [("TSHARE_EXPORT", "")]
    library_folders = ["lib", "kmod"]
    libraries = ["dl"]

# Headers that are not the project's, and what has them on Debian.
HEADERS = {
    "stdlib.h": "the C library's headers (libc6-dev)",
    "linux/types.h": "the kernel's headers for programs (linux-libc-dev)",
    "Python.h": "Python's headers (python3-dev)",
}


class BuildExt(build_ext):
    """Makes docstrings.h, the stub's docstrings for the C files, before they are compiled."""

    def check_tools(self):
        """End with one sentence where the first file could not be compiled."""
        compiler = self.compiler.compiler[0]
        if not shutil.which(compiler):
            sys.exit(f"tshare: needs a C compiler: {compiler} is missing (install gcc, or set CC)")
        folders = [f"-I{folder}" for folder in self.compiler.include_dirs]
        for header, origin in HEADERS.items():
            found = subprocess.run(
                [*self.compiler.compiler, *folders, "-E", "-xc", "-"],
                input=f"#include <{header}>\n",
                capture_output=True,
                text=True,
            )
            if found.returncode:
                sys.exit(f"{found.stderr}tshare: needs {origin}: <{header}> can't be included")

    def build_extensions(self):
        self.check_tools()
        folder = Path(self.build_temp, "docstrings")
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, DOCSTRINGS, STUB, folder / "docstrings.h"], check=True)
        self.compiler.add_include_dir(str(folder))
        super().build_extensions()


class Sdist(sdist):
    """Makes the same archive of the same tree where SOURCE_DATE_EPOCH is set."""

    def make_archive(self, base_name, format, root_dir=None, base_dir=None, **owner):
        epoch = os.environ.get("SOURCE_DATE_EPOCH")
        if epoch is None or format != "gztar":
            return super().make_archive(base_name, format, root_dir, base_dir, **owner)

        def normalize(member):
            member.mtime = int(epoch)
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            return member

        path = f"{base_name}.tar.gz"
        with (
            open(path, "wb") as file,
            gzip.GzipFile("", "wb", fileobj=file, mtime=int(epoch)) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
        ):
            archive.add(base_dir, filter=normalize)
        return path


setup(
    **licence,
    cmdclass={"build_ext": BuildExt, "sdist": Sdist},
    license_files=["LICENSES/MIT.txt"],
    ext_modules=[
        Extension(
            "tshare._tshare",
            sources=[*sorted(glob("python/ext/*.c")), *library_sources],
            depends=[
                *glob("python/ext/*.h"),
                *glob("lib/**/*.h", recursive=True),
                *glob("include/**/*.h", recursive=True),
                "kmod/desc.h",
                STUB,
                DOCSTRINGS,
            ],
            include_dirs=["include", "include/uapi", *library_folders],
            define_macros=[
                ("_GNU_SOURCE", None),
                *limited_api,
                *library_macros,
            ],
            extra_compile_args=compile_args,
            extra_link_args=["-pthread"],
            libraries=libraries,
            py_limited_api=limited,
        ),
        *(
            Extension(
                f"tshare.bench._{name}",
                sources=[f"python/ext/bench/{name}.c"],
                depends=["include/tshare-dlpack.h"],
                include_dirs=["include"],
                define_macros=limited_api,
                extra_compile_args=compile_args,
                py_limited_api=limited,
            )
            for name in ("attach", "exchange")
        ),
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if limited else {},
)
