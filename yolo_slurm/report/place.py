"""Where the cache of a cluster, as a user sees it, lies."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from yolo_slurm.errors import UnavailableError
from yolo_slurm.slurm import gateway

# Where Slurm's packages look, then where slurmd leaves it in a configless cluster.
SLURM_CONF: Final = (Path("/etc/slurm/slurm.conf"), Path("/run/slurm/conf/slurm.conf"))

# What decides which rows sacct shows: the database, the cluster in it, and
# whether the federation's other clusters are shown as well.
_KEYS: Final = ("clustername", "accountingstoragehost", "accountingstorageport")
_VIEW: Final = ("SACCT_FEDERATION", "SACCT_LOCAL", "SLURM_CLUSTERS")
_SETTING: Final = re.compile(
    r"^\s*(ClusterName|AccountingStorageHost|AccountingStoragePort)\s*=\s*(\S+)",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Place:
    """The cache's file, None for none; note: what the user should know of it."""

    path: Path | None
    note: str | None = None


def identity(env: Mapping[str, str], configurations: Iterable[Path] = SLURM_CONF) -> str | None:
    """Return a name for the cluster whose rows sacct shows: ``NAME-HASH``; None if not known.

    From slurm.conf, as reading it costs nothing; from ``scontrol show
    config`` where no file is found. The file's path is in the hash too, so two
    private clusters never share a name.
    """
    named = env.get("SLURM_CONF")
    for path in [Path(named)] if named else configurations:
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        return _name({**_settings(text), "conf": str(path.resolve())}, env)
    try:
        done = gateway.run(["scontrol", "show", "config"], timeout=30.0)
    except UnavailableError:
        return None
    return _name(_settings(done.stdout), env)


def _settings(text: str) -> dict[str, str]:
    found = {each[1].lower(): each[2] for each in _SETTING.finditer(text)}
    return {key: found.get(key, "") for key in _KEYS}


def _name(settings: Mapping[str, str], env: Mapping[str, str]) -> str:
    view = [f"{key}={env.get(key, '')}" for key in _VIEW]
    spoken = "\n".join([*(f"{key}={value}" for key, value in settings.items()), *view])
    digest = hashlib.sha256(spoken.encode()).hexdigest()[:12]
    cluster = re.sub(r"[^A-Za-z0-9_.-]", "_", settings["clustername"])[:40] or "cluster"
    return f"{cluster}-{digest}"


def place(env: Mapping[str, str], uid: int, name: str | None, temporary: Path) -> Place:
    """Return where the cache of the cluster *name* as *uid* sees it lies; makes its directory.

    In ``$XDG_CACHE_HOME/yolo-slurm`` or ``~/.cache/yolo-slurm``; in
    *temporary* where that cannot be written to; nowhere where that cannot be
    either.
    """
    if name is None:
        return Place(None, "the cluster could not be told, so sacct's rows are not cached")
    file = f"usage-{name}-{uid}.db"
    base, home = env.get("XDG_CACHE_HOME", ""), env.get("HOME", "")
    wanted = Path(base if base.startswith("/") else f"{home or '/nonexistent'}/.cache")
    # A home that is not there is not made, though root could.
    there = wanted.parent.is_dir()
    if there and _writable(wanted / "yolo-slurm", uid, private=False):
        return Place(wanted / "yolo-slurm" / file)
    other = temporary / f"yolo-slurm-{uid}"
    if _writable(other, uid, private=True):
        return Place(
            other / file, f"{wanted / 'yolo-slurm'} cannot be written to; the cache is in {other}"
        )
    return Place(None, f"{wanted / 'yolo-slurm'} cannot be written to; nothing is cached")


def _writable(directory: Path, uid: int, *, private: bool) -> bool:
    """Make *directory* and return whether files can be made in it.

    private: it must be *uid*'s own and closed to others, since anybody can
    make one of that name in a directory for all.
    """
    try:
        directory.mkdir(mode=0o700, parents=not private, exist_ok=True)
        status = directory.lstat() if private else directory.stat()
        if not stat.S_ISDIR(status.st_mode):
            return False
        if private and (status.st_uid != uid or stat.S_IMODE(status.st_mode) & 0o077):
            return False
        if not os.access(directory, os.W_OK | os.X_OK):
            return False
        with tempfile.TemporaryFile(dir=directory):
            return True
    except OSError:
        return False
