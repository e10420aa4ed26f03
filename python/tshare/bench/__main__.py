# SPDX-License-Identifier: MIT
# The processes that the benchmark starts import this file, too, by another name.
import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
