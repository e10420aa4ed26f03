# SPDX-License-Identifier: MIT
# The spawned processes import this file, too, but not as __main__.
import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
