"""Start a cluster's daemons, each as soon as what it needs is there."""

from __future__ import annotations

import secrets
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from yolo_slurm.devcluster import config, daemons, files, prerequisites
from yolo_slurm.devcluster.config import Cluster
from yolo_slurm.devcluster.layout import Layout, Spec
from yolo_slurm.devcluster.ports import Ports
from yolo_slurm.devcluster.processes import Child, Children
from yolo_slurm.errors import UnavailableError

_PATIENCE: Final = 60.0  # seconds for one step; a loaded host is slow
_SETTLER_TRIAL: Final = 1.0  # seconds after which a settler counts as running


class Pause(Protocol):
    """Sleeps up to so many seconds, reaping, and raises when all is to end."""

    def __call__(self, seconds: float) -> None: ...


@dataclass
class BringUp:
    """The start of one cluster, in the supervisor."""

    layout: Layout
    spec: Spec
    children: Children
    pause: Pause
    progress: Callable[[str], None]
    programs: dict[str, str] = field(default_factory=prerequisites.programs)

    def __post_init__(self) -> None:
        self.ports = Ports(2 + len(self.spec.node_names))
        self.cluster = self._plan()
        self.env = daemons.environment(self.cluster)

    def _plan(self) -> Cluster:
        controller, database, *nodes = self.ports.numbers
        return Cluster(
            name=f"dev{secrets.token_hex(4)}",
            layout=self.layout,
            spec=self.spec,
            hostname=socket.gethostname().partition(".")[0],
            controller_port=controller,
            database_port=database,
            node_ports=tuple(nodes),
            version=prerequisites.slurm_version(self.programs["slurmctld"]),
        )

    def run(self) -> None:
        """Return when all nodes are idle and the settler runs.

        Raises:
            UnavailableError: a daemon ended early or did not answer in time.
        """
        cluster, layout, program = self.cluster, self.layout, self.programs
        self.progress("database")
        munge_user = prerequisites.munge_user()
        files.write(cluster, munge_user)
        self._start(daemons.munged(cluster, program["munged"], munge_user))
        self._finish(self._start(daemons.database_install(cluster, program["mariadb-install-db"])))
        self._start(daemons.mariadbd(cluster, program["mariadbd"]))
        self._until(layout.database_socket.is_socket, "mariadbd's socket")
        self._until(layout.munge_socket.is_socket, "munged's socket")
        self.progress("slurmdbd")
        self._start(daemons.slurmdbd(cluster, program["slurmdbd"]))
        self._until(lambda: _listens(cluster.database_port), "slurmdbd's port")
        self.progress("projects and users")
        self._finish(
            self.children.start_tool(
                "sacctmgr",
                [program["sacctmgr"], "-i"],
                self.env,
                config.accounting(cluster),
                layout.log_of("sacctmgr"),
            )
        )
        self.progress("slurmctld")
        self._start(daemons.slurmctld(cluster, program["slurmctld"]))
        self._until(lambda: _listens(cluster.controller_port), "slurmctld's port")
        self.progress("nodes")
        for slurmd in daemons.slurmds(cluster, program["slurmd"]):
            self._start(slurmd)
        settled = time.monotonic()
        if self.spec.service:
            self._start(daemons.settler())
            settled += _SETTLER_TRIAL
        self._until(self._idle, "idle nodes in sinfo")
        self._until(lambda: time.monotonic() >= settled, "the settler")

    def _start(self, daemon: daemons.Daemon) -> Child:
        log = self.layout.log_of(daemon.name)
        return self.children.start_daemon(daemon, self.env, log, self.layout.root)

    def _finish(self, tool: Child) -> None:
        """Wait for a program that has to end with 0."""
        self._until(lambda: tool.code is not None, f"end of {tool.name}", tool)
        self.children.all.remove(tool)
        if tool.code != 0:
            raise UnavailableError(ended(tool))

    def _until(self, done: Callable[[], bool], what: str, tool: Child | None = None) -> None:
        """Wait for *done*; a child that ends, other than *tool*, is an error."""
        deadline = time.monotonic() + _PATIENCE
        while not done():
            self.pause(0.02)
            for child in self.children.all:
                if child.code is not None and child is not tool:
                    raise UnavailableError(ended(child))
            if time.monotonic() > deadline:
                raise UnavailableError(
                    f"no {what} after {_PATIENCE:.0f} s: see the logs in {self.layout.log}"
                )

    def _idle(self) -> bool:
        """Whether each node is idle, as sinfo tells."""
        argv = [self.programs["sinfo"], "-h", "-N", "-o", "%T"]
        try:
            done = subprocess.run(
                argv, env=self.env, capture_output=True, text=True, timeout=5, check=False
            )
        except subprocess.TimeoutExpired:
            return False
        states = done.stdout.split()
        return len(states) >= len(self.spec.node_names) and set(states) == {"idle"}


def ended(child: Child) -> str:
    """One line on a program that should not have ended like this."""
    how = f"exit code {child.code}" if (child.code or 0) >= 0 else f"signal {-(child.code or 0)}"
    return f"{child.name} ended early ({how}): {_last_line(child.log)}"


def _last_line(log: Path | None) -> str:
    try:
        lines = log.read_text(errors="replace").split("\n") if log is not None else []
    except OSError:
        lines = []
    told = [line.strip() for line in lines if line.strip()]
    return told[-1] if told else "it said nothing"


def _listens(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
