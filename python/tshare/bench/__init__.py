# SPDX-License-Identifier: MIT
"""The transfer benchmark, ``tshare bench`` or ``python -m tshare.bench``.

Measures the time and memory that it takes to pass an array on, within a process and
to another one, with tshare and with what else people use.

=========  ====================================================================
within     ways within a process
between    ways between two processes, and ways to announce new data
measure    time and memory of a piece of code
processes  the two processes in which the above run
runner     the order of the measurements, and their results
report     tables and CSV
plot       the figure
cli        the command line
=========  ====================================================================
"""
