"""Files of killed MPI jobs: only those go that are old, the user's own, and in nobody's memory."""

from __future__ import annotations

import mmap
import os

from linnet.engines.mpi.leftovers import clear_leftovers


def made(folder, name, *, old=True):
    path = folder / name
    path.write_bytes(bytes(4096))
    if old:
        os.utime(path, (0, 0))
    return path


def test_only_what_nobody_uses_is_deleted(tmp_path):
    gone = [made(tmp_path, name) for name in ("mpich_shm_1_0", "vader_segment.host.7", "sm_segment.host.8")]
    new, other = made(tmp_path, "mpich_shm_2_0", old=False), made(tmp_path, "somebody_elses")
    used = made(tmp_path, "mpich_shm_3_0")
    with used.open("r+b") as file, mmap.mmap(file.fileno(), 4096):
        assert sorted(clear_leftovers(tmp_path)) == sorted(path.name for path in gone)
        assert not any(path.exists() for path in gone)
        assert new.exists()
        assert other.exists()
        assert used.exists()
    assert clear_leftovers(tmp_path) == ["mpich_shm_3_0"]


def test_where_nothing_tells_who_uses_what_nothing_is_deleted(tmp_path):
    path = made(tmp_path, "mpich_shm_1_0")
    assert clear_leftovers(tmp_path, tmp_path / "nowhere") == []
    assert clear_leftovers(tmp_path / "nowhere") == []
    assert path.exists()
