"""Every error Linnet raises, in one tree.

Each error also is the built-in (or NumPy) error a user would think of catching.

    LinnetError
    ├── ProgramError            (ValueError)    a tile program is wrong; carries every diagnostic found
    │   ├── LoopError                           loops that cannot be run as arrays; says the line and why
    │   ├── ParallelError                       a function cannot be run as futures; says the line and why
    │   ├── SingleAssignmentError               two tasks write one tile (found at run time)
    │   └── UnwrittenTileError                  a tile is read that nobody writes (found at run time)
    ├── BindError               (ValueError)    sizes are missing, unknown, or outside what the program allows
    ├── WireError               (ValueError)    bytes that are not a valid tile program
    ├── UnknownKernelError      (LookupError)   no kernel of that name is registered
    ├── KernelDeclarationError  (ValueError)    a kernel is declared wrongly, or twice
    ├── KernelError             (RuntimeError, and what was raised)  a kernel raised; names the task, its line
    ├── LinAlgError             (numpy.linalg.LinAlgError)  singular, not positive definite, ...
    │   ├── MatrixError                         what is wrong with the matrix as a whole; names minor and tile
    │   └── NotPositiveDefiniteError            a tile has no Cholesky factor; says which leading minor fails
    ├── BudgetError             (MemoryError)   a plan cannot run within its memory budget
    ├── DerivativeError         (TypeError)     something has no derivative, or a function no rule; names it
    ├── InputError              (ValueError)    arrays given to a program do not fit it
    ├── EngineClosedError       (RuntimeError)  an engine was closed, or the one that kept an array's tiles
    ├── UnreachableError        (ConnectionError)  a cluster does not answer at the address given
    ├── RecordingError          (ValueError)    a line that is no recorded event
    ├── FileError               (OSError)       a file or object cannot be opened, read or written
    │   ├── FileMissingError    (FileNotFoundError)  there is no such file, bucket, key or member
    │   ├── FileDeniedError     (PermissionError)    somebody may not read or write it
    │   └── FormatError         (ValueError)    its bytes are not what its format asks for; says where
    ├── StoreError              (OSError)       a store cannot be reached, read or written
    │   ├── MissingTileError                    a tile that must be there is not
    │   ├── DamagedTileError                    a tile whose bytes are not what was written
    │   └── DamagedLedgerError                  the file of a job's ledger is damaged: resume() makes it anew
    ├── AddressError            (ValueError)    an address that leads to no job
    ├── JobError                (RuntimeError)  a job of stateless workers cannot go on
    │   ├── JobFailedError                      a task failed; says which, where, and with what error
    │   ├── JobStoppedError                     it stopped, unfinished: resume() goes on
    │   └── JobCancelledError                   somebody cancelled it
    ├── BlasUnavailableError    (ImportError)   SciPy lacks a BLAS or LAPACK routine in the form needed
    └── MissingExtraError       (ImportError)   an optional package is missing; says how to install it

    ConditionWarning            (RuntimeWarning)  a matrix is singular to working precision
    CompiledCoreWarning         (RuntimeWarning)  a compiled library is missing: some functions are slow
"""

from __future__ import annotations

import builtins
import re
import sys
import warnings
from contextlib import suppress

from numpy.linalg import LinAlgError as _NumpyLinAlgError


class LinnetError(Exception):
    """Base of all errors raised by Linnet."""


class ProgramError(LinnetError, ValueError):
    """A tile program is wrong.

    The message shows all that was found, each with file, line, source and caret;
    `diagnostics` holds the same as values.
    """

    def __init__(self, message: str, diagnostics: tuple[object, ...] = ()) -> None:
        super().__init__(message)
        self.diagnostics = diagnostics


class LoopError(ProgramError):
    """Loops over arrays cannot be run with their serial meaning; `line` is the line of the file."""

    @property
    def line(self) -> int:
        """The line that is refused, counted in its file from 1; 0 if there is no source."""
        return getattr(self.diagnostics[0], "line", 0) if self.diagnostics else 0


class ParallelError(ProgramError):
    """A plain Python function cannot be run as futures with its serial meaning."""


class SingleAssignmentError(ProgramError):
    """Two tasks write the same tile."""


class UnwrittenTileError(ProgramError):
    """A task reads a tile that no task writes and that is no input."""


class BindError(LinnetError, ValueError):
    """The sizes given to `bind` are not those the program needs."""


class WireError(LinnetError, ValueError):
    """Bytes that are not a valid serialised tile program."""


class UnknownKernelError(LinnetError, LookupError):
    """No kernel of that name is registered."""


class KernelDeclarationError(LinnetError, ValueError):
    """A kernel is declared wrongly, or its name is taken."""


class KernelError(LinnetError, RuntimeError):
    """A kernel raised while a task ran.

    `task`, `tiles` and `where` say which task, the tiles it read, and the line of the
    program; they are empty on an error that has not yet passed through an engine.

    It also is an error of the kind that the kernel raised: whoever catches the `ValueError` that a function
    raises on NumPy's arrays catches it here too.
    """

    def __init__(
        self, message: str, *, task: object = None, tiles: tuple[object, ...] = (), where: str = ""
    ) -> None:
        Exception.__init__(self, message)  # the kind that the kernel raised may ask for other arguments
        self.task = task
        self.tiles = tiles
        self.where = where

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""

    @staticmethod
    def of(
        kind: type[BaseException],
        message: str,
        *,
        task: object = None,
        tiles: tuple[object, ...] = (),
        where: str = "",
    ) -> KernelError:
        """The error for a kernel that raised an error of this kind.

        >>> isinstance(KernelError.of(KeyError, "no such name"), KeyError)
        True
        """
        # It may be no base beside others, or make its objects or texts in its own way.
        with suppress(Exception):
            made = _both(kind)(message, task=task, tiles=tiles, where=where)
            if str(made) == message:
                return made
        return KernelError(message, task=task, tiles=tiles, where=where)

    def __reduce__(self) -> tuple[object, ...]:
        kind = Exception if type(self) is KernelError else type(self).__bases__[-1]
        place = None if kind.__module__ == "__main__" else sys.modules.get(kind.__module__)
        if getattr(place, kind.__qualname__, None) is not kind:
            kind = Exception  # another process could not find it
        return KernelError.of, (kind, str(self)), dict(vars(self))


def _both(kind: type[BaseException]) -> type[KernelError]:
    """A class of kernel errors that are also of this kind.

    Of Linnet's own kinds only the built-in ones behind them count: that a tile is missing, for one, is said
    to those who can bring it, not by a kernel.
    """
    plain: type[object] = next(each for each in kind.__mro__ if not issubclass(each, LinnetError))  # pyright: ignore
    if issubclass(KernelError, plain):
        return KernelError
    return type("KernelError", (KernelError, plain), {"__module__": __name__, "__doc__": KernelError.__doc__})


def named_kind(message: str) -> type[BaseException]:
    """The kind of error that a kernel raised, from the message of the `KernelError`; Exception if unknown.

    >>> named_kind("kernel 'call' raised ValueError: too short")
    <class 'ValueError'>
    """
    found = re.match(r"kernel '[^']*' raised (\w+):", message)
    kind = None if found is None else getattr(builtins, found[1], None)
    return kind if isinstance(kind, type) and issubclass(kind, Exception) else Exception


class LinAlgError(LinnetError, _NumpyLinAlgError):
    """A linear-algebra computation cannot be done on this matrix.

    `task`, `tiles` and `where` are as in `KernelError`.
    """

    def __init__(
        self, message: str, *, task: object = None, tiles: tuple[object, ...] = (), where: str = ""
    ) -> None:
        super().__init__(message)
        self.task = task
        self.tiles = tiles
        self.where = where


class MatrixError(LinAlgError):
    """A matrix is singular, not positive definite, or not finite.

    The message names the minor and the tile where there is one, so that it needs no further place: it is the
    same wherever the computation ran.
    """


class NotPositiveDefiniteError(LinAlgError):
    """A tile has no Cholesky factor; `minor` is the order of its first leading minor that is not positive."""

    def __init__(self, minor: int) -> None:
        super().__init__(f"the leading minor of order {minor} of the tile is not positive definite")
        self.minor = minor

    def __reduce__(self) -> tuple[type[NotPositiveDefiniteError], tuple[int]]:
        return NotPositiveDefiniteError, (self.minor,)


class BudgetError(LinnetError, MemoryError):
    """A plan cannot run within its memory budget, however it is ordered."""


class DerivativeError(LinnetError, TypeError):
    """A derivative that does not exist or is not known: of integers, of results that are no scalars, of
    functions without a rule. It comes when the derivative is asked for."""


class InputError(LinnetError, ValueError):
    """The arrays given to a program do not fit it."""


class EngineClosedError(LinnetError, RuntimeError):
    """An engine is asked for something after it was closed: to run a program, or for tiles that it kept."""


class UnreachableError(LinnetError, ConnectionError):
    """A cluster does not answer at the address that was given."""


class RecordingError(LinnetError, ValueError):
    """A line that is no recorded event."""


class FileError(LinnetError, OSError):
    """A file or object cannot be opened, read or written; the message names it."""


class FileMissingError(FileError, FileNotFoundError):
    """There is no such file, bucket, key or member."""


class FileDeniedError(FileError, PermissionError):
    """Whoever runs this may not read or write it."""


class FormatError(FileError, ValueError):
    """The bytes of a file are not what its format asks for; the message says where."""


class StoreError(LinnetError, OSError):
    """A store cannot be reached, read or written."""


class MissingTileError(StoreError):
    """A tile that must be in a store is not there."""


class DamagedTileError(StoreError):
    """What a store holds under a key is not the tile that was written."""


class DamagedLedgerError(StoreError):
    """The file of a job's ledger is damaged; `resume()` builds another one from the stored tiles."""


class AddressError(LinnetError, ValueError):
    """An address that leads to no job, or to one that cannot be read."""


class JobError(LinnetError, RuntimeError):
    """A job of stateless workers cannot go on."""


class JobFailedError(JobError):
    """A task of the job failed; the message says which one, where it stands, and why."""


class JobStoppedError(JobError):
    """The job stopped before its end, with nothing lost: `resume()` goes on."""


class JobCancelledError(JobError):
    """Somebody cancelled the job."""


class BlasUnavailableError(LinnetError, ImportError):
    """SciPy does not offer a BLAS or LAPACK routine in the form needed."""


class MissingExtraError(LinnetError, ImportError):
    """An optional package is not installed."""


DISTRIBUTION = "linnet-array"
"""The name that Linnet is installed by: `linnet` on the package index is somebody else's."""


def missing_extra(what: str, package: str, extra: str) -> MissingExtraError:
    """The error where something needs an optional package.

    >>> print(missing_extra("reading Zarr arrays", "zarr", "io"))
    reading Zarr arrays needs zarr; install it with: pip install "linnet-array[io]"
    """
    return MissingExtraError(
        f'{what} needs {package}; install it with: pip install "{DISTRIBUTION}[{extra}]"'
    )


class ConditionWarning(RuntimeWarning):
    """A system was solved whose matrix is singular to working precision."""


class CompiledCoreWarning(RuntimeWarning):
    """A part of the compiled core is missing: results are the same, but some functions are much slower."""


def warn_of(condition: float) -> None:
    """Say that solutions have hardly a correct digit, if the condition is one that says so (it is not 0)."""
    if condition:
        warnings.warn(
            f"the matrix is singular to working precision: its condition number is about {condition:.1e}, "
            "so the solution may have no correct digit",
            ConditionWarning,
            stacklevel=4,
        )
