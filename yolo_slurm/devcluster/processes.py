"""The children of the supervisor: started, reaped, ended."""

from __future__ import annotations

import ctypes
import grp
import os
import pwd
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final, TypedDict

from yolo_slurm.devcluster.daemons import Daemon
from yolo_slurm.devcluster.sweep import started

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_LIBC: Final = ctypes.CDLL(None, use_errno=True)


def become_subreaper() -> None:
    """From now on the orphans among this process's descendants become its children."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    """Let the kernel kill this process when the thread that forked it ends."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _as_daemon() -> None:
    die_with_parent()
    for number in (signal.SIGINT, signal.SIGHUP):  # a job inherits what slurmd ignores
        signal.signal(number, signal.SIG_DFL)


def _prctl(option: int, value: int) -> None:
    if _LIBC.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl {option}")


@dataclass
class Child:
    """A started program; *code* is its exit code, or -n after signal n, once it ended."""

    name: str
    pid: int
    log: Path | None
    started: int  # as sweep.started tells
    code: int | None = None


@dataclass
class Children:
    """All children, each waited for here and nowhere else.

    The supervisor also becomes the parent of orphans, so it has to wait for
    any child, which takes exit codes from under ``subprocess.Popen.wait``.
    """

    all: list[Child] = field(default_factory=list)

    def start_daemon(self, daemon: Daemon, env: Mapping[str, str], log: Path, cwd: Path) -> Child:
        """Start a daemon in a session of its own, its output at the end of *log*."""
        with log.open("ab") as output:
            process = subprocess.Popen(
                daemon.argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**env, **daemon.env},
                cwd=cwd,
                umask=0o022,
                start_new_session=True,
                preexec_fn=_as_daemon,  # the supervisor has one thread
                **_identity(daemon.user),
            )
        return self._keep(daemon.name, process, log)

    def start_tool(
        self, name: str, argv: Sequence[str], env: Mapping[str, str], text: str, log: Path
    ) -> Child:
        """Start a short-lived program as root that reads *text* from its stdin."""
        with log.open("ab") as output:
            process: subprocess.Popen[bytes] = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                env=env,
                start_new_session=True,
                preexec_fn=die_with_parent,
            )
            stdin: IO[bytes] | None = process.stdin
            assert stdin is not None  # noqa: S101 - asked for above
            with stdin:
                stdin.write(text.encode())  # less than a pipe holds
        return self._keep(name, process, log)

    def start_command(self, argv: Sequence[str], env: Mapping[str, str], group: int) -> Child:
        """Start the user's command on the user's terminal, in process group *group*."""
        process = subprocess.Popen(argv, env=env, process_group=group, preexec_fn=die_with_parent)
        return self._keep(argv[0], process, None)

    def _keep(self, name: str, process: subprocess.Popen[bytes], log: Path | None) -> Child:
        process.returncode = 0  # never waited for by subprocess
        child = Child(name, process.pid, log, started(process.pid))
        self.all.append(child)
        return child

    def reap(self) -> list[Child]:
        """Which children have ended since the last call; adopted ones are buried."""
        ends: list[Child] = []
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return ends
            if pid == 0:
                return ends
            for child in self.all:
                if child.pid == pid and child.code is None:
                    child.code = os.waitstatus_to_exitcode(status)
                    ends.append(child)


class _Identity(TypedDict, total=False):
    user: int
    group: int
    extra_groups: list[int]


def _identity(user: str) -> _Identity:
    """The arguments that make ``Popen`` run a program as *user*."""
    if user == "root":
        return {}
    entry = pwd.getpwnam(user)
    groups = [g.gr_gid for g in grp.getgrall() if user in g.gr_mem]
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": groups}
