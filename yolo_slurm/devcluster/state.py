"""The directory of a devcluster: whose it is, whether it runs, what it holds."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import time
from pathlib import Path
from typing import Final

import msgspec

from yolo_slurm.devcluster.layout import Layout, Spec
from yolo_slurm.devcluster.sweep import started
from yolo_slurm.errors import InputError, RefusedError

_MARKER: Final = "devcluster.json"
_STATE: Final = "state.json"


class Process(msgspec.Struct, frozen=True):
    """A process by its id and start time, which together are not reused."""

    name: str
    pid: int
    started: int

    @property
    def alive(self) -> bool:
        return self.started != 0 and started(self.pid) == self.started


class State(msgspec.Struct, frozen=True):
    """What the supervisor last wrote."""

    name: str  # the ClusterName
    ready: bool
    supervisor: Process
    daemons: tuple[Process, ...] = ()


def is_cluster(layout: Layout) -> bool:
    """Whether the directory was made by us, who are always root."""
    try:
        found = (layout.root / _MARKER).lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return stat.S_ISREG(found.st_mode) and found.st_uid == 0


def write_spec(layout: Layout, spec: Spec) -> None:
    """Mark the directory as a devcluster's."""
    _write(layout.root / _MARKER, msgspec.json.encode(spec))


def read_spec(layout: Layout) -> Spec:
    """What the cluster was asked to be."""
    return msgspec.json.decode((layout.root / _MARKER).read_bytes(), type=Spec)


def write_state(layout: Layout, state: State) -> None:
    """Keep what ``status`` and ``down`` need to know."""
    _write(layout.root / _STATE, msgspec.json.encode(state))


def read_state(layout: Layout) -> State | None:
    """The last state; None when there is none yet."""
    try:
        return msgspec.json.decode((layout.root / _STATE).read_bytes(), type=State)
    except FileNotFoundError:
        return None


def _write(path: Path, content: bytes) -> None:
    """Replace *path* whole: a reader never sees half of it."""
    new = path.with_name(f"{path.name}.new")
    new.write_bytes(content)
    new.chmod(0o644)
    new.replace(path)


def is_running(layout: Layout) -> bool:
    """Whether somebody holds the directory's lock: a supervisor, as long as it lives."""
    try:
        fd = os.open(layout.root, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def lock(layout: Layout, timeout: float) -> int | None:
    """Lock the directory within *timeout* seconds: a descriptor, or None.

    The lock is on the directory itself and dies with the last process that
    holds the descriptor.
    """
    fd = os.open(layout.root, os.O_RDONLY | os.O_DIRECTORY)
    deadline = time.monotonic() + timeout
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                os.close(fd)
                return None
            time.sleep(0.02)
        else:
            return fd


def claim(layout: Layout) -> int:
    """Make the directory, or take an empty or a dead cluster's one; locked.

    What a dead cluster left in it is for the caller to clear.

    Raises:
        RefusedError: a cluster runs in it.
        InputError: it is somebody else's, or holds something else.
    """
    root = layout.root
    try:
        root.mkdir(mode=0o755, parents=False, exist_ok=True)
    except FileNotFoundError:
        raise InputError(f"--dir: {root.parent} does not exist") from None
    except (FileExistsError, NotADirectoryError):
        raise InputError(f"--dir: {root} is not a directory") from None
    if root.stat().st_uid != os.geteuid():
        raise InputError(f"--dir: {root} belongs to another user: name a directory of your own")
    fd = lock(layout, 0.3)
    if fd is None:
        raise RefusedError(f"a devcluster already runs in {root}: yolo-slurm devcluster down")
    if not is_cluster(layout) and any(root.iterdir()):
        os.close(fd)
        raise InputError(f"--dir: {root} is not empty and no devcluster's: name another directory")
    root.chmod(0o755)
    return fd


def clear(layout: Layout) -> None:
    """Empty the directory of a devcluster, its marker last.

    Raises:
        InputError: it is not a devcluster's.
    """
    if not is_cluster(layout):
        raise InputError(f"{layout.root} is no devcluster's directory: nothing was removed")
    for entry in layout.root.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        elif entry.name != _MARKER:
            entry.unlink(missing_ok=True)
    (layout.root / _MARKER).unlink(missing_ok=True)


def remove(layout: Layout) -> None:
    """Remove the directory of a devcluster; what is no devcluster's stays."""
    if is_cluster(layout):
        clear(layout)
        with contextlib.suppress(OSError):  # the guard may have been faster
            layout.root.rmdir()
