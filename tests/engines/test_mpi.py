"""MPI as an engine: the suites on four ranks, and what users see of a job that `mpiexec` starts."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

HERE = Path(__file__).parent
MPIEXEC = Path(sys.executable).parent / "mpiexec"

pytestmark = [pytest.mark.slow, pytest.mark.needs("mpi4py", "mpiexec")]


def started(*command, ranks=3, folder=HERE, **variables):
    """A job of several ranks."""
    return subprocess.Popen(
        [str(MPIEXEC), "-n", str(ranks), sys.executable, *map(str, command)],
        cwd=folder,
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finished(*command, code=0, seconds=120, **options):
    """What a job says, to its end."""
    job = started(*command, **options)
    try:
        said, _ = job.communicate(timeout=seconds)
    finally:
        job.kill()
    assert job.returncode == code, said
    return said


def script(folder, *lines):
    path = folder / "script.py"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


DOUBLED = (
    "import numpy as np, linnet as ln",
    "from linnet.testing import kernels as programs",
    "from linnet.tiles import TiledArray",
    "def doubled(engine):",
    "    a = TiledArray.from_numpy(np.arange(12.0), 2)",
    "    return engine.run(programs.doubled.bind(N=6), {'B': a})['D'].to_numpy().sum()",
)


def test_the_suites_on_four_ranks(tmp_path):
    runner = script(
        tmp_path,
        "import sys, pytest",
        f"sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', '-p', 'no:xdist', {str(HERE / 'mpi_suite.py')!r}]))",
    )
    said = finished("-m", "linnet", "run", "--no-progress", runner, ranks=4, seconds=300)
    counted = re.search(r"^(\d+) passed in", said, re.MULTILINE)
    assert counted, said
    assert int(counted[1]) >= 100, said


def test_a_script_runs_on_rank_0_with_arguments_and_progress(tmp_path):
    path = script(
        tmp_path,
        *DOUBLED,
        "import sys",
        "from linnet.session import current_engine",
        "print(__name__, sys.argv[1:], current_engine(), doubled(current_engine()))",
    )
    said = finished("-m", "linnet", "run", path, "--size", "3", folder=tmp_path)
    assert said.count("__main__ ['--size', '3'] MPI(ranks=3, workers=3) 132.0") == 1
    assert "doubled: 6 tasks on 3 workers" in said
    assert "doubled: finished in" in said


def test_a_script_may_ask_for_the_engine_itself(tmp_path):
    path = script(
        tmp_path,
        *DOUBLED,
        "with ln.init('mpi', workers=2) as session:",
        "    print(session.engine, doubled(session.engine))",
        "    x = ln.asarray(np.ones((40, 40)), chunks=10)",
        "    print(float((x @ x).sum()))",
    )
    said = finished(path, folder=tmp_path)
    assert said.split("\n")[:2] == ["MPI(ranks=3, workers=6) 132.0", "64000.0"]


def test_kernels_of_the_script_and_of_a_module_beside_it(tmp_path):
    (tmp_path / "beside.py").write_text(
        "import os, numpy as np\n"
        "from linnet.kernels import kernel\n"
        "def process(tile): return np.full(1, os.getpid())\n"
        "@kernel('beside_twice')\n"
        "def twice(x): return 2 * x\n",
        encoding="utf-8",
    )
    path = script(
        tmp_path,
        "import beside, numpy as np, linnet as ln",
        "from linnet.kernels import kernel",
        "from linnet.programs import TileProgram",
        "from linnet.session import current_engine",
        "from linnet.tiles import TiledArray",
        "@kernel('script_shift')",
        "def shift(x): return x + offset",
        "offset = 5",
        "both = TileProgram.from_source('''",
        "def both(A: In, B: Out, S: Temp, N: int):",
        "    for i in range(N):",
        "        S[i] = beside_twice(A[i])",
        "        B[i] = script_shift(S[i])",
        "''')",
        "a = TiledArray.from_numpy(np.arange(9.0), 1)",
        "print(current_engine().run(both.bind(N=9), {'A': a})['B'].to_numpy().tolist())",
        "x = ln.asarray(np.zeros(30), chunks=1)",
        "print(len(set(ln.map_blocks(beside.process, x, dtype=int).compute().tolist())) > 1)",
    )
    said = finished("-m", "linnet", "run", "--no-progress", path, folder=tmp_path)
    assert said.split("\n")[:2] == [str([2.0 * i + 5 for i in range(9)]), "True"]


def test_without_cloudpickle_kernels_of_the_script_are_refused(tmp_path):
    path = script(
        tmp_path,
        "import sys; sys.modules['cloudpickle'] = None",
        "import numpy as np, linnet as ln",
        "x = ln.asarray(np.zeros(30), chunks=10)",
        "try: ln.map_blocks(lambda tile: tile + 1, x).compute()",
        "except ImportError as error: print(error)",
        "print(float((x + 1).sum()))",
    )
    said = finished("-m", "linnet", "run", "--no-progress", path, folder=tmp_path)
    assert "defined in the script itself, which other ranks cannot import; put it into a module" in said
    assert "30.0" in said


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ("sys.exit(3)", 3, ""),
        pytest.param("1 / 0", 1, "ZeroDivisionError: division by zero", marks=pytest.mark.long),
        ("ln.linalg.cholesky(ln.asarray(-np.eye(40), chunks=10)).compute()", 1, "not positive definite"),
    ],
)
def test_a_script_that_fails_ends_the_job(tmp_path, line, code, words):
    path = script(tmp_path, "import sys, numpy as np, linnet as ln", line)
    said = finished("-m", "linnet", "run", "--no-progress", path, folder=tmp_path, code=code)
    assert words in said
    assert code == 3 or f"line 2, in <module>\n    {line}" in said
    assert "the job was killed" not in said
    assert "runpy" not in said


def test_other_engines_have_no_ranks(tmp_path):
    said = finished(
        "-m", "linnet", "run", "--engine", "threads", script(tmp_path, "1"), folder=tmp_path, code=1
    )
    assert "--engine threads under mpiexec: every rank would run the script; use mpi" in said


def test_the_mpiexec_of_another_mpi_is_refused(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "linnet", "run", "--engine", "mpi", str(script(tmp_path, "print(6 * 7)"))],
        env={**os.environ, "OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "started by the mpiexec of Open MPI, but mpi4py here uses MPICH: use the mpiexec of" in done.stdout
    assert "Traceback" not in done.stdout
    assert "42" not in done.stdout


SLOW = (
    "import os, sys, time, numpy as np",
    "from linnet.engines.mpi import MPI",
    "from linnet.kernels import kernel",
    "from linnet.programs import TileProgram",
    "from linnet.session import current_engine",
    "from linnet.tiles import TiledArray",
    "@kernel('slow_step', shape=lambda x: x)",
    "def step(x):",
    "    time.sleep(0.1)",
    "    with open('steps', 'a') as file: file.write('.')",
    "    return x + 1",
    "steps = TileProgram.from_source('''",
    'def steps(A: In, B: Out, S: Temp("A"), N: int, M: int):',
    "    for i in range(N):",
    "        for m in range(M):",
    "            S[m + 1, i] = slow_step(S[m, i])",
    "        B[i] = slow_step(S[M, i])",
    "''').bind(N=6, M=19)",
    "a = TiledArray.from_numpy(np.arange(6000.0), 1000)",
)


def wait_for(count, folder, job, seconds=60):
    """Wait until so many tasks were done."""
    end = time.monotonic() + seconds
    while not (folder / "steps").exists() or (folder / "steps").stat().st_size < count:
        assert job.poll() is None, job.communicate()[0]
        assert time.monotonic() < end
        time.sleep(0.05)


def test_control_c_breaks_a_run_off(tmp_path):
    path = script(
        tmp_path,
        *SLOW,
        "engine = current_engine()",
        "try: engine.run(steps, {'A': a})",
        "except KeyboardInterrupt: print('broken off', flush=True)",
        "print(len(engine.run(steps.program.bind(N=6, M=1), {'A': a})['B'].to_numpy()))",
    )
    job = started("-m", "linnet", "run", "--no-progress", path, folder=tmp_path)
    wait_for(6, tmp_path, job)
    job.send_signal(signal.SIGINT)
    said, _ = job.communicate(timeout=60)
    assert "broken off" in said
    assert "6000" in said


def ranks_of(job):
    """The processes of a job, by their numbers."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            variables = dict(
                each.partition("=")[::2]
                for each in (folder / "environ").read_text(errors="replace").split("\0")
            )
            words = (folder / "cmdline").read_text().split("\0")
        except OSError:
            continue
        if variables.get("LINNET_TEST_JOB") == job and "PMI_RANK" in variables and "linnet" in words:
            found[int(variables["PMI_RANK"])] = int(folder.name)
    return found


@pytest.mark.parametrize(("victim", "ranks"), [(0, 3), pytest.param(2, 2, marks=pytest.mark.long)])
def test_a_rank_that_dies_ends_the_job_which_goes_on_when_started_again(tmp_path, victim, ranks):
    path = script(
        tmp_path,
        *SLOW,
        "first = MPI(checkpoint='kept', every=0.3)",
        "once = first.run(steps.program.bind(N=6, M=0), {'A': a})['B']",
        "again = first.run(steps, {'A': a})['B'].to_numpy()",
        "assert np.array_equal(once.to_numpy(), np.arange(6000.0) + 1)",
        "assert np.array_equal(again, np.arange(6000.0) + 20)",
        "first.forget()",
        "print('right')",
    )
    name = f"{tmp_path.name}-{victim}"
    command = ("-m", "linnet", "run", "--no-progress", "--checkpoint", "kept", path)
    job = started(*command, folder=tmp_path, LINNET_TEST_JOB=name)
    wait_for(60, tmp_path, job)
    os.kill(ranks_of(name)[victim], signal.SIGKILL)
    said, _ = job.communicate(timeout=60)
    assert job.returncode != 0
    assert "the job was killed: one of its ranks died" in said
    assert "Start it again with the same command; it goes on from what was written down in kept" in said
    done = (tmp_path / "steps").stat().st_size
    assert "right" in finished(*command, ranks=ranks, folder=tmp_path)
    total = (tmp_path / "steps").stat().st_size
    assert total - done < 126 - 25  # of 126 tasks in all
    assert total < 126 + 60
    assert not [*(tmp_path / "kept").rglob("*.*")]  # all is forgotten in the end


def test_linnet_run_writes_a_report(tmp_path):
    path = script(
        tmp_path, *DOUBLED, "from linnet.session import current_engine", "doubled(current_engine())"
    )
    report = tmp_path / "page.html"
    finished("-m", "linnet", "run", "--report", report, path, folder=tmp_path)
    page = report.read_text(encoding="utf-8")
    (shown,) = json.loads(report.with_suffix(".json").read_text(encoding="utf-8"))["jobs"]
    assert (shown["program"], shown["tasks"], shown["workers"]) == ("doubled", 6, 3)
    assert "worker 2" in shown["lanes"]
    assert '"doubled"' in page


def test_what_a_killed_job_left_in_shared_memory_is_deleted_by_the_next(tmp_path):
    shared = Path("/dev/shm")
    before = set(shared.glob("mpich_*"))
    lines = (
        *DOUBLED,
        "from linnet.session import current_engine",
        "print(doubled(current_engine()), flush=True)",
    )
    job = started(
        "-m", "linnet", "run", "--no-progress", script(tmp_path, *lines, "import time", "time.sleep(99)")
    )
    assert float(job.stdout.readline()) == 132
    left = set(shared.glob("mpich_*")) - before
    for process in (job.pid, *_children(job.pid)):
        os.kill(process, signal.SIGKILL)
    job.communicate(timeout=30)
    if not left:
        pytest.skip("this MPI leaves nothing in /dev/shm")
    for each in left:
        os.utime(each, (0, 0))  # as if that had been a while ago
    finished("-m", "linnet", "run", "--no-progress", script(tmp_path, *lines))
    assert not [each for each in left if each.exists()]


def _children(process):
    """All processes below one."""
    told = subprocess.run(["ps", "-eo", "pid,ppid"], capture_output=True, text=True).stdout.split()[2:]
    parents = dict(zip(map(int, told[::2]), map(int, told[1::2]), strict=True))
    found = {process}
    for _ in parents:
        found |= {child for child, parent in parents.items() if parent in found}
    return found - {process}
