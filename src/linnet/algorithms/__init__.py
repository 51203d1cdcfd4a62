"""The tiled algorithms: modules that hold readable tile programs, and how matrices are cut for them.

    products         gemm, products (SYRK, SYMM, TRMM)
    one triangle     cholesky, triangular
    elimination      lu: factors, systems, determinants
    orthogonal       qr and householder (panels), tsqr (tall)
    two stages       banded, svd, eigh, panels
    shared           recipe (which program runs where), tuning (tile sizes), whole (LAPACK)

Nothing runs here: a module bears the name of its program and gives a `Recipe` for it, from which
`linnet.arrays` makes lazy arrays. The programs put their proofs off until asked for; the tests ask.
"""
