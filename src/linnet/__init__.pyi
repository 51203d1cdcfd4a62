"""Types of the public names: written by `tools/stubs.py`."""

from numpy import base_repr as base_repr
from numpy import binary_repr as binary_repr
from numpy import bool as bool
from numpy import complex64 as complex64
from numpy import complex128 as complex128
from numpy import datetime_data as datetime_data
from numpy import float16 as float16
from numpy import float32 as float32
from numpy import float64 as float64
from numpy import format_float_positional as format_float_positional
from numpy import format_float_scientific as format_float_scientific
from numpy import get_printoptions as get_printoptions
from numpy import int8 as int8
from numpy import int16 as int16
from numpy import int32 as int32
from numpy import int64 as int64
from numpy import isscalar as isscalar
from numpy import issubdtype as issubdtype
from numpy import iterable as iterable
from numpy import mintypecode as mintypecode
from numpy import printoptions as printoptions
from numpy import set_printoptions as set_printoptions
from numpy import typename as typename
from numpy import uint8 as uint8
from numpy import uint16 as uint16
from numpy import uint32 as uint32
from numpy import uint64 as uint64

from linnet import fft as fft
from linnet import fleet as fleet
from linnet import linalg as linalg
from linnet import models as models
from linnet import random as random
from linnet import stats as stats
from linnet.arrays.array import Array as Array
from linnet.arrays.elements.broadcast import atleast_1d as atleast_1d
from linnet.arrays.elements.broadcast import atleast_2d as atleast_2d
from linnet.arrays.elements.broadcast import atleast_3d as atleast_3d
from linnet.arrays.elements.broadcast import broadcast_arrays as broadcast_arrays
from linnet.arrays.elements.broadcast import broadcast_shapes as broadcast_shapes
from linnet.arrays.elements.broadcast import broadcast_to as broadcast_to
from linnet.arrays.elements.choose_and_select import choose as choose
from linnet.arrays.elements.choose_and_select import compress as compress
from linnet.arrays.elements.choose_and_select import extract as extract
from linnet.arrays.elements.choose_and_select import select as select
from linnet.arrays.elements.creation import array as array
from linnet.arrays.elements.creation import asanyarray as asanyarray
from linnet.arrays.elements.creation import asarray as asarray
from linnet.arrays.elements.creation import asarray_chkfinite as asarray_chkfinite
from linnet.arrays.elements.creation import ascontiguousarray as ascontiguousarray
from linnet.arrays.elements.creation import asfortranarray as asfortranarray
from linnet.arrays.elements.creation import copy as copy
from linnet.arrays.elements.creation import from_dlpack as from_dlpack
from linnet.arrays.elements.creation import frombuffer as frombuffer
from linnet.arrays.elements.creation import fromiter as fromiter
from linnet.arrays.elements.creation import require as require
from linnet.arrays.elements.cumulative import cumprod as cumprod
from linnet.arrays.elements.cumulative import cumsum as cumsum
from linnet.arrays.elements.cumulative import cumulative_prod as cumulative_prod
from linnet.arrays.elements.cumulative import cumulative_sum as cumulative_sum
from linnet.arrays.elements.cumulative import nancumprod as nancumprod
from linnet.arrays.elements.cumulative import nancumsum as nancumsum
from linnet.arrays.elements.elementwise import ElementFunction, TwoResults
from linnet.arrays.elements.elementwise import sign as sign
from linnet.arrays.elements.elementwise import where as where
from linnet.arrays.elements.filled import empty as empty
from linnet.arrays.elements.filled import empty_like as empty_like
from linnet.arrays.elements.filled import full as full
from linnet.arrays.elements.filled import full_like as full_like
from linnet.arrays.elements.filled import ones as ones
from linnet.arrays.elements.filled import ones_like as ones_like
from linnet.arrays.elements.filled import zeros as zeros
from linnet.arrays.elements.filled import zeros_like as zeros_like
from linnet.arrays.elements.insert_and_delete import append as append
from linnet.arrays.elements.insert_and_delete import delete as delete
from linnet.arrays.elements.insert_and_delete import insert as insert
from linnet.arrays.elements.insert_and_delete import trim_zeros as trim_zeros
from linnet.arrays.elements.join_and_split import block as block
from linnet.arrays.elements.join_and_split import column_stack as column_stack
from linnet.arrays.elements.join_and_split import concat as concat
from linnet.arrays.elements.join_and_split import concatenate as concatenate
from linnet.arrays.elements.join_and_split import dstack as dstack
from linnet.arrays.elements.join_and_split import hstack as hstack
from linnet.arrays.elements.join_and_split import stack as stack
from linnet.arrays.elements.join_and_split import vstack as vstack
from linnet.arrays.elements.means_and_variances import mean as mean
from linnet.arrays.elements.means_and_variances import std as std
from linnet.arrays.elements.means_and_variances import var as var
from linnet.arrays.elements.reductions import all as all
from linnet.arrays.elements.reductions import amax as amax
from linnet.arrays.elements.reductions import amin as amin
from linnet.arrays.elements.reductions import any as any
from linnet.arrays.elements.reductions import count_nonzero as count_nonzero
from linnet.arrays.elements.reductions import max as max
from linnet.arrays.elements.reductions import min as min
from linnet.arrays.elements.reductions import prod as prod
from linnet.arrays.elements.reductions import ptp as ptp
from linnet.arrays.elements.reductions import sum as sum
from linnet.arrays.elements.roll_and_flip import flip as flip
from linnet.arrays.elements.roll_and_flip import fliplr as fliplr
from linnet.arrays.elements.roll_and_flip import flipud as flipud
from linnet.arrays.elements.roll_and_flip import kron as kron
from linnet.arrays.elements.roll_and_flip import repeat as repeat
from linnet.arrays.elements.roll_and_flip import resize as resize
from linnet.arrays.elements.roll_and_flip import roll as roll
from linnet.arrays.elements.roll_and_flip import rot90 as rot90
from linnet.arrays.elements.roll_and_flip import tile as tile
from linnet.arrays.elements.search import argwhere as argwhere
from linnet.arrays.elements.search import digitize as digitize
from linnet.arrays.elements.search import flatnonzero as flatnonzero
from linnet.arrays.elements.search import nonzero as nonzero
from linnet.arrays.elements.search import ravel_multi_index as ravel_multi_index
from linnet.arrays.elements.search import searchsorted as searchsorted
from linnet.arrays.elements.search import unravel_index as unravel_index
from linnet.arrays.elements.shapes import expand_dims as expand_dims
from linnet.arrays.elements.shapes import matrix_transpose as matrix_transpose
from linnet.arrays.elements.shapes import moveaxis as moveaxis
from linnet.arrays.elements.shapes import permute_dims as permute_dims
from linnet.arrays.elements.shapes import ravel as ravel
from linnet.arrays.elements.shapes import rechunk as rechunk
from linnet.arrays.elements.shapes import reshape as reshape
from linnet.arrays.elements.shapes import reshape_blockwise as reshape_blockwise
from linnet.arrays.elements.shapes import rollaxis as rollaxis
from linnet.arrays.elements.shapes import squeeze as squeeze
from linnet.arrays.elements.shapes import swapaxes as swapaxes
from linnet.arrays.elements.shapes import transpose as transpose
from linnet.arrays.elements.shared_memory_checks import may_share_memory as may_share_memory
from linnet.arrays.elements.shared_memory_checks import shares_memory as shares_memory
from linnet.arrays.elements.split import array_split as array_split
from linnet.arrays.elements.split import dsplit as dsplit
from linnet.arrays.elements.split import hsplit as hsplit
from linnet.arrays.elements.split import split as split
from linnet.arrays.elements.split import unstack as unstack
from linnet.arrays.elements.split import vsplit as vsplit
from linnet.arrays.elements.take_and_put import diagonal as diagonal
from linnet.arrays.elements.take_and_put import fill_diagonal as fill_diagonal
from linnet.arrays.elements.take_and_put import ix_ as ix_
from linnet.arrays.elements.take_and_put import place as place
from linnet.arrays.elements.take_and_put import put as put
from linnet.arrays.elements.take_and_put import put_along_axis as put_along_axis
from linnet.arrays.elements.take_and_put import putmask as putmask
from linnet.arrays.elements.take_and_put import take as take
from linnet.arrays.elements.take_and_put import take_along_axis as take_along_axis
from linnet.arrays.elements.take_and_put import trace as trace
from linnet.arrays.files.numpy_files import fromfile as fromfile
from linnet.arrays.files.numpy_files import fromstring as fromstring
from linnet.arrays.files.numpy_files import genfromtxt as genfromtxt
from linnet.arrays.files.numpy_files import load as load
from linnet.arrays.files.numpy_files import loadtxt as loadtxt
from linnet.arrays.files.numpy_files import save as save
from linnet.arrays.files.numpy_files import savetxt as savetxt
from linnet.arrays.files.numpy_files import savez as savez
from linnet.arrays.files.numpy_files import savez_compressed as savez_compressed
from linnet.arrays.files.read import from_hdf5 as from_hdf5
from linnet.arrays.files.read import from_npy as from_npy
from linnet.arrays.files.read import from_npz as from_npz
from linnet.arrays.files.read import from_zarr as from_zarr
from linnet.arrays.files.read import read_csv as read_csv
from linnet.arrays.files.read import read_parquet as read_parquet
from linnet.arrays.files.store_into import store as store
from linnet.arrays.files.write import to_hdf5 as to_hdf5
from linnet.arrays.files.write import to_npy as to_npy
from linnet.arrays.files.write import to_zarr as to_zarr
from linnet.arrays.files.write_tables import to_csv as to_csv
from linnet.arrays.files.write_tables import to_parquet as to_parquet
from linnet.arrays.functions.arg_extremes import argmax as argmax
from linnet.arrays.functions.arg_extremes import argmin as argmin
from linnet.arrays.functions.array_text import array2string as array2string
from linnet.arrays.functions.array_text import array_repr as array_repr
from linnet.arrays.functions.array_text import array_str as array_str
from linnet.arrays.functions.blocks_and_points import BlockView as BlockView
from linnet.arrays.functions.business_days import busday_count as busday_count
from linnet.arrays.functions.business_days import busday_offset as busday_offset
from linnet.arrays.functions.business_days import is_busday as is_busday
from linnet.arrays.functions.calculus import convolve as convolve
from linnet.arrays.functions.calculus import correlate as correlate
from linnet.arrays.functions.calculus import diff as diff
from linnet.arrays.functions.calculus import ediff1d as ediff1d
from linnet.arrays.functions.calculus import gradient as gradient
from linnet.arrays.functions.calculus import interp as interp
from linnet.arrays.functions.calculus import trapezoid as trapezoid
from linnet.arrays.functions.calculus import unwrap as unwrap
from linnet.arrays.functions.coarsen import coarsen as coarsen
from linnet.arrays.functions.contractions import dot as dot
from linnet.arrays.functions.contractions import inner as inner
from linnet.arrays.functions.contractions import matmul as matmul
from linnet.arrays.functions.contractions import matvec as matvec
from linnet.arrays.functions.contractions import outer as outer
from linnet.arrays.functions.contractions import tensordot as tensordot
from linnet.arrays.functions.contractions import vdot as vdot
from linnet.arrays.functions.contractions import vecdot as vecdot
from linnet.arrays.functions.contractions import vecmat as vecmat
from linnet.arrays.functions.cross_product import cross as cross
from linnet.arrays.functions.cross_product import einsum_path as einsum_path
from linnet.arrays.functions.dtypes import astype as astype
from linnet.arrays.functions.dtypes import can_cast as can_cast
from linnet.arrays.functions.dtypes import common_type as common_type
from linnet.arrays.functions.dtypes import copyto as copyto
from linnet.arrays.functions.dtypes import finfo as finfo
from linnet.arrays.functions.dtypes import iinfo as iinfo
from linnet.arrays.functions.dtypes import isdtype as isdtype
from linnet.arrays.functions.dtypes import min_scalar_type as min_scalar_type
from linnet.arrays.functions.dtypes import ndim as ndim
from linnet.arrays.functions.dtypes import promote_types as promote_types
from linnet.arrays.functions.dtypes import result_type as result_type
from linnet.arrays.functions.dtypes import shape as shape
from linnet.arrays.functions.dtypes import size as size
from linnet.arrays.functions.einsum import einsum as einsum
from linnet.arrays.functions.gufuncs import apply_along_axis as apply_along_axis
from linnet.arrays.functions.gufuncs import apply_gufunc as apply_gufunc
from linnet.arrays.functions.gufuncs import apply_over_axes as apply_over_axes
from linnet.arrays.functions.gufuncs import as_gufunc as as_gufunc
from linnet.arrays.functions.gufuncs import vectorize as vectorize
from linnet.arrays.functions.histograms import bincount as bincount
from linnet.arrays.functions.histograms import histogram as histogram
from linnet.arrays.functions.histograms import histogram2d as histogram2d
from linnet.arrays.functions.histograms import histogram_bin_edges as histogram_bin_edges
from linnet.arrays.functions.histograms import histogramdd as histogramdd
from linnet.arrays.functions.map_blocks import map_blocks as map_blocks
from linnet.arrays.functions.map_overlap import map_overlap as map_overlap
from linnet.arrays.functions.map_overlap import overlap as overlap
from linnet.arrays.functions.map_overlap import trim_overlap as trim_overlap
from linnet.arrays.functions.named_axes import blockwise as blockwise
from linnet.arrays.functions.named_axes import unify_chunks as unify_chunks
from linnet.arrays.functions.namespace_info import __array_namespace_info__ as __array_namespace_info__
from linnet.arrays.functions.nan_reductions import nanargmax as nanargmax
from linnet.arrays.functions.nan_reductions import nanargmin as nanargmin
from linnet.arrays.functions.nan_reductions import nanmax as nanmax
from linnet.arrays.functions.nan_reductions import nanmean as nanmean
from linnet.arrays.functions.nan_reductions import nanmin as nanmin
from linnet.arrays.functions.nan_reductions import nanprod as nanprod
from linnet.arrays.functions.nan_reductions import nanstd as nanstd
from linnet.arrays.functions.nan_reductions import nansum as nansum
from linnet.arrays.functions.nan_reductions import nanvar as nanvar
from linnet.arrays.functions.number_tests import iscomplex as iscomplex
from linnet.arrays.functions.number_tests import iscomplexobj as iscomplexobj
from linnet.arrays.functions.number_tests import isneginf as isneginf
from linnet.arrays.functions.number_tests import isposinf as isposinf
from linnet.arrays.functions.number_tests import isreal as isreal
from linnet.arrays.functions.number_tests import isrealobj as isrealobj
from linnet.arrays.functions.number_tests import real_if_close as real_if_close
from linnet.arrays.functions.numeric import allclose as allclose
from linnet.arrays.functions.numeric import angle as angle
from linnet.arrays.functions.numeric import around as around
from linnet.arrays.functions.numeric import array_equal as array_equal
from linnet.arrays.functions.numeric import array_equiv as array_equiv
from linnet.arrays.functions.numeric import clip as clip
from linnet.arrays.functions.numeric import fix as fix
from linnet.arrays.functions.numeric import i0 as i0
from linnet.arrays.functions.numeric import imag as imag
from linnet.arrays.functions.numeric import isclose as isclose
from linnet.arrays.functions.numeric import nan_to_num as nan_to_num
from linnet.arrays.functions.numeric import real as real
from linnet.arrays.functions.numeric import round as round
from linnet.arrays.functions.numeric import sinc as sinc
from linnet.arrays.functions.numpy_unchanged import frompyfunc as frompyfunc
from linnet.arrays.functions.numpy_unchanged import isfortran as isfortran
from linnet.arrays.functions.pack_bits import packbits as packbits
from linnet.arrays.functions.pack_bits import unpackbits as unpackbits
from linnet.arrays.functions.pad import pad as pad
from linnet.arrays.functions.piecewise import piecewise as piecewise
from linnet.arrays.functions.polynomials import poly as poly
from linnet.arrays.functions.polynomials import polyadd as polyadd
from linnet.arrays.functions.polynomials import polyder as polyder
from linnet.arrays.functions.polynomials import polydiv as polydiv
from linnet.arrays.functions.polynomials import polyfit as polyfit
from linnet.arrays.functions.polynomials import polyint as polyint
from linnet.arrays.functions.polynomials import polymul as polymul
from linnet.arrays.functions.polynomials import polysub as polysub
from linnet.arrays.functions.polynomials import polyval as polyval
from linnet.arrays.functions.polynomials import roots as roots
from linnet.arrays.functions.positions_in_grids import diag as diag
from linnet.arrays.functions.positions_in_grids import diagflat as diagflat
from linnet.arrays.functions.positions_in_grids import eye as eye
from linnet.arrays.functions.positions_in_grids import fromfunction as fromfunction
from linnet.arrays.functions.positions_in_grids import identity as identity
from linnet.arrays.functions.positions_in_grids import indices as indices
from linnet.arrays.functions.positions_in_grids import meshgrid as meshgrid
from linnet.arrays.functions.positions_in_grids import mgrid as mgrid
from linnet.arrays.functions.positions_in_grids import ogrid as ogrid
from linnet.arrays.functions.positions_in_grids import tri as tri
from linnet.arrays.functions.positions_in_grids import tril as tril
from linnet.arrays.functions.positions_in_grids import triu as triu
from linnet.arrays.functions.positions_in_grids import vander as vander
from linnet.arrays.functions.quantiles import median as median
from linnet.arrays.functions.quantiles import nanmedian as nanmedian
from linnet.arrays.functions.quantiles import nanpercentile as nanpercentile
from linnet.arrays.functions.quantiles import nanquantile as nanquantile
from linnet.arrays.functions.quantiles import percentile as percentile
from linnet.arrays.functions.quantiles import quantile as quantile
from linnet.arrays.functions.sets import intersect1d as intersect1d
from linnet.arrays.functions.sets import isin as isin
from linnet.arrays.functions.sets import setdiff1d as setdiff1d
from linnet.arrays.functions.sets import setxor1d as setxor1d
from linnet.arrays.functions.sets import union1d as union1d
from linnet.arrays.functions.sets import unique as unique
from linnet.arrays.functions.sets import unique_all as unique_all
from linnet.arrays.functions.sets import unique_counts as unique_counts
from linnet.arrays.functions.sets import unique_inverse as unique_inverse
from linnet.arrays.functions.sets import unique_values as unique_values
from linnet.arrays.functions.sliding_windows import sliding_window_view as sliding_window_view
from linnet.arrays.functions.sort import argpartition as argpartition
from linnet.arrays.functions.sort import argsort as argsort
from linnet.arrays.functions.sort import argtopk as argtopk
from linnet.arrays.functions.sort import lexsort as lexsort
from linnet.arrays.functions.sort import partition as partition
from linnet.arrays.functions.sort import sort as sort
from linnet.arrays.functions.sort import sort_complex as sort_complex
from linnet.arrays.functions.sort import topk as topk
from linnet.arrays.functions.spaced_numbers import arange as arange
from linnet.arrays.functions.spaced_numbers import geomspace as geomspace
from linnet.arrays.functions.spaced_numbers import linspace as linspace
from linnet.arrays.functions.spaced_numbers import logspace as logspace
from linnet.arrays.functions.statistics import average as average
from linnet.arrays.functions.statistics import corrcoef as corrcoef
from linnet.arrays.functions.statistics import cov as cov
from linnet.arrays.functions.triangle_indices import diag_indices as diag_indices
from linnet.arrays.functions.triangle_indices import diag_indices_from as diag_indices_from
from linnet.arrays.functions.triangle_indices import mask_indices as mask_indices
from linnet.arrays.functions.triangle_indices import tril_indices as tril_indices
from linnet.arrays.functions.triangle_indices import tril_indices_from as tril_indices_from
from linnet.arrays.functions.triangle_indices import triu_indices as triu_indices
from linnet.arrays.functions.triangle_indices import triu_indices_from as triu_indices_from
from linnet.arrays.functions.window_functions import bartlett as bartlett
from linnet.arrays.functions.window_functions import blackman as blackman
from linnet.arrays.functions.window_functions import hamming as hamming
from linnet.arrays.functions.window_functions import hanning as hanning
from linnet.arrays.functions.window_functions import kaiser as kaiser
from linnet.arrays.namespace import compute as compute
from linnet.arrays.namespace import persist as persist
from linnet.arrays.sending.estimate import estimate as estimate
from linnet.arrays.sending.plans import plan as plan
from linnet.arrays.sending.submit import attach as attach
from linnet.arrays.sending.submit import submit as submit
from linnet.bridges.arrow_columns import to_arrow as to_arrow
from linnet.bridges.cubed_arrays import to_cubed as to_cubed
from linnet.bridges.dask_arrays import to_dask as to_dask
from linnet.derivatives.custom import checkpoint as checkpoint
from linnet.derivatives.custom import custom_vjp as custom_vjp
from linnet.derivatives.modes import grad as grad
from linnet.derivatives.modes import hessian as hessian
from linnet.derivatives.modes import hvp as hvp
from linnet.derivatives.modes import jacobian as jacobian
from linnet.derivatives.modes import jvp as jvp
from linnet.derivatives.modes import value_and_grad as value_and_grad
from linnet.derivatives.modes import vjp as vjp
from linnet.errors import AddressError as AddressError
from linnet.errors import BindError as BindError
from linnet.errors import BudgetError as BudgetError
from linnet.errors import DamagedLedgerError as DamagedLedgerError
from linnet.errors import DamagedTileError as DamagedTileError
from linnet.errors import DerivativeError as DerivativeError
from linnet.errors import EngineClosedError as EngineClosedError
from linnet.errors import FileDeniedError as FileDeniedError
from linnet.errors import FileError as FileError
from linnet.errors import FileMissingError as FileMissingError
from linnet.errors import FormatError as FormatError
from linnet.errors import InputError as InputError
from linnet.errors import JobCancelledError as JobCancelledError
from linnet.errors import JobError as JobError
from linnet.errors import JobFailedError as JobFailedError
from linnet.errors import JobStoppedError as JobStoppedError
from linnet.errors import KernelDeclarationError as KernelDeclarationError
from linnet.errors import KernelError as KernelError
from linnet.errors import LinAlgError as LinAlgError
from linnet.errors import LinnetError as LinnetError
from linnet.errors import LoopError as LoopError
from linnet.errors import MissingExtraError as MissingExtraError
from linnet.errors import MissingTileError as MissingTileError
from linnet.errors import ParallelError as ParallelError
from linnet.errors import ProgramError as ProgramError
from linnet.errors import SingleAssignmentError as SingleAssignmentError
from linnet.errors import StoreError as StoreError
from linnet.errors import UnknownKernelError as UnknownKernelError
from linnet.errors import UnreachableError as UnreachableError
from linnet.errors import UnwrittenTileError as UnwrittenTileError
from linnet.errors import WireError as WireError
from linnet.events.showing import progress as progress
from linnet.futures.function import parallel as parallel
from linnet.futures.future import Future as Future
from linnet.futures.future import as_completed as as_completed
from linnet.futures.future import submit_call as submit_call
from linnet.futures.purity import pure as pure
from linnet.kernels.registry import Kernel as Kernel
from linnet.kernels.registry import kernel as kernel
from linnet.loopnests.einops import einop as einop
from linnet.loopnests.einops import tensor as tensor
from linnet.loopnests.function import loops as loops
from linnet.loopnests.grids import grid as grid
from linnet.loopnests.grids import wavefront as wavefront
from linnet.loopnests.monoids import monoid as monoid
from linnet.loopnests.storages import storage as storage
from linnet.planning.cluster import Cluster as Cluster
from linnet.planning.cluster import Link as Link
from linnet.planning.cluster import Node as Node
from linnet.programs.bound import BoundProgram as BoundProgram
from linnet.programs.build import ProgramBuilder as ProgramBuilder
from linnet.programs.grammar import In as In
from linnet.programs.grammar import Out as Out
from linnet.programs.grammar import Table as Table
from linnet.programs.grammar import Task as Task
from linnet.programs.grammar import Temp as Temp
from linnet.programs.program import TileProgram as TileProgram
from linnet.programs.program import tile_program as tile_program
from linnet.session.reporting import dashboard as dashboard
from linnet.session.reporting import report as report
from linnet.session.session import init as init
from linnet.sparse_arrays.making import sparse as sparse
from linnet.tiles.keys import TileKey as TileKey
from linnet.workers.client import Job as Job
from linnet.workers.launcher import Limits as Limits
from linnet.workers.provisioner import Policy as Policy
from linnet.workers.spec import Options as Options

__version__: str
__array_api_version__: str
abs: ElementFunction
absolute: ElementFunction
acos: ElementFunction
acosh: ElementFunction
add: ElementFunction
arccos: ElementFunction
arccosh: ElementFunction
arcsin: ElementFunction
arcsinh: ElementFunction
arctan: ElementFunction
arctan2: ElementFunction
arctanh: ElementFunction
asin: ElementFunction
asinh: ElementFunction
atan: ElementFunction
atan2: ElementFunction
atanh: ElementFunction
bitwise_and: ElementFunction
bitwise_count: ElementFunction
bitwise_invert: ElementFunction
bitwise_left_shift: ElementFunction
bitwise_not: ElementFunction
bitwise_or: ElementFunction
bitwise_right_shift: ElementFunction
bitwise_xor: ElementFunction
cbrt: ElementFunction
ceil: ElementFunction
conj: ElementFunction
conjugate: ElementFunction
copysign: ElementFunction
cos: ElementFunction
cosh: ElementFunction
deg2rad: ElementFunction
degrees: ElementFunction
divide: ElementFunction
divmod: TwoResults
e: float
equal: ElementFunction
exp: ElementFunction
exp2: ElementFunction
expm1: ElementFunction
fabs: ElementFunction
float_power: ElementFunction
floor: ElementFunction
floor_divide: ElementFunction
fmax: ElementFunction
fmin: ElementFunction
fmod: ElementFunction
frexp: TwoResults
gcd: ElementFunction
greater: ElementFunction
greater_equal: ElementFunction
heaviside: ElementFunction
hypot: ElementFunction
inf: float
invert: ElementFunction
isfinite: ElementFunction
isinf: ElementFunction
isnan: ElementFunction
isnat: ElementFunction
lcm: ElementFunction
ldexp: ElementFunction
left_shift: ElementFunction
less: ElementFunction
less_equal: ElementFunction
log: ElementFunction
log10: ElementFunction
log1p: ElementFunction
log2: ElementFunction
logaddexp: ElementFunction
logaddexp2: ElementFunction
logical_and: ElementFunction
logical_not: ElementFunction
logical_or: ElementFunction
logical_xor: ElementFunction
maximum: ElementFunction
minimum: ElementFunction
mod: ElementFunction
modf: TwoResults
multiply: ElementFunction
nan: float
ndarray = Array
negative: ElementFunction
newaxis: None
nextafter: ElementFunction
not_equal: ElementFunction
pi: float
positive: ElementFunction
pow: ElementFunction
power: ElementFunction
rad2deg: ElementFunction
radians: ElementFunction
reciprocal: ElementFunction
remainder: ElementFunction
right_shift: ElementFunction
rint: ElementFunction
signbit: ElementFunction
sin: ElementFunction
sinh: ElementFunction
spacing: ElementFunction
sqrt: ElementFunction
square: ElementFunction
subtract: ElementFunction
tan: ElementFunction
tanh: ElementFunction
true_divide: ElementFunction
trunc: ElementFunction
