"""The caller's side: bring a cluster up, run a command in it, take it down."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from yolo_slurm.devcluster import prerequisites, state
from yolo_slurm.devcluster.daemons import MARK
from yolo_slurm.devcluster.layout import Layout, Spec
from yolo_slurm.devcluster.signals import Signals
from yolo_slurm.devcluster.sweep import kill, sweep
from yolo_slurm.errors import UnavailableError

_STOP_PATIENCE: Final = 20.0  # seconds for a supervisor to take all down


def prepare(layout: Layout | None, spec: Spec) -> None:
    """Check all that can be checked before anything is started.

    Raises:
        InputError, UnavailableError: one line on what is wrong.
    """
    prerequisites.require_root()
    prerequisites.require_users(spec)
    prerequisites.programs()
    if layout is not None:
        prerequisites.require_reachable(layout)
    if spec.service:
        prerequisites.require_readable_package()


@dataclass
class Session:
    """A supervisor that was started by this process and ends with it."""

    layout: Layout
    process: subprocess.Popen[bytes]
    control: int
    messages: Iterator[dict[str, Any]]
    ephemeral: bool
    detached: bool = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def send(self, **request: object) -> None:
        """Ask the supervisor for something."""
        with contextlib.suppress(OSError):  # a dead one is noticed by its silence
            os.write(self.control, json.dumps(request).encode() + b"\n")

    def hang_up(self) -> None:
        """Close the control pipe: unless detached, the supervisor takes all down."""
        if self.control >= 0:
            os.close(self.control)
            self.control = -1

    def detach(self) -> None:
        """Let the supervisor live on without us."""
        self.send(do="detach")
        self.receive(_silent)
        self.detached = True

    def close(self) -> None:
        """Hang up and wait until nothing runs any more."""
        self.hang_up()
        if self.detached:
            self.process.returncode = 0  # it lives on: no warning at exit
        elif self.process.wait() != 0:
            # The guard was killed; the supervisor saw it and is ending too.
            _clean(self.layout, remove=self.ephemeral)

    def receive(self, progress: Callable[[str], None]) -> dict[str, Any]:
        """The next message other than progress, which is told, and "" at its end.

        Raises:
            UnavailableError: the supervisor failed, or is gone.
        """
        for message in self.messages:
            progress(message.get("progress", ""))
            if "error" in message:
                raise UnavailableError(message["error"])
            if "progress" not in message:
                return message
        raise UnavailableError("the devcluster's supervisor ended: all was taken down")


def start(layout: Layout, spec: Spec, *, detachable: bool) -> Session:
    """Claim the directory and start a supervisor there.

    One that is to be detached gets a session of its own; one that runs a
    command stays in the terminal's, so that the command can join the caller's
    process group and hear Ctrl-C.

    Raises:
        RefusedError: a cluster runs there.
        InputError: the directory is not one we may use.
    """
    lock = state.claim(layout)
    try:
        sweep(layout)
        if state.is_cluster(layout):
            state.clear(layout)
        state.write_spec(layout, spec)
        control_read, control = os.pipe2(os.O_CLOEXEC)
        status, status_write = os.pipe2(os.O_CLOEXEC)
        fds = (lock, control_read, status_write)
        argv = [sys.executable, "-P", "-m", "yolo_slurm.devcluster.supervisor", str(layout.root)]
        streams: dict[str, Any] = {}
        if detachable:
            streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        process = subprocess.Popen(
            [*argv, *map(str, fds)],
            pass_fds=fds,
            env={**os.environ, MARK: str(layout.root)},
            start_new_session=detachable,
            process_group=None if detachable else 0,
            **streams,
        )
        os.close(control_read)
        os.close(status_write)
    finally:
        os.close(lock)
    return Session(layout, process, control, _messages(status), spec.ephemeral)


def _messages(fd: int) -> Iterator[dict[str, Any]]:
    with os.fdopen(fd, "rb") as stream:
        for line in stream:
            yield json.loads(line)


def up(
    layout: Layout, spec: Spec, progress: Callable[[str], None], ready: Callable[[], None]
) -> None:
    """Start a cluster that outlives this process; *ready* is called before it is let go.

    Raises:
        InputError, RefusedError, UnavailableError: one line; nothing runs then.
    """
    prepare(layout, spec)
    with Signals() as signals, start(layout, spec, detachable=True) as session, signals.armed():
        session.receive(progress)
        ready()
        session.detach()


def run(
    layout: Layout | None,
    spec: Spec,
    argv: Sequence[str],
    progress: Callable[[str], None],
    *,
    keep: bool = False,
) -> int:
    """Run *argv* in a cluster of its own, by default in a new directory.

    Returns its exit code, or 128 + n after signal n; *keep* leaves the
    directory with the logs.

    Raises:
        InputError, RefusedError, UnavailableError: one line; nothing runs then.
    """
    prepare(layout, spec)
    if layout is None:
        layout = Layout(Path(tempfile.mkdtemp(prefix="yolo-slurm-", dir="/tmp")))
    spec = replace(spec, ephemeral=not keep)
    with (
        Signals() as signals,
        start(layout, spec, detachable=False) as session,
        signals.armed(),
    ):
        session.receive(progress)
        signals.on_interrupt = lambda: _interrupt(session)
        session.send(do="run", argv=list(argv), group=os.getpgrp())
        code = int(session.receive(_silent)["exit"])
    return code if code >= 0 else 128 - code


def _silent(_: str) -> None:
    """No progress: the command has the terminal, or there is nothing to tell."""


def _interrupt(session: Session) -> None:
    """Pass SIGINT on, unless a terminal's Ctrl-C has already told the whole group."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        session.send(do="interrupt")
        return
    try:
        if os.tcgetpgrp(terminal) != os.getpgrp():
            session.send(do="interrupt")
    finally:
        os.close(terminal)


def down(layout: Layout, *, keep: bool = False) -> bool:
    """Take down what runs, or what a crash left, in the directory, and remove it.

    Returns whether there was a cluster; *keep* leaves its files.
    """
    prerequisites.require_root()
    if not state.is_cluster(layout):
        return False
    if state.is_running(layout):
        _stop_supervisor(layout)
    _clean(layout, remove=not keep)
    return True


def _clean(layout: Layout, *, remove: bool) -> None:
    """Once no supervisor holds the directory, end what is left, and remove it if told.

    Raises:
        UnavailableError: one holds it still, though killed.
    """
    if not layout.root.exists():
        return
    fd = state.lock(layout, _STOP_PATIENCE if _supervised(layout) else 1)
    if fd is None:
        sweep(layout)
        fd = state.lock(layout, 1)
    # Any user of the host can lock a directory that he can read; only a
    # supervisor that lives is a reason to stop.
    if fd is None and _supervised(layout):
        raise UnavailableError(f"{layout.root} is still locked after {_STOP_PATIENCE:.0f} s")
    try:
        sweep(layout)
        if remove:
            state.remove(layout)
    finally:
        if fd is not None:
            os.close(fd)


def _supervised(layout: Layout) -> bool:
    """Whether the supervisor that the directory tells of is alive."""
    found = state.read_state(layout)
    return found is not None and found.supervisor.alive


def _stop_supervisor(layout: Layout) -> None:
    """Ask the supervisor to take all down, and give it time to."""
    deadline = time.monotonic() + _STOP_PATIENCE
    asked = False
    while state.is_running(layout) and time.monotonic() < deadline:
        current = state.read_state(layout)
        if current is not None and not current.supervisor.alive:
            return  # whoever holds the lock is not ours
        if not asked and current is not None and current.supervisor.alive:
            kill([current.supervisor.pid], signal.SIGTERM)
            asked = True
        time.sleep(0.02)
