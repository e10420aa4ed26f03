# SPDX-License-Identifier: MIT
"""Runs CPython's own tests of SharedMemory on tshare's, with the import changed.

usage: stdlib.py METHOD FOLDER

METHOD is how multiprocessing starts processes; FOLDER has what redirect() made
of CPython's Lib/test/_test_multiprocessing.py. Nothing of CPython is kept here.
Prints what unittest does, and fails where a test is skipped that isn't named
below.
"""

import sys
import types
import unittest

REDIRECTIONS = [
    ("from multiprocessing import shared_memory", "from tshare import shared_memory"),
    ("multiprocessing.shared_memory", "tshare.shared_memory"),
    (
        "from multiprocessing.managers import SharedMemoryManager",
        "from tshare.managers import SharedMemoryManager",
    ),
    ("multiprocessing.managers.SharedMemoryManager", "tshare.managers.SharedMemoryManager"),
]

# What there is no tracker for: these want it to print that memory has leaked,
# and take its note of a name back.
DESELECTED = {
    # The name goes here too, which test_shared_memory.py checks, in silence.
    "test_shared_memory_cleaned_after_process_termination",
    # From 3.13 on, wants a process that has merely attached to remove the
    # memory of the others; test_shared_memory.py checks that it doesn't.
    "test_shared_memory_tracking",
}


def redirect(source):
    """The text of CPython's tests for tshare's classes."""
    for old, new in REDIRECTIONS:
        assert old in source, old
        source = source.replace(old, new)
    return "import tshare.managers\n" + source


def load(method):
    """A module with the tests, as CPython's test_multiprocessing_METHOD has them."""
    import _test_multiprocessing

    module = types.ModuleType(f"test_with_{method}")
    # By its name unittest finds what to do before and after.
    sys.modules[module.__name__] = module
    _test_multiprocessing.install_tests_in_module_dict(vars(module), method)
    return module


def main(method, folder):
    # Where the processes that are started look, too.
    sys.path.insert(0, folder)
    case = load(method).WithProcessesTestSharedMemory
    names = [n for n in unittest.defaultTestLoader.getTestCaseNames(case) if n not in DESELECTED]
    result = unittest.TextTestRunner(verbosity=2).run(unittest.TestSuite(map(case, names)))
    for test, reason in result.skipped:
        print(f"skipped: {test}: {reason}", file=sys.stderr)
    return 0 if names and result.wasSuccessful() and not result.skipped else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
