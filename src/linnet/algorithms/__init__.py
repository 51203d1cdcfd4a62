"""The tiled algorithms: modules that hold readable tile programs and the functions that run them.

    products         gemm, products (SYRK, SYMM, TRMM), power
    one triangle     cholesky, triangular
    elimination      lu, solve, inverse, determinant
    orthogonal       qr and householder (panels), tsqr (tall), least_squares, pseudo_inverse
    two stages       banded, svd, eigh; spectral is what users call
    measures         norms
    shared           tuning (tile sizes), stacks and running (input, cutting, engines), panels

Nothing is re-exported here: a module bears the name of its program, `linnet.linalg` the names
users know. The programs put their proofs off until asked for; the tests ask.
"""
