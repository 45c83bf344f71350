"""The two processes that keep a cluster, and end it whatever happens.

``python -m yolo_slurm.devcluster.supervisor DIR LOCK CONTROL STATUS`` is the
guard. It forks the supervisor, which starts the daemons and, for ``run``, the
user's command. Both are subreapers: whatever a daemon or a job starts stays
below them. Each watches the other, and the supervisor watches the control
pipe too: when the caller dies before it said ``detach``, all ends. So no
single death, by ``kill -9`` at any moment, leaves a process behind.

The caller writes JSON lines to the control pipe (``{"do": "detach"}``,
``{"do": "run", "argv": […], "group": …}``, ``{"do": "interrupt"}``) and closes
it to end all. The supervisor writes JSON lines to the status pipe:
``{"progress": text}``, ``{"ready": name}``, ``{"detached": true}``,
``{"error": text}``, ``{"exit": code}``.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any, Final

from yolo_slurm.devcluster import state
from yolo_slurm.devcluster.bringup import BringUp, ended
from yolo_slurm.devcluster.daemons import SETTLER, command_environment
from yolo_slurm.devcluster.layout import Layout
from yolo_slurm.devcluster.processes import Child, Children, become_subreaper
from yolo_slurm.devcluster.sweep import kill, kill_descendants, started, sweep
from yolo_slurm.errors import YoloSlurmError

_GRACE: Final = 5.0  # seconds for the user's command to end after SIGTERM
_SETTLER_GRACE: Final = 2.0


class StopError(Exception):
    """The caller is gone or wants an end."""


class Supervisor:
    """One cluster from its start to its end."""

    def __init__(self, layout: Layout, control: int, status: int, guard: int) -> None:
        self.layout = layout
        self.spec = state.read_spec(layout)
        self.children = Children()
        self.command: Child | None = None
        self.control = control
        self.status = status
        self.stopping = False
        self._detached = False
        self._buffer = b""
        self._name = ""
        self._ready = False
        self._selector = selectors.DefaultSelector()
        self._selector.register(control, selectors.EVENT_READ, self._on_control)
        self._selector.register(guard, selectors.EVENT_READ, self._on_guard)
        self._selector.register(_signals(self._stop), selectors.EVENT_READ, _drain)

    def run(self) -> None:
        """Bring the cluster up, keep it, and take it down."""
        try:
            bringup = BringUp(self.layout, self.spec, self.children, self.pause, self._progress)
            self._name = bringup.cluster.name
            self._write_state()
            bringup.run()
            self._ready = True
            self._write_state()
            self._tell(ready=self._name)
            while self.command is None or self.command.code is None:
                self.pause(None)
            self._tell(exit=self.command.code)
        except StopError:
            pass
        except YoloSlurmError as error:
            self._tell(error=str(error))
        except BaseException:  # noqa: BLE001 - the cluster must come down whatever it was
            # The caller's terminal is not the place for a traceback.
            self.layout.log.mkdir(exist_ok=True)
            self.layout.log_of("supervisor").write_text(traceback.format_exc())
            self._tell(error=f"the supervisor failed: see {self.layout.log_of('supervisor')}")
        self._take_down()

    def pause(self, seconds: float | None) -> None:
        """Wait for something to happen, at most *seconds* (None: as long as it takes).

        Raises:
            StopError: all is to end.
        """
        for key, _ in self._selector.select(seconds):
            key.data(key.fd)
        ends = self.children.reap()
        if self._ready:
            self._note(ends)
        if self.stopping:
            raise StopError

    def _note(self, ends: list[Child]) -> None:
        """Write down which daemons ended while the cluster was in use."""
        for child in ends:
            if child is not self.command:
                with self.layout.log_of("supervisor").open("a") as log:
                    log.write(f"{time.strftime('%FT%T')} {ended(child)}\n")

    def _on_control(self, fd: int) -> None:
        data = os.read(fd, 65536)
        if not data:
            self._selector.unregister(fd)
            self.stopping = not self._detached
            return
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            self._obey(json.loads(line))

    def _obey(self, request: dict[str, Any]) -> None:
        match request:
            case {"do": "detach"}:
                self._detached = True
                self._tell(detached=True)
            case {"do": "run", "argv": argv, "group": group}:
                self._start_command(argv, group)
            case {"do": "interrupt"} if self.command is not None and self.command.code is None:
                kill([self.command.pid], signal.SIGINT)

    def _start_command(self, argv: list[str], group: int) -> None:
        env = command_environment(self.layout, os.environ)
        try:
            self.command = self.children.start_command(argv, env, group)
        except OSError as error:
            self._tell(error=f"{argv[0]}: {error.strerror}")
            self.stopping = True
        self._write_state()

    def _on_guard(self, fd: int) -> None:
        self._selector.unregister(fd)
        self._stop()

    def _stop(self) -> None:
        self.stopping = True

    def _progress(self, text: str) -> None:
        self._tell(progress=text)
        self._write_state()

    def _tell(self, **message: object) -> None:
        # A caller that is gone is noticed at the control pipe.
        with contextlib.suppress(BrokenPipeError):
            os.write(self.status, json.dumps(message).encode() + b"\n")

    def _write_state(self) -> None:
        own = state.Process("supervisor", os.getpid(), started(os.getpid()))
        daemons = tuple(
            state.Process(child.name, child.pid, child.started)
            for child in self.children.all
            if child is not self.command
        )
        state.write_state(self.layout, state.State(self._name, self._ready, own, daemons))

    def _take_down(self) -> None:
        self._ready = False
        if self.command is not None:
            self._end([self.command], _GRACE)
        # Only the settler is asked: what the others would save is thrown away.
        self._end([c for c in self.children.all if c.name == SETTLER], _SETTLER_GRACE)
        kill_descendants()
        if self.spec.ephemeral:
            state.remove(self.layout)

    def _end(self, children: list[Child], grace: float) -> None:
        """Ask *children* to end and give them *grace* seconds."""
        deadline = time.monotonic() + grace
        kill((child.pid for child in children if child.code is None), signal.SIGTERM)
        while any(child.code is None for child in children) and time.monotonic() < deadline:
            with contextlib.suppress(StopError):
                self.pause(0.02)


def _signals(stop: Any) -> int:
    """Turn SIGTERM into a stop and every caught signal into a readable descriptor."""
    readable, writable = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    _hear_and_do_nothing(signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)
    signal.signal(signal.SIGTERM, lambda *_: stop())
    return readable


def _hear_and_do_nothing(*numbers: signal.Signals) -> None:
    """Survive *numbers* without SIG_IGN, which the user's command would inherit.

    What the caller ignores (nohup, a shell's ``&``) stays ignored.
    """
    for number in numbers:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


def _drain(fd: int) -> None:
    with contextlib.suppress(BlockingIOError):
        os.read(fd, 4096)


def guard(layout: Layout, control: int, status: int) -> int:
    """Fork the supervisor, wait for its end, and end what it left."""
    become_subreaper()
    readable, writable = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        os.close(writable)
        become_subreaper()
        Supervisor(layout, control, status, readable).run()
        os._exit(0)
    for fd in (readable, control, status):
        os.close(fd)
    _hear_and_do_nothing(signal.SIGINT, signal.SIGHUP)
    signal.signal(signal.SIGTERM, lambda *_: kill([pid], signal.SIGTERM))
    while True:
        ended_pid, code = os.waitpid(-1, 0)
        if ended_pid == pid:
            break
    kill_descendants()
    if code != 0:
        sweep(layout)
        if state.is_cluster(layout) and state.read_spec(layout).ephemeral:
            state.remove(layout)
    return 0 if code == 0 else 1


def main() -> None:
    """The guard's entry: DIR and the numbers of the lock, control and status descriptors."""
    directory, lock, control, status = sys.argv[1:]
    for fd in (int(lock), int(control), int(status)):
        os.set_inheritable(fd, False)
    raise SystemExit(guard(Layout(Path(directory)), int(control), int(status)))


if __name__ == "__main__":
    main()
