"""Pure parsers of what Slurm prints and takes: TRES, times, job ids, sbatch's answer.

``None`` stands for "unknown", which is never the same as 0.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Final

import msgspec

from yolo_slurm.errors import InputError


def is_digits(text: str) -> bool:
    """Return whether *text* is ASCII digits and nothing else; far faster than a pattern."""
    return text.isdigit() and text.isascii()


def _int(text: str) -> int | None:
    return int(text) if is_digits(text) else None


# --- TRES and GRES ---------------------------------------------------------


class Gpus(msgspec.Struct, frozen=True):
    """The GPUs that a TRES or GRES string speaks of.

    total: GPUs in all; None if the text does not say.
    by_type: GPUs of each type; GPUs without a type are in `total` alone.
    shards: slices of GPUs (gres/shard), which are not GPUs.
    per_node: whether the text counts one node (a request) rather than the job.
    """

    total: int | None
    by_type: dict[str, int] | None
    shards: int = 0
    per_node: bool = False


_BRACKETS: Final = re.compile(r"\([^()]*\)")
_ALLOCATED: Final = re.compile(r"\((?:IDX|S|CNT):[^()]*\)")


def parse_tres(text: str) -> Gpus:
    """Return the GPUs in *text*, in any of Slurm's spellings.

    ``cpu=4,gres/gpu:a100=2,gres/gpu=2`` (typed and untyped name the same
    devices), ``gres:gpu:a100:2``, ``gres/gpu:2``, ``gpu:a100:2(IDX:0,2)``,
    ``gpu``. Anything that is not GPUs or shards is passed over.
    """
    if text in {"", "N/A"}:
        return Gpus(None, None)
    if text == "(null)":
        return Gpus(0, {})
    if "=" in text:
        return _parse_tres_counts(text)
    per_node = not _ALLOCATED.search(text)
    counts = _Counts()
    for item in _BRACKETS.sub(lambda m: "" if m[0] != "(null)" else m[0], text).split(","):
        name = item.removeprefix("gres:").removeprefix("gres/")
        parts = name.split(":")
        count = _int(parts[-1]) if len(parts) > 1 else None
        kind = parts[1] if len(parts) > 2 or (len(parts) == 2 and count is None) else ""
        counts.add(parts[0], "" if kind == "(null)" else kind, 1 if count is None else count)
    return counts.result(per_node)


def _parse_tres_counts(text: str) -> Gpus:
    counts = _Counts()
    for item in text.split(","):
        name, _, value = item.partition("=")
        head, _, kind = name.removeprefix("gres/").partition(":")
        if head in {"gpu", "shard"} and (name.startswith("gres/") or name == head):
            count = _int(value)
            if count is None:
                return Gpus(None, None)
            counts.add(head, kind, count)
    return counts.result(per_node=False)


class _Counts:
    def __init__(self) -> None:
        self.untyped = 0
        self.by_type: dict[str, int] = {}
        self.shards = 0

    def add(self, name: str, kind: str, count: int) -> None:
        if name == "shard":
            self.shards += count
        elif name == "gpu" and not kind:
            self.untyped += count
        elif name == "gpu" and count:
            self.by_type[kind] = self.by_type.get(kind, 0) + count

    def result(self, per_node: bool) -> Gpus:
        total = max(self.untyped, sum(self.by_type.values()))
        return Gpus(total, self.by_type, self.shards, per_node)


# --- times -----------------------------------------------------------------


class Limit(Enum):
    """Time limits that are not a number of seconds."""

    UNLIMITED = "unlimited"
    PARTITION = "partition"


_LIMIT: Final = re.compile(
    r"(?P<days>[0-9]+)-(?P<h>[0-9]+)(?::(?P<m>[0-9]+)(?::(?P<s>[0-9]+))?)?"
    r"|(?P<a>[0-9]+)(?::(?P<b>[0-9]+)(?::(?P<c>[0-9]+))?)?",
    re.ASCII,
)


def parse_time_limit(text: str) -> int | Limit | None:
    """Return the seconds that sbatch's ``--time`` value *text* means.

    A plain number is minutes; 0 and -1 mean no limit. None: sbatch itself
    accepts the text, but it is no time to do arithmetic with (``-5``, ``12:99``).

    Raises InputError for what is not a time limit. Source: sbatch(1), ``--time``.
    """
    word = text.lower()
    if word in {"unlimited", "infinite", "0", "-1"}:
        return Limit.UNLIMITED
    if word == "partition_limit":
        return Limit.PARTITION
    if re.fullmatch(r"-[0-9]+", text, re.ASCII):
        return None
    found = _LIMIT.fullmatch(text)
    if not found:
        raise InputError(
            f"{text!r} is not a time limit: expected minutes, minutes:seconds, "
            "hours:minutes:seconds, days-hours, days-hours:minutes or days-hours:minutes:seconds"
        )
    if found["days"] is not None:
        hours, minutes, seconds = int(found["h"]), int(found["m"] or 0), int(found["s"] or 0)
        if hours > 23 or minutes > 59 or seconds > 59:
            return None
        return int(found["days"]) * 86400 + hours * 3600 + minutes * 60 + seconds
    first, second, third = int(found["a"]), found["b"], found["c"]
    if second is None:
        return first * 60
    if int(second) > 59 or (third is not None and int(third) > 59):
        return None
    if third is None:
        total = first * 60 + int(second)
    else:
        total = first * 3600 + int(second) * 60 + int(third)
    return total or Limit.UNLIMITED


_ELAPSED: Final = re.compile(r"(?:([0-9]+)-)?([0-9]{1,2}):([0-5][0-9]):([0-5][0-9])", re.ASCII)
_ELAPSED_SHORT: Final = re.compile(r"([0-9]{1,2}):([0-5][0-9])", re.ASCII)


def parse_elapsed(text: str) -> int | None:
    """Return the seconds of an elapsed time (``[days-]hours:minutes:seconds``); None if unknown.

    squeue leaves the hours out of short ones (``5:03``).
    """
    if found := _ELAPSED.fullmatch(text):
        days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
        return days * 86400 + hours * 3600 + minutes * 60 + seconds
    if found := _ELAPSED_SHORT.fullmatch(text):
        return int(found[1]) * 60 + int(found[2])
    return None


def parse_epoch(text: str) -> int | None:
    """Return a time asked for as epoch seconds; None for ``Unknown``, ``None``, ``N/A`` and ''.

    Raises InputError for anything else: a local time repeats when clocks go back.
    """
    if is_digits(text):
        return int(text)
    if text in {"", "Unknown", "None", "N/A", "NONE"}:
        return None
    raise InputError(f"{text!r} is not a time in epoch seconds")


# --- job ids ---------------------------------------------------------------


class JobId(msgspec.Struct, frozen=True):
    """A job id as Slurm prints it.

    tasks: how many array tasks it stands for (1 where it is no array);
    None if squeue cut the list.
    """

    job: int
    tasks: int | None = 1
    task: int | None = None
    het: int | None = None
    step: str | None = None


_JOB_ID: Final = re.compile(
    r"(?P<job>[0-9]{1,18})(?:_(?P<task>[0-9]{1,18})|_\[(?P<list>[^\]\[]+)\]|\+(?P<het>[0-9]+))?"
    r"(?:\.(?P<step>[A-Za-z0-9_+]+))?",
    re.ASCII,
)


def parse_job_id(text: str) -> JobId:
    """Return the parts of the job id *text*: ``12``, ``12_3``, ``12_[1-9%2]``, ``12+0``, ``12.0``.

    Raises InputError.
    """
    found = _JOB_ID.fullmatch(text)
    if not found:
        raise InputError(
            f"{text!r} is not a job id: expected one such as 12, 12_3, 12+0 or 12.batch"
        )
    tasks: int | None = 1
    if found["list"] is not None:
        tasks = count_array_tasks(found["list"])
    task, het = found["task"], found["het"]
    return JobId(
        job=int(found["job"]),
        tasks=tasks,
        task=int(task) if task is not None else None,
        het=int(het) if het is not None else None,
        step=found["step"],
    )


_MAX_ARRAY: Final = 4_000_001  # Slurm's own bound of MaxArraySize
_RANGE: Final = re.compile(r"([0-9]+)(?:-([0-9]+)(?::([0-9]+))?)?", re.ASCII)


def count_array_tasks(text: str) -> int | None:
    """Return how many tasks an array specification such as ``1-10:2,15%4`` has.

    ``%4`` is a throttle. None if squeue cut the list (``1,3,...``).
    Raises InputError.
    """
    spec, percent, throttle = text.partition("%")
    cut = False
    ranges: list[range] = []
    for item in spec.split(","):
        if item == "...":
            cut = True
            continue
        found = _RANGE.fullmatch(item)
        if not found:
            raise InputError(
                f"{text!r} is not an array: expected task ids such as 0-15, 1,3,7 or 0-20:5"
            )
        first = int(found[1])
        last = int(found[2]) if found[2] is not None else first
        step = int(found[3]) if found[3] is not None else 1
        if last < first or step < 1:
            raise InputError(f"{text!r} is not an array: {item!r} counts backwards")
        ranges.append(range(first, last + 1, step))
    if percent and _int(throttle) is None:
        raise InputError(f"{text!r} is not an array: {throttle!r} is not a number of tasks at once")
    if cut:
        return None
    if sum(len(each) for each in ranges) > _MAX_ARRAY:
        raise InputError(f"{text!r} is not an array: more than {_MAX_ARRAY} tasks")
    return len({task for each in ranges for task in each})


# --- sbatch ----------------------------------------------------------------

_PARSABLE: Final = re.compile(r"([0-9]{1,18})(?:;([A-Za-z0-9_.-]+))?", re.ASCII)
_SUBMITTED: Final = re.compile(
    r"Submitted batch job ([0-9]{1,18})(?: on cluster ([A-Za-z0-9_.-]+))?", re.ASCII
)


class Submitted(msgspec.Struct, frozen=True):
    """The job that sbatch says it submitted."""

    job: int
    cluster: str | None = None


def parse_sbatch(stdout: str) -> Submitted:
    """Return the job in what ``sbatch --parsable`` printed, a site wrapper's words around it too.

    Raises InputError where it names no job, or more than one.
    """
    jobs: list[Submitted] = []
    for line in stdout.splitlines():
        found = _PARSABLE.fullmatch(line.strip()) or _SUBMITTED.fullmatch(line.strip())
        if found:
            jobs.append(Submitted(int(found[1]), found[2]))
    if len(jobs) != 1:
        raise InputError(f"sbatch named {len(jobs) or 'no'} job{'s' * (len(jobs) > 1)}: {stdout!r}")
    return jobs[0]
