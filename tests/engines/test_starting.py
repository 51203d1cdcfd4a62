"""Engines on clusters that cannot be reached, were shut down, or are started by scripts that start them again."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import linnet as ln
from linnet.engines.reachable import DASK, RAY, reach
from linnet.errors import EngineClosedError, InputError, UnreachableError

pytestmark = pytest.mark.slow


@pytest.fixture
def silent():
    """The port of a server that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def other():
    """The port of a server of something else, which speaks first."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            try:
                while True:
                    with server.accept()[0] as link:
                        link.sendall(b"SSH-2.0-something\r\n")
            except OSError:
                pass

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join(5)


def closed_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@pytest.mark.parametrize("greeting", [RAY, DASK])
def test_who_does_not_answer_is_not_waited_for(greeting, silent, other):
    for address, why in (
        (f"127.0.0.1:{closed_port()}", "refused"),
        (f"tcp://127.0.0.1:{silent}", "timed out"),
        (f"127.0.0.1:{other}", "somebody else answers there"),
        ("127.0.0.1:70000", ""),
    ):
        words = rf'ln\.init\("it", address=.*\): no answer from there \(.*{why}.*within 0\.3 s\).*`start it`.*timeout='
        with pytest.raises(UnreachableError, match=words):
            reach("it", address, 0.3, greeting, "start it")
    with pytest.raises(InputError, match="give the address as"):
        reach("it", "nowhere", 0.3, greeting, "start it")


def test_a_server_that_comes_up_meanwhile_is_reached():
    port = closed_port()
    answer = (3).to_bytes(8, "little")

    def serve():
        with socket.create_server(("127.0.0.1", port)) as server, server.accept()[0] as link:
            link.sendall(answer)

    later = threading.Timer(0.3, serve)
    later.start()
    reach("it", f"127.0.0.1:{port}", 20, DASK, "start it")
    later.join(5)


def script(tmp_path, text):
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(text))
    ended = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=240)
    return path, ended


@pytest.mark.parametrize("engine", ["ray", "dask"])
def test_a_cluster_that_is_not_there(engine, silent, tmp_path):
    """Ray took minutes, and Dask 39 s for a bare OSError. In a process that is connected to none."""
    pytest.importorskip({"ray": "ray", "dask": "distributed"}[engine])
    _, ended = script(
        tmp_path,
        f"""
        import linnet as ln

        for port in ({closed_port()}, {silent}):
            try:
                ln.init({engine!r}, address=f"127.0.0.1:{{port}}", timeout=0.3)
            except ln.UnreachableError as error:
                print(error)
        """,
    )
    words = rf'ln\.init\("{engine}", address=\'127.*leave address= away'
    assert len(re.findall(words, ended.stdout)) == 2, ended.stdout + ended.stderr


@pytest.mark.needs("distributed")
@pytest.mark.parametrize("guard", ["", 'if __name__ != "__main__" or True:', "def main():", "if True:"])
def test_a_script_without_a_guard_is_told_so(tmp_path, guard):
    """It said 505 lines, and hung."""
    call = "main()" if guard.startswith("def") else ""
    begin = guard or "if 1:"
    path, ended = script(
        tmp_path,
        f"""
        import linnet as ln
        {begin}
            ln.init("dask", workers=2)
        {call}
        """,
    )
    assert ended.returncode == 1
    line = 5 if call else 4
    assert 'InputError: ln.init("dask") starts worker processes' in ended.stderr
    assert f"{path}, line {line}, would start workers of workers" in ended.stderr
    assert 'if __name__ == "__main__":' in ended.stderr
    assert len(ended.stderr.splitlines()) < 40


@pytest.mark.slow
@pytest.mark.needs("distributed")
def test_a_script_with_a_guard_runs(tmp_path):
    _, ended = script(
        tmp_path,
        """
        import linnet as ln

        def main():
            with ln.init("dask", workers=1):
                print(float(ln.ones(10, chunks=5).sum()))

        if __name__ == "__main__":
            main()
        """,
    )
    assert ended.stdout == "10.0\n"


@pytest.mark.slow
@pytest.mark.needs("distributed")
@pytest.mark.parametrize("which", ["client", "cluster"])
def test_a_dask_cluster_that_somebody_shut_down(which):
    """It said "IOLoop is closed"."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        Client(cluster, set_as_default=False) as client,
        ln.init("dask", client=client),
    ):
        x = ln.asarray(np.ones((40, 40)), chunks=20)
        kept = (x * 2).persist()
        {"client": client, "cluster": cluster}[which].close()
        with pytest.raises(
            EngineClosedError, match=r"Dask\(.*\) \(its client is closed\) was closed and runs"
        ):
            (x + 1).compute()
        with pytest.raises(EngineClosedError, match="runs nothing any more; make another one"):
            ln.plan(x + 1)
        with pytest.raises(EngineClosedError, match="its client is closed"):
            kept.compute()
        with pytest.raises(
            EngineClosedError, match=r"shape \(40, 40\) .*was kept on Dask.*its tiles are gone"
        ):
            kept.__node__.tiles.to_numpy()


@pytest.mark.slow
@pytest.mark.needs("ray")
def test_a_ray_cluster_that_somebody_shut_down(tmp_path):
    _, ended = script(
        tmp_path,
        """
        import os
        os.environ.update(RAY_AUTH_MODE="disabled", RAY_USAGE_STATS_ENABLED="0")
        import ray
        import linnet as ln

        ray.init("local", num_cpus=1, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
        with ln.init("ray"):
            x = ln.ones((40, 40), chunks=20)
            kept = (x * 2).persist()
            ray.shutdown()
            for each in (x + 1, kept):
                try:
                    each.compute()
                except ln.EngineClosedError as error:
                    print(error)
        """,
    )
    assert ended.stdout.count("(Ray was shut down)") == 2, ended.stderr
