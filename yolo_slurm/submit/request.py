"""What one het component asks for, worked out from its options in force."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from yolo_slurm.errors import InputError
from yolo_slurm.slurm.text import Limit, count_array_tasks, parse_time_limit, parse_tres

_COUNTED: Final = re.compile(r"(?:([A-Za-z][A-Za-z0-9_.-]*):)?([0-9]{1,9})", re.ASCII)
_TYPE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*", re.ASCII)
_NODES: Final = re.compile(r"([0-9]+)(k?)(?:-([0-9]+)(k?))?", re.ASCII)


class GpuCount(msgspec.Struct, frozen=True):
    """GPUs of a request: a number, with the types named; or why it cannot be known."""

    total: int | None
    by_type: Mapping[str, int]
    unknown: str = ""

    def __str__(self) -> str:
        parts = [f"{count} × {kind}" for kind, count in self.by_type.items()]
        if self.total is None:
            return "an unknown number of GPUs"
        untyped = self.total - sum(self.by_type.values())
        if untyped or not parts:
            parts.append(f"{untyped} GPU{'s' * (untyped != 1)}")
        return " + ".join(parts)


Options = Mapping[str, str | None]


def count_gpus(options: Options) -> GpuCount:
    """Return the GPUs that *options* ask for in all nodes and tasks.

    Raises InputError for a ``--gpus`` value that is none.
    """
    if "exclusive" in options and options["exclusive"] in {None, "", "exclusive"}:
        return GpuCount(None, {}, "--exclusive takes all the GPUs of the nodes it gets")
    if options.get("gpus") is not None:
        return _typed(options["gpus"] or "", "--gpus")
    if options.get("gpus-per-node") is not None:
        return _times(_typed(options["gpus-per-node"] or "", "--gpus-per-node"), _nodes(options))
    if options.get("gpus-per-task") is not None:
        return _times(_typed(options["gpus-per-task"] or "", "--gpus-per-task"), _tasks(options))
    if options.get("gpus-per-socket") is not None:
        return GpuCount(None, {}, "--gpus-per-socket counts sockets that only the node knows")
    if options.get("tres-per-task") is not None and "gpu" in (options["tres-per-task"] or ""):
        text = (
            (options["tres-per-task"] or "").replace("gres/gpu", "gpu").replace("gres:gpu", "gpu")
        )
        found = parse_tres(text.replace("gpu=", "gres/gpu="))
        return _times(GpuCount(found.total, found.by_type or {}), _tasks(options))
    if options.get("gres") is not None:
        gres = parse_tres((options["gres"] or "").replace("=", ":"))
        return _times(GpuCount(gres.total, gres.by_type or {}), _nodes(options))
    return GpuCount(0, {})


def _typed(text: str, option: str) -> GpuCount:
    total = 0
    by_type: dict[str, int] = {}
    for item in text.split(","):
        # A type without a number is one of it, as sbatch reads it.
        found = _COUNTED.fullmatch(f"{item}:1" if _TYPE.fullmatch(item) else item)
        if not found:
            raise InputError(
                f"{option} {text!r}: expected a number, or a type and a number (a100:2)"
            )
        count = int(found[2])
        total += count
        if found[1]:
            by_type[found[1]] = by_type.get(found[1], 0) + count
    return GpuCount(total, by_type)


def _times(each: GpuCount, factor: int | None) -> GpuCount:
    if each.total is None or each.total == 0:
        return each
    if factor is None:
        return GpuCount(
            None, {}, "the number of nodes or tasks is left to Slurm; give --nodes, or --gpus"
        )
    return GpuCount(each.total * factor, {kind: n * factor for kind, n in each.by_type.items()})


def _nodes(options: Options) -> int | None:
    """Return how many nodes the job can get at most; None where Slurm chooses."""
    text = options.get("nodes")
    if text is None:
        return 1 if _count(options, "ntasks") in {None, 1} else None
    found = _NODES.fullmatch(text)
    if not found:
        return None
    most = found[3] if found[3] is not None else found[1]
    return int(most) * (1024 if found[2] or found[4] else 1)


def _tasks(options: Options) -> int | None:
    tasks = _count(options, "ntasks")
    if tasks is not None:
        return tasks
    per_node = _count(options, "ntasks-per-node")
    nodes = _nodes(options)
    return None if nodes is None else nodes * (per_node or 1)


def _count(options: Options, name: str) -> int | None:
    text = options.get(name)
    return int(text) if text is not None and re.fullmatch(r"[0-9]+", text, re.ASCII) else None


def limit_minutes(options: Options) -> int | None:
    """Return the minutes of ``--time``, rounded up as Slurm does; None where there is no number.

    Raises InputError for a time that sbatch would refuse.
    """
    text = options.get("time")
    if text is None:
        return None
    seconds = parse_time_limit(text)
    if seconds is None or isinstance(seconds, Limit):
        return None
    return -(-seconds // 60)


def array_tasks(options: Options) -> int:
    """Return how many array tasks the job has; 1 where it is none. Raises InputError."""
    text = options.get("array")
    return 1 if text is None else count_array_tasks(text) or 1
