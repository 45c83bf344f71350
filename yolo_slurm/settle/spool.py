"""The hook's files: which jobs to ask about, nothing more."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Final

from yolo_slurm.errors import UnavailableError
from yolo_slurm.slurm.client import Attempt

_NAME: Final = re.compile(r"([12])\.([0-9]{1,10})\.([0-9]{1,10})\.([0-9]{1,10})", re.ASCII)
# How long after a requeued attempt's end, which is the submit time of the next
# row, its hook can run.
_REQUEUE_SECONDS: Final = 5


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
        with os.scandir(directory) as entries:
            for entry in entries:
                found = _NAME.fullmatch(entry.name)
                if found and entry.is_file(follow_symlinks=False):
                    with suppress(FileNotFoundError):
                        at = int(entry.stat(follow_symlinks=False).st_mtime)
                        kind = EventKind(int(found[1]))
                        events.append(Event(Path(entry.path), kind, int(found[2]), at))
    except OSError as error:
        raise UnavailableError(f"the spool {directory} cannot be read: {error.strerror}") from None
    return sorted(events, key=lambda event: (event.at, event.path.name))


def is_answered(event: Event, attempts: Iterable[Attempt]) -> bool:
    """Whether sacct already tells how the attempt ended that *event* speaks of.

    slurmdbd can hear of an end, and even of the start, after the hook ran. So
    it does when the job has a row that ended, and no open one that could be
    the attempt: one that started before the event, or one that waits since
    well before it. What started later, or waits since the event, comes next.
    """
    if event.kind is EventKind.START:
        return True
    rows = [attempt for attempt in attempts if attempt.key.job_id == event.job_id]
    return any(row.final for row in rows) and not any(
        row.start < event.at
        if row.start is not None
        else row.key.submit < event.at - _REQUEUE_SECONDS
        for row in rows
        if not row.final
    )


def remove(events: Iterable[Event]) -> None:
    """Remove the files of *events*, which are in the books now.

    Raises UnavailableError where one cannot be removed; it is read again then,
    and changes nothing.
    """
    for event in events:
        try:
            event.path.unlink(missing_ok=True)
        except OSError as error:
            raise UnavailableError(
                f"the spool's file {event.path} cannot be removed: {error.strerror}"
            ) from None
