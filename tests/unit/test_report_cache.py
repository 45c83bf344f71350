"""The cache: what it holds after many runs is what one fresh run finds, whatever happens to it."""

from __future__ import annotations

import signal
import sqlite3
import stat
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from yolo_slurm.errors import UnavailableError
from yolo_slurm.report import cache as caches
from yolo_slurm.report.aggregate import By, Question, aggregate
from yolo_slurm.report.cache import Cache
from yolo_slurm.report.coverage import missing, union
from yolo_slurm.report.place import Place
from yolo_slurm.report.sync import LATE, MARGIN, REVIEW_EVERY, synchronise
from yolo_slurm.report.usage import Reader, Usage
from yolo_slurm.report.window import Window
from yolo_slurm.slurm.client import Attempt, AttemptKey, BadRow

DAY = 86400
T0 = 1_790_000_000
ALWAYS = Window(T0 - 10 * DAY, T0 + 60 * DAY)
EVERYTHING = (By.PROJECT, By.USER, By.TYPE, By.DAY, By.STATE)


@dataclass(frozen=True)
class Run:
    """One attempt's life. Times are epoch seconds."""

    job: int
    submit: int
    start: int
    end: int
    requeued: int | None = None  # when a requeue rewrote its row
    mended: int | None = None  # until then slurmdbd thought that it still ran
    gone: bool = False  # ... and then the row was deleted
    heard: int = 0  # when slurmdbd heard of it

    def row(self, now: int) -> Attempt | None:
        """Its row in slurmdbd at *now*."""
        state, start, end = "COMPLETED", self.start, self.end
        if now < max(self.submit, self.heard):
            return None
        if now < self.start:
            return self._row("PENDING", None, None, 0)
        if now < (self.mended or self.end):
            return self._row("RUNNING", start, None, now - start)
        if self.gone:
            return None
        if self.requeued is not None and now >= self.requeued:
            state, end = "REQUEUED", self.requeued
        return self._row(state, start, end, end - start)

    def _row(self, state: str, start: int | None, end: int | None, elapsed: int) -> Attempt:
        key = AttemptKey("c", self.job, self.submit)
        tres = "gres/gpu:a100=2,gres/gpu=2" if self.job % 2 else "cpu=1,gres/gpu=1"
        return Attempt(key, str(self.job), start, end, elapsed, state, tres, "p", "u", "", "")


@dataclass
class Slurmdbd:
    """Answers as sacct does: the attempts that were there in a span, as they are at *now*.

    Source: sacct(1), "-S": jobs that were eligible before the end of the span
    and had not ended before its start.
    """

    runs: list[Run]
    now: int = T0
    asked: list[tuple[int, int]] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)

    def _rows(self) -> list[Attempt]:
        return [row for run in self.runs if (row := run.row(self.now)) is not None]

    def stream(self, *, since: int, until: int | None = None) -> Iterator[Attempt | BadRow]:
        end = self.now if until is None else until
        self.asked.append((since, end))
        for row in self._rows():
            if row.key.submit <= end and (row.end is None or row.end >= since):
                yield row

    def attempts(self, job_ids: Iterable[int], *, since: int) -> tuple[list[Attempt], list[BadRow]]:
        ids = set(job_ids)
        self.ids += sorted(ids)
        return [
            row
            for row in self._rows()
            if row.key.job_id in ids and (row.end is None or row.end >= since)
        ], []


def quiet(_rows: int) -> None:
    pass


def sums(cache: Cache, dbd: Slurmdbd, window: Window = ALWAYS):
    synchronise(cache, dbd, window, now=dbd.now, progress=quiet)
    return aggregate(cache.connection, Question(window, EVERYTHING), now=dbd.now, tz=UTC)


def fresh(dbd: Slurmdbd, window: Window = ALWAYS):
    with closing(Cache.in_memory()) as cache:
        return sums(cache, dbd, window)


@contextmanager
def memory() -> Iterator[Cache]:
    with closing(Cache.in_memory()) as cache:
        yield cache


@st.composite
def lives(draw) -> list[Run]:
    """Jobs over twenty days: requeued, rewritten, run away and mended, deleted."""
    runs = []
    for job in range(1, draw(st.integers(0, 8)) + 1):
        at = T0 + draw(st.integers(0, 20 * DAY))
        for _ in range(draw(st.integers(1, 3))):
            start = at + draw(st.sampled_from([0, 5, 3 * DAY]))
            end = start + draw(st.sampled_from([0, 60, MARGIN, 5000, DAY, 4 * DAY]))
            kind = draw(st.sampled_from(["plain", "rewritten", "mended", "gone", "late"]))
            if kind == "late":  # heard of within the margin; a review finds what is not
                end = min(end, start + 60)
            again = end + draw(st.integers(1, MARGIN - 120))
            runs.append(
                Run(
                    job,
                    at,
                    start,
                    end,
                    requeued=again if kind == "rewritten" else None,
                    mended=end + 3 * DAY if kind in {"mended", "gone"} else None,
                    gone=kind == "gone",
                    heard=again if kind == "late" else 0,
                )
            )
            at = again if kind == "rewritten" else end + 4 * DAY
    return runs


moments = st.lists(
    st.tuples(
        st.integers(0, 30 * DAY),  # when
        st.none() | st.tuples(st.integers(-2 * DAY, 25 * DAY), st.integers(1, 9 * DAY)),
    ),
    min_size=1,
    max_size=8,
).map(lambda each: sorted(each, key=lambda one: one[0]))  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(runs=lives(), moments=moments)
@example(runs=[Run(1, T0, T0, T0)], moments=[(0, None), (0, (0, 1))])  # in this very second
def test_after_any_runs_the_cache_says_what_a_fresh_run_says(runs, moments):
    with memory() as cache:
        for when, span in moments:
            dbd = Slurmdbd(runs, T0 + when)
            window = ALWAYS if span is None else Window(T0 + span[0], T0 + span[0] + span[1])
            assert sums(cache, dbd, window) == fresh(dbd, window)


def test_the_second_run_asks_only_for_what_is_new():
    dbd = Slurmdbd([Run(1, T0, T0, T0 + 60), Run(2, T0, T0, T0 + 90 * DAY)], T0 + 40 * DAY)
    with memory() as cache:
        sums(cache, dbd)
        dbd.asked.clear()
        dbd.now += 600
        found = sums(cache, dbd)
        assert dbd.asked == [(dbd.now - 600 - MARGIN, dbd.now)]
        assert dbd.ids == []
        assert found.total.running == 1


def test_a_past_window_is_not_asked_for_twice():
    dbd = Slurmdbd([Run(1, T0, T0, T0 + 60)], T0 + 40 * DAY)
    window = Window(T0 - DAY, T0 + DAY)
    with memory() as cache:
        first = sums(cache, dbd, window)
        dbd.asked.clear()
        assert sums(cache, dbd, window) == first
        assert dbd.asked == []


def test_a_row_that_a_requeue_rewrote_is_read_again():
    """Measured: `scontrol requeue` of a COMPLETED job made End now and 8 s of it 74."""
    runs = [
        Run(516, T0, T0 + 5, T0 + 13, requeued=T0 + 79),
        Run(516, T0 + 79, T0 + 200, T0 + 220),
    ]
    dbd = Slurmdbd(runs, T0 + 20)
    with memory() as cache:
        assert sums(cache, dbd).total.gpu_seconds == 8
        dbd.now = T0 + 3000
        total = sums(cache, dbd).total
        assert (total.gpu_seconds, total.attempts, total.jobs) == (74 + 20, 2, 1)


def test_a_rewritten_row_is_right_in_a_past_window_too():
    long = Run(1, T0, T0, T0 + DAY, requeued=T0 + DAY + 1800)
    dbd, past = Slurmdbd([long], T0 + DAY + 60), Window(T0, T0 + 3600)
    with memory() as cache:
        assert next(iter(sums(cache, dbd, past).rows))[-1] == "COMPLETED"
        dbd.now += 3600
        assert next(iter(sums(cache, dbd, past).rows))[-1] == "REQUEUED"


def test_a_row_that_waits_again_is_not_counted():
    dbd = Slurmdbd([Run(1, T0, T0, T0 + DAY)], T0 + 60)
    with memory() as cache:
        assert sums(cache, dbd).total.running == 1
        dbd.runs = [Run(1, T0, T0 + DAY, T0 + DAY)]
        dbd.now += 60
        assert sums(cache, dbd).total.attempts == 0


def test_a_runaway_job_that_was_mended_is_asked_for_by_its_id():
    dbd = Slurmdbd([Run(7, T0, T0, T0 + 100, mended=T0 + 9 * DAY)], T0 + 5 * DAY)
    with memory() as cache:
        assert sums(cache, dbd).total.running == 1
        dbd.now = T0 + 10 * DAY
        total = sums(cache, dbd).total
        assert (total.gpu_seconds, total.running) == (200, 0)
        assert dbd.ids == [7]


def test_what_slurmdbd_hears_of_late_is_found_by_a_review():
    """slurmdbd was down for a day, and slurmctld had not told all when the first report ran."""
    late = Run(8, T0, T0, T0 + 100, heard=T0 + DAY + 60)
    dbd = Slurmdbd([late], T0 + DAY)
    with memory() as cache:
        assert sums(cache, dbd).total.attempts == 0
        dbd.now += REVIEW_EVERY
        assert sums(cache, dbd).total.attempts == 1
        assert dbd.asked[-1][0] >= T0 + DAY - LATE


def test_a_row_that_could_not_be_read_is_counted():
    class Odd(Slurmdbd):
        def stream(self, *, since, until=None):
            yield BadRow("a|b", "expected 13 fields")
            yield from super().stream(since=since, until=until)

    with memory() as cache:
        for _ in range(2):
            synchronise(cache, Odd([]), ALWAYS, now=T0, progress=quiet)
        assert cache.unreadable() == 1


spans = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=6)


@given(asked=st.tuples(st.integers(0, 40), st.integers(0, 40)), covered=spans)
def test_what_is_missing_is_what_is_asked_for_and_not_covered(asked, covered):
    def seconds(many):
        return {at for lo, hi in many for at in range(lo, hi)}

    assert seconds(missing(asked, covered)) == seconds([asked]) - seconds(covered)
    assert seconds(union(covered)) == seconds(covered)


# --- the file ---------------------------------------------------------------


def report(path: Path | None, dbd: Slurmdbd, **more) -> Usage:
    reader = Reader(dbd, Place(path), dbd.now, UTC, quiet, **more)
    return reader.usage(Question(ALWAYS, EVERYTHING))


RUNS = [Run(job, T0 + job, T0 + job, T0 + job + 60) for job in range(1, 400)]


@pytest.fixture
def dbd() -> Slurmdbd:
    return Slurmdbd(RUNS, T0 + 3 * DAY)


@pytest.fixture
def file(tmp_path, dbd) -> Path:
    path = tmp_path / "usage.db"
    assert report(path, dbd).notes == ()
    dbd.asked.clear()
    return path


def test_the_file_is_for_its_owner_alone_and_opens_with_sqlite_utils(file):
    from sqlite_utils import Database

    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [each.name for each in file.parent.iterdir()] == [file.name]
    database = Database(file)
    assert database["attempts"].count == len(RUNS)
    assert database["attempts"].pks == ["cluster", "job_id", "submit"]
    assert database["kinds"].count == 2


def damage_head(path):
    path.write_bytes(b"no database at all" + path.read_bytes()[18:])


def damage_pages(path):
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)
    path.write_bytes(data)


def cut_off(path):
    path.write_bytes(path.read_bytes()[:5000])


def empty_it(path):
    path.write_bytes(b"")


def drop_a_table(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE kinds")


def older_schema(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {caches.SCHEMA - 1}")


@pytest.mark.parametrize(
    "harm", [damage_head, damage_pages, cut_off, empty_it, drop_a_table, older_schema]
)
def test_a_damaged_or_old_cache_is_said_in_one_line_and_made_anew(file, dbd, harm):
    expected = fresh(dbd)
    harm(file)
    found = report(file, dbd)
    assert found.groups == expected
    (note,) = found.notes
    assert str(file) in note
    assert "made anew" in note
    assert "\n" not in note
    again = report(file, dbd)
    assert (again.groups, again.notes) == (expected, ())


def test_refresh_reads_everything_again(file, dbd):
    dbd.runs = RUNS[:7]  # somebody purged the rest
    assert report(file, dbd).groups.total.attempts == len(RUNS)
    assert report(file, dbd, refresh=True).groups.total.attempts == 7
    assert report(file, dbd).groups.total.attempts == 7


def test_without_a_place_nothing_is_written(tmp_path, dbd):
    assert report(None, dbd).groups == fresh(dbd)
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_used_is_done_without(tmp_path, dbd):
    found = report(tmp_path / "no such directory" / "usage.db", dbd)
    assert found.groups == fresh(dbd)
    assert "nothing is cached" in found.notes[0]


def test_when_sacct_fails_nothing_is_kept_and_nothing_is_hidden(file, dbd):
    class Down(Slurmdbd):
        def stream(self, *, since, until=None):
            yield Run(9999, T0, T0, T0 + 60).row(self.now)
            raise UnavailableError("sacct failed (exit code 1): Connection refused")

    before = fresh(dbd)
    with pytest.raises(UnavailableError):
        report(file, Down(RUNS, dbd.now + DAY))
    with closing(Cache.open(file)) as cache:
        question = Question(ALWAYS, EVERYTHING)
        assert aggregate(cache.connection, question, now=dbd.now, tz=UTC) == before


KILLED = """
import os, signal, sys
from datetime import UTC
from pathlib import Path
sys.path.insert(0, {here!r})
from test_report_cache import *

class Killed(Slurmdbd):
    def stream(self, *, since, until=None):
        for job in range(5000, 60000):
            yield Run(job, T0, T0, T0 + 60).row(self.now)
        os.kill(os.getpid(), signal.SIGKILL)
        yield

report(Path({path!r}), Killed(RUNS, {now}))
"""


def test_a_killed_run_leaves_the_cache_as_it_was(file, dbd):
    program = KILLED.format(here=str(Path(__file__).parent), now=dbd.now + DAY, path=str(file))
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert file.with_name(file.name + "-journal").exists(), "it was not killed amid a transaction"
    dbd.now += DAY
    found = report(file, dbd)
    assert (found.groups, found.notes) == (fresh(dbd), ())


def test_two_runs_at_once_agree_and_the_second_waits(file, dbd):
    inside, go = threading.Event(), threading.Event()

    class Slow(Slurmdbd):
        def stream(self, *, since, until=None):
            inside.set()
            assert go.wait(20)
            yield from super().stream(since=since, until=until)

    slow, quick = Slow(RUNS, dbd.now + DAY), Slurmdbd(RUNS, dbd.now + DAY)
    found: dict[str, Usage] = {}
    first = threading.Thread(target=lambda: found.update(slow=report(file, slow)))
    second = threading.Thread(target=lambda: found.update(quick=report(file, quick)))
    first.start()
    assert inside.wait(20)
    second.start()
    second.join(0.3)
    assert second.is_alive()
    go.set()
    first.join(20)
    second.join(20)
    assert found["slow"].groups == found["quick"].groups == fresh(quick)
    assert found["slow"].notes == found["quick"].notes == ()


def test_a_cache_that_stays_locked_is_done_without(file, dbd, monkeypatch):
    monkeypatch.setattr(caches, "BUSY_SECONDS", 0.05)
    with closing(sqlite3.connect(file)) as other:
        other.execute("BEGIN IMMEDIATE")
        found = report(file, dbd)
    assert found.groups == fresh(dbd)
    assert "locked" in found.notes[0]


def test_the_later_of_two_readings_stays(file, dbd):
    later = dbd.now + DAY
    key = AttemptKey("c", 77777, T0)
    ended = Attempt(key, "77777", T0, T0 + 60, 60, "COMPLETED", "gres/gpu=1", "p", "u", "", "")
    running = Attempt(key, "77777", T0, None, 30, "RUNNING", "gres/gpu=1", "p", "u", "", "")
    with closing(Cache.open(file)) as cache, cache.writing():
        cache.put([ended], seen=later, margin=MARGIN)
        cache.put([running], seen=later - 5, margin=MARGIN)
        rows = cache.connection.execute("SELECT end FROM attempts WHERE job_id = 77777")
        assert rows.fetchall() == [(T0 + 60,)]


def test_a_long_history_is_not_held_in_memory(tmp_path):
    """Rows pass one by one: 100,000 of them take no more than 10,000 do, but for SQLite's pages."""
    import tracemalloc

    def peak(count: int) -> int:
        class Long(Slurmdbd):
            def stream(self, *, since, until=None):
                for job in range(1, count):
                    yield Run(job, T0, T0, T0 + 60).row(self.now)

        tracemalloc.start()
        report(tmp_path / f"{count}.db", Long([], T0 + DAY))
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(10)  # imports
    assert peak(50_000) < peak(5_000) + 1_000_000
