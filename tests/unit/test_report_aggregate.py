"""Sums of attempts: each charged by its own row, exactly, and jobs counted once."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yolo_slurm.report.aggregate import By, Groups, Question, Sum, aggregate
from yolo_slurm.report.buckets import Unit, cut, parts
from yolo_slurm.report.cache import Cache
from yolo_slurm.report.held import decode, held_of
from yolo_slurm.report.window import Window
from yolo_slurm.slurm.client import Attempt, AttemptKey
from yolo_slurm.slurm.commands import parse_attempt

DAY = 86400
NOW = int(datetime(2026, 11, 15, 12, tzinfo=UTC).timestamp())
ALWAYS = Window(0, NOW + DAY)


def row(line: str) -> Attempt:
    """An attempt from JobIDRaw|JobID|Submit|Start|End|ElapsedRaw|State|AllocTRES, times in UTC."""
    raw, job, *times, elapsed, state, tres = line.split("|")
    epochs = [
        str(int(datetime.fromisoformat(each).replace(tzinfo=UTC).timestamp()))
        if each[0].isdigit()
        else each
        for each in times
    ]
    return parse_attempt(
        "|".join(["c", raw, job, *epochs, elapsed, state, tres, "vision", "alice", "gpu", ""])
    )


def groups(rows, *by: By, window: Window = ALWAYS, now: int = NOW, **names) -> Groups:
    with closing(Cache.in_memory()) as cache:
        cache.put(rows, seen=now, margin=3600)
        return aggregate(
            cache.connection, Question(window, by or (By.PROJECT,), **names), now=now, tz=UTC
        )


# What sacct printed of real jobs: why, its rows, GPU-seconds, attempts, jobs.
CASES = [
    (
        "one job requeued twice: three attempts, each charged once",
        [
            "501|501|2026-11-01T10:00:00|2026-11-01T10:00:05|2026-11-01T10:10:05|600|REQUEUED|cpu=4,gres/gpu:a100=2,gres/gpu=2,node=1",
            "501|501|2026-11-01T10:10:05|2026-11-01T10:12:00|2026-11-01T10:22:00|600|PREEMPTED|cpu=4,gres/gpu:a100=2,gres/gpu=2,node=1",
            "501|501|2026-11-01T10:22:00|2026-11-01T10:30:00|2026-11-01T11:00:00|1800|COMPLETED|cpu=4,gres/gpu:a100=2,gres/gpu=2,node=1",
        ],
        Sum(6000, attempts=3, jobs=1),
    ),
    (
        "cancelled while pending: never started, costs nothing",
        [
            "502|502|2026-11-01T10:00:00|Unknown|2026-11-01T10:05:00|0|CANCELLED by 1001|",
            "503|503|2026-11-01T10:00:00|None|2026-11-01T10:05:00|0|CANCELLED by 1001|",
        ],
        Sum(),
    ),
    (
        "requeued and pending again: the second row shows the last allocation but has no start",
        [
            "515|515|2026-11-01T10:00:00|2026-11-01T10:00:05|2026-11-01T10:00:13|8|PREEMPTED|billing=1,cpu=1,gres/gpu:a100=2,gres/gpu=2,node=1",
            "515|515|2026-11-01T10:00:13|Unknown|Unknown|0|PENDING|billing=1,cpu=1,gres/gpu:a100=2,gres/gpu=2,node=1",
        ],
        Sum(16, attempts=1, jobs=1),
    ),
    (
        "still running: counted so far, and said to run",
        ["504|504|2026-11-01T10:00:00|2026-11-01T10:00:05|Unknown|4000|RUNNING|cpu=4,gres/gpu=1"],
        Sum(4000, attempts=1, jobs=1, running=1),
    ),
    (
        "shorter than a minute is not free",
        [
            "505|505|2026-11-01T10:00:00|2026-11-01T10:00:05|2026-11-01T10:00:24|19|FAILED|cpu=1,gres/gpu=8"
        ],
        Sum(152, attempts=1, jobs=1),
    ),
    (
        "a recycled job id is another job",
        [
            "506|506|2017-03-01T10:00:00|2017-03-01T10:00:05|2017-03-01T10:01:45|100|COMPLETED|cpu=1,gres/gpu=1",
            "506|506|2026-11-01T10:00:00|2026-11-01T10:00:05|2026-11-01T10:03:25|200|COMPLETED|cpu=1,gres/gpu=1",
        ],
        Sum(300, attempts=2, jobs=2),
    ),
    (
        "array tasks and a het component by their own row; a suspended hour is not charged",
        [
            "508|507_1|2026-11-01T10:00:00|2026-11-01T10:00:05|2026-11-01T10:01:05|60|COMPLETED|cpu=1,gres/gpu=1",
            "507|507_2|2026-11-01T10:00:00|2026-11-01T10:00:05|2026-11-01T10:01:05|60|COMPLETED|cpu=1,gres/gpu=1",
            "509|509+0|2026-11-01T10:00:00|2026-11-01T10:00:05|2026-11-01T10:01:05|60|COMPLETED|cpu=1,gres/gpu=2",
            "511|511|2026-11-01T10:00:00|2026-11-01T10:00:00|2026-11-01T12:00:00|3600|COMPLETED|cpu=1,gres/gpu=1",
        ],
        Sum(3840, attempts=4, jobs=4),
    ),
    (
        "a finished run with no allocation recorded is unknown, never 0 or guessed",
        [
            "512|512|2026-11-01T10:00:00|2026-11-01T10:00:05|2026-11-01T10:10:05|600|COMPLETED|",
            "513|513|2026-11-01T10:00:00|2026-11-01T10:00:05|2026-11-01T10:10:05|600|COMPLETED|cpu=1,gres/shard=2",
        ],
        Sum(0, attempts=2, jobs=2, unknown=2),
    ),
    (
        "a job on CPUs alone ran, and used no GPU",
        ["514|514|2026-11-01T10:00:00|2026-11-01T10:00:05|2026-11-01T10:10:05|600|COMPLETED|cpu=4"],
        Sum(0, attempts=1, jobs=1),
    ),
    (
        "a resized job: the row of its first size has ended, though its state is none of an end",
        [
            "517|517|2026-11-01T10:00:00|2026-11-01T10:00:00|2026-11-01T10:01:40|100|RESIZING|cpu=4,gres/gpu=4"
        ],
        Sum(400, attempts=1, jobs=1),
    ),
]


@pytest.mark.parametrize(("rows", "expected"), [case[1:] for case in CASES], ids=lambda _: "")
def test_each_attempt_is_charged_by_its_own_row(rows, expected):
    found = groups([row(line) for line in rows])
    assert found.total == expected
    assert found.rows == ({("vision",): expected} if expected.attempts else {})


def test_by_type_names_types_untyped_none_shard_and_unknown():
    tres = [
        "cpu=1,gres/gpu:a100=2,gres/gpu=2",
        "gres/gpu:a100=1,gres/gpu:t4=1,gres/gpu=3",  # one has no type
        "gres/gpu=1",
        "cpu=1",
        "",
        "gres/shard=1",
    ]
    line = "2026-11-01T10:00:00|2026-11-01T10:00:00|2026-11-01T10:00:10|10|COMPLETED"
    found = groups([row(f"{n}|{n}|{line}|{text}") for n, text in enumerate(tres, 1)], By.TYPE)
    assert {key: group.gpu_seconds for (key,), group in found.sorted()} == {
        "a100": 30, "none": 0, "shard": 0, "t4": 10, "unknown": 0, "untyped": 20,
    }  # fmt: skip
    assert found.rows[("unknown",)].unknown == found.rows[("shard",)].unknown == 1
    assert found.total == Sum(60, attempts=6, jobs=6, unknown=2)


def test_an_attempt_over_midnight_is_in_both_days_and_once_in_the_total():
    found = groups(
        [row("1|1|2026-10-31T23:00:00|2026-10-31T23:00:00|2026-11-01T02:00:00|10800|COMPLETED|gres/gpu=2")],
        By.DAY, By.MONTH,
    )  # fmt: skip
    assert found.sorted() == [
        (("2026-10-31", "2026-10"), Sum(7200, attempts=1, jobs=1)),
        (("2026-11-01", "2026-11"), Sum(14400, attempts=1, jobs=1)),
    ]
    assert found.total == Sum(21600, attempts=1, jobs=1)


def test_a_running_attempt_counts_up_to_now_in_each_day():
    start = NOW - 2 * DAY
    running = attempt(1, start, None, 2 * DAY, "gres/gpu=1")
    found = groups([running], By.DAY)
    assert [group.gpu_seconds for _, group in found.sorted()] == [DAY // 2, DAY, DAY // 2]
    assert all(group.running for group in found.rows.values())


def test_only_the_projects_and_users_asked_for():
    lines = [(1, "a", "x"), (2, "a", "y"), (3, "b", "x")]
    rows = [attempt(job, NOW - 100, 10, 10, "gres/gpu=1", p, u) for job, p, u in lines]
    found = groups(rows, By.PROJECT, By.USER, projects=("a",), users=("x", "z"))
    assert list(found.rows) == [("a", "x")]
    assert found.total.attempts == 1


def attempt(job, start, length, elapsed, tres, project="p", user="u", submit=None, state=None):
    end = None if length is None else start + length
    return Attempt(
        AttemptKey("c", job, start if submit is None else submit),
        str(job), start, end, elapsed, state or ("RUNNING" if end is None else "COMPLETED"),
        tres, project, user, "", "",
    )  # fmt: skip


TRES = [
    "cpu=1", "", "gres/gpu=1", "gres/gpu:a100=2,gres/gpu=2", "gres/gpu:t4=1,gres/gpu:a100=1",
    "gres/gpu:t4=1,gres/gpu=3", "gres/shard=1",
]  # fmt: skip
attempts = st.builds(
    lambda job, start, length, share, *rest: attempt(
        job,
        start,
        length,
        int((length if length is not None else max(0, NOW - start)) * share),
        *rest,
    ),
    st.integers(1, 5),
    st.integers(NOW - 6 * DAY, NOW - 1),
    st.one_of(st.none(), st.integers(0, 3600), st.integers(0, 4 * DAY)),
    st.sampled_from([0.0, 0.3, 1.0, 1.0]),
    st.sampled_from(TRES),
    st.sampled_from(["p", "q"]),
    st.sampled_from(["u", "v"]),
)
histories = st.lists(attempts, max_size=12, unique_by=lambda each: each.key).map(
    lambda rows: [each for each in rows if each.end is None or each.end <= NOW]
)
windows = st.tuples(st.integers(-7 * DAY, 0), st.integers(1, 7 * DAY)).map(
    lambda pair: Window(NOW + pair[0], NOW + pair[0] + pair[1])
)
questions = st.lists(st.sampled_from(By), unique=True, min_size=1).map(tuple)


def slow_sums(rows, by, window) -> tuple[dict, Sum]:
    """The same in the plainest way: every attempt in every bucket, jobs as sets."""
    unit = Unit.DAY if By.DAY in by else Unit.MONTH if By.MONTH in by else Unit.WHOLE
    sums: dict[tuple, list] = {}
    for each in sorted(rows, key=lambda one: one.key):
        end = each.end if each.end is not None else max(NOW, each.start + each.elapsed)
        for label, seconds in parts(each.start, end, each.elapsed, cut(window, unit, UTC)):
            held = decode(held_of(each))
            unknown = "shard" if "shard" in each.alloc_tres else "unknown"
            for kind, count in held or ((unknown, 0),):
                names = {
                    By.DAY: label, By.MONTH: label[:7], By.TYPE: kind, By.PROJECT: each.account,
                    By.USER: each.user, By.STATE: each.state,
                }  # fmt: skip
                for key in (tuple(names[one] for one in by), "total"):
                    sums.setdefault(key, []).append((seconds * count, each, held is None))
    made = {
        key: (
            sum(seconds for seconds, _, _ in uses),
            len({each.key for _, each, _ in uses}),
            len({each.key for _, each, _ in uses if each.end is None}),
            len({each.key for _, each, unknown in uses if unknown}),
        )
        for key, uses in sums.items()
    }
    return made, made.pop("total", (0, 0, 0, 0))


def shown(group: Sum) -> tuple[int, int, int, int]:
    return group.gpu_seconds, group.attempts, group.running, group.unknown


@settings(deadline=None)  # the host may be busy
@given(rows=histories, by=questions, window=windows)
def test_counting_in_sqlite_is_counting_one_by_one(rows, by, window):
    found = groups(rows, *by, window=window)
    expected, total = slow_sums(rows, by, window)
    assert {key: shown(group) for key, group in found.rows.items()} == expected
    assert shown(found.total) == total
    assert all(0 < group.jobs <= group.attempts for group in found.rows.values())


@settings(deadline=None)  # the host may be busy
@given(rows=histories, window=windows)
def test_every_way_to_sum_has_the_same_total(rows, window):
    total = groups(rows, window=window).total
    for by in By:
        found = groups(rows, by, window=window)
        assert found.total == total
        assert sum(group.gpu_seconds for group in found.rows.values()) == total.gpu_seconds


@settings(deadline=None)  # the host may be busy
@given(rows=histories, at=st.integers(-5 * DAY, 0))
def test_adjoining_windows_add_up(rows, at):
    halves = [Window(0, NOW + at), Window(NOW + at, NOW + DAY)]
    assert (
        sum(groups(rows, window=half).total.gpu_seconds for half in halves)
        == groups(rows).total.gpu_seconds
    )
