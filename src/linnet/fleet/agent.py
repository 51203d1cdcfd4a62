"""What runs on a server: it takes jobs from the bag's folder, runs them, and says how they ended.

This file is run by its path, or sent to a server as it is, and uses nothing but Python's own library (3.8 and
later), so that a server needs no installation and is up in milliseconds. One argument: a JSON object with

- `folder`: the bag's folder, as this server sees it; `name`: the server's;
- `poll`: seconds between two looks; `idle`: seconds without a job and without a controller after which it
  leaves;
- `life`, `notice`: seconds after which it kills itself and all its jobs (a server that is taken away), and
  how
  long before that jobs are told with SIGTERM; `grace`: seconds between SIGTERM and SIGKILL for a job that
  must stop; `settle`: how long the word about a job that somebody killed waits, since servers that are
  taken away often lose their jobs first;
- `metadata`: the cloud's address for notices; `shutdown`: a command that ends the machine.

    servers/NAME/lock, pid, host, up,      what it says; `lock` keeps a second one of this name away
        warned, rebalance
    servers/NAME/orders/N.json, N.stop     what it is to do (an order with `last` is the last one)
    servers/NAME/leave                     end
    attempts/N/                            work/ (where the job runs), stdout, stderr, result.json, metrics,
    exit.json
    done/N                                 the attempt ended
"""

# pyright: basic
# ruff: noqa: SIM115 # files are handed to processes, or kept open as locks

import contextlib
import errno
import fcntl
import json
import os
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
import urllib.request
from typing import IO

UNFIT = (OSError, ValueError, LookupError, TypeError, AttributeError, subprocess.SubprocessError)
"""What an order may raise that cannot be carried out."""
RESULT = 64 << 20
"""Bytes of a result, at most: rows of all jobs make one table."""
UNREADABLE = 65
"""Exit status of a job whose result is no JSON."""
UNPREPARED = 71
"""Exit status of a job for which the server could make no place."""


def write(path, text):
    """Write a file so that nobody sees half of it."""
    with open(path + ".part", "w") as file:
        file.write(text)
    os.replace(path + ".part", path)


def started(pid):
    """When a process began, so that another one with its number is not taken for it; None if it is gone."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            rest = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if rest[0] in "ZX" else rest[19]


def discard(path):
    """Remove a file; the controller may have taken it back at this very moment."""
    with contextlib.suppress(FileNotFoundError):
        if os.path.isdir(path):
            shutil.rmtree(path)
        else:
            os.remove(path)


def open_file(path: "str | os.PathLike[str]") -> "IO[bytes]":
    """Open a file that a job wrote. What is no file is an OSError, not a wait."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is no file", path)
    return os.fdopen(handle, "rb")


def read_result(path: "str | os.PathLike[str]") -> "str | None":
    """A result as one line of JSON; None if the job wrote nothing, a ValueError if it is none."""
    try:
        with open_file(path) as file:
            data = file.read(RESULT + 1)
    except FileNotFoundError:
        if os.path.islink(path):
            raise ValueError("it is a link to nothing") from None
        return None
    except OSError as error:
        raise ValueError(f"it cannot be read: {error.strerror}") from None
    if len(data) > RESULT:
        raise ValueError(f"it has more than {RESULT >> 20} MB; write files, and give their names")
    try:
        return json.dumps(json.loads(data.decode()))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


class Agent:
    def __init__(self, options):
        self.options = options
        self.folder = options["folder"]
        self.here: str = os.path.join(self.folder, "servers", options["name"])
        self.orders: str = os.path.join(self.here, "orders")
        self.jobs = {}
        self.savers = {}
        self.ending = {}
        self.ended = {}
        self.told: bool = False
        self.warned: bool = False
        self.last: bool = False
        self.born: float = time.monotonic()
        self.busy: float = self.born
        self.beat = None
        self.heard: float = self.born
        self.asked: float = 0.0
        self.passed: str = ""
        self.pass_until: float = 0.0

    def run(self):
        os.makedirs(self.orders, exist_ok=True)
        lock = open(os.path.join(self.here, "lock"), "w")  # held until this process ends
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return
        if os.path.exists(os.path.join(self.here, "leave")):
            return
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        os.set_blocking(reader, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: setattr(self, "told", True))
        write(os.path.join(self.here, "pid"), json.dumps([os.getpid(), started(os.getpid())]))
        write(os.path.join(self.here, "host"), socket.gethostname())
        write(os.path.join(self.here, "up"), str(time.time()))
        while self.step():
            if select.select([reader], [], [], self.options["poll"])[0]:
                with contextlib.suppress(BlockingIOError):
                    os.read(reader, 4096)

    def step(self):
        """One look around; whether to go on."""
        if self.told:
            self.warn()
        self.collect()
        age = time.monotonic() - self.born
        life = self.options.get("life")
        if life is not None and age >= life - self.options.get("notice", 0):
            if self.options.get("notice") and not self.warned:
                self.warn()
            if age >= life:
                self.die()
        if self.options.get("metadata") and age - self.asked >= 1:
            self.asked: float = age
            self.ask()
        try:
            names = os.listdir(self.orders)
        except FileNotFoundError:
            names = []  # the folder was removed: nobody wants anything any more
            if not os.path.isdir(self.folder):
                self.stop_all()
                return False
        if os.path.exists(os.path.join(self.here, "leave")):
            self.stop_all()
            return False
        for name in names:
            number, ending = os.path.splitext(name)
            if ending == ".json":
                self.begin(number)
            elif ending == ".stop":
                os.remove(os.path.join(self.orders, name))
                if number in self.jobs:
                    self.stop(number)
        for number, since in list(self.ending.items()):
            if number in self.jobs and time.monotonic() - since > self.options.get("grace", 10):
                self.signal(number, signal.SIGKILL)
        return not self.forgotten()

    def begin(self, number):
        path = os.path.join(self.orders, number + ".json")
        if not number.isdigit():
            discard(path)  # attempts are numbers: nobody waits for this one
            return
        try:
            with open(path) as file:
                order = json.load(file)
        except FileNotFoundError:
            return
        except (OSError, ValueError, RecursionError) as error:
            self.say(number, UNPREPARED, 0.0, f"its order cannot be read: {error}")
            discard(path)
            return
        place = os.path.join(self.folder, "attempts", number)
        if os.path.exists(os.path.join(place, "exit.json")) or number in self.jobs:
            discard(path)
            return
        try:
            self.start(number, order, place)
        except UNFIT as error:
            # No room on the disk, inputs that are gone, texts that no command line can hold, half an order.
            self.say(number, UNPREPARED, 0.0, f"cannot begin: {error}")
        discard(path)

    def start(self, number, order, place):
        """Make a place for a job, and start it there."""
        work = os.path.join(place, "work")
        shutil.rmtree(work, ignore_errors=True)
        os.makedirs(work)
        for given in order.get("inputs", ()):
            copy = shutil.copytree if os.path.isdir(given) else shutil.copy2
            copy(given, os.path.join(work, os.path.basename(given)))
        environment = dict(os.environ)
        environment.update(order["environment"])
        environment.update(LINNET_SERVER=self.options["name"], LINNET_ATTEMPT=number)
        os.makedirs(environment["LINNET_CHECKPOINTS"], exist_ok=True)
        argv = self.resume(number, order, environment) or order["argv"]
        out = open(os.path.join(place, "stdout"), "wb")
        err = open(os.path.join(place, "stderr"), "wb")
        try:
            child = subprocess.Popen(
                argv,
                cwd=work,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                preexec_fn=os.setpgrp,
            )
        except OSError as error:
            err.write(f"linnet: cannot run {argv[0]!r}: {error}\n".encode())
            self.say(number, 127, 0.0, f"cannot run {argv[0]!r}: {error}")
        else:
            self.jobs[number] = (child, time.monotonic())
            self.last: bool = self.last or bool(order.get("last"))
        finally:
            out.close()
            err.close()

    def resume(self, number, order, environment):
        """The command that goes on from the image of a process, if a tool saved one; remembers the tool."""
        saver = order.get("saver")
        if not saver:
            return None
        image = os.path.join(environment["LINNET_CHECKPOINTS"], "image")
        first = number
        whole = os.path.join(image, "attempt")
        if os.path.exists(whole):
            with open(whole) as file:
                first = file.read()
        self.savers[number] = (saver["save"], image, first)
        return [part.replace("{folder}", image) for part in saver["restore"]] if first != number else None

    def save(self, number):
        """Let a tool save the process of a job, and end it: it goes on elsewhere."""
        command, image, first = self.savers[number]
        part, pid = image + ".part", str(self.jobs[number][0].pid)
        shutil.rmtree(part, ignore_errors=True)
        os.makedirs(part)
        argv = [each.replace("{folder}", part).replace("{pid}", pid) for each in command]
        with open(os.path.join(self.folder, "attempts", number, "stderr"), "ab") as log:
            try:
                saved = (
                    subprocess.call(argv, stdout=log, stderr=log, timeout=self.options.get("save", 100)) == 0
                )
            except (OSError, subprocess.TimeoutExpired) as error:
                saved = False
                log.write(f"linnet: {argv[0]!r} did not save the job: {error}\n".encode())
        if saved:
            write(os.path.join(part, "attempt"), first)
            shutil.rmtree(image, ignore_errors=True)
            os.rename(part, image)
            self.signal(number, signal.SIGKILL)

    def fetch_result(self, number):
        """A process that was restored wrote its result where it began."""
        first = self.savers.pop(number, (None, None, number))[2]
        old, new = (os.path.join(self.folder, "attempts", each, "result.json") for each in (first, number))
        if first != number and os.path.exists(old) and not os.path.exists(new):
            shutil.copy2(old, new)

    def collect(self):
        """Say of jobs that ended how they did."""
        for number, (child, since) in list(self.jobs.items()):
            status = child.poll()
            if status is None:
                continue
            self.signal(number, signal.SIGKILL)  # what the job left behind in its process group
            ended = self.ended.setdefault(number, time.monotonic())
            quiet = time.monotonic() - ended
            if self.by_others(number, status) and quiet < self.options.get("settle", 2):
                continue
            hours = (ended - since) / 3600
            del self.jobs[number], self.ended[number]
            self.busy: float = time.monotonic()
            why = "stopped" if self.ending.pop(number, None) is not None else ""
            self.fetch_result(number)
            if status == 0:
                try:
                    read_result(os.path.join(self.folder, "attempts", number, "result.json"))
                except ValueError as error:
                    status, why = UNREADABLE, f"its result is no JSON: {error}"
            self.say(number, status, hours, why)

    def by_others(self, number, status):
        """Whether a job was killed by others; the server may be about to go, too."""
        kills = (signal.SIGTERM, signal.SIGKILL)
        return (
            any(status in (-kind, 128 + kind) for kind in kills)
            and number not in self.ending
            and not self.warned
        )

    def say(self, number, status, hours, why):
        place = os.path.join(self.folder, "attempts", number)
        os.makedirs(place, exist_ok=True)  # a job may have removed it
        if os.path.isdir(os.path.join(place, "exit.json")):
            shutil.rmtree(os.path.join(place, "exit.json"))
        said = {
            "status": status,
            "hours": hours,
            "why": why,
            "server": self.options["name"],
            "warned": self.warned,
        }
        write(os.path.join(place, "exit.json"), json.dumps(said))
        done = os.path.join(self.folder, "done")
        os.makedirs(done, exist_ok=True)
        with open(os.path.join(done, number), "w"):
            pass

    def signal(self, number, kind):
        if number not in self.ended:  # its number may be another's by now
            with contextlib.suppress(OSError, KeyError):
                os.killpg(self.jobs[number][0].pid, kind)

    def stop(self, number):
        if number not in self.ending:
            self.ending[number] = time.monotonic()
            self.signal(number, signal.SIGTERM)

    def stop_all(self):
        """End all jobs, at once if they do not go."""
        for number in self.jobs:
            self.stop(number)
        until = time.monotonic() + self.options.get("grace", 10)
        while any(child.poll() is None for child, _ in self.jobs.values()) and time.monotonic() < until:
            time.sleep(0.01)
        for number in self.jobs:
            self.signal(number, signal.SIGKILL)
        for child, _ in self.jobs.values():
            child.wait()

    def warn(self):
        """This server will be taken away: jobs may save what they can."""
        if not self.warned:
            self.warned: bool = True
            write(os.path.join(self.here, "warned"), str(time.time()))
            for number in self.jobs:
                if number not in self.savers:
                    self.signal(number, signal.SIGTERM)
            for number in list(self.jobs):
                if number in self.savers:
                    self.save(number)

    def die(self):
        """Taken away: everything of this server is killed, without a word."""
        for number in list(self.jobs):
            self.signal(number, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)

    def ask(self):
        """Whether the cloud says that this server will be taken away, or may be."""
        base = self.options["metadata"].rstrip("/") + "/latest/"
        headers = {"X-aws-ec2-metadata-token": self.token(base)}
        for word in ("spot/instance-action", "events/recommendations/rebalance"):
            try:
                request = urllib.request.Request(base + "meta-data/" + word, headers=headers)
                with urllib.request.urlopen(request, timeout=1) as answer:
                    said = answer.read().decode()
            except OSError as error:
                if getattr(error, "code", None) == 401:
                    self.pass_until = 0.0  # the token is too old
                continue
            if word.startswith("spot"):
                self.warn()
            elif not os.path.exists(os.path.join(self.here, "rebalance")):
                write(os.path.join(self.here, "rebalance"), said)

    def token(self, base):
        """The pass that today's metadata want (IMDSv2), good for hours; empty where none is given out."""
        if time.monotonic() >= self.pass_until:
            ask = {"X-aws-ec2-metadata-token-ttl-seconds": "21600"}
            self.passed, self.pass_until = "", time.monotonic() + 60
            with contextlib.suppress(OSError):
                request = urllib.request.Request(base + "api/token", headers=ask, method="PUT")
                with urllib.request.urlopen(request, timeout=1) as answer:
                    self.passed, self.pass_until = answer.read().decode(), time.monotonic() + 20000
        return self.passed

    def forgotten(self):
        """Whether there is no job and nobody who would give one."""
        if self.jobs:
            return False
        if self.last:
            return True
        beat = None
        with contextlib.suppress(OSError):
            beat = os.stat(os.path.join(self.folder, "heartbeat")).st_mtime_ns
        if beat != self.beat:  # whatever the clocks of the two machines say
            self.beat, self.heard = beat, time.monotonic()
        return time.monotonic() - max(self.heard, self.busy) > self.options["idle"]


def main():
    options = json.loads(sys.argv[1])
    Agent(options).run()
    if options.get("shutdown"):
        subprocess.call(options["shutdown"])


if __name__ == "__main__":
    main()
