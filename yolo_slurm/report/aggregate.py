"""Sums the cache's rows by project, user, type, day, month or state. Exact integers.

Most attempts lie whole in the window and in one bucket, have ended, and are
the only one of their job: SQLite counts those. The others are cut, and their
jobs counted once, one by one in Python.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from enum import StrEnum
from typing import Final, NamedTuple

from yolo_slurm.report.buckets import Bucket, Unit, cut, parts
from yolo_slurm.report.held import decode, why_unknown
from yolo_slurm.report.window import Window
from yolo_slurm.tokens import Units, of_gpu_seconds

# The same id submitted later than this after an attempt's end is another job:
# a requeue is submitted when the attempt before it ends.
_REQUEUE_WITHIN: Final = 24 * 3600


class By(StrEnum):
    """What to sum by."""

    PROJECT = "project"
    USER = "user"
    TYPE = "type"
    DAY = "day"
    MONTH = "month"
    STATE = "state"


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of the rows. No projects or no users: all."""

    window: Window
    by: tuple[By, ...]
    projects: tuple[str, ...] = ()
    users: tuple[str, ...] = ()


@dataclass(slots=True)
class Sum:
    """What the attempts of one group used, in GPU-seconds.

    attempts that ran and the jobs they are of; running: those that have not
    ended, counted up to now; unknown: those whose GPUs are not known, which are
    in gpu_seconds with nothing.
    """

    gpu_seconds: int = 0
    attempts: int = 0
    jobs: int = 0
    running: int = 0
    unknown: int = 0

    @property
    def units(self) -> Units:
        """Their price at 1 token per GPU-hour."""
        return of_gpu_seconds(self.gpu_seconds)


Key = tuple[str, ...]
Job = tuple[str, int, int]  # cluster, id, first submission


@dataclass(slots=True)
class Groups:
    """The sum of each group, by its labels in the order of `Question.by`, and of all.

    An attempt is counted in each group that it was in (each of its days, each
    of its types), and once in the total.
    """

    rows: dict[Key, Sum] = field(default_factory=dict)
    total: Sum = field(default_factory=Sum)

    def sorted(self) -> list[tuple[Key, Sum]]:
        """The groups in the order of their labels."""
        return sorted(self.rows.items())


class _Row(NamedTuple):
    cluster: str
    job_id: int
    submit: int
    start: int
    end: int | None
    elapsed: int
    kind: int


def aggregate(
    connection: sqlite3.Connection, question: Question, *, now: int, tz: tzinfo
) -> Groups:
    """Return the sums of the rows in *connection* (as `cache` keeps them). Raises sqlite3.Error."""
    buckets = cut(question.window, _unit(question.by), tz)
    kinds = _kinds(connection, question)
    groups = Groups()
    others: list[_Row] = list(_started_before(connection, question.window.since))
    for bucket in _not_empty(connection, buckets):
        _add_plain(groups, connection, question, bucket, kinds)
        others += _not_plain(connection, bucket)
    others.sort()
    _add_others(groups, [row for row in others if row.kind in kinds], question, buckets, kinds, now)
    return groups


def _unit(by: Sequence[By]) -> Unit:
    if By.DAY in by:
        return Unit.DAY
    return Unit.MONTH if By.MONTH in by else Unit.WHOLE


class _Kind(NamedTuple):
    """What many attempts have in common; gpus is as `held.encode` makes it."""

    project: str
    user: str
    state: str
    gpus: str


_Kinds = dict[int, _Kind]


def _kinds(connection: sqlite3.Connection, question: Question) -> _Kinds:
    """Return the kinds that the question is about, by number."""
    rows = connection.execute("SELECT id, project, user, state, gpus FROM kinds")
    kinds = {number: _Kind(*rest) for number, *rest in rows}
    return {
        number: kind
        for number, kind in kinds.items()
        if (not question.projects or kind.project in question.projects)
        and (not question.users or kind.user in question.users)
    }


def _not_empty(connection: sqlite3.Connection, buckets: list[Bucket]) -> Iterator[Bucket]:
    """Yield the buckets that are not older than all attempts: a window may begin in 1970."""
    (first,) = connection.execute("SELECT min(start) FROM attempts").fetchone()
    return (bucket for bucket in buckets if first is not None and bucket.hi > first)


def _add_plain(
    groups: Groups, connection: sqlite3.Connection, question: Question, bucket: Bucket,
    kinds: _Kinds,
) -> None:  # fmt: skip
    rows = connection.execute(
        "SELECT kind, COUNT(*), SUM(elapsed) FROM attempts "
        "WHERE start >= ? AND start < ? AND end <= ? AND lone GROUP BY kind",
        (bucket.lo, bucket.hi, bucket.hi),
    )
    for number, count, elapsed in rows:
        if (kind := kinds.get(number)) is not None:
            seconds: dict[Key, int] = {}
            unknown = _spread(seconds, question.by, kind, bucket.label, elapsed)
            for group in [groups.total, *(_group(groups, key) for key in seconds)]:
                group.attempts += count
                group.jobs += count
                group.unknown += count if unknown else 0
            _charge(groups, seconds)


_COLUMNS: Final = "cluster, job_id, submit, start, end, elapsed, kind"


def _not_plain(connection: sqlite3.Connection, bucket: Bucket) -> Iterator[_Row]:
    """Yield what `_add_plain` leaves out of the attempts that started in *bucket*."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM attempts "  # noqa: S608
        "WHERE start >= ? AND start < ? AND (end IS NULL OR end > ? OR NOT lone)",
        (bucket.lo, bucket.hi, bucket.hi),
    )
    return map(_Row._make, rows)


def _started_before(connection: sqlite3.Connection, since: int) -> Iterator[_Row]:
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM attempts WHERE start < ? AND (end IS NULL OR end > ?)",  # noqa: S608
        (since, since),
    )
    return map(_Row._make, rows)


def _spread(
    seconds: dict[Key, int], by: Sequence[By], kind: _Kind, bucket: str, elapsed: int
) -> bool:
    """Add GPU-seconds to each group of *seconds*; return whether the GPUs are unknown."""
    held = decode(kind.gpus)
    for gpu, count in held if held is not None else ((why_unknown(kind.gpus), 0),):
        labels = {
            By.PROJECT: kind.project,
            By.USER: kind.user,
            By.STATE: kind.state,
            By.TYPE: gpu,
            By.DAY: bucket,
            By.MONTH: bucket[:7],
        }
        key = tuple(labels[each] for each in by)
        seconds[key] = seconds.get(key, 0) + elapsed * count
    return held is None


def _group(groups: Groups, key: Key) -> Sum:
    return groups.rows.setdefault(key, Sum())


def _charge(groups: Groups, seconds: dict[Key, int]) -> None:
    for key, gpu_seconds in seconds.items():
        groups.rows[key].gpu_seconds += gpu_seconds
        groups.total.gpu_seconds += gpu_seconds


def _add_others(
    groups: Groups, rows: Sequence[_Row], question: Question, buckets: list[Bucket],
    kinds: _Kinds, now: int,
) -> None:  # fmt: skip
    seen: dict[Key, Job] = {}  # the last job that each group counted
    in_total: Job | None = None
    for row, job in _with_job(rows):
        end = row.end if row.end is not None else max(now, row.start + row.elapsed)
        seconds: dict[Key, int] = {}
        unknown = False
        for bucket, elapsed in parts(row.start, end, row.elapsed, buckets):
            unknown = _spread(seconds, question.by, kinds[row.kind], bucket, elapsed)
        for key in seconds:
            _count(_group(groups, key), row, unknown, new_job=seen.get(key) != job)
            seen[key] = job
        if seconds:
            _count(groups.total, row, unknown, new_job=in_total != job)
            in_total = job
        _charge(groups, seconds)


def _with_job(rows: Iterable[_Row]) -> Iterator[tuple[_Row, Job]]:
    """Yield each row with its job. Rows come in the order of their keys."""
    before: _Row | None = None
    first = 0
    for row in rows:
        if (
            before is None
            or before[:2] != row[:2]
            or (before.end is not None and row.submit > before.end + _REQUEUE_WITHIN)
        ):
            first = row.submit
        before = row
        yield row, (row.cluster, row.job_id, first)


def _count(group: Sum, row: _Row, unknown: bool, *, new_job: bool) -> None:
    group.attempts += 1
    group.jobs += new_job
    group.running += row.end is None
    group.unknown += unknown
