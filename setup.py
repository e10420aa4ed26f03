# SPDX-License-Identifier: MIT
"""Builds the extension and the command, with the C library compiled into each.

The extension needs no library on the machine, the command libsmartcols and, where it was built
with it, libkmod. One wheel is for all versions of Python from 3.11 on. A free-threaded Python has
no limited API (PEP 703), and gets a wheel of its own ABI. pyproject.toml has the other settings,
but for the licence, whose spelling depends on setuptools.
"""

import gzip
import operator
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from glob import glob
from pathlib import Path

import setuptools
from setuptools import Command, Extension, setup
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


def sources(folder):
    """Return the paths of the sources that the list in the folder names."""
    lines = Path(folder, "sources").read_text().splitlines()
    return [os.path.normpath(f"{folder}/{line}") for line in lines if line[0] != "#"]


# For distributions, which have the library and the command as packages of their own: links the
# library, with the flags of LDFLAGS, instead of compiling it into the extension.
if os.environ.get("TSHARE_SYSTEM_LIBRARY") == "1":
    library_sources, command_sources = [], []
    libraries = ["tshare"]
else:
    library_sources, command_sources = sources("lib"), sources("tools")
    libraries = ["dl"]

# Headers that are not the project's, and what has them on Debian.
HEADERS = {
    "stdlib.h": "the C library's headers (libc6-dev)",
    "linux/types.h": "the kernel's headers for programs (linux-libc-dev)",
    "Python.h": "Python's headers (python3-dev)",
}

# Names of packages for pkg-config. libkmod lets the command load the module and tell about it.
SMARTCOLS, LIBKMOD = "smartcols", "libkmod >= 15"


def package_flags(package):
    """Return the flags that compile and link with a package, or None without it or pkg-config."""
    program = shlex.split(os.environ.get("PKG_CONFIG", "pkg-config"))
    try:
        return [
            shlex.split(
                subprocess.run(
                    [*program, kind, package], check=True, capture_output=True, text=True
                ).stdout
            )
            for kind in ("--cflags", "--libs")
        ]
    except (OSError, subprocess.CalledProcessError):
        return None


class BuildExt(build_ext):
    """Compiles the library, which the command has in it, too, and docstrings.h for the C files."""

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
        self.library_objects = self.compiler.compile(
            library_sources,
            self.build_temp,
            # The library's functions are for the extension and the command alone.
            macros=[("_GNU_SOURCE", None), ("TSHARE_EXPORT", "")],
            include_dirs=["include", "include/uapi", "lib", "kmod"],
            extra_postargs=compile_args,
        )
        self.extensions[0].extra_objects = self.library_objects
        super().build_extensions()


class BuildScripts(Command):
    """Builds the command, unless what it needs is missing."""

    description = "build the command tshare"
    user_options = [("build-dir=", "d", "folder for the command")]

    def initialize_options(self):
        self.build_dir = None

    def finalize_options(self):
        self.set_undefined_options("build", ("build_scripts", "build_dir"))

    def get_source_files(self):
        return command_sources

    def run(self):
        # All of the folder is installed; an earlier build may have left a command there.
        self.mkpath(self.build_dir)
        Path(self.build_dir, "tshare").unlink(missing_ok=True)
        smartcols = package_flags(SMARTCOLS)
        if smartcols is None:
            print(f"tshare: left out the command: pkg-config finds no {SMARTCOLS}"
                  " (install libsmartcols-dev and pkg-config)", file=sys.stderr)  # fmt: skip
            return
        libkmod = package_flags(LIBKMOD)
        cflags, libs = map(operator.add, smartcols, libkmod or ([], []))
        self.run_command("build_ext")
        builder = self.get_finalized_command("build_ext")
        objects = builder.compiler.compile(
            [*command_sources, f"tools/module{'' if libkmod else '-none'}.c"],
            builder.build_temp,
            include_dirs=["include"],
            extra_preargs=cflags,
            extra_postargs=compile_args,
        )
        flags = [flag for name in ("CFLAGS", "LDFLAGS") for flag in
                 shlex.split(os.environ.get(name, ""))]  # fmt: skip
        builder.compiler.link_executable(
            [*objects, *builder.library_objects],
            "tshare",
            self.build_dir,
            extra_preargs=flags,
            extra_postargs=["-pthread", *libs, "-ldl", "-lm"],
        )


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
    cmdclass={"build_ext": BuildExt, "build_scripts": BuildScripts, "sdist": Sdist},
    license_files=["LICENSES/MIT.txt"],
    # Of these BuildScripts makes one program.
    scripts=command_sources,
    ext_modules=[
        Extension(
            "tshare._tshare",
            sources=sorted(glob("python/ext/*.c")),
            depends=[
                *library_sources,
                *glob("python/ext/*.h"),
                *glob("lib/**/*.h", recursive=True),
                *glob("include/**/*.h", recursive=True),
                "kmod/desc.h",
                STUB,
                DOCSTRINGS,
            ],
            include_dirs=["include", "include/uapi"],
            define_macros=[("_GNU_SOURCE", None), *limited_api],
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
