"""This machine: BLAS and LAPACK without the interpreter lock, memory, compiled libraries."""
