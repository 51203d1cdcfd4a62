"""Jobs that outlive their server: by saving what they have done, or because a tool saves their process.

Saving oneself is the main way: a folder that stays (`LINNET_CHECKPOINTS`), a signal before the server goes,
and `Checkpoint` for Python functions. A `Saver` is two commands, one that saves a running process and one
that goes on from there; `Saver.criu()` is CRIU, where `criu check` passes.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import inf
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from linnet.errors import FormatError, InputError
from linnet.fleet.agent import UNREADABLE, open_file

UNFIT = (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError)
"""What reading a file of JSON may raise that somebody else wrote."""
LEFT = 75
"""Exit status of a job that saved its state because its server will be taken away."""


class Checkpoint:
    """The state of a Python function, kept across servers.

    Parameters
    ----------
    folder : where; by default the folder that the bag keeps for this job

    `load` gives what was saved last. `save` writes when it is time: at the intervals that the bag planned
    (`Bag(checkpoint=…)`), at every call if it planned none, and when the server will be taken away; then the
    job ends there and goes on elsewhere. State is what JSON can hold; larger things go into files of
    `folder`, written before `save` is called.

    Examples
    --------
    >>> import tempfile
    >>> from linnet.fleet import Checkpoint
    >>> with tempfile.TemporaryDirectory() as folder, Checkpoint(folder) as kept:
    ...     step, total = kept.load((0, 0))
    ...     while step < 4:
    ...         step, total = step + 1, total + step
    ...         saved = kept.save((step, total))
    ...     kept.load()
    [4, 6]
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        found = folder if folder is not None else os.environ.get("LINNET_CHECKPOINTS")
        if found is None:
            raise InputError("Checkpoint() is for jobs of a bag; elsewhere give a folder")
        self.folder: Path = Path(found)
        """Stays when the server goes; files of one's own may be there, too."""
        self.leaving: bool = False
        """Whether the server will be taken away."""
        self.work: float = 0.0
        """Hours of work that are saved, of all attempts."""
        plan = os.environ.get("LINNET_CHECKPOINT_PLAN", "") if folder is None else ""
        self._of_bag = folder is None
        self._plan = [float(each) for each in plan.split(",") if each]
        self._saves = 0
        self._since = time.monotonic()
        self._before: Any = None

    def __enter__(self) -> Checkpoint:
        self.folder.mkdir(parents=True, exist_ok=True)
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGTERM, self._told)
        self._since = time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGTERM, self._before)
        if kind is None and self._of_bag:
            worked = self.work + (time.monotonic() - self._since) / 3600
            part = self.folder / "worked.part"
            part.write_text(repr(worked), encoding="utf-8")
            os.replace(part, self.folder / "worked")

    def _told(self, number: int, frame: FrameType | None) -> None:
        self.leaving = True

    def load(self, default: Any = None) -> Any:
        """What was saved last; `default` if nothing was."""
        path = self.folder / "state.json"
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            self.work = float(found["work"])
            return found["state"]
        except FileNotFoundError:
            return default
        except (ValueError, KeyError, TypeError) as error:
            raise FormatError(f"{path} is no checkpoint: {error}") from error

    @property
    def due(self) -> bool:
        """Whether `save` would write now."""
        if self.leaving or not self._plan:
            return True
        wait = self._plan[min(self._saves, len(self._plan) - 1)]
        return time.monotonic() - self._since >= 3600 * wait

    def save(self, state: Any, *, now: bool = False) -> bool:
        """Write the state if it is time to, or `now`; whether it was written.

        If the server will be taken away, the job ends here (`SystemExit`), to go on elsewhere.
        """
        if not (now or self.due):
            return False
        self.work += (time.monotonic() - self._since) / 3600
        part = self.folder / "state.json.part"
        with open(part, "w", encoding="utf-8") as file:
            json.dump({"state": state, "work": self.work}, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, self.folder / "state.json")
        self._saves += 1
        self._since = time.monotonic()
        if self.leaving:
            raise SystemExit(LEFT)
        return True


def saved_hours(folder: Path) -> float:
    """Hours of work that a job's checkpoint holds; 0 if there is none that `Checkpoint` wrote."""
    try:
        with open_file(folder / "state.json") as file:
            found = float(json.load(file)["work"])
    except UNFIT:
        return 0.0
    return found if 0 <= found < inf else 0.0


def worked_hours(folder: Path) -> float | None:
    """Hours of work of a whole job that is done, without saving; None if it did not say."""
    try:
        with open_file(folder / "worked") as file:
            found = float(file.read(100))
    except UNFIT:
        return None
    return found if 0 <= found < inf else None


def exit_of(path: Path) -> tuple[int, float, bool]:
    """How an attempt ended: status, hours of the clock, and whether its server was about to go."""
    try:
        with open_file(path) as file:
            said = json.load(file)
        status, hours, warned = int(said["status"]), float(said["hours"]), bool(said["warned"])
    except UNFIT:
        return UNREADABLE, 0.0, False  # the agent writes it whole, so the job did this
    return (status, hours, warned) if 0 <= hours < inf else (UNREADABLE, 0.0, False)


@dataclass(frozen=True, slots=True)
class Saver:
    """A tool that saves running processes, and goes on with them on another server.

    Parameters
    ----------
    save : a command; `{pid}` is the process, `{folder}` an empty folder for its image. Status 0 says that the
        image is whole; the process is killed then
    restore : a command that goes on with the image in `{folder}`, in the foreground, and ends as the process
        does

    Examples
    --------
    >>> from linnet.fleet import Saver
    >>> Saver(["dmtcp_command", "--checkpoint"], ["{folder}/dmtcp_restart_script.sh"]).restore
    ('{folder}/dmtcp_restart_script.sh',)
    """

    save: Sequence[str]
    restore: Sequence[str]

    def __post_init__(self) -> None:
        for name in ("save", "restore"):
            given = getattr(self, name)
            if isinstance(given, str) or not given:
                raise InputError(f"{name}={given!r}: give a command as a list of texts")
            object.__setattr__(self, name, tuple(map(str, given)))

    @classmethod
    def criu(cls, program: str = "criu") -> Saver:
        """CRIU, for ordinary processes that know nothing of it; refused where `criu check` does not pass."""
        path = shutil.which(program)
        if path is None:
            raise InputError(
                f"{program!r} is not on the PATH, so processes cannot be saved from outside: install CRIU, or"
                " let jobs save themselves (linnet.fleet.Checkpoint, or the folder LINNET_CHECKPOINTS)"
            )
        done = subprocess.run([path, "check"], capture_output=True, text=True, check=False, timeout=60)
        if done.returncode:
            said = (done.stderr.strip() or done.stdout.strip() or f"status {done.returncode}").splitlines()[
                -1
            ]
            raise InputError(
                f"this system cannot save processes from outside: `criu check` says {said!r}; let jobs save "
                "themselves (linnet.fleet.Checkpoint, or the folder LINNET_CHECKPOINTS)"
            )
        common = ["--images-dir", "{folder}", "--shell-job", "--file-locks"]
        return cls([path, "dump", "--tree", "{pid}", *common], [path, "restore", *common])

    @classmethod
    def of(cls, given: str | Mapping[str, Any] | Saver | None) -> Saver | None:
        """From what the user gave: "criu", two commands under their names, or a `Saver`."""
        if given is None or isinstance(given, Saver):
            return given
        if given == "criu":
            return cls.criu()
        if not isinstance(given, Mapping) or set(given) != {"save", "restore"}:
            raise InputError(f'saver={given!r}: give "criu", or commands under `save` and `restore`')
        return cls(given["save"], given["restore"])

    def to_json(self) -> dict[str, Any]:
        """As it is stored."""
        return {name: list(value) for name, value in asdict(self).items()}
