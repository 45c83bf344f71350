"""What a devcluster is made of: its nodes and users, and where its files lie."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from yolo_slurm.errors import InputError

DEFAULT_DIRECTORY: Final = Path("/tmp/yolo-slurm-devcluster")  # noqa: S108 - claimed as root's
DEFAULT_NODES: Final = "a100:4x2,t4:4x2"
DEFAULT_PROJECTS: Final = "demo,defect"
DEFAULT_USERS: Final = "root,nobody,daemon,games"

# slurmd names a step's socket DIR/slurmd/NODE/NODE_JOB.STEP, and a socket's
# path holds 107 bytes.
_LONGEST_DIRECTORY: Final = 60
_MOST_NODES: Final = 64
_MOST_GPUS: Final = 64

_GROUP: Final = re.compile(
    r"(?P<type>[a-z0-9][a-z0-9_.-]*):(?P<gpus>[0-9]{1,3})x(?P<nodes>[0-9]{1,3})"
)
_NAME: Final = re.compile(r"[a-z0-9_][a-z0-9_.-]*")
_PATH: Final = re.compile(r"/[A-Za-z0-9_./+@-]+")


@dataclass(frozen=True)
class NodeGroup:
    """Nodes that are alike: *nodes* of them with *gpus* GPUs of one type each."""

    gpu_type: str
    gpus: int
    nodes: int


@dataclass(frozen=True)
class Spec:
    """What the user asked for."""

    groups: tuple[NodeGroup, ...]
    projects: tuple[str, ...]
    users: tuple[str, ...]
    slurm_conf: str = ""  # lines for the end of slurm.conf
    hooks: bool = True
    service: bool = True
    ephemeral: bool = False  # the directory goes when the cluster does

    @property
    def gpu_types(self) -> tuple[str, ...]:
        """Each GPU type once, in the order it was named."""
        return tuple(dict.fromkeys(group.gpu_type for group in self.groups))

    @property
    def node_names(self) -> tuple[str, ...]:
        """``g1``, ``g2``, …: numbered through all groups."""
        return tuple(f"g{n + 1}" for n in range(sum(group.nodes for group in self.groups)))


@dataclass(frozen=True)
class Layout:
    """The paths of the cluster in *root*."""

    root: Path

    @property
    def etc(self) -> Path:
        """Slurm's configuration and the policy."""
        return self.root / "etc"

    @property
    def slurm_conf(self) -> Path:
        return self.etc / "slurm.conf"

    @property
    def slurmdbd_conf(self) -> Path:
        return self.etc / "slurmdbd.conf"

    @property
    def policy(self) -> Path:
        return self.etc / "policy.toml"

    @property
    def site(self) -> Path:
        return self.etc / "site.toml"

    @property
    def hook(self) -> Path:
        return self.etc / "job_event.sh"

    @property
    def node_epilog(self) -> Path:
        return self.etc / "node_epilog.sh"

    @property
    def munge(self) -> Path:
        return self.root / "munge"

    @property
    def munge_socket(self) -> Path:
        return self.munge / "socket"

    @property
    def database(self) -> Path:
        return self.root / "db"

    @property
    def database_socket(self) -> Path:
        return self.database / "socket"

    @property
    def state(self) -> Path:
        """slurmctld's StateSaveLocation."""
        return self.root / "state"

    @property
    def slurmd(self) -> Path:
        """One spool directory for each slurmd."""
        return self.root / "slurmd"

    @property
    def run(self) -> Path:
        """Process id files."""
        return self.root / "run"

    @property
    def gpus(self) -> Path:
        return self.root / "gpu"

    @property
    def spool(self) -> Path:
        """Where the hook leaves its files."""
        return self.root / "spool"

    @property
    def ledger(self) -> Path:
        return self.root / "ledger"

    @property
    def log(self) -> Path:
        return self.root / "log"

    @property
    def work(self) -> Path:
        """A directory that every user may write to, for job output."""
        return self.root / "work"

    def log_of(self, daemon: str) -> Path:
        """The file that a daemon's stdout and stderr go to."""
        return self.log / f"{daemon}.log"

    def environment(self) -> dict[str, str]:
        """What a user of the cluster exports."""
        return {"SLURM_CONF": str(self.slurm_conf), "YOLO_SLURM_POLICY": str(self.policy)}


def parse_nodes(text: str) -> tuple[NodeGroup, ...]:
    """Read ``a100:4x2,t4:4x2``: GPU type, GPUs in a node, nodes.

    Raises:
        InputError: the text is something else.
    """
    groups = []
    for part in text.split(","):
        found = _GROUP.fullmatch(part.strip())
        if found is None:
            raise InputError(
                f"--nodes: {part.strip()!r} is not TYPE:GPUSxNODES, as in {DEFAULT_NODES}"
            )
        group = NodeGroup(found["type"], int(found["gpus"]), int(found["nodes"]))
        if not 1 <= group.gpus <= _MOST_GPUS or group.nodes < 1:
            raise InputError(
                f"--nodes: {part.strip()!r}: expected 1 to {_MOST_GPUS} GPUs in at least one node"
            )
        groups.append(group)
    if sum(group.nodes for group in groups) > _MOST_NODES:
        raise InputError(f"--nodes: {text!r} is more than {_MOST_NODES} nodes")
    return tuple(groups)


def parse_names(text: str, option: str) -> tuple[str, ...]:
    """Read a comma-separated list of account or user names, each once.

    Raises:
        InputError: a name is empty or one that Slurm would not keep as it is.
    """
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    for name in names:
        if _NAME.fullmatch(name) is None:
            raise InputError(
                f"{option}: {name!r} is not a name of lower-case letters, digits, '_', '-', '.'"
            )
    return names


def read_lines(path: Path) -> str:
    """Return the lines for the end of slurm.conf in *path*. Raises InputError."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InputError(f"--slurm-conf: {path} is not UTF-8 text") from None
    except OSError as error:
        raise InputError(f"--slurm-conf: {path}: {error.strerror}") from None


def parse_directory(path: Path) -> Layout:
    """The layout in *path*, made absolute.

    Raises:
        InputError: the path cannot stand in slurm.conf or in a socket's address.
    """
    if path.expanduser().is_symlink():
        raise InputError(f"--dir: {path} is a symbolic link: name the directory itself")
    root = path.expanduser().resolve()
    if _PATH.fullmatch(str(root)) is None or "//" in str(root):
        raise InputError(f"--dir: {str(root)!r}: letters, digits and _./+@- only, please")
    if len(str(root).encode()) > _LONGEST_DIRECTORY:
        raise InputError(
            f"--dir: {root} is longer than {_LONGEST_DIRECTORY} bytes, too long for its sockets"
        )
    return Layout(root)
