"""Compressed files, unpacked once for each process."""

from __future__ import annotations

import gzip
import subprocess
import sys

import pytest

from linnet.errors import FormatError
from linnet.io.places import Place
from linnet.io.stores import size_and_version
from linnet.io.unpacked import Bytes

READ = """
from linnet.io.places import Place
from linnet.io.unpacked import Bytes

print(Bytes(Place({path!r}), "", "gzip").size())
"""


@pytest.mark.slow
def test_the_process_ends_without_a_warning_of_open_files(tmp_path):
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(b"12345"))
    command = [sys.executable, "-W", "always", "-c", READ.format(path=str(path))]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (ended.stdout, ended.stderr) == ("5\n", "")


def test_a_file_that_was_broken_can_be_repaired_and_changed(tmp_path):
    path = tmp_path / "x.gz"
    place = Place(str(path))
    path.write_bytes(b"not compressed")
    with pytest.raises(FormatError, match="is not gzip"):
        Bytes(place, size_and_version(place)[1], "gzip").size()
    for text in (b"123", b"45678"):
        path.write_bytes(gzip.compress(text))
        source = Bytes(place, size_and_version(place)[1], "gzip")
        assert (source.size(), source.read(1, 9)) == (len(text), text[1:])
