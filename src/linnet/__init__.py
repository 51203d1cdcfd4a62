"""Linnet runs NumPy programs on computers that come and go.

    import linnet as ln

What works today: lazy arrays under NumPy's and the array API standard's names (`ln.asarray`,
`ln.random`, `ln.fft`, `ln.stats`), dense linear algebra (`ln.linalg`), the tile programs both are made of
(`ln.tile_program`, `ln.kernel`), files and object stores (`ln.from_zarr`, `ln.read_csv`, …), a
threads engine, and stateless workers that may die at any moment (`ln.submit`). See the
documentation for what is to come.
"""

from typing import TYPE_CHECKING, Any

from linnet.errors import (
    AddressError,
    BindError,
    BudgetError,
    DamagedLedgerError,
    DamagedTileError,
    DerivativeError,
    EngineClosedError,
    FileDeniedError,
    FileError,
    FileMissingError,
    FormatError,
    InputError,
    JobCancelledError,
    JobError,
    JobFailedError,
    JobStoppedError,
    KernelDeclarationError,
    KernelError,
    LinAlgError,
    LinnetError,
    LoopError,
    MissingExtraError,
    MissingTileError,
    ParallelError,
    ProgramError,
    SingleAssignmentError,
    StoreError,
    UnknownKernelError,
    UnreachableError,
    UnwrittenTileError,
    WireError,
)
from linnet.tiles import TileKey

if TYPE_CHECKING:
    from linnet import fft, fleet, linalg, models, random, stats
    from linnet.derivatives import (
        checkpoint,
        custom_vjp,
        grad,
        hessian,
        hvp,
        jacobian,
        jvp,
        value_and_grad,
        vjp,
    )
    from linnet.events.showing import progress
    from linnet.futures import Future, as_completed, parallel, pure, submit_call
    from linnet.futures import map_calls as map
    from linnet.kernels import Kernel, kernel
    from linnet.loopnests import einop, grid, loops, monoid, storage, tensor, wavefront
    from linnet.planning.cluster import Cluster, Link, Node
    from linnet.programs import (
        BoundProgram,
        In,
        Out,
        ProgramBuilder,
        Table,
        Task,
        Temp,
        TileProgram,
        tile_program,
    )
    from linnet.session import init
    from linnet.session.reporting import dashboard, report
    from linnet.sparse_arrays import sparse
    from linnet.workers.client import Job
    from linnet.workers.launcher import Limits
    from linnet.workers.provisioner import Policy
    from linnet.workers.spec import Options

__version__ = "0.1.0.dev0"

_ARRAYS = frozenset(
    """
    Array BlockView __array_api_version__ __array_namespace_info__ abs absolute acos acosh
    add all allclose amax amin angle any append apply_along_axis apply_gufunc apply_over_axes
    arange arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin argpartition
    argsort argtopk argwhere around array array2string array_equal array_equiv array_repr
    array_split array_str as_gufunc asanyarray asarray asarray_chkfinite ascontiguousarray
    asfortranarray asin asinh astype atan atan2 atanh atleast_1d atleast_2d atleast_3d attach
    average bartlett base_repr binary_repr bincount bitwise_and bitwise_count bitwise_invert
    bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor blackman block
    blockwise bool broadcast_arrays broadcast_shapes broadcast_to busday_count busday_offset
    can_cast cbrt ceil choose clip coarsen column_stack common_type complex128 complex64
    compress compute concat concatenate conj conjugate convolve copy copysign copyto corrcoef
    correlate cos cosh count_nonzero cov cross cumprod cumsum cumulative_prod cumulative_sum
    datetime_data deg2rad degrees delete diag diag_indices diag_indices_from diagflat diagonal
    diff digitize divide divmod dot dsplit dstack e ediff1d einsum einsum_path empty empty_like
    equal estimate exp exp2 expand_dims expm1 extract eye fabs fill_diagonal finfo fix flatnonzero flip
    fliplr flipud float16 float32 float64 float_power floor floor_divide fmax fmin fmod
    format_float_positional format_float_scientific frexp from_dlpack from_hdf5 from_npy
    from_npz from_zarr frombuffer fromfile fromfunction fromiter frompyfunc fromstring full
    full_like gcd genfromtxt geomspace get_printoptions gradient greater greater_equal hamming
    hanning heaviside histogram histogram2d histogram_bin_edges histogramdd hsplit hstack hypot
    i0 identity iinfo imag indices inf inner insert int16 int32 int64 int8 interp intersect1d
    invert is_busday isclose iscomplex iscomplexobj isdtype isfinite isfortran isin isinf isnan
    isnat isneginf isposinf isreal isrealobj isscalar issubdtype iterable ix_ kaiser kron lcm
    ldexp left_shift less less_equal lexsort linspace load loadtxt log log10 log1p log2
    logaddexp logaddexp2 logical_and logical_not logical_or logical_xor logspace map_blocks
    map_overlap mask_indices matmul matrix_transpose matvec max maximum may_share_memory mean
    median meshgrid mgrid min min_scalar_type minimum mintypecode mod modf moveaxis multiply nan
    nan_to_num nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin
    nanpercentile nanprod nanquantile nanstd nansum nanvar ndarray ndim negative newaxis
    nextafter nonzero not_equal ogrid ones ones_like outer overlap packbits pad partition
    percentile permute_dims persist pi piecewise place plan poly polyadd polyder polydiv polyfit
    polyint polymul polysub polyval positive pow power printoptions prod promote_types ptp put
    put_along_axis putmask quantile rad2deg radians ravel ravel_multi_index read_csv
    read_parquet real real_if_close rechunk reciprocal remainder repeat require reshape
    reshape_blockwise resize result_type right_shift rint roll rollaxis roots rot90 round save
    savetxt savez savez_compressed searchsorted select set_printoptions setdiff1d setxor1d shape
    shares_memory sign signbit sin sinc sinh size sliding_window_view sort sort_complex spacing split
    sqrt square squeeze stack std store submit subtract sum swapaxes take take_along_axis tan tanh tensordot
    tile to_csv to_hdf5 to_npy to_parquet to_zarr topk trace transpose trapezoid tri tril
    tril_indices tril_indices_from trim_overlap trim_zeros triu triu_indices triu_indices_from
    true_divide trunc typename uint16 uint32 uint64 uint8 unify_chunks union1d unique unique_all
    unique_counts unique_inverse unique_values unpackbits unravel_index unstack unwrap vander
    var vdot vecdot vecmat vectorize vsplit vstack where zeros zeros_like
    """.split()  # noqa: SIM905 # a list this long reads better as a text
)
"""Names of the arrays' chapters, known without importing these: a test compares them."""

_BRIDGES = frozenset({"to_arrow", "to_cubed", "to_dask"})
"""Names of the bridges to other libraries, likewise."""

_CLUSTERS = frozenset({"Cluster", "Link", "Node"})
"""What plans are made for."""

_JOBS = {
    "Job": "linnet.workers.client",
    "Limits": "linnet.workers.launcher",
    "Options": "linnet.workers.spec",
    "Policy": "linnet.workers.provisioner",
}
"""What `submit` takes and returns, and where it is."""

_PROGRAMS = frozenset(
    "BoundProgram In Out ProgramBuilder Table Task Temp TileProgram tile_program".split()  # noqa: SIM905
)
"""The language of tile programs."""

_WATCHING = {
    "dashboard": "linnet.session.reporting",
    "progress": "linnet.events.showing",
    "report": "linnet.session.reporting",
}
"""What shows runs to people, and where it is."""

_FUTURES = frozenset({"Future", "as_completed", "map", "parallel", "pure", "submit_call"})
"""Plain Python run as futures."""

_DERIVATIVES = frozenset(
    {"checkpoint", "custom_vjp", "grad", "hessian", "hvp", "jacobian", "jvp", "value_and_grad", "vjp"}
)
"""Derivatives of functions of arrays."""
_LOOPS = frozenset({"einop", "grid", "loops", "monoid", "storage", "tensor", "wavefront"})
"""Programs written as plain loops."""

__all__ = [  # pyright: ignore[reportUnsupportedDunderAll] # the arrays' names are not in this file
    "AddressError",
    "BindError",
    "BoundProgram",
    "BudgetError",
    "Cluster",
    "DamagedLedgerError",
    "DamagedTileError",
    "DerivativeError",
    "EngineClosedError",
    "Future",
    "FileDeniedError",
    "FileError",
    "FileMissingError",
    "FormatError",
    "In",
    "InputError",
    "Job",
    "JobCancelledError",
    "JobError",
    "JobFailedError",
    "JobStoppedError",
    "Kernel",
    "KernelDeclarationError",
    "KernelError",
    "LinAlgError",
    "Limits",
    "Link",
    "LinnetError",
    "LoopError",
    "MissingExtraError",
    "MissingTileError",
    "Node",
    "Options",
    "Out",
    "ParallelError",
    "Policy",
    "ProgramBuilder",
    "ProgramError",
    "SingleAssignmentError",
    "StoreError",
    "Table",
    "Task",
    "Temp",
    "TileKey",
    "TileProgram",
    "UnknownKernelError",
    "UnreachableError",
    "UnwrittenTileError",
    "WireError",
    "__version__",
    "as_completed",
    "checkpoint",
    "custom_vjp",
    "dashboard",
    "einop",
    "fft",
    "fleet",
    "grad",
    "grid",
    "hessian",
    "hvp",
    "init",
    "jacobian",
    "jvp",
    "kernel",
    "linalg",
    "loops",
    "map",
    "models",
    "monoid",
    "parallel",
    "progress",
    "pure",
    "random",
    "report",
    "sparse",
    "stats",
    "storage",
    "submit_call",
    "tensor",
    "tile_program",
    "value_and_grad",
    "vjp",
    "wavefront",
    *sorted(_ARRAYS | _BRIDGES),
]


def __getattr__(name: str) -> Any:
    """Engines and namespaces are imported when first used: they take longer than all the rest."""
    from importlib import import_module
    from types import SimpleNamespace

    if name in ("fft", "fleet", "linalg", "models", "random", "stats"):
        return import_module(f"linnet.{name}")
    if name == "init":
        return import_module("linnet.session").init
    if name in ("Kernel", "kernel"):
        return getattr(import_module("linnet.kernels"), name)
    if name in _PROGRAMS:
        return getattr(import_module("linnet.programs"), name)
    if name in _FUTURES:
        return getattr(import_module("linnet.futures"), "map_calls" if name == "map" else name)
    if name in _WATCHING:
        return getattr(import_module(_WATCHING[name]), name)
    if name in _JOBS:
        return getattr(import_module(_JOBS[name]), name)
    if name in _DERIVATIVES:
        import_module("linnet.bridges")
        return getattr(import_module("linnet.derivatives"), name)
    if name == "sparse":
        import_module("linnet.bridges")
        return import_module("linnet.sparse_arrays").sparse
    if name in _LOOPS:
        return getattr(import_module("linnet.loopnests"), name)
    if name in _CLUSTERS:
        return getattr(import_module("linnet.planning.cluster"), name)
    if name == "lib":  # xarray looks for `lib.stride_tricks.sliding_window_view` in an array's namespace
        return SimpleNamespace(
            stride_tricks=SimpleNamespace(sliding_window_view=__getattr__("sliding_window_view"))
        )
    if name not in _ARRAYS | _BRIDGES:
        raise AttributeError(f"module 'linnet' has no attribute {name!r}{_near(name)}")
    names = import_module("linnet.arrays.namespace").names()
    bridges = import_module("linnet.bridges")  # from now on `asarray` knows arrays of other libraries
    globals()[name] = found = names[name] if name in _ARRAYS else getattr(bridges, name)
    return found


def _near(name: str) -> str:
    """What was meant, perhaps."""
    from difflib import get_close_matches

    if name.startswith("_"):
        return ""
    known = {each: f"ln.{each}" for each in __all__}
    of_matrices = "cholesky det eigh eigvalsh inv lstsq lu norm pinv qr slogdet solve svd svdvals"
    for each in of_matrices.split():
        known.setdefault(each, f"ln.linalg.{each}")
    known["default_rng"] = "ln.random.default_rng"
    found = get_close_matches(name, known, n=1, cutoff=0.75)
    return f"; did you mean {known[found[0]]}?" if found else ""


def __dir__() -> list[str]:
    return sorted(__all__)
