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

# tshare has no resource tracker: these tests want it to report leaked memory,
# and unregister names with it.
DESELECTED = {
    # The name is removed here, too, which test_shared_memory.py checks, without a message.
    "test_shared_memory_cleaned_after_process_termination",
    # From 3.13 on, wants a process that has merely attached to remove the
    # memory of the others; test_shared_memory.py checks that it doesn't.
    "test_shared_memory_tracking",
}


def redirect(source):
    """Return the source of CPython's tests, changed to import tshare's classes."""
    for old, new in REDIRECTIONS:
        assert old in source, old
        source = source.replace(old, new)
    return "import tshare.managers\n" + source


def load(method):
    """Make a module with the tests, like CPython's test_multiprocessing_METHOD."""
    import _test_multiprocessing

    module = types.ModuleType(f"test_with_{method}")
    # unittest finds setUpModule() and tearDownModule() by the module's name.
    sys.modules[module.__name__] = module
    _test_multiprocessing.install_tests_in_module_dict(vars(module), method)
    return module


def main(method, folder):
    # Child processes look there, too.
    sys.path.insert(0, folder)
    case = load(method).WithProcessesTestSharedMemory
    names = [n for n in unittest.defaultTestLoader.getTestCaseNames(case) if n not in DESELECTED]
    result = unittest.TextTestRunner(verbosity=2).run(unittest.TestSuite(map(case, names)))
    for test, reason in result.skipped:
        print(f"skipped: {test}: {reason}", file=sys.stderr)
    return 0 if names and result.wasSuccessful() and not result.skipped else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
