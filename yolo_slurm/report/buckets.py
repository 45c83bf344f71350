"""Cuts time into days or months, and an attempt's seconds along the cuts. Pure.

sacct tells how long an attempt was suspended, not when. So its elapsed
seconds are spread evenly over the time from its start to its end, by whole
seconds: up to an instant t it has used ⌊elapsed × (t − start) / (end − start)⌋,
and a part is the difference of two of these. Parts of adjoining spans add up
to elapsed, to the second; without suspension a part is the overlap itself.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from enum import Enum

from yolo_slurm.report.window import Window, epoch_of


class Unit(Enum):
    """What a window is cut into."""

    WHOLE = "whole"
    DAY = "day"
    MONTH = "month"


@dataclass(frozen=True, slots=True)
class Bucket:
    """From *lo* up to, not including, *hi* (epoch s). label: ``2026-11-01`` or ``2026-11``."""

    label: str
    lo: int
    hi: int


def cut(window: Window, unit: Unit, tz: tzinfo) -> list[Bucket]:
    """Return the local days or months of *window*, in order, without gaps; the ends are clipped.

    A day has 23, 24 or 25 hours, as *tz* has it. One that clocks skip whole is left out.
    """
    if unit is Unit.WHOLE:
        return [Bucket("", window.since, window.until)]
    first = datetime.fromtimestamp(window.since, tz).date()
    found: list[Bucket] = []
    for day in _starts(first, unit):
        lo = max(epoch_of(day, tz), window.since)
        if lo >= window.until:
            break
        hi = min(epoch_of(_next(day, unit), tz), window.until)
        if lo < hi:
            found.append(Bucket(day.isoformat()[: 10 if unit is Unit.DAY else 7], lo, hi))
    return found


def _starts(first: date, unit: Unit) -> Iterator[date]:
    day = first if unit is Unit.DAY else first.replace(day=1)
    while True:
        yield day
        day = _next(day, unit)


def _next(day: date, unit: Unit) -> date:
    if unit is Unit.DAY:
        return day + timedelta(days=1)
    return (day.replace(day=1) + timedelta(days=31)).replace(day=1)


def overlaps(start: int, end: int, window: Window) -> bool:
    """Return whether an attempt was there in *window*; one of no length is where it started."""
    return start < window.until and (end > window.since or start >= window.since)


def used_until(instant: int, start: int, end: int, elapsed: int) -> int:
    """Return how many of its *elapsed* seconds an attempt had used at *instant*."""
    if instant <= start:
        return 0
    if instant >= end:
        return elapsed
    return elapsed * (instant - start) // (end - start)


def parts(start: int, end: int, elapsed: int, buckets: list[Bucket]) -> list[tuple[str, int]]:
    """Return the label of each bucket that an attempt was in, and the seconds it used there.

    *buckets* are as `cut` makes them. Within all time they add up to *elapsed*.
    """
    found: list[tuple[str, int]] = []
    at = max(0, bisect_right(buckets, start, key=lambda bucket: bucket.lo) - 1)
    for bucket in buckets[at:]:
        if bucket.lo >= end and bucket.lo > start:
            break
        if overlaps(start, end, Window(bucket.lo, bucket.hi)):
            found.append((bucket.label, _part(start, end, elapsed, bucket)))
    return found


def _part(start: int, end: int, elapsed: int, bucket: Bucket) -> int:
    if end <= start:
        return elapsed
    return used_until(bucket.hi, start, end, elapsed) - used_until(bucket.lo, start, end, elapsed)
