"""Find a cluster's processes in /proc, and end them."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

from yolo_slurm.devcluster.daemons import MARK
from yolo_slurm.devcluster.layout import Layout

_PROC = Path("/proc")


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the name; empty when there is none."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()


def started(pid: int) -> int:
    """When the process started, in clock ticks since boot; 0 when it runs no more.

    With the process id this names a process for good: the id alone is reused.
    """
    fields = _stat(pid)
    return int(fields[19]) if fields and fields[0] not in "ZX" else 0


def _processes() -> Iterable[int]:
    return (int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit())


def descendants(roots: Iterable[int]) -> set[int]:
    """All that *roots* started, at any depth, without themselves."""
    children: dict[int, list[int]] = {}
    for pid in _processes():
        if fields := _stat(pid):
            children.setdefault(int(fields[1]), []).append(pid)
    found: set[int] = set()
    waiting = list(roots)
    while waiting:
        for child in children.get(waiting.pop(), []):
            if child not in found:
                found.add(child)
                waiting.append(child)
    return found


def _environ(pid: int) -> frozenset[bytes]:
    try:
        return frozenset((_PROC / str(pid) / "environ").read_bytes().split(b"\0"))
    except OSError:
        return frozenset()


def leftovers(layout: Layout) -> set[int]:
    """The processes of the cluster, without this one and those it descends from.

    They bear the cluster's mark, or run in one of its jobs (a user's shell
    that only exported SLURM_CONF does not), or hold a step's socket, or
    descend from one that does.
    """
    mark = f"{MARK}={layout.root}".encode()
    conf = f"SLURM_CONF={layout.slurm_conf}".encode()
    sockets = _step_sockets(layout)
    found = set()
    for pid in _processes():
        environ = _environ(pid)
        in_job = conf in environ and any(item.startswith(b"SLURMD_NODENAME=") for item in environ)
        if mark in environ or in_job or (sockets and not sockets.isdisjoint(_open_files(pid))):
            found.add(pid)
    found |= descendants(found)
    return found - _own_line()


def _step_sockets(layout: Layout) -> set[str]:
    """The sockets that slurmstepds listen on: they write their titles over their environment."""
    found = set()
    for line in (_PROC / "net/unix").read_text(errors="replace").splitlines()[1:]:
        fields = line.split()
        if len(fields) == 8 and fields[7].startswith(f"{layout.slurmd}/"):
            found.add(f"socket:[{fields[6]}]")
    return found


def _open_files(pid: int) -> set[str]:
    found = set()
    with contextlib.suppress(OSError):
        for entry in (_PROC / str(pid) / "fd").iterdir():
            with contextlib.suppress(OSError):
                found.add(str(entry.readlink()))
    return found


def _own_line() -> set[int]:
    line = set()
    pid = os.getpid()
    while pid > 0 and pid not in line:
        line.add(pid)
        fields = _stat(pid)
        pid = int(fields[1]) if fields else 0
    return line


def kill(pids: Iterable[int], number: signal.Signals) -> None:
    """Send a signal to each, whether it still runs or not."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def sweep(layout: Layout, timeout: float = 10.0) -> int:
    """Kill what is left of the cluster and say how many processes that were.

    A process may start another between the look and the kill, so look until
    there is none, for at most *timeout* seconds.
    """
    killed: set[int] = set()
    deadline = time.monotonic() + timeout
    while (found := {pid for pid in leftovers(layout) if started(pid)}) and (
        time.monotonic() < deadline
    ):
        killed |= found
        kill(found, signal.SIGKILL)
        time.sleep(0.02)
    return len(killed)


def kill_descendants(timeout: float = 10.0) -> None:
    """Kill and reap all that this process, a subreaper, is the ancestor of."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        kill(descendants([os.getpid()]), signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.01)
