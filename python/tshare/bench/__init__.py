# SPDX-License-Identifier: MIT
"""The transfer benchmark, ``tshare bench`` or ``python -m tshare.bench``.

What it takes to hand an array over, in time and memory, within a process and
from one to another, by tshare and by what else people use.

=========  ====================================================================
within     ways within a process
between    ways between two, and how one tells another that data is new
measure    time and memory of a piece of code
processes  the two processes in which the above run
runner     what is run when, and what came out
report     tables and CSV
plot       the figure
cli        the command line
=========  ====================================================================
"""
