#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""SciPy writes a matrix to shared memory, PyTorch computes its eigenvalues there, NumPy
checks them.

    laplacian.py [N]

The matrix is the Laplacian of a grid of N x N points that is zero at its edge. Its
eigenvalues are known.
"""

import sys

import numpy as np
import scipy.sparse as sparse
import torch

import tshare


def laplacian(n):
    """Return the sparse matrix, n² x n²: -1 for each neighbour, 4 for the point itself."""
    line = sparse.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(n, n))
    one = sparse.identity(n)
    return (sparse.kron(line, one) + sparse.kron(one, line)).tocsr()


def known_eigenvalues(n):
    line = 2 - 2 * np.cos(np.pi * np.arange(1, n + 1) / (n + 1))
    return np.sort(np.add.outer(line, line).ravel())


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 24
    matrix = laplacian(n)
    print(f"SciPy: {matrix.shape[0]} x {matrix.shape[1]}, {matrix.nnz} elements that are not 0")

    # SciPy writes the dense matrix directly into the region.
    dense = tshare.create(None, matrix.shape, matrix.dtype)
    matrix.toarray(out=np.asarray(dense))
    print(f"tshare: the dense matrix takes {dense.nbytes} bytes of shared memory")

    # PyTorch reads it there and writes its result into another region.
    found = tshare.create(None, matrix.shape[0], matrix.dtype)
    torch.linalg.eigvalsh(torch.from_dlpack(dense), out=torch.from_dlpack(found))

    eigenvalues = np.asarray(found)
    print(f"PyTorch: eigenvalues from {eigenvalues[0]:.6f} to {eigenvalues[-1]:.6f}")
    if not np.allclose(eigenvalues, known_eigenvalues(n), atol=1e-10):
        sys.exit("laplacian.py: these are not the eigenvalues of the Laplacian")
    print("NumPy: all of them agree with the formula to ten digits")


if __name__ == "__main__":
    main()
