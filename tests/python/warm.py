# SPDX-License-Identifier: MIT
"""Scripts that run in forks of a process which has imported PyTorch.

In a virtual machine the import takes half a minute. TSHARE_TEST_WARM=1 asks for
this; a script is then a __main__ like any other, in a session of its own, but
in an interpreter that has been at work before.
"""

import multiprocessing
import os
import runpy
import sys
from multiprocessing import reduction

ASKED_FOR = os.environ.get("TSHARE_TEST_WARM") == "1"

_context = multiprocessing.get_context("forkserver")
if ASKED_FOR:
    _context.set_forkserver_preload(["numpy", "torch"])


class _Descriptor:
    """An object that is pickled for a process that is being started."""

    def __init__(self, fd):
        self.fd = fd

    def __reduce__(self):
        return _detach, (reduction.DupFd(self.fd),)


def _detach(handle):
    return handle.detach()


def _run(arguments, *descriptors):
    os.setsid()
    for standard, fd in enumerate(descriptors):
        os.dup2(fd, standard)
        os.close(fd)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")
    sys.argv = arguments
    sys.path.insert(0, os.path.dirname(arguments[0]))
    runpy.run_path(arguments[0], run_name="__main__")


class Script:
    """Like subprocess.Popen with pipes and text. The output must fit into the pipes."""

    def __init__(self, arguments):
        pipes = [os.pipe() for _ in range(3)]
        (stdin, self._to), (self._from, stdout), (self._errors, stderr) = pipes
        self.returncode = None
        self._process = _context.Process(
            target=_run, args=(arguments, *map(_Descriptor, (stdin, stdout, stderr)))
        )
        self._process.start()
        self.pid = self._process.pid
        for fd in (stdin, stdout, stderr):
            os.close(fd)
        self.stdin = open(self._to, "w")
        self.stdout, self.stderr = open(self._from), open(self._errors)

    def wait(self, timeout):
        self._process.join(timeout)
        self.returncode = self._process.exitcode
        assert self.returncode is not None, "it takes too long"
        return self.returncode

    def communicate(self, timeout):
        self.stdin.close()
        self.wait(timeout)
        with self.stdout, self.stderr:
            return self.stdout.read(), self.stderr.read()

    def kill(self):
        if self.returncode is None:
            self._process.kill()
            self._process.join()
        self._process.close()
