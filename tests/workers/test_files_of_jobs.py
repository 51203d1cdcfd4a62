"""Jobs that read and write files: workers use what their operator named, whatever the job says."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import job_kernels
import numpy as np
import pytest

import linnet as ln
from linnet.errors import FileDeniedError, InputError, JobError, LinnetError
from linnet.io import stores, web
from linnet.io.places import Place
from linnet.workers.files import check_files, checking, places
from linnet.workers.job_parts import open_parts
from linnet.workers.serving import serve
from linnet.workers.spec import spec_key

pytestmark = pytest.mark.slow

X = np.arange(24.0).reshape(4, 6)


@pytest.fixture
def data(tmp_path):
    """A folder with a file."""
    (tmp_path / "data").mkdir()
    np.save(tmp_path / "data" / "x.npy", X)
    return tmp_path / "data"


def doubled(path, store, **options):
    return ln.submit(ln.from_npy(path, chunks=2) * 2, store=store, **options)


def test_a_job_may_use_its_own_files(data, store):
    with doubled(data / "x.npy", store, launcher="threads") as job:
        assert np.array_equal(job.result().compute(), 2 * X)
        assert places(job.spec.program) == [str(data / "x.npy")]


@pytest.mark.slow
def test_processes_are_told_which_files_they_may_use(data, store):
    with doubled(data / "x.npy", store, workers=1) as job:
        assert np.array_equal(job.result().compute(), 2 * X)


def test_workers_use_no_files_unless_they_are_told(data, store, tmp_path):
    other = tmp_path / "data2"
    other.mkdir()
    with doubled(data / "x.npy", store, launcher=None) as job:
        for files in ((), [str(other)], [str(data / "x")], ["https://host/"]):
            with pytest.raises(JobError, match=r"wants its workers to use .*x\.npy, .*--allow-files ROOT"):
                serve(job.address, files=files)
            with pytest.raises(JobError, match="not allowed"):
                ln.attach(job.address, workers=1, launcher="threads", files=files)
        with ln.attach(job.address, workers=1, launcher="threads", files=[str(data)]) as workers:
            assert np.array_equal(workers.result().compute(), 2 * X)


def test_files_that_submit_was_told_are_those_that_count(data, store):
    with pytest.raises(JobError, match=r"\(allowed: nothing\)"):
        doubled(data / "x.npy", store, launcher="threads", files=())


def test_links_are_resolved_first(data, store, tmp_path):
    (tmp_path / "open").mkdir()
    os.symlink(data / "x.npy", tmp_path / "open" / "link.npy")
    os.symlink(data, tmp_path / "open" / "folder")
    for name in ("link.npy", "folder/x.npy", "../data/x.npy"):
        with doubled(f"{tmp_path}/open/{name}", store, launcher=None) as job:
            with pytest.raises(JobError, match="not allowed"):
                serve(job.address, files=[str(tmp_path / "open")])
            check_files(job.spec.program, [str(data)])
            job.delete()


def test_a_job_that_was_changed_gets_no_further(data, store, tmp_path):
    """Somebody who may write to the store puts another file into the job."""
    np.save(tmp_path / "secret.npy", X)
    with (
        doubled(tmp_path / "secret.npy", store, launcher=None) as hostile,
        doubled(data / "x.npy", store, launcher=None) as job,
    ):
        body = replace(hostile.spec, identity=job.spec.identity).to_bytes()
        open_parts(job.address).store.put(spec_key(job.name), [body])
        with pytest.raises(JobError, match=r"use .*secret\.npy, which is not allowed"):
            serve(job.address, files=places(job.spec.program))


@pytest.mark.parametrize(
    ("place", "root", "fits"),
    [
        ("https://host/data/x.npy", "https://host/data", True),
        ("https://host/data/x.npy", "https://HOST/data/", True),
        ("https://host/database/x.npy", "https://host/data", False),
        ("https://host/data/../secret", "https://host/data", False),
        ("https://host/data/%2e%2e/secret", "https://host/data", False),
        ("https://host.evil/data/x.npy", "https://host", False),
        ("https://host:8443/data/x.npy", "https://host", False),
        ("http://host/data/x.npy", "https://host/data", False),
        ("http://169.254.169.254/latest", "https://host/data", False),
        ("http://169.254.169.254/latest", "http://169.254.169.254", True),
        ("s3://bucket/x", "s3://bucket", True),
        ("s3://bucket2/x", "s3://bucket", False),
        ("file:///data/x.npy", "/data", True),
        ("file:///data/%2e%2e/etc/passwd", "/data", False),
        ("/etc/passwd", "/", True),
    ],
)
def test_what_is_under_a_root(monkeypatch, place, root, fits):
    monkeypatch.setattr("linnet.workers.files.places", lambda program: [place])
    if fits:
        check_files(job_kernels.sleeping, [root])
        return
    with pytest.raises(JobError, match="not allowed"):
        check_files(job_kernels.sleeping, [root])


def test_a_file_of_another_machine_is_not_one_here(monkeypatch):
    monkeypatch.setattr("linnet.workers.files.places", lambda program: ["file://server/data/x.npy"])
    with pytest.raises(InputError, match="is on the machine 'server': give file:///path"):
        check_files(job_kernels.sleeping, ["/data"])


@pytest.mark.parametrize("root", ["https://", "https:///data", "https://me:secret@host/data"])
def test_roots_name_a_host(root):
    with pytest.raises(InputError, match="no host or bucket"):
        check_files(job_kernels.sleeping, [root])


# ---- servers that send their readers on


class Sending(BaseHTTPRequestHandler):
    """Answers everything with another place."""

    def do_GET(self):
        self.server.asked.append(self.path)
        self.send_response(self.server.status)
        self.send_header("Location", self.server.target + self.path)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_HEAD = do_GET

    def log_message(self, *_):
        pass


@pytest.fixture
def sending(http_server):
    """A server that sends readers on to another one, which has a file, and both of their addresses."""
    np.save(http_server.folder / "x.npy", X)
    with ThreadingHTTPServer(("127.0.0.1", 0), Sending) as server:
        server.target, server.status, server.asked = http_server.url, 302, []
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def read_by_a_worker(url, store, **options):
    with doubled(f"{url}/x.npy", store, launcher="threads", **options) as job:
        job.wait(60)
        return job.result().compute()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_server_does_not_lead_workers_to_another(sending, http_server, store, status):
    server, url = sending
    server.status = status
    with pytest.raises(
        LinnetError, match=rf"sends its readers on to another .*{http_server.url}/x\.npy, which"
    ):
        read_by_a_worker(url, store)
    assert server.asked


def test_a_server_leads_workers_to_places_that_are_named_too(sending, http_server, store):
    _, url = sending
    found = read_by_a_worker(url, store, files=[f"{url}/x.npy", http_server.url])
    assert np.array_equal(found, 2 * X)


@pytest.mark.parametrize(
    "target", ["file:///etc/passwd?", "ftp://127.0.0.1", "http://169.254.169.254", "//[x"]
)
def test_where_no_server_leads_a_worker(sending, store, target):
    server, url = sending
    with doubled(f"{url}/x.npy", store, launcher=None) as job:
        server.target = target
        serve(job.address, files=[url])
        with pytest.raises(LinnetError, match=r"x\.npy (sends its readers on|cannot be read)"):
            job.wait(5)


def test_workers_read_the_web_as_clients_do(http_server, store):
    """Ranges, versions and whole files, without a redirection: the same numbers."""
    many = np.arange(60_000.0).reshape(200, 300)
    np.save(http_server.folder / "many.npy", many)
    np.savez(http_server.folder / "packed.npz", a=many)
    url = http_server.url
    with (
        ln.submit(
            ln.from_npy(f"{url}/many.npy", chunks=(100, 150)) + 1, store=store, launcher="threads"
        ) as job,
        ln.submit(
            ln.from_npz(f"{url}/packed.npz", "a", chunks=100), store=store, launcher="threads"
        ) as packed,
    ):
        assert np.array_equal(job.result().compute(), many + 1)
        assert np.array_equal(packed.result().compute(), many)


def test_what_workers_are_told_of_a_file_is_what_clients_are(http_server):
    """Else each would take a file for another one."""
    np.save(http_server.folder / "x.npy", X)
    place, absent = Place.of(f"{http_server.url}/x.npy"), Place.of(f"{http_server.url}/y.npy")
    known, data = stores.size_and_version(place), bytes(stores.read(place))
    with web.only(checking([])):
        assert stores.size_and_version(place) == known
        assert stores.read(place) == b"".join(stores.stream(place)) == data
        assert stores.read(place, 130, 140) == data[130:140]
        assert stores.read(place, 130) == data[130:]
        assert stores.read_ranges(place, [0, 8, 200], 8) == [data[:8], data[8:16], data[200:208]]
        assert not stores.exists(absent)
        with pytest.raises(FileDeniedError, match="cannot be used by workers in this way"):
            stores.write(place, b"")
