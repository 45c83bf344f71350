"""What the host must have before a cluster is started."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Final

from yolo_slurm.devcluster.daemons import interpreter
from yolo_slurm.devcluster.layout import Layout, Spec
from yolo_slurm.errors import InputError, UnavailableError

# program -> Debian package
_PROGRAMS: Final = {
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "slurmdbd": "slurmdbd",
    "sinfo": "slurm-client",
    "sacctmgr": "slurm-client",
    "munged": "munge",
    "mariadbd": "mariadb-server",
    "mariadb-install-db": "mariadb-server",
}
_PLUGINS: Final = {
    "select_cons_tres.so": "slurm-wlm-basic-plugins",
    "accounting_storage_mysql.so": "slurm-wlm-mysql-plugin",
}
_PLUGIN_DIRECTORIES: Final = ("/usr/lib", "/usr/lib64")


class HostError(UnavailableError):
    """The host lacks something a private cluster needs."""


def programs(path: str | None = None) -> dict[str, str]:
    """Where each program is, by its name; *path* instead of PATH.

    Raises:
        HostError: some are missing; names the command that installs them.
    """
    found = {name: shutil.which(name, path=path) for name in _PROGRAMS}
    lacking = [name for name, where in found.items() if where is None]
    packages = [_PROGRAMS[name] for name in lacking]
    if not lacking:
        packages = [package for plugin, package in _PLUGINS.items() if not _plugin(plugin)]
        lacking = packages
    if packages:
        install = " ".join(dict.fromkeys(packages))
        hint = ""
        if all(shutil.which(name, path="/usr/sbin:/usr/bin") for name in lacking):
            hint = "; if it is installed, add /usr/sbin:/usr/bin to PATH"
        raise HostError(
            f"{', '.join(lacking)} not found: apt-get install -y --no-install-recommends"
            f" {install}{hint}"
        )
    return {name: where for name, where in found.items() if where is not None}


def _plugin(name: str) -> bool:
    return any(
        next(Path(directory).glob(pattern), None) is not None
        for directory in _PLUGIN_DIRECTORIES
        for pattern in (f"slurm*/{name}", f"*/slurm*/{name}")
    )


def require_root() -> None:
    """Raises HostError unless root runs this: slurmd starts jobs as their users."""
    if os.geteuid() != 0:
        raise HostError("a devcluster starts slurmd, which runs jobs as their users: use root")


def require_users(spec: Spec) -> None:
    """Raises InputError when a user of *spec* is not one of this host's."""
    known = {entry.pw_name for entry in pwd.getpwall()}
    unknown = [user for user in spec.users if user not in known]
    if unknown:
        raise InputError(f"--users: {', '.join(unknown)}: no such user on this host")
    if "slurm" not in known:
        raise HostError("no user slurm: apt-get install -y --no-install-recommends slurmctld")


def munge_user() -> str:
    """Who runs munged: the package's own user where there is one."""
    known = {entry.pw_name for entry in pwd.getpwall()}
    return "munge" if "munge" in known else "slurm"


def require_reachable(layout: Layout) -> None:
    """Raises InputError when the cluster's directory cannot be made, or entered by others."""
    if not layout.root.parent.is_dir():
        raise InputError(f"--dir: {layout.root.parent}: no such directory")
    closed = _closed(layout.root.parent)
    if closed is not None:
        raise InputError(
            f"--dir: other users cannot enter {closed}: name a directory under /tmp or /var/tmp"
        )


def require_readable_package() -> None:
    """Raises HostError when SlurmUser could not run our settler."""
    python = interpreter()
    for path in (python, python.resolve(), Path(__file__).resolve()):
        closed = _closed(path.parent)
        if closed is not None:
            raise HostError(
                f"the settler runs as user slurm, who cannot enter {closed}, where {path} is:"
                " run `make setup`, which installs where all can read, or use --no-service"
            )


def _closed(path: Path) -> Path | None:
    """The first directory above or at *path* that others cannot enter."""
    for directory in [*reversed(path.parents), path]:
        if not directory.stat().st_mode & stat.S_IXOTH:
            return directory
    return None


def slurm_version(program: str) -> tuple[int, int]:
    """The version that ``slurmctld -V`` tells, as (22, 5).

    Raises:
        HostError: it tells none.
    """
    done = subprocess.run([program, "-V"], capture_output=True, text=True, timeout=10, check=False)
    found = re.search(r"(\d+)\.(\d+)", done.stdout)
    if found is None:
        raise HostError(f"{program} -V tells no version: {(done.stdout + done.stderr).strip()!r}")
    return int(found[1]), int(found[2])
