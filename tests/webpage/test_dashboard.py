"""The dashboard: what it serves, to whom, and how it looks in a real browser."""

from __future__ import annotations

import json
import logging
import os
import stat
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest

import linnet as ln
from linnet.errors import InputError, StoreError
from linnet.reports import registry
from linnet.webpage.server import Server
from linnet.webpage.sources import source_of

pytestmark = [pytest.mark.slow, pytest.mark.needs("uvicorn"), pytest.mark.needs("starlette")]
PICTURES = Path(__file__).resolve().parents[2] / "docs/figures"


@pytest.fixture(autouse=True)
def runtime(tmp_path, monkeypatch):
    monkeypatch.setenv("LINNET_RUNTIME_DIR", str(tmp_path / "run"))
    return tmp_path / "run"


def fetched(address, method="GET", **headers):
    request = urllib.request.Request(address, method=method, headers=headers)
    with urllib.request.urlopen(request, timeout=20) as answer:
        return answer.read().decode()


def factorised(side=240, chunk=40):
    x = np.random.default_rng(0).standard_normal((side, side))
    return ln.linalg.cholesky(ln.asarray(x @ x.T + side * np.eye(side), chunks=chunk))


def test_a_session_serves_its_own_page(capsys, runtime):
    with ln.init(workers=2, dashboard=True) as session:
        address = session.dashboard.address
        assert address.startswith("http://127.0.0.1:")
        assert f"{address}?token=" in capsys.readouterr().err
        factorised().persist()
        assert "<!doctype html>" in fetched(address)
        data = json.loads(fetched(address + "data"))
        assert data["jobs"][-1]["state"] == "finished"
        assert stat.S_IMODE((runtime / "linnet").stat().st_mode) == 0o700
        (entry,) = registry.entries()
        assert (entry.kind, entry.address) == ("session", address)
        first = fetched_events(address + "events")
        assert first["jobs"][-1]["program"] == data["jobs"][-1]["program"]
    assert registry.entries() == []
    with pytest.raises(urllib.error.URLError):
        fetched(address)


def fetched_events(address):
    with urllib.request.urlopen(address, timeout=20) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        return json.loads(answer.readline().decode().removeprefix("data: "))


def test_who_may_look_and_who_may_cancel():
    with ln.dashboard() as page:
        for headers in ({}, {"X-Linnet-Token": "wrong"}):
            with pytest.raises(urllib.error.HTTPError, match="403"):
                fetched(page.address + "cancel", "POST", **headers)
        with pytest.raises(urllib.error.HTTPError, match="421"):
            fetched(page.address, Host="evil.example:80")
        with pytest.raises(urllib.error.HTTPError, match="405"):
            fetched(page.address + "cancel?token=" + page.token)
        problem = json.loads(fetched(page.address + "data?source=/etc"))["problem"]
        assert "is not among what is registered" in problem


def test_cancel_is_ctrl_c():
    with ln.dashboard() as page:

        def slow(tile):
            time.sleep(0.05)
            return tile

        def cancel():
            time.sleep(0.5)
            fetched(page.address + "cancel", "POST", **{"X-Linnet-Token": page.token})

        thread = threading.Thread(target=cancel)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            ln.map_blocks(slow, ln.ones((4000, 2), chunks=(2, 2)), dtype=float).persist()
        thread.join()
        assert json.loads(fetched(page.address + "data"))["jobs"][-1]["state"] == "cancelled"


def test_jobs_are_listed_and_shown(tmp_path):
    x = ln.asarray(np.arange(64.0).reshape(8, 8), chunks=4)
    with ln.submit(x @ x, store=tmp_path / "store", launcher="threads") as job:
        job.wait(100)
        server = Server(None)
        try:
            (entry,) = json.loads(fetched(server.address + "data"))["list"]
            assert (entry["kind"], entry["address"]) == ("job", job.address)
            shown = json.loads(fetched(f"{server.address}data?source={urllib.request.quote(job.address)}"))
            assert shown["jobs"][0]["state"] == "finished"
        finally:
            server.close()
        job.delete()
    assert registry.entries() == []


def test_a_bag_is_shown_with_its_cost(tmp_path):
    from linnet.fleet import Bag, Fleet, Local

    bag = Bag("echo done 3", {"n": [1, 2, 3]}, folder=tmp_path / "bag")
    bag.run(Fleet([Local(2, price=0.1)]))
    (job,) = source_of(str(tmp_path / "bag")).data()["jobs"]
    assert (job["done"], job["tasks"], job["state"]) == (3, 3, "finished")
    assert job["cost"] >= 0
    assert job["samples"][-1][0] == pytest.approx(job["seconds"]), (
        "both since the bag began, not since somebody looks"
    )
    assert source_of(str(tmp_path / "bag")).data()["log"][-1][1].endswith("stdout: done 3")
    assert job["bag"] == {
        "jobs": [[str(n), "done", f"n={n + 1}", 0, n] for n in range(3)],
        "axes": ["n"],
    }


def test_the_registry_keeps_to_itself(runtime, tmp_path, monkeypatch):
    registry.register("job", "a job", "file:///somewhere#job")
    folder = runtime / "linnet"
    (folder / "session-broken.json").write_text("{")
    (folder / "session-old.json").write_text(
        json.dumps({"kind": "session", "name": "x", "address": "http://x", "pid": 2**22 + 1, "begun": 0.0})
    )
    assert [each.name for each in registry.entries()] == ["a job"]
    assert not (folder / "session-old.json").exists()
    folder.chmod(0o755)
    registry.entries()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    monkeypatch.setenv("LINNET_RUNTIME_DIR", str(tmp_path / "other"))
    (tmp_path / "other").mkdir()
    os.symlink(folder, tmp_path / "other" / "linnet")
    with pytest.raises(StoreError, match="is not a folder of this user"):
        registry.entries()


def test_a_port_that_is_taken():
    with ln.dashboard() as page, pytest.raises(ConnectionError, match="cannot listen on 127.0.0.1"):
        ln.dashboard(port=int(page.address.rsplit(":", 1)[1].rstrip("/")))
    with pytest.raises(InputError, match="no option 'dashbord'; did you mean 'dashboard'"):
        ln.init(dashbord=True)


def test_what_programs_say_is_for_who_has_the_token(tmp_path):
    logger = logging.getLogger("mine")
    theirs = logging.FileHandler(tmp_path / "mine.log")
    logger.addHandler(theirs)
    with ln.dashboard() as page:
        assert theirs.stream is not None, "handlers of users stay open"
        logger.warning("the %s is open", "door")
        with_token = json.loads(fetched(f"{page.address}data?token={page.token}"))["log"]
        without = json.loads(fetched(page.address + "data"))["log"]
    logger.removeHandler(theirs)
    theirs.close()
    assert with_token[-1][1] == "warning mine: the door is open"
    assert "door" not in str(without)
    assert "token" in str(without)
    assert not [each for each in logging.getLogger().handlers if type(each).__name__ == "LoggedLines"]


def test_a_plan_for_several_nodes_is_shown_with_the_bytes_that_must_move():
    with ln.init("simulated", cluster=ln.Cluster(nodes=4, workers=1)):
        x = ln.ones((600, 600), chunks=100)
        y = ln.zeros((600, 600), chunks=100)
        (x @ y).persist()
        plan = ln.plan(x @ y)
        with ln.dashboard() as page:
            job = json.loads(fetched(page.address + "data"))["jobs"][-1]
    assert (job["moved"], job["bound"]) == (plan.bytes_moved, plan.lower_bound)
    assert job["moved"] >= job["bound"] > 0
    assert "nodes" in job["plan"]
    assert "bytes move between nodes" in str(job["log"])


def test_the_story_of_a_run_begins_where_it_began():
    """What is prepared before the first task is a gap at the beginning, not at the end."""
    with ln.init(workers=2, dashboard=True):
        factorised(300, 20).persist()
        job = ln.report().data["jobs"][-1]
    assert job["spans"]
    last = max(start + seconds for _, _, start, seconds, _ in job["spans"])
    assert last <= job["seconds"] + 1e-3
    assert job["seconds"] - job["samples"][-1][0] < 0.02 + 0.1 * job["seconds"]
    assert job["source"].startswith("@")
    assert f"finished after {job['seconds']:.2f} s" in str(job["log"])


@pytest.mark.slow
@pytest.mark.needs("playwright")
@pytest.mark.needs("chromium")
def test_in_a_browser(tmp_path):
    """What a person sees: tiles of a factorisation that move, lanes, kernels; a report; no error in the console."""
    from playwright.sync_api import sync_playwright

    flags = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
    flags += ["--disable-background-networking", "--disable-component-update"]
    problems: list[str] = []
    with ln.init(workers=2, memory="200 MB", dashboard=True) as session, sync_playwright() as started:
        browser = started.chromium.launch(executable_path="/usr/bin/chromium", args=flags)
        page = browser.new_page(viewport={"width": 1200, "height": 1300})
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
        page.goto(f"{session.dashboard.address}?token={session.dashboard.token}")
        page.wait_for_selector("text=live")
        assert page.locator("#empty").is_visible() or page.locator("#jobs tr").count()
        factorised(3000, 200).persist()
        page.wait_for_selector("text=Tiles as they are made", timeout=20_000)
        page.wait_for_function("document.querySelectorAll('#kernels tr').length > 2")
        page.wait_for_timeout(800)
        assert "finished" in page.inner_text("#content") or "running" in page.inner_text("#content")
        assert "token" not in page.url, "it must not stay in the history"
        assert page.locator("#mats figure").count() >= 1
        pixels = "(id) => { const c = document.getElementById(id), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; return d.filter((v, n) => n % 4 === 3 && v).length; }"
        assert page.evaluate(pixels, "timeline") > 1000
        page.screenshot(path=tmp_path / "dashboard.png")
        before = page.evaluate("view")
        page.mouse.move(*middle(page, "#timeline"))
        page.mouse.wheel(0, -400)
        assert page.evaluate("view[1] - view[0]") < before[1] - before[0], "the wheel zooms"
        made = ln.report(tmp_path / "report.html", title="Cholesky of 3000 × 3000")
        assert made.data["jobs"]
        page.goto(f"file://{tmp_path}/report.html")
        page.wait_for_function("document.body.dataset.ready === 'yes'")
        assert page.evaluate(pixels, "timeline") > 1000
        assert page.evaluate(pixels, "mem") > 1000
        page.screenshot(path=tmp_path / "report.png", full_page=True)
        browser.close()
    assert problems == []
    if os.environ.get("LINNET_UPDATE_PICTURES"):
        for name in ("dashboard.png", "report.png"):
            (PICTURES / name).write_bytes((tmp_path / name).read_bytes())


def middle(page, what):
    page.locator(what).scroll_into_view_if_needed()
    box = page.locator(what).bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + 12


def test_what_is_neither_a_job_nor_a_bag(tmp_path):
    with pytest.raises(InputError, match="no folder of a bag, .* and no address of a job"):
        source_of(str(tmp_path / "nothing"))
