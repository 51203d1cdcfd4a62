"""What a bag computes: a command and the parameters of its jobs, as plain data.

Parameters are values under names: lists, ranges, spans, whose product is taken, or a sample of it; a list of
dictionaries; or anything that yields dictionaries. A command is a line with `{name}` in it, a list of such
texts,
or a Python function, which travels by its import name.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np

from linnet.errors import FileMissingError, InputError

Parameters: TypeAlias = "Mapping[str, Any] | Iterable[Mapping[str, Any]]"
Command: TypeAlias = "str | Sequence[str] | Callable[..., Any]"
_NAME = re.compile(r"\{([A-Za-z_]\w*)\}")
_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*$")


class Span(Sequence[float]):
    """Evenly spaced numbers, both ends included; samples are drawn from all that is between."""

    def __init__(self, start: float, stop: float, count: int = 11, *, log: bool = False) -> None:
        if count < 1 or (log and not (start > 0 and stop > 0)):
            raise InputError(
                f"span({start!r}, {stop!r}, {count!r}): give at least one number, and ends above 0 with "
                f"log=True"
            )
        self.start: float = float(start)
        self.stop: float = float(stop)
        self.log: bool = log
        space = np.geomspace if log else np.linspace
        self._values: list[float] = space(self.start, self.stop, count).tolist()

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, place: Any) -> Any:
        return self._values[place]  # pyright: ignore[reportUnknownVariableType]

    def at(self, share: float) -> float:
        """The number at a share of the way."""
        if self.log:
            return float(self.start * (self.stop / self.start) ** share)
        return self.start + share * (self.stop - self.start)

    def __repr__(self) -> str:
        return f"span({self.start}, {self.stop}, {len(self)}{', log=True' if self.log else ''})"


def span(start: float, stop: float, count: int = 11, *, log: bool = False) -> Span:
    """Evenly spaced values of a parameter, both ends included.

    Parameters
    ----------
    start, stop : the ends
    count : how many; samples (`sample="latin:50"`) are drawn from the whole interval, whatever the count
    log : evenly spaced logarithms

    Returns
    -------
    Span, a sequence of floats

    Examples
    --------
    >>> import linnet as ln
    >>> list(ln.fleet.span(0, 1, 5))
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    return Span(start, stop, count, log=log)


def make_jobs(
    parameters: Parameters | None, sample: str | None, repeats: int, seed: int
) -> list[dict[str, Any]]:
    """The parameters of each job.

    Parameters
    ----------
    parameters : names with values, or dictionaries one by one
    sample : None for the product; "zip" for values side by side; "latin:N" for a Latin hypercube of N points;
        "random:N" for N points at random
    repeats : how often each is run; with more than one, jobs get a parameter `repeat`
    seed : of samples
    """
    if not isinstance(repeats, int) or isinstance(repeats, bool) or repeats < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"repeats={repeats!r}: give a whole number of at least 1")
    if parameters is None:
        found: list[dict[str, Any]] = [{}]
    elif isinstance(parameters, Mapping):
        found = _combined({str(k): v for k, v in cast("Mapping[str, Any]", parameters).items()}, sample, seed)
    else:
        if sample is not None:
            raise InputError(f"sample={sample!r} needs names with values; these are jobs one by one")
        found = [_checked(each) for each in parameters]
    if repeats > 1:
        found = [{**each, "repeat": i} for each in found for i in range(repeats)]
    return found


def _combined(named: Mapping[str, Any], sample: str | None, seed: int) -> list[dict[str, Any]]:
    axes = {name: _values(value) for name, value in named.items()}
    kind, _, count = (sample or "product").partition(":")
    if kind == "product" and not count:
        return [_checked(dict(zip(axes, each, strict=True))) for each in product(*axes.values())]
    if kind == "zip" and not count:
        lengths = {name: len(values) for name, values in axes.items()}
        if len(set(lengths.values())) > 1:
            raise InputError(f'sample="zip" needs lists of one length, and these have {lengths}')
        return [_checked(dict(zip(axes, each, strict=True))) for each in zip(*axes.values(), strict=True)]
    if kind not in ("latin", "random") or not count.isdigit() or int(count) < 1:
        raise InputError(
            f'sample={sample!r}: give None for the product, "zip", "latin:50" or "random:50" (50 being '
            f"how many)"
        )
    random, number = np.random.default_rng(seed), int(count)
    jobs: list[dict[str, Any]] = [{} for _ in range(number)]
    for name, values in axes.items():
        shares = random.random(number)
        if kind == "latin":  # one point in each of N strips, in an order of its own for each parameter
            shares = (random.permutation(number) + shares) / number
        for job, share in zip(jobs, shares.tolist(), strict=True):
            job[name] = values.at(share) if isinstance(values, Span) else values[int(share * len(values))]
    return [_checked(each) for each in jobs]


def _values(value: Any) -> Sequence[Any]:
    if isinstance(value, Span):
        return value
    if isinstance(value, np.ndarray):
        return cast("list[Any]", np.atleast_1d(cast("np.ndarray[Any, Any]", value)).tolist())
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        if not len(cast("Sequence[Any]", value)):
            raise InputError("a parameter without values makes a bag without jobs")
        return cast("Sequence[Any]", value)
    return [value]


def _checked(job: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(job, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"the parameters of a job are names with values, not {job!r}")
    plain: dict[str, Any] = {
        str(name): cast("Any", value).item() if isinstance(value, np.generic) else value
        for name, value in job.items()
    }
    try:
        return json.loads(json.dumps(plain))
    except (TypeError, ValueError) as error:
        raise InputError(
            f"parameters {plain!r} cannot be stored: {error}; numbers, texts, lists and dictionaries can"
        ) from None


@dataclass(frozen=True, slots=True)
class Program:
    """What each job runs."""

    argv: tuple[str, ...] = ()
    """A command with `{name}` in it."""
    function: str = ""
    """Or a Python function, `module:name`."""
    path: str = ""
    """Where Python finds modules."""

    @classmethod
    def of(cls, command: Command) -> Program:
        """From what the user gave."""
        if callable(command):
            return cls(function=_import_name(command), path=_python_path())
        if isinstance(command, str) and _FUNCTION.match(command):
            return cls(function=command, path=_python_path())
        parts = shlex.split(command) if isinstance(command, str) else [str(each) for each in command]
        if not parts:
            raise InputError("the command is empty")
        if "/" in parts[0] or parts[0].endswith(".py"):
            path = Path(parts[0]).resolve()
            if not path.exists():
                raise FileMissingError(f"there is no program {path}")
            parts = (
                [sys.executable, str(path), *parts[1:]] if path.suffix == ".py" else [str(path), *parts[1:]]
            )
        elif shutil.which(parts[0]) is None:
            raise FileMissingError(f"there is no program {parts[0]!r} on the PATH")
        return cls(argv=tuple(parts))

    def check(self, parameters: Mapping[str, Any]) -> None:
        """Refuse a command with names that no job has."""
        unknown = {name for part in self.argv for name in _NAME.findall(part)} - parameters.keys()
        if unknown:
            raise InputError(
                f"the command has {', '.join('{' + name + '}' for name in sorted(unknown))}, and "
                f"parameters are "
                f"{', '.join(parameters) or 'none'}"
            )
        self._check_text(parameters)

    def _check_text(self, parameters: Mapping[str, Any]) -> None:
        """Refuse what no command line can hold."""
        for name in sorted({name for part in self.argv for name in _NAME.findall(part)}):
            value = parameters[name]
            if isinstance(value, str) and ("\0" in value or not _encodes(value)):
                raise InputError(
                    f"{name}={value[:40]!r} cannot stand in a command line: it has a zero byte, or half a "
                    "character; a job finds all its parameters in LINNET_PARAMETERS, too"
                )

    def command(self, parameters: Mapping[str, Any]) -> list[str]:
        """The command line of one job.

        >>> Program(argv=("echo", "--x={x}", "{y}")).command({"x": 1, "y": "a b"})
        ['echo', '--x=1', 'a b']
        """
        if self.function:
            return [sys.executable, str(Path(__file__).parent / "call.py"), self.function]
        return [_NAME.sub(lambda found: _text(parameters[found[1]]), part) for part in self.argv]

    def to_json(self) -> dict[str, Any]:
        """As it is stored."""
        return {"argv": list(self.argv), "function": self.function, "path": self.path}


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _import_name(function: Callable[..., Any]) -> str:
    module, name = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
    if module == "__main__" or not module or "<" in name:
        raise InputError(
            f"{name or function!r} has no import name, so servers cannot find it; define it at the top of "
            f"a module "
            "of its own, without closure or lambda"
        )
    return f"{module}:{name}"


def _python_path() -> str:
    return os.pathsep.join(dict.fromkeys(os.path.abspath(path) for path in sys.path if path))


def digest(specification: Mapping[str, Any], jobs: Sequence[Mapping[str, Any]]) -> str:
    """Of everything a bag computes: two bags with the same are the same."""
    text = json.dumps([specification, list(jobs)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
