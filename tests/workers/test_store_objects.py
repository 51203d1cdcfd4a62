"""Object stores: the shipped suite on SeaweedFS and on moto's S3, and what happens when they fail."""

from __future__ import annotations

import itertools
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from linnet.errors import InputError, MissingExtraError, MissingTileError, StoreError
from linnet.testing.stores import StoreProcessSuite, StoreSuite
from linnet.tiles.codec import decoded, encoded
from linnet.workers.store import open_store
from linnet.workers.stores import objects

pytestmark = [pytest.mark.needs("obstore")]
_NUMBERS = itertools.count()


@pytest.fixture(autouse=True)
def no_credentials_from_outside(monkeypatch):
    for name in (
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_CA_BUNDLE",
        "AWS_PROFILE",
        "AWS_ENDPOINT_URL",
    ):
        monkeypatch.delenv(name, raising=False)


class _ObjectSuite(StoreSuite, StoreProcessSuite):
    @pytest.fixture
    def environment(self, server):
        return server.environment

    @pytest.fixture
    def url(self, server):
        return f"s3://linnet/suite-{next(_NUMBERS)}"

    @pytest.fixture
    def store(self, url, environment, monkeypatch):
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        return open_store(url)


@pytest.mark.slow
class TestSeaweed(_ObjectSuite):
    @pytest.fixture
    def server(self, s3_server):
        return s3_server


@pytest.mark.slow
class TestMoto(_ObjectSuite):
    @pytest.fixture
    def server(self, moto_server):
        client = moto_server.client("s3")
        if not any(each["Name"] == "linnet" for each in client.list_buckets()["Buckets"]):
            client.create_bucket(Bucket="linnet")
        client.close()
        return moto_server

    @pytest.mark.usefixtures("store")
    def test_a_bucket_that_is_not_there(self):
        missing = open_store("s3://nowhere")
        for act in (lambda: missing.put("a", [b"x"]), lambda: missing.get("a"), lambda: list(missing.list())):
            with pytest.raises(
                StoreError, match=r"s3://nowhere: .*there is no such bucket.*; make it, or correct"
            ):
                act()


class Failing:
    """An HTTP server on which requests go wrong as told, one after the other; then there is an object everywhere."""

    def __init__(self):
        self.plan: list[object] = []
        self.seen: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format, *args):
                pass

            def answer(self):
                outer.seen.append(f"{self.command} {self.path}")
                length = int(self.headers.get("Content-Length", 0))
                self.rfile.read(length)
                step = outer.plan.pop(0) if outer.plan else 200
                if step == "break":
                    self.send_response(200)
                    self.send_header("Content-Length", "100")
                    self.end_headers()
                    self.wfile.write(b"half")
                    self.wfile.flush()
                    self.connection.shutdown(socket.SHUT_RDWR)
                    self.close_connection = True
                    return
                if step == "sleep":
                    time.sleep(2)
                    step = 200
                body = (
                    b""
                    if self.command in ("HEAD", "PUT")
                    else b"an object"
                    if step == 200
                    else b"<Code>Trouble</Code>"
                )
                self.send_response(step)
                self.send_header("ETag", '"x"')
                self.send_header("Last-Modified", "Mon, 16 Nov 2026 00:00:00 GMT")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_PUT = do_HEAD = do_POST = answer

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None  # clients that have gone are meant to
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def failing():
    server = Failing()
    yield server
    server.close()


def opened(endpoint, **options):
    secrets = {"access_key_id": "KEY-ID", "secret_access_key": "TOP-SECRET", "session_token": "TOKEN"}
    return open_store(
        f"s3://bucket/pre?region=here&allow_http=true&endpoint={endpoint}", **secrets, **options
    )


class TestFailures:
    @pytest.mark.slow
    @pytest.mark.parametrize("plan", [[503], [500, 502, 504], [429, 503], ["break", 503]])
    def test_what_passes_is_tried_again(self, failing, plan):
        store = opened(failing.endpoint)
        failing.plan = list(plan)
        assert bytes(store.get("a")) == b"an object"
        assert failing.seen == ["GET /bucket/pre/a"] * (len(plan) + 1)
        failing.plan = [step for step in plan if step != "break"]
        store.put("a", [b"x"])
        failing.plan = [503]
        assert store.size("a") is not None

    @pytest.mark.slow
    def test_writing_that_takes_too_long_is_tried_again(self, failing):
        store = opened(failing.endpoint, timeout="0.3s")
        failing.plan = ["sleep"]
        store.put("a", [b"x"])
        assert failing.seen == ["PUT /bucket/pre/a"] * 2

    @pytest.mark.slow
    def test_patience_ends(self, failing):
        store = opened(failing.endpoint, patience=0.5)
        failing.plan = [503] * 1000
        with pytest.raises(
            StoreError,
            match=r"a cannot be read: the service fails \(status 503\) \(\d+ times in \d+ s\); see its state",
        ):
            store.get("a")

    def test_what_stays_is_not_tried_again(self, failing):
        store = opened(failing.endpoint)
        failing.plan = [403, 400]
        with pytest.raises(
            StoreError, match=r"a cannot be read: access denied \(status 403\); let the user read, write"
        ):
            store.get("a")
        with pytest.raises(StoreError, match="b was not written: "):
            store.put("b", [b"x"])
        assert len(failing.seen) == 2

    def test_nobody_there(self, monkeypatch):
        monkeypatch.setattr(objects, "FIRST_PATIENCE", 0.2)
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            store = opened(f"http://127.0.0.1:{taken.getsockname()[1]}")
            with pytest.raises(
                StoreError, match=r"not reachable \(\d+ times in 0 s\); see whether the service is up"
            ):
                store.get("a")

    @pytest.mark.slow
    def test_nobody_answers(self):
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen()
            store = opened(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout="0.2s", patience=0.3)
            with pytest.raises(StoreError, match="no answer in time"):
                store.put("a", [b"x"])

    def test_plain_http_must_be_allowed(self, failing):
        store = open_store(
            f"s3://bucket?region=here&endpoint={failing.endpoint}", access_key_id="x", secret_access_key="y"
        )
        with pytest.raises(StoreError, match="plain http is not allowed; use https, or say allow_http=true"):
            store.get("a")

    def test_tls_where_there_is_none(self, failing):
        store = opened(failing.endpoint.replace("http:", "https:"), patience=0.2)
        with pytest.raises(StoreError, match="no TLS connection; see whether the server has TLS"):
            store.get("a")


class TestSecrets:
    def test_secrets_are_not_told(self, failing):
        endpoint = failing.endpoint.replace("http://", "http://user:PASSWORD@")
        store = opened(endpoint, patience=0.1)
        failing.plan = [503] * 100
        with pytest.raises(StoreError) as caught:
            store.get("a")
        for text in (store.url, repr(store), str(caught.value), repr(caught.value.__cause__)):
            for secret in ("KEY-ID", "TOP-SECRET", "TOKEN", "PASSWORD"):
                assert secret not in text

    def test_the_url_opens_the_same_store(self, failing, monkeypatch):
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "y")
        store = opened(failing.endpoint, patience=3)
        again = open_store(store.url)
        assert again.url == store.url
        assert again.patience == 3
        again.get("a")
        assert failing.seen == ["GET /bucket/pre/a"]

    def test_secrets_in_the_query(self):
        store = open_store("s3://bucket/pre?region=here&secret_access_key=TOP-SECRET&access_key_id=KEY-ID")
        assert store.url == "s3://bucket/pre?region=here"

    def test_containers_of_azure_are_no_users(self):
        store = open_store("abfss://tiles@account.dfs.core.windows.net/pre", account_key="c2VjcmV0")
        assert store.url == "abfss://tiles@account.dfs.core.windows.net/pre"


class TestOptions:
    def test_unknown_options_are_named(self):
        with pytest.raises(
            StoreError, match="s3://bucket.* cannot be opened: Configuration key: 'colour' is not valid"
        ):
            open_store("s3://bucket?colour=red")

    def test_patience_is_a_number(self):
        with pytest.raises(InputError, match="patience='long': give seconds as a number"):
            open_store("s3://bucket?patience=long")

    def test_certificates_that_are_not_there(self, monkeypatch):
        monkeypatch.setenv("AWS_CA_BUNDLE", "/nowhere.pem")
        with pytest.raises(
            StoreError,
            match="root_certificate=/nowhere.pem: No such file or directory; give a file with cert",
        ):
            open_store("s3://bucket")

    def test_a_missing_package_is_named(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "obstore.store", None)
        with pytest.raises(
            MissingExtraError, match=r'needs obstore; install it with: pip install "linnet-array\[s3\]"'
        ):
            open_store("s3://bucket")


@pytest.mark.slow
class TestRealServers:
    def test_wrong_keys(self, s3_server):
        options = {**s3_server.options, "secret_access_key": "wrong"}
        with pytest.raises(StoreError, match="access denied, the secret is wrong .*; set AWS_ACCESS_KEY_ID"):
            open_store(s3_server.url, **options).get("a")
        options = {**s3_server.options, "access_key_id": "nobody"}
        with pytest.raises(StoreError, match="access denied, the key is unknown"):
            open_store(s3_server.url, **options).put("a", [b"x"])

    def test_with_tls(self, start_s3, monkeypatch):
        server = start_s3(tls=True)
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        store = open_store(server.url)
        tile = np.random.default_rng(0).standard_normal((100, 90))
        store.put("job/A", encoded(tile))
        assert np.array_equal(decoded(store.get("job/A")), tile)
        monkeypatch.delenv("AWS_CA_BUNDLE")
        named = open_store(f"{server.url}?root_certificate={server.tls.authority}")
        assert named.size("job/A") == store.size("job/A")
        with pytest.raises(StoreError, match="no TLS connection; .*name its authority in root_certificate="):
            open_store(server.url).get("job/A")


def test_reading_from_a_web_server(http_server):
    (http_server.folder / "job").mkdir()
    (http_server.folder / "job/A").write_bytes(b"".join(encoded(np.arange(3.0))))
    store = open_store(http_server.url, allow_http=True)
    assert decoded(store.get("job/A")).tolist() == [0, 1, 2]
    with pytest.raises(MissingTileError, match="job/B is not in http://"):
        store.get("job/B")
    with pytest.raises(
        StoreError, match="job/C was not written: the service takes no such request .*; use a store that can"
    ):
        store.put("job/C", [b"x"])
