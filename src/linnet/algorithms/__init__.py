"""The tiled algorithms: each module holds a readable tile program and a function that runs it.

| module | program | function |
|---|---|---|
| `cholesky` | `cholesky` | `cholesky_factor` |
| `gemm` | `gemm`, `accumulated_gemm` | `matmul` |
| `tsqr` | `tsqr` | `tall_skinny_r` |
| `qr` | `qr` | `qr_r` |
| `banded` | `banded` | `band` |

The modules are not re-exported here: each bears the name of its program.
"""
