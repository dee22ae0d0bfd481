"""Singular values and eigenvalues of symmetric matrices."""
