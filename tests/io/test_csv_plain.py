"""The compiled parser of numbers: each the nearest double, and everything else as Arrow has it."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from linnet.errors import FormatError
from linnet.io import compiled, csv, csv_plain
from linnet.io.csv_columns import Dialect
from linnet.io.places import Place
from linnet.io.stores import size_and_version
from linnet.io.unpacked import Bytes

pytest.importorskip("pyarrow")
pytestmark = pytest.mark.needs("cc")
PLAIN = Dialect()
DTYPES = {"double": "f8", "int64": "i8"}


def parsed(fields: list[str], dialect: Dialect = PLAIN, kind: str = "double") -> Any:
    """One column of fields by the compiled parser alone; None where it gives up."""
    library = compiled.library()
    assert library, "a compiler is here, but the compiled core was not built"
    text = "\n".join(fields).encode()
    room = np.zeros(len(text) + compiled.BEHIND, np.uint8)
    room[: len(text)] = np.frombuffer(text, np.uint8)
    found = np.full(len(fields), -1, DTYPES[kind])
    marks = (dialect.delimiter, dialect.quote, dialect.decimal)
    parser = compiled.Parser(library, marks, ["", "NA", *dialect.missing], 1, {0: kind}, [found])
    row, taken = parser.parse(room[: len(text)], True, 0, len(fields))
    if row < 0:
        return None
    assert (row, taken) == (len(fields), len(text))
    return found


def in_pieces_of(patch: pytest.MonkeyPatch, size: int) -> None:
    patch.setattr(csv_plain, "_PIECE", size)
    patch.setattr(csv_plain, "_ROOMS", csv_plain._Rooms())


def same(found: np.ndarray, expected: list[float]) -> None:
    np.testing.assert_array_equal(found.view(np.int64), np.array(expected).view(np.int64))


DIGITS = st.text("0123456789", min_size=1, max_size=30)
NUMBERS = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "-"]),
    DIGITS,
    st.just("") | DIGITS.map(".{}".format),
    st.just("") | st.integers(-330, 330).map("e{}".format),
)


@pytest.mark.slow
@given(
    st.lists(NUMBERS | st.floats(allow_nan=False, allow_infinity=False).map(repr), min_size=1, max_size=50)
)
@example(["9007199254740993", "9007199254740993.0000000000000000001", "1.7976931348623158e308", "5e-324"])
@example(
    ["0.000000000000000000000000000000012345678901234567", "123456789012345678901234567890", "-0", "0e9"]
)
def test_every_number_is_the_nearest_double(texts: list[str]):
    for text in texts:
        expected = float(text)
        found = parsed([text])
        if math.isinf(expected) or (expected == 0 and text.strip("-0.").split("e")[0]):
            assert found is None  # out of range: not judged here
        else:
            same(found, [expected])


def test_numbers_between_two_doubles_go_to_the_even_one():
    """Exactly half-way, and a little beside it: where upper bits alone do not tell."""
    draw = random.Random(0)
    texts: list[str] = []
    for _ in range(2000):
        low = math.ldexp(draw.randrange(2**52, 2**53), draw.randrange(-60, 60))
        half = Fraction(low) + Fraction(math.ulp(low)) / 2
        shift = max(0, half.denominator.bit_length() - 1)
        digits = str(half.numerator * 5**shift)  # half = digits · 10^-shift, exactly
        texts += [
            f"{digits}e-{shift}",
            f"{digits[:19]}e{len(digits) - 19 - shift}",
            f"{digits}1e-{shift + 1}",
        ]
    same(parsed(texts), [float(text) for text in texts])


@pytest.mark.slow
def test_many_numbers_as_they_are_written():
    values = np.random.default_rng(0).integers(0, 2**64, 20_000, np.uint64).view(float)
    values = values[np.isfinite(values) & (np.abs(values) > 1e-307)]
    for write in (repr, "{:.3e}".format, "{:.17g}".format, "{:.25e}".format):
        texts = [write(value) for value in values.tolist()]
        same(parsed(texts), [float(text) for text in texts])


@given(st.lists(st.integers(-(10**18) + 1, 10**18 - 1), min_size=1, max_size=20))
def test_integers(values: list[int]):
    assert parsed([f" {value}\t" for value in values], kind="int64").tolist() == values
    assert parsed(["1.0"], kind="int64") is None
    assert parsed(["1234567890123456789"], kind="int64") is None
    assert parsed(["NA"], kind="int64") is None


def test_words_for_missing_values():
    dialect = Dialect(missing=("-999", "?"))
    found = parsed(["1", "-999", "?", "NA", "inf", "-inf", " .5", "5. ", "-999.5"], dialect)
    np.testing.assert_array_equal(found, [1, *[np.nan] * 3, np.inf, -np.inf, 0.5, 5, -999.5])
    for word in ("", "NAN", "-", "1x", "1e", '"1"', " NA", "0x1", "1 2", "+"):
        assert parsed(["1", word + "."]) is None or word == "+"
    np.testing.assert_array_equal(parsed(["1,5", "2"], Dialect(";", decimal=",")), [1.5, 2])


FIELDS = st.one_of(
    st.floats(allow_nan=False).map(repr),
    st.integers(-99, 99).map(str),
    st.sampled_from(
        ["", "NA", "nan", "-7", "x", '"1"', '"1,\n2"', " 3", "4 ", "1e400", "+1", "inf", "\t", "\r"]
    ),
)
ROWS = st.lists(
    st.lists(FIELDS, min_size=2, max_size=2)
    | st.lists(st.integers(0, 9).map(str), min_size=1, max_size=3)
    | st.just([""]),
    max_size=12,
)


@given(
    ROWS, st.sampled_from(["\n", "\r\n"]), st.booleans(), st.sampled_from([(0, 1), (1, 0), (1,)]), st.data()
)
def test_what_is_not_plain_is_as_arrow_has_it(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[list[str]],
    end: str,
    ended: bool,
    columns: tuple[int, ...],
    data: st.DataObject,
):
    """With the compiled parser, in pieces of any length, and without: the same numbers, or the same error."""
    path = tmp_path_factory.mktemp("csv") / "x.csv"
    path.write_bytes((end.join(",".join(row) for row in rows) + end * ended).encode())
    place = Place.of(path)
    size, version = size_and_version(place)
    where: dict[str, Any] = {"url": place.url, "options": (), "version": version, "compression": None}
    types = tuple(data.draw(st.sampled_from(["double", "double", "int64"])) for _ in columns)
    form: dict[str, Any] = {"dialect": Dialect().values(), "width": 2, "columns": columns, "types": types}

    def all_rows() -> list[Any]:
        found: list[Any] = []
        middle = -(-size // 2)
        surveys = [csv.survey(a, b, **where, quote='"') for a, b in ((-1, middle), (middle, size)) if b]
        for start, stop, first, count in csv.ranges(np.concatenate(surveys or [np.zeros((0, 5), int)]), size):
            tiles = [np.zeros(count, DTYPES[word]) for word in types]
            try:
                csv.read(start, stop, first, count, **where, **form, into=tiles)
            except FormatError as error:
                found.append(str(error))
            else:
                found.append([tile.tolist() for tile in tiles])
        return found

    with pytest.MonkeyPatch.context() as patch:
        in_pieces_of(patch, data.draw(st.sampled_from([7, 40, 4000])))
        ours = all_rows()
        patch.setattr(compiled, "library", lambda: None)
        theirs = all_rows()
    np.testing.assert_equal(ours, theirs)


def test_plain_rows_are_parsed_without_arrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    values = np.random.default_rng(0).normal(size=(3000, 5))
    np.savetxt(tmp_path / "x.csv", values, delimiter=",", fmt="%.17g")
    source = Bytes(Place.of(tmp_path / "x.csv"), "", None)
    in_pieces_of(monkeypatch, 1000)
    stop = source.size()
    assert csv_plain.counted(source, 0, stop, '"', begins=True) == (3000, 0)
    tile = np.zeros((3000, 2))
    form: dict[str, Any] = {"dialect": Dialect(), "width": 5, "columns": (3, 1), "types": ("double",) * 2}
    assert csv_plain.filled(source, 0, stop, 3000, **form, into=[tile])
    np.testing.assert_array_equal(tile, values[:, [3, 1]])
    assert not csv_plain.filled(source, 0, stop, 2999, **form, into=[tile])
    assert not csv_plain.filled(source, 0, stop, 3000, **form, into=[tile.astype(">f8")])
