"""Which device to name to ultralytics, from what Slurm granted and what CUDA sees.

Slurm's variables name devices by physical index or by UUID (MIG), neither of
which ultralytics takes: inside a job the devices are always 0..n-1. A cluster
may also grant GPUs that are not there (a test cluster's), so CUDA has the last
word.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping

_TYPED = re.compile(r"(?:[^:,]+:)?(\d+)")


@dataclasses.dataclass(frozen=True)
class Cuda:
    """What torch says: whether CUDA can be used, and how many devices it sees."""

    available: bool
    count: int


@dataclasses.dataclass(frozen=True)
class Device:
    """A choice. ``argument`` is ultralytics' ``device=``; None leaves it out."""

    argument: str | None
    gpus: int
    note: str | None = None


def granted(environ: Mapping[str, str], gpus: int | None) -> tuple[int | None, str]:
    """Return how many GPUs the job was given on this node, and who says so.

    None is "nobody says", which is not the same as none.
    """
    visible = environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        names = [name for name in visible.split(",") if name.strip()]
        if names in (["NoDevFiles"], ["-1"]):  # Slurm's and CUDA's ways to say none
            names = []
        return len(names), f"CUDA_VISIBLE_DEVICES={visible}"
    on_node = environ.get("SLURM_GPUS_ON_NODE", "")
    counts = [_TYPED.fullmatch(part.strip()) for part in on_node.split(",")]
    if on_node and all(counts):
        total = sum(int(match.group(1)) for match in counts if match)
        return total, f"SLURM_GPUS_ON_NODE={on_node}"
    if gpus is not None:
        return gpus, "the settings file"
    return None, "nobody"


def choose(cuda: Cuda, environ: Mapping[str, str], gpus: int | None) -> Device:
    """Choose the device. *gpus* is the settings file's count, the last resort."""
    count, source = granted(environ, gpus)
    if not cuda.available or cuda.count == 0:
        note = None
        if count:
            note = (
                f"{source} grants {_gpus(count)}, but CUDA is not available here: training on cpu"
            )
        return Device("cpu", 0, note)
    if count == 0:
        return Device("cpu", 0, f"{source} grants no GPU: training on cpu")
    # Where devices are not confined, CUDA also sees the neighbours' GPUs: without
    # a count from anybody take one.
    usable = min(count or 1, cuda.count)
    note = None
    if count is not None and count > cuda.count:
        note = f"{source} grants {_gpus(count)}, but CUDA sees {cuda.count}: using {usable}"
    if usable == 1:
        return Device(None, 1, note)
    return Device(",".join(str(index) for index in range(usable)), usable, note)


def _gpus(count: int) -> str:
    return f"{count} GPU" if count == 1 else f"{count} GPUs"
