"""A study of Optuna, or of any library that asks and tells in its way, as the search of a bag."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from linnet.errors import InputError


class Trials:
    """Jobs that a study of Optuna asks for, as `Bag(search=…)` wants them.

    Jobs that fail, or are stopped as hopeless, are told as failed trials. A bag that goes on in another
    process needs a study that stored its trials (`create_study(storage=…, load_if_exists=True)`). It is
    told what became of them by their numbers.

    Parameters
    ----------
    study : an `optuna.Study`, or an object with the same `ask()` and `tell(trial, …)`
    space : a function that is given a trial and returns the parameters of a job
        (`lambda trial: {"x": trial.suggest_float("x", 0, 1)}`)
    count : how many jobs, in all
    value : a function from the result of a job to what the study is told; by default the result itself, or
        its "value" if it is a dictionary

    Examples
    --------
    >>> class Trial:
    ...     number = 0
    >>> class Study:  # what Optuna's does, but for the thinking
    ...     def ask(self):
    ...         return Trial()
    ...
    ...     def tell(self, trial, values=None, state=None, skip_if_finished=False):
    ...         print("told", values)
    >>> from linnet.fleet import Trials
    >>> search = Trials(Study(), lambda trial: {"x": 3}, count=1)
    >>> search.ask(), search.ask()
    ({'x': 3, 'trial': 0}, None)
    >>> search.tell({"x": 3, "trial": 0}, 9.0)
    told 9.0
    """

    def __init__(
        self,
        study: Any,
        space: Callable[[Any], Mapping[str, Any]],
        count: int,
        value: Callable[[Any], Any] | None = None,
    ) -> None:
        if not (hasattr(study, "ask") and hasattr(study, "tell")):
            raise InputError(f"study={study!r}: give an optuna.Study, or an object with ask() and tell()")
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(f"count={count!r}: give how many jobs there are in all, at least 1")
        self.study: Any = study
        self.count: int = count
        self._space, self._value = space, value or _value
        self._known: set[int] = set()
        self._done: set[int] = set()

    def ask(self) -> dict[str, Any] | None:
        """Parameters of one more job, with the number of its trial; None when there are enough."""
        if len(self._known) >= self.count:
            return None
        trial = self.study.ask()
        self._known.add(trial.number)
        return {**self._space(trial), "trial": trial.number}

    def tell(self, parameters: Mapping[str, Any], result: Any) -> None:
        """What a job gave."""
        self._close(parameters, values=self._value(result))

    def failed(self, parameters: Mapping[str, Any]) -> None:
        """A job will give nothing."""
        self._close(parameters, state=_failed_state())

    def _close(self, parameters: Mapping[str, Any], **what: Any) -> None:
        number = int(parameters["trial"])
        self._known.add(number)
        if number not in self._done:
            self._done.add(number)
            self.study.tell(number, skip_if_finished=True, **what)


def _value(result: Any) -> Any:
    return cast("Any", result)["value"] if isinstance(result, Mapping) else result


def _failed_state() -> Any:
    """Optuna's word for a failed trial; without Optuna, a study of one's own is told this text."""
    try:
        from optuna.trial import TrialState  # pyright: ignore
    except ImportError:
        return "FAIL"
    return cast("Any", TrialState).FAIL
