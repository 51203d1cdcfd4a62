"""Types of linear algebra: written by `tools/stubs.py`."""

# pyright: reportOverlappingOverload=false
from typing import Any, Literal, overload

from numpy.typing import ArrayLike, NDArray

from linnet.arrays.array import Array
from linnet.arrays.linalg.eigen_and_singular import EighResult as EighResult
from linnet.arrays.linalg.eigen_and_singular import EigResult as EigResult
from linnet.arrays.linalg.eigen_and_singular import SVDResult as SVDResult
from linnet.arrays.linalg.factorisations import CholeskyFactors as CholeskyFactors
from linnet.arrays.linalg.factorisations import LUFactors as LUFactors
from linnet.arrays.linalg.factorisations import LUPermuted as LUPermuted
from linnet.arrays.linalg.factorisations import LUResult as LUResult
from linnet.arrays.linalg.factorisations import QRResult as QRResult
from linnet.arrays.linalg.least_squares import LstsqResult as LstsqResult
from linnet.arrays.linalg.linear_systems import SlogdetResult as SlogdetResult
from linnet.engines.engine import Engine
from linnet.errors import ConditionWarning as ConditionWarning
from linnet.errors import LinAlgError as LinAlgError
from linnet.events import Sink

@overload
def cho_factor(a: Array, *, lower: bool = ..., tile: int | None = ...) -> CholeskyFactors[Array]: ...
@overload
def cho_factor(
    a: ArrayLike,
    *,
    lower: bool = ...,
    tile: int | None = ...,
    engine: Engine | None = ...,
    events: Sink | None = ...,
) -> CholeskyFactors[NDArray[Any]]: ...
@overload
def cho_solve(factors: tuple[Any, bool], b: Array, *, tile: int | None = ...) -> Array: ...
@overload
def cho_solve(
    factors: tuple[Any, bool],
    b: ArrayLike,
    *,
    tile: int | None = ...,
    engine: Engine | None = ...,
    events: Sink | None = ...,
) -> NDArray[Any]: ...
@overload
def cholesky(a: Array, *, upper: bool = ..., lower: bool | None = ..., tile: int | None = ...) -> Array: ...
@overload
def cholesky(
    a: ArrayLike,
    *,
    upper: bool = ...,
    lower: bool | None = ...,
    tile: int | None = ...,
    engine: Engine | None = ...,
    events: Sink | None = ...,
) -> NDArray[Any]: ...
@overload
def cond(x: Array, p: float | str | None = ..., *, tile: int | None = ...) -> Array: ...
@overload
def cond(
    x: ArrayLike,
    p: float | str | None = ...,
    *,
    tile: int | None = ...,
    engine: Engine | None = ...,
    events: Sink | None = ...,
) -> Any: ...
@overload
def cross(x1: Array, x2: ArrayLike, /, *, axis: int = ...) -> Array: ...
@overload
def cross(x1: ArrayLike, x2: Array, /, *, axis: int = ...) -> Array: ...
@overload
def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = ...) -> NDArray[Any]: ...
@overload
def det(a: Array, *, tile: int | None = ...) -> Array: ...
@overload
def det(
    a: ArrayLike, *, tile: int | None = ..., engine: Engine | None = ..., events: Sink | None = ...
) -> Any: ...
@overload
def diagonal(x: Array, /, *, offset: int = ...) -> Array: ...
@overload
def diagonal(x: ArrayLike, /, *, offset: int = ...) -> NDArray[Any]: ...
@overload
def eig(a: Array, *, gather: bool = ...) -> EigResult[Array]: ...
@overload
def eig(a: ArrayLike, *, gather: bool = ...) -> EigResult[NDArray[Any]]: ...
@overload
def eigh(
    a: Array, b: Any = ..., UPLO: str = ..., *, type: int = ..., tile: int | None = ...
) -> EighResult[Array]: ...
@overload
def eigh(
    a: ArrayLike,
    b: Any = ...,
    UPLO: str = ...,
    *,
    type: int = ...,
    tile: int | None = ...,
    engine: Engine | None = ...,
    events: Sink | None = ...,
) -> EighResult[NDArray[Any]]: ...
@overload
def eigvals(a: Array, *, gather: bool = ...) -> Array: ...
@overload
def eigvals(a: ArrayLike, *, gather: bool = ...) -> NDArray[Any]: ...
@overload
def eigvalsh(
    a: Array, b: Any = ..., UPLO: str = ..., *, type: int = ..., tile: int | None = ...
) -> Array: ...
@overload
def eigvalsh(
    a: ArrayLike,
    b: Any = ...,
    UPLO: str = ...,
    *,
    type: int = ...,
    tile: int | None = ...,
    engine: Engine | None = ...,
    events: Sink | None = ...,
) -> NDArray[Any]: ...
@overload
def inv(a: Array, *, tile: int | None = ...) -> Array: ...
@overload
def inv(
    a: ArrayLike, *, tile: int | None = ..., engine: Engine | None = ..., events: Sink | None = ...
) -> NDArray[Any]: ...
@overload
def lstsq(
    a: Array, b: ArrayLike, rcond: float | None = ..., *, tile: int | None = ...
) -> LstsqResult[Array]: ...
@overload
def lstsq(
    a: ArrayLike, b: Array, rcond: float | None = ..., *, tile: int | None = ...
) -> LstsqResult[Array]: ...
@overload
def lstsq(
    a: ArrayLike,
    b: ArrayLike,
    rcond: float | None = ...,
    *,
    tile: int | None = ...,
    engine: Engine | None = ...,
    events: Sink | None = ...,
) -> LstsqResult[NDArray[Any]]: ...
@overload
def lu(
    a: Array, permute_l: Literal[True], *, p_indices: bool | None = ..., tile: int | None = ...
) -> LUPermuted[Array]: ...
@overload
def lu(
    a: Array, permute_l: bool = ..., *, p_indices: bool | None = ..., tile: int | None = ...
) -> LUResult[Array]: ...
@overload
def lu(
    a: ArrayLike,
    permute_l: Literal[True],
    *,
    p_indices: bool | None = ...,
    tile: int | None = ...,
    engine: Engine | None = ...,
    events: Sink | None = ...,
) -> LUPermuted[NDArray[Any]]: ...
@overload
def lu(
    a: ArrayLike,
    permute_l: bool = ...,
    *,
    p_indices: bool | None = ...,
    tile: int | None = ...,
    engine: Engine | None = ...,
    events: Sink | None = ...,
) -> LUResult[NDArray[Any]]: ...
@overload
def lu_factor(a: Array, *, tile: int | None = ...) -> LUFactors[Array]: ...
@overload
def lu_factor(
    a: ArrayLike, *, tile: int | None = ..., engine: Engine | None = ..., events: Sink | None = ...
) -> LUFactors[NDArray[Any]]: ...
@overload
def lu_solve(
    factors: tuple[Any, Any], b: Array, *, trans: int | str = ..., tile: int | None = ...
) -> Array: ...
@overload
def lu_solve(
    factors: tuple[Any, Any],
    b: ArrayLike,
    *,
    trans: int | str = ...,
    tile: int | None = ...,
    engine: Engine | None = ...,
    events: Sink | None = ...,
) -> NDArray[Any]: ...
@overload
def matmul(
    a: Array, b: ArrayLike, /, *, op_a: str = ..., op_b: str = ..., tile: int | None = ...
) -> Array: ...
@overload
def matmul(
    a: ArrayLike, b: Array, /, *, op_a: str = ..., op_b: str = ..., tile: int | None = ...
) -> Array: ...
@overload
def matmul(
    a: ArrayLike,
    b: ArrayLike,
    /,
    *,
    op_a: str = ...,
    op_b: str = ...,
    tile: int | None = ...,
    engine: Engine | None = ...,
    events: Sink | None = ...,
) -> NDArray[Any]: ...
@overload
def matrix_norm(x: Array, /, *, keepdims: bool = ..., ord: Any = ...) -> Array: ...
@overload
def matrix_norm(x: ArrayLike, /, *, keepdims: bool = ..., ord: Any = ...) -> Any: ...
@overload
def matrix_power(a: Array, n: int, *, tile: int | None = ...) -> Array: ...
@overload
def matrix_power(
    a: ArrayLike, n: int, *, tile: int | None = ..., engine: Engine | None = ..., events: Sink | None = ...
) -> NDArray[Any]: ...
@overload
def matrix_rank(
    a: Array, /, tol: Any = ..., hermitian: bool = ..., *, rtol: Any = ..., tile: int | None = ...
) -> Array: ...
@overload
def matrix_rank(
    a: ArrayLike,
    /,
    tol: Any = ...,
    hermitian: bool = ...,
    *,
    rtol: Any = ...,
    tile: int | None = ...,
    engine: Engine | None = ...,
    events: Sink | None = ...,
) -> Any: ...
@overload
def matrix_transpose(x: Array, /) -> Array: ...
@overload
def matrix_transpose(x: ArrayLike, /) -> NDArray[Any]: ...
def multi_dot(arrays: Any, *, out: Any = ...) -> Array: ...
@overload
def norm(
    x: Array, ord: Any = ..., axis: Any = ..., keepdims: bool = ..., *, tile: int | None = ...
) -> Array: ...
@overload
def norm(
    x: ArrayLike,
    ord: Any = ...,
    axis: Any = ...,
    keepdims: bool = ...,
    *,
    tile: int | None = ...,
    engine: Engine | None = ...,
    events: Sink | None = ...,
) -> Any: ...
@overload
def outer(x1: Array, x2: ArrayLike, /) -> Array: ...
@overload
def outer(x1: ArrayLike, x2: Array, /) -> Array: ...
@overload
def outer(x1: ArrayLike, x2: ArrayLike, /) -> NDArray[Any]: ...
@overload
def pinv(
    a: Array, rcond: Any = ..., hermitian: bool = ..., *, rtol: Any = ..., tile: int | None = ...
) -> Array: ...
@overload
def pinv(
    a: ArrayLike,
    rcond: Any = ...,
    hermitian: bool = ...,
    *,
    rtol: Any = ...,
    tile: int | None = ...,
    engine: Engine | None = ...,
    events: Sink | None = ...,
) -> NDArray[Any]: ...
@overload
def qr(a: Array, mode: Literal["r"], *, tile: int | None = ...) -> Array: ...
@overload
def qr(a: Array, mode: str = ..., *, tile: int | None = ...) -> QRResult[Array]: ...
@overload
def qr(
    a: ArrayLike,
    mode: Literal["r"],
    *,
    tile: int | None = ...,
    engine: Engine | None = ...,
    events: Sink | None = ...,
) -> NDArray[Any]: ...
@overload
def qr(
    a: ArrayLike,
    mode: str = ...,
    *,
    tile: int | None = ...,
    engine: Engine | None = ...,
    events: Sink | None = ...,
) -> QRResult[NDArray[Any]]: ...
@overload
def slogdet(a: Array, *, tile: int | None = ...) -> SlogdetResult[Array]: ...
@overload
def slogdet(
    a: ArrayLike, *, tile: int | None = ..., engine: Engine | None = ..., events: Sink | None = ...
) -> SlogdetResult[NDArray[Any]]: ...
@overload
def solve(a: Array, b: ArrayLike, *, tile: int | None = ...) -> Array: ...
@overload
def solve(a: ArrayLike, b: Array, *, tile: int | None = ...) -> Array: ...
@overload
def solve(
    a: ArrayLike,
    b: ArrayLike,
    *,
    tile: int | None = ...,
    engine: Engine | None = ...,
    events: Sink | None = ...,
) -> NDArray[Any]: ...
@overload
def solve_triangular(
    a: Array,
    b: ArrayLike,
    *,
    lower: bool = ...,
    trans: int | str = ...,
    unit_diagonal: bool = ...,
    side: str = ...,
    tile: int | None = ...,
) -> Array: ...
@overload
def solve_triangular(
    a: ArrayLike,
    b: Array,
    *,
    lower: bool = ...,
    trans: int | str = ...,
    unit_diagonal: bool = ...,
    side: str = ...,
    tile: int | None = ...,
) -> Array: ...
@overload
def solve_triangular(
    a: ArrayLike,
    b: ArrayLike,
    *,
    lower: bool = ...,
    trans: int | str = ...,
    unit_diagonal: bool = ...,
    side: str = ...,
    tile: int | None = ...,
    engine: Engine | None = ...,
    events: Sink | None = ...,
) -> NDArray[Any]: ...
@overload
def svd(
    a: Array,
    full_matrices: bool = ...,
    *,
    compute_uv: Literal[False],
    hermitian: bool = ...,
    tile: int | None = ...,
) -> Array: ...
@overload
def svd(
    a: Array,
    full_matrices: bool = ...,
    compute_uv: bool = ...,
    hermitian: bool = ...,
    *,
    tile: int | None = ...,
) -> SVDResult[Array]: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = ...,
    *,
    compute_uv: Literal[False],
    hermitian: bool = ...,
    tile: int | None = ...,
    engine: Engine | None = ...,
    events: Sink | None = ...,
) -> NDArray[Any]: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = ...,
    compute_uv: bool = ...,
    hermitian: bool = ...,
    *,
    tile: int | None = ...,
    engine: Engine | None = ...,
    events: Sink | None = ...,
) -> SVDResult[NDArray[Any]]: ...
def svd_compressed(
    a: Any,
    /,
    k: int,
    iterator: str = ...,
    n_power_iter: int = ...,
    n_oversamples: int = ...,
    seed: Any = ...,
    coerce_signs: bool = ...,
) -> SVDResult[Array]: ...
@overload
def svdvals(a: Array, *, tile: int | None = ...) -> Array: ...
@overload
def svdvals(
    a: ArrayLike, *, tile: int | None = ..., engine: Engine | None = ..., events: Sink | None = ...
) -> NDArray[Any]: ...
@overload
def symm(
    a: Array, b: ArrayLike, /, *, lower: bool = ..., side: str = ..., tile: int | None = ...
) -> Array: ...
@overload
def symm(
    a: ArrayLike, b: Array, /, *, lower: bool = ..., side: str = ..., tile: int | None = ...
) -> Array: ...
@overload
def symm(
    a: ArrayLike,
    b: ArrayLike,
    /,
    *,
    lower: bool = ...,
    side: str = ...,
    tile: int | None = ...,
    engine: Engine | None = ...,
    events: Sink | None = ...,
) -> NDArray[Any]: ...
@overload
def syrk(a: Array, /, *, adjoint: bool = ..., tile: int | None = ...) -> Array: ...
@overload
def syrk(
    a: ArrayLike,
    /,
    *,
    adjoint: bool = ...,
    tile: int | None = ...,
    engine: Engine | None = ...,
    events: Sink | None = ...,
) -> NDArray[Any]: ...
def tensordot(x1: Any, x2: Any, /, axes: Any = ...) -> Array: ...
def tensorinv(a: Any, ind: int = ...) -> Array: ...
def tensorsolve(a: Any, b: Any, axes: Any = ...) -> Array: ...
@overload
def trace(x: Array, /, *, offset: int = ..., dtype: Any = ...) -> Array: ...
@overload
def trace(x: ArrayLike, /, *, offset: int = ..., dtype: Any = ...) -> Any: ...
@overload
def trmm(
    t: Array,
    b: ArrayLike,
    /,
    *,
    lower: bool = ...,
    unit_diagonal: bool = ...,
    side: str = ...,
    tile: int | None = ...,
) -> Array: ...
@overload
def trmm(
    t: ArrayLike,
    b: Array,
    /,
    *,
    lower: bool = ...,
    unit_diagonal: bool = ...,
    side: str = ...,
    tile: int | None = ...,
) -> Array: ...
@overload
def trmm(
    t: ArrayLike,
    b: ArrayLike,
    /,
    *,
    lower: bool = ...,
    unit_diagonal: bool = ...,
    side: str = ...,
    tile: int | None = ...,
    engine: Engine | None = ...,
    events: Sink | None = ...,
) -> NDArray[Any]: ...
@overload
def tsqr(data: Any, /, compute_svd: Literal[True], *, tile: int | None = ...) -> SVDResult[Array]: ...
@overload
def tsqr(data: Any, /, compute_svd: bool = ..., *, tile: int | None = ...) -> QRResult[Array]: ...
def vecdot(x1: Any, x2: Any, /, *, axis: int = ...) -> Array: ...
@overload
def vector_norm(x: Array, /, *, axis: Any = ..., keepdims: bool = ..., ord: Any = ...) -> Array: ...
@overload
def vector_norm(x: ArrayLike, /, *, axis: Any = ..., keepdims: bool = ..., ord: Any = ...) -> Any: ...
