"""What users can rely on is a list, and changing it is a decision.

Names are fixed: adding one is a line here (or in a chapter of the arrays, and in the root's list of
them) and a fragment in `changes/`, removing one breaks somebody.
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import linnet as ln
from linnet.arrays.namespace import names

PUBLIC = {
    # the language
    "tile_program", "TileProgram", "BoundProgram", "ProgramBuilder", "Task", "TileKey",
    # roles of parameters
    "In", "Out", "Temp", "Table",
    # namespaces, and what runs everything
    "linalg", "fft", "random", "stats", "models", "fleet", "init",
    # how a job is run
    "Job", "Limits", "Options", "Policy",
    # what is shown of runs
    "progress", "report", "dashboard",
    # clusters to plan for
    "Cluster", "Node", "Link",
    # plain Python as futures
    "parallel", "pure", "Future", "submit_call", "map", "as_completed",
    # derivatives
    "grad", "value_and_grad", "jvp", "vjp", "hvp", "hessian", "jacobian", "checkpoint", "custom_vjp",
    "DerivativeError",
    # plain loops as array programs
    "loops", "grid", "wavefront", "einop", "tensor", "monoid", "storage", "LoopError",
    # sparse arrays
    "sparse",
    # arrays for other libraries
    "to_arrow", "to_cubed", "to_dask",
    # kernels
    "kernel", "Kernel",
    # errors
    "LinnetError", "ProgramError", "ParallelError", "SingleAssignmentError", "UnwrittenTileError", "BindError", "WireError",
    "UnknownKernelError", "KernelDeclarationError", "KernelError", "LinAlgError", "InputError",
    "MissingExtraError", "BudgetError",
    "FileError", "FileMissingError", "FileDeniedError", "FormatError",
    "AddressError", "JobError", "JobFailedError", "JobStoppedError", "JobCancelledError",
    "StoreError", "MissingTileError", "DamagedLedgerError", "DamagedTileError",
    "EngineClosedError", "UnreachableError",
    # about the package
    "__version__",
}  # fmt: skip

OURS = {
    "Array", "BlockView", "compute", "persist", "rechunk", "map_blocks", "map_overlap", "apply_gufunc",
    "topk", "argtopk", "as_gufunc", "blockwise", "coarsen", "overlap", "reshape_blockwise", "store",
    "trim_overlap", "unify_chunks", "sliding_window_view",
    "from_npy", "from_npz", "from_zarr", "to_npy", "to_zarr",
    "from_hdf5", "read_csv", "read_parquet", "to_csv", "to_hdf5", "to_parquet",
    "submit", "attach", "plan", "estimate",
}  # fmt: skip
"""Names of arrays that neither NumPy nor the standard has."""

STANDARD = """
    __array_api_version__ __array_namespace_info__ e inf nan newaxis pi
    arange asarray empty empty_like eye from_dlpack full full_like linspace meshgrid ones ones_like tril triu
    zeros zeros_like astype broadcast_arrays broadcast_shapes broadcast_to can_cast finfo iinfo isdtype
    result_type
    bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128
    abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_invert bitwise_or
    bitwise_right_shift bitwise_xor ceil clip conj copysign cos cosh divide equal exp expm1 floor floor_divide
    greater greater_equal hypot imag isfinite isinf isnan less less_equal log log1p log2 log10 logaddexp
    logical_and logical_not logical_or logical_xor maximum minimum multiply negative nextafter not_equal
    positive pow real reciprocal remainder round sign signbit sin sinh square sqrt subtract tan tanh trunc
    take take_along_axis matmul matrix_transpose tensordot vecdot
    concat expand_dims flip moveaxis permute_dims repeat reshape roll squeeze stack tile unstack
    argmax argmin count_nonzero nonzero searchsorted where
    unique_all unique_counts unique_inverse unique_values argsort sort
    cumulative_prod cumulative_sum max mean min prod std sum var all any diff
"""
"""Every name of the array API standard's main namespace, version 2024.12."""


def test_the_public_names_are_those_listed():
    assert set(ln.__all__) == PUBLIC | names().keys()
    assert len(ln.__all__) == len(set(ln.__all__))


def test_names_of_arrays_are_the_standards_numpys_or_few_of_our_own():
    assert {name for name in names() if not hasattr(np, name)} - {"__array_api_version__"} == OURS
    assert set(STANDARD.split()) <= names().keys()


def test_every_public_name_is_there_and_says_what_it_is():
    for name in ln.__all__:
        found = getattr(ln, name)
        assert not callable(found) or found.__doc__, f"ln.{name} has no docstring"
    for space in (ln.linalg, ln.fft, ln.random, ln.stats, ln.models):
        for name in space.__all__:
            assert getattr(space, name).__doc__, f"{space.__name__}.{name} has no docstring"


def test_the_standards_extensions_are_complete():
    linalg = """cholesky cross det diagonal eigh eigvalsh inv matmul matrix_norm matrix_power matrix_rank
        matrix_transpose outer pinv qr slogdet solve svd svdvals tensordot trace vecdot vector_norm"""
    fft = """fft ifft fftn ifftn rfft irfft rfftn irfftn hfft ihfft fftfreq rfftfreq fftshift ifftshift"""
    assert set(linalg.split()) <= set(ln.linalg.__all__)
    assert set(fft.split()) <= set(ln.fft.__all__)


@pytest.mark.slow
def test_arrays_are_imported_when_they_are_used():
    """A script that only runs tile programs does not wait for them; a name there is not is no reason either."""
    code = (
        "import sys, linnet as ln; hasattr(ln, 'nothing_of_this_name'); dir(ln); "
        "assert not [name for name in sys.modules if name.startswith('linnet.arrays')]; "
        "from linnet import *; assert Array is ln.Array and random is ln.random"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_arrays_show_nothing_of_their_insides():
    """What NumPy's arrays have, and what is named here: `x.<Tab>` shows users no machinery."""
    ours = {"blocks", "chunks", "compute", "grid", "partitions", "persist", "storage", "vindex", *OURS}
    small = ln.linalg.inv(ln.asarray(np.eye(3)) + 0)
    for array in (ln.ones(3), small, ln.ones((40, 40), chunks=7) @ ln.ones((40, 40), chunks=7)):
        public = {name for name in dir(array) if not name.startswith("_")}
        assert public - set(dir(np.ndarray)) <= ours, public - set(dir(np.ndarray)) - ours
    assert not {"lib", "node", "public"} & {*dir(ln), *ln.__all__, *dir(ln.Array)}


@pytest.mark.slow
def test_who_computes_arrays_does_not_wait_for_planning_and_jobs():
    """They are imported by `plan` and `submit`: together they take as long as all the rest."""
    late = [
        "linnet.planning.plan",
        "linnet.planning.choosing",
        "linnet.workers.client",
        "linnet.workers.spec",
        "linnet.io",
        "linnet.futures.function",
        "linnet.fleet",
        "scipy.sparse",
        "islpy",
        "sqlite3",
        "ssl",
    ]
    code = f"import sys, linnet as ln; ln.asarray([1]); print([each for each in {late!r} if each in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout.strip() == "[]"
