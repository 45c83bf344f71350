"""The hook's files: which jobs to ask about, nothing more."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Final

from yolo_slurm.errors import UnavailableError
from yolo_slurm.slurm.client import Attempt

_NAME: Final = re.compile(r"([12])\.([0-9]{1,10})\.([0-9]{1,10})\.([0-9]{1,10})", re.ASCII)


class EventKind(IntEnum):
    """What the hook saw."""

    START = 1
    END = 2


@dataclass(frozen=True, slots=True)
class Event:
    """One file of the hook; at is the epoch second in which it was made."""

    path: Path
    kind: EventKind
    job_id: int
    at: int


def read_spool(directory: Path) -> list[Event]:
    """Return the events in *directory*, oldest first; other files are left alone.

    Raises UnavailableError where it cannot be read.
    """
    events: list[Event] = []
    try:
        for path in directory.iterdir():
            if found := _NAME.fullmatch(path.name):
                try:
                    at = int(path.stat().st_mtime)
                except FileNotFoundError:
                    continue
                events.append(Event(path, EventKind(int(found[1])), int(found[2]), at))
    except OSError as error:
        raise UnavailableError(f"the spool {directory} cannot be read: {error.strerror}") from None
    return sorted(events, key=lambda event: (event.at, event.path.name))


def is_answered(event: Event, attempts: Iterable[Attempt]) -> bool:
    """Whether sacct already tells how the attempt ended that *event* speaks of.

    It does when the job has rows and none that started before the event is
    still open: slurmdbd can hear of an end after the hook. An attempt that
    started later is the next one.
    """
    rows = [attempt for attempt in attempts if attempt.key.job_id == event.job_id]
    if event.kind is EventKind.START:
        return True
    ended = any(row.final and row.start is not None for row in rows)
    running = any(not row.final and row.start is not None and row.start < event.at for row in rows)
    return ended and not running


def remove(events: Iterable[Event]) -> None:
    """Remove the files of *events*, which are in the books now."""
    for event in events:
        event.path.unlink(missing_ok=True)
