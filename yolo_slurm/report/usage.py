"""Usage from sacct alone: the cache, brought up to date, summed."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import tzinfo
from pathlib import Path

from yolo_slurm.report import cache as caches
from yolo_slurm.report.aggregate import Groups, Question, aggregate
from yolo_slurm.report.cache import SCHEMA, Cache
from yolo_slurm.report.place import Place
from yolo_slurm.report.sync import History, Progress, synchronise


@dataclass(frozen=True, slots=True)
class Usage:
    """The answer, how many of sacct's rows could not be read, and what the user should know."""

    question: Question
    groups: Groups
    unreadable: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reader:
    """What a report reads with: slurmdbd, the cache's place, the clock and the time zone."""

    history: History
    place: Place
    now: int
    tz: tzinfo
    progress: Progress
    refresh: bool = False  # start the cache anew

    def usage(self, question: Question) -> Usage:
        """Return the usage that *question* asks for.

        A cache that is damaged or of another version is made anew; one that
        cannot be used is done without. Raises UnavailableError when sacct fails.
        """
        notes = [self.place.note] if self.place.note else []
        path = self.place.path
        if path is not None:
            try:
                return replace(self._cached(path, question, notes), notes=tuple(notes))
            except (sqlite3.Error, OSError) as error:
                notes.append(f"the usage cache {path} cannot be used ({error}); nothing is cached")
        with closing(Cache.in_memory()) as cache:
            return replace(self._read(cache, question), notes=tuple(notes))

    def _cached(self, path: Path, question: Question, notes: list[str]) -> Usage:
        if self.refresh or not path.exists():
            caches.create(path)
        try:
            return self._open_and_read(path, question)
        except _OtherSchemaError as other:
            notes.append(f"the usage cache {path} is of version {other}, not {SCHEMA}; made anew")
        except sqlite3.Error as error:
            if not caches.is_damage(error):
                raise
            notes.append(f"the usage cache {path} was damaged ({error}); made anew")
        caches.create(path)
        return self._open_and_read(path, question)

    def _open_and_read(self, path: Path, question: Question) -> Usage:
        with closing(Cache.open(path)) as cache:
            if cache.schema != SCHEMA:
                raise _OtherSchemaError(cache.schema)
            return self._read(cache, question)

    def _read(self, cache: Cache, question: Question) -> Usage:
        synchronise(cache, self.history, question.window, now=self.now, progress=self.progress)
        groups = aggregate(cache.connection, question, now=self.now, tz=self.tz)
        return Usage(question, groups, cache.unreadable(), ())


class _OtherSchemaError(Exception):
    """The cache is of another version."""
