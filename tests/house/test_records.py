"""`records.record` beside `dataclass(frozen=True, slots=True)`: the same classes, whenever methods are made."""

from __future__ import annotations

import copy
import pickle
import weakref
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, replace

import pytest

from linnet.records import record


class Base:
    """Something with a slot of its own."""

    __slots__ = ("__weakref__",)


def frozen(cls=None, /, **options):
    return dataclass(frozen=True, slots=True, **options)(cls) if cls else lambda each: frozen(each, **options)


def classes(decorator):
    @decorator
    class Point(Base):
        x: int
        y: list[int] = field(default_factory=list, compare=False)
        at: int | None = field(default=None, compare=False, repr=False, kw_only=True)

    @decorator(eq=False)
    class Checked:
        """Its values are checked."""

        low: int
        high: int = 3

        def __post_init__(self):
            if self.low > self.high:
                raise ValueError("upside down")

    @decorator
    class Own:
        name: str

        def __eq__(self, other):
            return isinstance(other, type(self)) and self.name.lower() == other.name.lower()

        def __hash__(self):
            return hash(self.name.lower())

        def __repr__(self):
            return "own"

    return Point, Checked, Own


def shown(Point, Checked, Own):
    """What users of the classes see, in an order that calls each method first somewhere."""
    seen = [[each.name for each in fields(Point)], Point.__match_args__, Point.__slots__]
    seen += [repr(Point(1)), repr(Point(y=[2], x=1, at=5)), Point(1, [1]) == Point(1, [2]), Point(1) == 1]
    seen += [hash(Point(3)) == hash(Point(3, at=2)), asdict(Point(1, [2], at=3)), Point(1).y is Point(1).y]
    seen += [replace(Point(1), at=7).at, copy.copy(Point(1, [2], at=3)).at, weakref.ref(Point) is not None]
    for wrong in (lambda: Point(), lambda: Point(1, 2, 3), lambda: Point(1, z=2), lambda: Checked(4)):
        with pytest.raises((TypeError, ValueError)) as caught:
            wrong()
        seen.append((type(caught.value), str(caught.value).replace("classes.<locals>.", "")))
    seen += [Checked(1) == Checked(1), repr(Checked(1)).replace("classes.<locals>.", "")]
    seen += [Own("A") == Own("a"), hash(Own("A")) == hash(Own("a")), repr(Own("A"))]
    for change in (lambda each: setattr(each, "x", 2), lambda each: delattr(each, "x")):
        with pytest.raises(FrozenInstanceError) as caught:
            change(Point(1))
        seen.append(str(caught.value))
    return seen


def test_a_record_does_what_a_frozen_dataclass_with_slots_does():
    assert shown(*classes(record)) == shown(*classes(frozen))


@record
class Sent:
    """Travels."""

    value: int
    rest: tuple[int, ...] = ()


def test_records_travel_and_are_compared_before_any_was_made_here():
    data = pickle.dumps(Sent(3, (4,)))
    assert pickle.loads(data) == Sent(3, (4,))
    match pickle.loads(data):
        case Sent(3, rest):
            assert rest == (4,)
        case _:
            pytest.fail("no match")
