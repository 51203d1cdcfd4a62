"""What a place says of itself, and what it keeps to itself."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from linnet.errors import FileError, FileMissingError, InputError
from linnet.io import stores
from linnet.io.places import Place


def test_paths_are_made_absolute():
    assert Place.of("a/b.npy").url == os.path.abspath("a/b.npy")
    assert Place.of(Path("a")).is_local


def test_a_url_of_a_file_names_one_of_this_machine():
    assert Place.of("file:///data/a%3Fb.npy") == Place.of("FILE://localhost/data/a%3Fb.npy")
    assert Place.of("file:///data/a%3Fb.npy").url == "/data/a?b.npy"
    with pytest.raises(InputError, match="file://server/x.npy is on the machine 'server'") as caught:
        Place.of("file://me:hush@server/x.npy")
    assert "hush" not in str(caught.value)
    with pytest.raises(InputError, match="has a query, which no file has"):
        Place.of("file:///data/a?b.npy")


def test_secrets_do_not_travel_and_do_not_show():
    given = {"secret_access_key": "hush", "access_key_id": "me", "endpoint": "http://127.0.0.1:1"}
    place = Place.of("s3://bucket/x", given)
    assert "hush" not in repr(place)
    assert "me'" not in repr(place)
    assert place.options == (("endpoint", "http://127.0.0.1:1"),)
    assert place.secrets == {"secret_access_key": "hush", "access_key_id": "me"}
    assert (place / "c/0").secrets == place.secrets


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("ftp://host/x", r"URLs with ftp:// are not known; use a path or s3://, gs://"),
        ("https://ann:hush@host/x", r"https://…@host/x holds a user's name or password"),
        ("https://host/x?sig=hush", r"https://host/x\?… has a query, which is not supported"),
        ("", "no name of a file"),
        (5, "named by a path or a URL, not by int"),
    ],
)
def test_names_that_are_refused(url: object, words: str):
    with pytest.raises(InputError, match=words) as caught:
        Place.of(url)
    assert "hush" not in str(caught.value)


def test_options_are_for_urls(tmp_path: Path):
    with pytest.raises(InputError, match="storage_options are for URLs"):
        Place.of(tmp_path / "x", {"region": "here"})


def test_a_missing_file_is_named_with_the_folder_that_is_there(tmp_path: Path):
    with pytest.raises(
        FileMissingError, match=rf"{tmp_path}/a/b: there is no such file.*there is {tmp_path}$"
    ):
        stores.read(Place.of(tmp_path / "a/b"))


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path):
    place = Place.of(tmp_path / "x")

    def blocks():
        yield b"one"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stores.write_stream(place, blocks())
    assert list(tmp_path.iterdir()) == []
    stores.write(place, b"data")
    assert bytes(stores.read(place, 1, 3)) == b"at"
    assert list(tmp_path.iterdir()) == [tmp_path / "x"]


def test_a_changed_file_is_noticed(tmp_path: Path):
    place = Place.of(tmp_path / "x")
    stores.write(place, b"data")
    version = stores.size_and_version(place)[1]
    stores.same_version(place, version)
    stores.write(place, b"other")
    with pytest.raises(FileError, match="has changed since it was opened; open it again"):
        stores.same_version(place, version)


def test_objects_in_memory_are_listed_and_removed():
    place = Place.of("memory://places/folder")
    for name in ("a", "b/c", "b/d"):
        stores.write(place / name, name.encode())
    assert stores.listing(place) == ["a", "b/c", "b/d"]
    assert stores.children(place) == ["a", "b"]
    stores.rename(place / "b", place / "e")
    assert stores.listing(place) == ["a", "e/c", "e/d"]
    stores.remove(place)
    assert stores.listing(place) == []
    assert not stores.exists(place / "a")
