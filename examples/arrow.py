#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A table of Apache Arrow in shared memory, read by another process without a copy.

    arrow.py [NAME]

Arrow's IPC format has no addresses in it, so a table in a region is one for each process that
maps it: columns with nulls, text and nested ones, too, which no tensor describes. polars and
pandas read it in the same way, by pyarrow.
"""

import subprocess
import sys

import pyarrow as pa

import tshare


def share(table, name):
    """Return a region that holds a table."""
    sizer = pa.MockOutputStream()  # counts the bytes
    with pa.ipc.new_file(sizer, table.schema) as writer:
        writer.write_table(table)
    tensor = tshare.create(name, sizer.size(), "uint8", draft=True)
    with pa.ipc.new_file(pa.FixedSizeBufferWriter(pa.py_buffer(tensor)), table.schema) as writer:
        writer.write_table(table)
    tensor.finish()  # now it can be opened
    return tensor


def attach(name):
    """Return the table that a region holds, over the region's memory."""
    return pa.ipc.open_file(pa.py_buffer(tshare.open(name, readonly=True))).read_all()


def child(name):
    before = pa.total_allocated_bytes()
    table = attach(name)
    print(f"child: {table.num_rows} rows of {', '.join(table.column_names)}")
    print(f"child: bytes that Arrow has allocated: {pa.total_allocated_bytes() - before}")
    print(f"child: the second word is {table['word'][1]}, the last {table['word'][-1]}")


def main():
    name = sys.argv[1] if len(sys.argv) > 1 else "arrow-example"
    words = pa.array(["one", None, "three"] * 10_000)
    table = pa.table({"x": pa.array(range(30_000), pa.float64()), "word": words})
    with share(table, name):
        subprocess.run([sys.executable, __file__, "--child", name], check=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2])
    else:
        main()
