"""The environment variables that must be set before torch is imported.

torch reads the allocator's variables when it is imported and ultralytics its
own, and both reach the workers that several GPUs need, which start afresh. A
variable that is already set is the user's and wins.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import re
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Final

from yolo_slurm.train.settings import Settings

ALLOCATOR: Final = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
_FRACTION: Final = "per_process_memory_fraction"


@dataclasses.dataclass(frozen=True)
class Environment:
    """Variables to set, notes for the log, and what variables cannot do.

    fraction_by_call: the memory fraction must be set through torch in each process.
    allocator_is_users: the user set an allocator variable, which is left alone.
    """

    values: dict[str, str]
    notes: tuple[str, ...]
    fraction_by_call: bool
    allocator_is_users: bool


def torch_version() -> tuple[int, int] | None:
    """Return torch's major and minor version from its metadata, without importing it."""
    try:
        text = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return None
    match = re.match(r"(\d+)\.(\d+)", text)
    return (int(match.group(1)), int(match.group(2))) if match else None


def compute(
    settings: Settings,
    environ: Mapping[str, str],
    torch: tuple[int, int] | None,
    directory: Path,
    gpus: int | None = None,
) -> Environment:
    """Return what to add to *environ*; pure.

    directory: a writable directory of this job, for configuration and caches; HOME
    may not exist on a compute node. gpus: how many processes share the job's CPUs.
    """
    own = next((name for name in ALLOCATOR if environ.get(name)), None)
    notes: list[str] = []
    if own is None:
        text, by_call = _allocator(settings, torch)
    else:
        text, by_call = environ[own], _FRACTION not in environ[own]
        notes.append(f"{own}={text} is already set and wins over max_split_size_mb")
    # Both names get one value: 2.9 reads the first alone, later the first wins.
    values = {name: text for name in ALLOCATOR if text and environ.get(name) != text}
    wanted = {
        "YOLO_CONFIG_DIR": str(directory),
        "MPLCONFIGDIR": str(directory / "matplotlib"),
    }
    if settings.offline:
        wanted |= {"YOLO_OFFLINE": "1", "YOLO_AUTOINSTALL": "false"}
    count = threads(environ, gpus or 1)
    if count is not None:
        wanted["OMP_NUM_THREADS"] = count
    for name, value in wanted.items():
        if name not in environ:
            values[name] = value
        elif settings.offline and name == "YOLO_OFFLINE" and environ[name] != value:
            notes.append(f"{name}={environ[name]} is already set and wins over offline = true")
    return Environment(values, tuple(notes), by_call, own is not None)


def _allocator(settings: Settings, torch: tuple[int, int] | None) -> tuple[str, bool]:
    """Return the allocator's configuration, and whether the memory fraction is not in it."""
    parts = []
    if settings.max_split_size_mb is not None:
        parts.append(f"max_split_size_mb:{settings.max_split_size_mb}")
    # Older releases abort on a key that they do not know.
    in_variable = torch is not None and torch >= (2, 10)
    if in_variable:
        parts.append(f"{_FRACTION}:{format(Decimal(repr(settings.memory_fraction)), 'f')}")
    return ",".join(parts), not in_variable


def threads(environ: Mapping[str, str], processes: int) -> str | None:
    """Return the job's CPUs per process, None when Slurm does not tell.

    Unset, ultralytics would take 1 thread whatever Slurm gave.
    """
    for name in ("SLURM_CPUS_PER_TASK", "SLURM_CPUS_ON_NODE"):
        text = environ.get(name, "")
        if text.isascii() and text.isdigit() and int(text) > 0:
            return str(max(1, int(text) // max(1, processes)))
    return None


def cpu_threads(environ: Mapping[str, str]) -> int | None:
    """Return the threads for training on a CPU: the user's number, or all the job's CPUs."""
    text = environ.get("OMP_NUM_THREADS") or threads(environ, 1) or ""
    return int(text) if text.isascii() and text.isdigit() and int(text) > 0 else None
