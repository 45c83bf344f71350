"""The local copy of sacct's rows: one SQLite file, made with sqlite-utils, that anyone can open.

Every statement after the making goes through `sqlite3` alone: loading
sqlite-utils costs more than a warm report does.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from yolo_slurm.report.coverage import Span, union
from yolo_slurm.report.held import held_of
from yolo_slurm.slurm.client import Attempt, AttemptKey, BadRow

SCHEMA: Final = 1
BUSY_SECONDS: Final = 30.0  # how long one run waits for another one's fetch

# A job that is requeued has a row more with the same id; `lone` tells the many
# jobs that have one row from the few that have more, which are counted one by one.
_TRIGGER: Final = """
CREATE TRIGGER not_alone AFTER INSERT ON attempts
WHEN EXISTS (SELECT 1 FROM attempts WHERE cluster = new.cluster AND job_id = new.job_id
             AND submit <> new.submit)
BEGIN
    UPDATE attempts SET lone = 0 WHERE cluster = new.cluster AND job_id = new.job_id;
END
"""
# Of two runs at once, the one that asked later knows better.
_UPSERT: Final = """
INSERT INTO attempts (cluster, job_id, submit, start, end, elapsed, kind, open, seen, lone)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 1)
ON CONFLICT (cluster, job_id, submit) DO UPDATE SET
    start = excluded.start, end = excluded.end, elapsed = excluded.elapsed,
    kind = excluded.kind, open = excluded.open, seen = excluded.seen
WHERE excluded.seen >= seen
"""
_KIND: Final = ("project", "user", "state", "gpus")
_OVERLAP: Final = "start < ? AND (end IS NULL OR end > ? OR start >= ?)"
_CORRUPT: Final = frozenset({"SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_ERROR", "SQLITE_MISMATCH"})


@dataclass(frozen=True, slots=True)
class Unsettled:
    """A row that may still change, and when it was read."""

    key: AttemptKey
    seen: int


def is_damage(error: sqlite3.Error) -> bool:
    """Return whether *error* says that the file is not what this module wrote."""
    name = getattr(error, "sqlite_errorname", None)
    return name is None or name.split("_", 2)[:2] in [each.split("_") for each in _CORRUPT]


def create(path: Path) -> None:
    """Make an empty cache at *path*, mode 0600, in one step; replaces what is there.

    Raises OSError, sqlite3.Error.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-", suffix=".db")  # mode 0600
    os.close(handle)
    new = Path(name)
    try:
        connection = sqlite3.connect(new)
        try:
            make_tables(connection)
        finally:
            connection.close()
        # The journal of another file of this name would be played back into this one.
        with suppress(FileNotFoundError):
            path.with_name(path.name + "-journal").unlink()
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def make_tables(connection: sqlite3.Connection) -> None:
    """Make the cache's tables in an empty database."""
    from sqlite_utils import Database

    database: Any = Database(connection)
    numbers = ("job_id", "submit", "start", "end", "elapsed", "kind", "open", "seen", "lone")
    database["attempts"].create(
        {"cluster": str, **dict.fromkeys(numbers, int)},
        pk=("cluster", "job_id", "submit"),
        not_null=set(numbers) - {"end"},
    )
    # All that a report reads of most attempts, in the order it reads them.
    database["attempts"].create_index(["start", "kind", "end", "elapsed", "lone"])
    # Many attempts are alike in all that is not a number.
    database["kinds"].create({"id": int, **dict.fromkeys(_KIND, str)}, pk="id", not_null=_KIND)
    database["coverage"].create({"lo": int, "hi": int}, pk="lo")
    database["review"].create({"at": int}, pk="at")
    database["unreadable"].create({"line": str, "why": str}, pk="line")
    connection.execute("CREATE INDEX unsettled ON attempts (seen) WHERE open")
    connection.execute(_TRIGGER)
    connection.execute(f"PRAGMA user_version = {SCHEMA}")
    connection.commit()


class Cache:
    """The rows of one cluster's slurmdbd, as one user sees them."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        connection.isolation_level = None  # transactions are said, not guessed

    @classmethod
    def open(cls, path: Path) -> Cache:
        """Open the cache at *path*. Raises sqlite3.Error."""
        return cls(sqlite3.connect(path, timeout=BUSY_SECONDS))

    @classmethod
    def in_memory(cls) -> Cache:
        """Return an empty cache that nothing keeps."""
        connection = sqlite3.connect(":memory:")
        make_tables(connection)
        return cls(connection)

    def close(self) -> None:
        self.connection.close()

    @property
    def schema(self) -> int:
        """The version of its tables; 0 for a file that is not a cache."""
        return int(self.connection.execute("PRAGMA user_version").fetchone()[0])

    @contextmanager
    def writing(self) -> Iterator[None]:
        """One transaction: all of it is kept, or nothing. Another run waits for its end."""
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                self.connection.execute("ROLLBACK")
            raise

    def covered(self) -> list[Span]:
        """Return the spans of time whose ended attempts are all here."""
        return union(self.connection.execute("SELECT lo, hi FROM coverage"))

    def cover(self, spans: Iterable[Span]) -> None:
        """Note that *spans* are covered too."""
        together = union([*self.covered(), *spans])
        self.connection.execute("DELETE FROM coverage")
        self.connection.executemany("INSERT INTO coverage VALUES (?, ?)", together)

    def reviewed(self) -> int:
        """Return when recent time was last read anew, covered or not; 0 for never."""
        (at,) = self.connection.execute("SELECT max(at) FROM review").fetchone()
        return at or 0

    def note_review(self, at: int) -> None:
        """Note that recent time was read anew at *at*."""
        self.connection.execute("DELETE FROM review")
        self.connection.execute("INSERT INTO review VALUES (?)", (at,))

    def unsettled(self, asked: Span) -> list[Unsettled]:
        """Return the rows in *asked* that may have changed since they were read, oldest first."""
        rows = self.connection.execute(
            f"SELECT cluster, job_id, submit, seen FROM attempts WHERE open AND {_OVERLAP} "  # noqa: S608
            "ORDER BY seen",
            (asked[1], asked[0], asked[0]),
        )
        return [Unsettled(AttemptKey(*key), seen) for *key, seen in rows]

    def put(self, rows: Iterable[Attempt | BadRow], *, seen: int, margin: int) -> None:
        """Keep *rows*, read at *seen*; those that ended less than *margin* seconds ago stay open.

        A row without a start (pending, or cancelled while pending) used
        nothing and is not kept.
        """
        bad: list[BadRow] = []
        known = {
            tuple(kind): at
            for at, *kind in self.connection.execute("SELECT * FROM kinds ORDER BY id")
        }
        first_new = len(known)

        def values() -> Iterator[tuple[object, ...]]:
            for row in rows:
                if isinstance(row, BadRow):
                    bad.append(row)
                elif row.start is not None:
                    settled = row.end is not None and row.end <= seen - margin
                    kind = (row.account, row.user, row.state, held_of(row))
                    number = known.setdefault(kind, len(known))
                    yield (
                        *row.key, row.start, row.end, row.elapsed, number, not settled, seen,
                    )  # fmt: skip

        self.connection.executemany(_UPSERT, values())
        self.connection.executemany(
            "INSERT INTO kinds VALUES (?, ?, ?, ?, ?)",
            ((at, *kind) for kind, at in known.items() if at >= first_new),
        )
        self.connection.executemany(
            "INSERT OR REPLACE INTO unreadable VALUES (?, ?)", ((b.text, b.why) for b in bad)
        )

    def drop_unseen(self, asked: Span, *, seen: int) -> None:
        """Forget the open rows of *asked* that sacct no longer shows, or not as started."""
        self.connection.executemany(
            "DELETE FROM attempts WHERE cluster = ? AND job_id = ? AND submit = ?",
            [row.key for row in self.unsettled(asked) if row.seen < seen],
        )

    def unreadable(self) -> int:
        """Return how many of sacct's rows could not be read."""
        return int(self.connection.execute("SELECT COUNT(*) FROM unreadable").fetchone()[0])
