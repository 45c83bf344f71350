"""The daemons of a devcluster: who runs them, with which arguments."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from yolo_slurm.devcluster.config import Cluster
from yolo_slurm.devcluster.layout import Layout

# Marks every process of a cluster with its directory, so that what a crash
# leaves can be found.
MARK: Final = "YOLO_SLURM_DEVCLUSTER"
SETTLER: Final = "settler"
_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# A cluster that is thrown away needs no write to reach the disk.
_DATABASE_OPTIONS: Final = (
    "--innodb-buffer-pool-size=64M",
    "--innodb-log-file-size=16M",
    "--innodb-log-buffer-size=4M",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-doublewrite=0",
    "--innodb-flush-method=nosync",
    "--innodb-lock-wait-timeout=900",
    "--loose-innodb-buffer-pool-dump-at-shutdown=0",
    "--loose-innodb-buffer-pool-load-at-startup=0",
    "--loose-debug-no-sync",
    "--sync-frm=0",
    "--aria-log-file-size=8M",
    "--aria-pagecache-buffer-size=8M",
    "--key-buffer-size=1M",
    "--max-connections=50",
    "--skip-name-resolve",
    "--performance-schema=0",
)


@dataclass(frozen=True)
class Daemon:
    """A program that stays in the foreground."""

    name: str
    argv: tuple[str, ...]
    user: str
    env: Mapping[str, str] = field(default_factory=dict)


def environment(cluster: Cluster) -> dict[str, str]:
    """The whole environment of a daemon: none of the user's own."""
    return {
        "PATH": _PATH,
        "LANG": "C.UTF-8",
        MARK: str(cluster.layout.root),
        **cluster.layout.environment(),
    }


def interpreter() -> Path:
    """This Python by a path that other users may enter.

    A checkout that they cannot has a link to its virtual environment; the
    last part stays as it is, a link that tells Python where its packages are.
    """
    path = Path(sys.executable)
    return path.parent.resolve() / path.name


def command_environment(layout: Layout, base: Mapping[str, str]) -> dict[str, str]:
    """The environment *base* of a user's command, made the cluster's."""
    path = f"{interpreter().parent}:{base.get('PATH', os.defpath)}"
    return {**base, **layout.environment(), "PATH": path}


def munged(cluster: Cluster, program: str, user: str) -> Daemon:
    """The cluster's own munged, with its own key."""
    directory = cluster.layout.munge
    return Daemon(
        "munged",
        (
            program,
            "--foreground",
            f"--socket={cluster.layout.munge_socket}",
            f"--key-file={directory}/munge.key",
            f"--pid-file={directory}/munged.pid",
            f"--seed-file={directory}/munged.seed",
            f"--log-file={directory}/munged.log",
        ),
        user,
    )


def database_install(cluster: Cluster, program: str) -> Daemon:
    """mariadb-install-db: ends when the system tables are there."""
    return Daemon(
        "mariadb-install-db",
        (
            program,
            "--no-defaults",
            f"--datadir={cluster.layout.database}/data",
            "--auth-root-authentication-method=socket",
            "--auth-root-socket-user=slurm",
            "--skip-test-db",
            *_DATABASE_OPTIONS,
        ),
        "slurm",
    )


def mariadbd(cluster: Cluster, program: str) -> Daemon:
    """MariaDB without a network, on a socket that only SlurmUser reaches."""
    directory = cluster.layout.database
    return Daemon(
        "mariadbd",
        (
            program,
            "--no-defaults",
            f"--datadir={directory}/data",
            f"--socket={cluster.layout.database_socket}",
            f"--pid-file={directory}/mariadbd.pid",
            f"--tmpdir={directory}",
            "--skip-networking",
            *_DATABASE_OPTIONS,
        ),
        "slurm",
    )


def slurmdbd(cluster: Cluster, program: str) -> Daemon:
    """slurmdbd; the MariaDB client library takes the socket from its environment."""
    socket = {"MYSQL_UNIX_PORT": str(cluster.layout.database_socket)}
    return Daemon("slurmdbd", (program, "-D"), "slurm", socket)


def slurmctld(cluster: Cluster, program: str) -> Daemon:
    """The controller."""
    return Daemon("slurmctld", (program, "-D", "-f", str(cluster.layout.slurm_conf)), "slurm")


def slurmds(cluster: Cluster, program: str) -> tuple[Daemon, ...]:
    """One slurmd for each node, as root: it starts jobs as their users."""
    conf = str(cluster.layout.slurm_conf)
    return tuple(
        Daemon(name, (program, "-D", "-N", name, "-f", conf), "root")
        for name in cluster.spec.node_names
    )


def settler() -> Daemon:
    """The service that keeps ledger and limits equal to what Slurm did."""
    python = str(interpreter())
    return Daemon(SETTLER, (python, "-P", "-m", "yolo_slurm", "service", "run"), "slurm")
