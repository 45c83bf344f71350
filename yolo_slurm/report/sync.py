"""Brings the cache up to date with sacct: what is new, and what was not final.

sacct shows for a span of time every attempt that was there in it. So
attempts that ended within a span that was read are all here for good, but for
three kinds:

- one that had not ended when it was read: it is open;
- one that ended less than `MARGIN` before: a requeue can still rewrite its
  row (while slurmctld holds the job, MinJobAge), and clocks differ. It is open
  too, and the span counts as covered up to the margin alone;
- one that slurmdbd heard of later than that, since it was down and slurmctld
  kept what it had to tell: every `REVIEW_EVERY`, a run reads `LATE` before the
  last such reading again. What comes later still, ``--refresh`` finds.

A run asks for the spans of its window that are not covered yet: a report up to
now meets nearly all open rows there. The open rows of the window that it does
not meet (a runaway job that was mended, say) are asked for by their ids, and
forgotten when they are gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, Protocol, TypeVar

from yolo_slurm.report.cache import Cache
from yolo_slurm.report.coverage import missing, union
from yolo_slurm.report.window import Window
from yolo_slurm.slurm.client import Attempt, BadRow

MARGIN: Final = 3600
REVIEW_EVERY: Final = 6 * 3600
LATE: Final = 2 * 24 * 3600
_IDS_AT_ONCE: Final = 1000

_T = TypeVar("_T")
Progress = Callable[[int], None]  # is told how many rows have come


class History(Protocol):
    """What a report asks of slurmdbd."""

    def stream(self, *, since: int, until: int | None = None) -> Iterator[Attempt | BadRow]:
        """Yield the attempts that were there between *since* and *until* (None: now)."""

    def attempts(self, job_ids: Iterable[int], *, since: int) -> tuple[list[Attempt], list[BadRow]]:
        """Return every attempt of *job_ids* since epoch second *since*."""


def synchronise(
    cache: Cache, history: History, window: Window, *, now: int, progress: Progress
) -> None:
    """Make the rows of *window* in *cache* what sacct says at *now*; all of it, or nothing.

    Raises UnavailableError when sacct fails, sqlite3.Error when the cache does.
    """
    with cache.writing():
        asked = (window.since, min(window.until, now + 1))
        covered, reviewed = cache.covered(), cache.reviewed()
        spans = missing(asked, covered)
        if now - reviewed >= REVIEW_EVERY:
            if covered:
                spans = union([*spans, (max(reviewed - LATE, covered[0][0]), now)])
            cache.note_review(now)
        for lo, hi in spans:
            rows = history.stream(since=lo, until=None if hi >= now else hi)
            cache.put(_counted(rows, progress), seen=now, margin=MARGIN)
        gone = [row for row in cache.unsettled(asked) if row.seen < now]
        for at in range(0, len(gone), _IDS_AT_ONCE):
            keys = [row.key for row in gone[at : at + _IDS_AT_ONCE]]
            good, bad = history.attempts(
                (key.job_id for key in keys), since=min(key.submit for key in keys)
            )
            cache.put([*good, *bad], seen=now, margin=MARGIN)
        if gone:
            cache.drop_unseen(asked, seen=now)
        cache.cover((lo, min(hi, now - MARGIN)) for lo, hi in spans)


def _counted(rows: Iterable[_T], progress: Progress) -> Iterator[_T]:
    for count, row in enumerate(rows, 1):
        if count % 2000 == 0:
            progress(count)
        yield row
