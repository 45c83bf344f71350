"""Write a cluster's directory."""

from __future__ import annotations

import importlib.resources
import os
import pwd
import secrets
import shutil
import stat
from pathlib import Path

from yolo_slurm.devcluster import config
from yolo_slurm.devcluster.config import Cluster


def write(cluster: Cluster, munge_user: str) -> None:
    """Create all directories and files that the daemons start from."""
    layout = cluster.layout
    for path in (layout.etc, layout.slurmd, layout.gpus, layout.log):
        _directory(path, 0o755, "root")
    _directory(layout.work, 0o1777, "root")
    _directory(layout.run, 0o755, "slurm")
    for path in (layout.state, layout.spool, layout.ledger, layout.database):
        _directory(path, 0o700, "slurm")
    _directory(layout.munge, 0o755, munge_user)
    for name in cluster.spec.node_names:
        _directory(layout.slurmd / name, 0o755, "root")

    _file(layout.slurm_conf, config.slurm_conf(cluster), 0o644, "root")
    _file(layout.etc / "gres.conf", config.gres_conf(cluster), 0o644, "root")
    _file(layout.etc / "cgroup.conf", config.cgroup_conf(cluster), 0o644, "root")
    # Without one, Slurm would load the host's plugins.
    _file(layout.etc / "plugstack.conf", "", 0o644, "root")
    _file(layout.slurmdbd_conf, config.slurmdbd_conf(cluster), 0o600, "slurm")
    _file(layout.policy, config.policy_toml(cluster), 0o644, "root")
    _file(layout.site, config.site_toml(cluster), 0o600, "slurm")
    _file(layout.hook, config.hook(cluster, hook_script()), 0o755, "root")
    _file(layout.node_epilog, hook_script("node_epilog.sh"), 0o755, "root")
    _key(layout.munge / "munge.key", munge_user)
    for number in range(max(group.gpus for group in cluster.spec.groups)):
        _device(layout.gpus / f"gpu{number}")


def hook_script(name: str = "job_event.sh") -> str:
    """The text of a hook as it is installed."""
    package = importlib.resources.files("yolo_slurm.spank_hooks")
    return package.joinpath(name).read_text(encoding="utf-8")


def _directory(path: Path, mode: int, owner: str) -> None:
    path.mkdir()
    _own(path, mode, owner)


def _file(path: Path, text: str, mode: int, owner: str) -> None:
    path.touch(mode=0o600, exist_ok=False)
    path.write_text(text, encoding="utf-8")
    _own(path, mode, owner)


def _key(path: Path, owner: str) -> None:
    path.touch(mode=0o600, exist_ok=False)
    path.write_bytes(secrets.token_bytes(1024))
    _own(path, 0o400, owner)


def _device(path: Path) -> None:
    """Another /dev/null: Slurm sets CUDA_VISIBLE_DEVICES for device files only."""
    os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    path.chmod(0o666)


def _own(path: Path, mode: int, owner: str) -> None:
    entry = pwd.getpwnam(owner)
    shutil.chown(path, entry.pw_uid, entry.pw_gid)
    path.chmod(mode)
