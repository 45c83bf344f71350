"""What attempts cost, and that each is charged once: rows that other tools got wrong."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yolo_slurm.ledger import entries
from yolo_slurm.ledger.store import open_ledger
from yolo_slurm.settle.charge import Cost, Open, Unknown, charge_of
from yolo_slurm.settle.round import Report, settle
from yolo_slurm.slurm.client import Attempt
from yolo_slurm.slurm.commands import parse_attempts

UNITS_PER_GPU_SECOND = 1_000_000


def epoch(text: str) -> str:
    if text in {"Unknown", "None"}:
        return text
    return str(int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()))


def to_attempts(rows: list[str]) -> list[Attempt]:
    """Read rows of a case as sacct prints them with epoch seconds."""
    lines = []
    for row in rows:
        raw, job, submit, start, end, elapsed, state, tres = row.split("|")
        times = "|".join(map(epoch, (submit, start, end)))
        lines.append(f"c|{raw}|{job}|{times}|{elapsed}|{state}|{tres}|demo|nobody|gpu|normal")
    good, bad = parse_attempts("\n".join(lines))
    assert not bad
    return good


class FakeJobs:
    """sacct, as it answered once."""

    def __init__(self, attempts: list[Attempt]) -> None:
        self.rows = attempts

    def queued(self, *, user=None):
        raise AssertionError("settling asks sacct alone")

    def attempts(self, job_ids, *, since):
        return self.rows, []


def settle_rows(tmp_path, rows: list[Attempt]) -> tuple[Report, int]:
    """Settle *rows* as if a hook had told of them; return the report and all debited units."""
    spool = tmp_path / "spool"
    spool.mkdir(exist_ok=True)
    for row in rows:
        (spool / f"2.{row.key.job_id}.0.1").touch()
    report = Report()
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    settle(lambda: open_ledger(url), FakeJobs(rows), spool, now=2_000_000_000, report=report)
    with open_ledger(url) as ledger, ledger.transaction() as connection:
        total = sum(entry.units for entry in entries.history(connection))
    return report, -total


def test_attempts(attempts_case, tmp_path):
    case = attempts_case
    report, units = settle_rows(tmp_path, to_attempts(case["rows"]))
    if "later" in case:
        again, units = settle_rows(tmp_path, to_attempts(case["later"]))
        report.debits += again.debits
        report.unknown += again.unknown
    assert len(report.debits) + len(report.unknown) == case["to_settle"]
    if case["gpu_seconds"] is None:
        assert units == 0
        assert len(report.unknown) == 1
    else:
        assert units == case["gpu_seconds"] * UNITS_PER_GPU_SECOND


def test_settling_twice_is_settling_once(tmp_path, cases):
    for case in cases("attempts")["cases"]:
        rows = to_attempts(case["rows"])
        _, first = settle_rows(tmp_path, rows)
        report, second = settle_rows(tmp_path, rows)
        assert not report.debits
        assert second == first


def test_an_unknown_cost_is_charged_once_it_is_known(tmp_path):
    row = "9|9|2026-11-01T10:00:00|2026-11-01T10:00:05|2026-11-01T10:10:05|600|COMPLETED|"
    report, _ = settle_rows(tmp_path, to_attempts([row]))
    assert len(report.unknown) == 1
    report, units = settle_rows(tmp_path, to_attempts([row + "cpu=1,gres/gpu=2"]))
    assert len(report.debits) == 1
    assert units == 1200 * UNITS_PER_GPU_SECOND


def test_a_row_that_cannot_be_read_costs_no_other():
    good = "c|1|1|10|20|30|10|COMPLETED|gres/gpu=1|p|u|gpu|normal"
    rows, bad = parse_attempts(f"{good}\nnonsense\n{good.replace('|10|20|', '|x|20|')}\n")
    assert len(rows) == 1
    assert len(bad) == 2
    assert all(each.why for each in bad)


@pytest.mark.parametrize(
    ("state", "start", "end", "tres", "kind"),
    [
        ("RUNNING", "5", "Unknown", "gres/gpu=1", Open),
        ("COMPLETED", "5", "Unknown", "gres/gpu=1", Open),
        ("SUSPENDED", "5", "Unknown", "gres/gpu=1", Open),
        ("COMPLETED", "5", "9", "gres/shard=2", Unknown),
        ("CANCELLED by 7", "5", "9", "gres/gpu=2", Cost),
        ("COMPLETED", "5", "9", "", Unknown),
    ],
)
def test_kinds(state, start, end, tres, kind):
    (row,), _ = parse_attempts(f"c|1|1|1|{start}|{end}|4|{state}|{tres}|p|u|gpu|normal")
    assert isinstance(charge_of(row), kind)


@given(
    st.lists(
        st.tuples(st.integers(1, 5), st.integers(1, 3), st.integers(0, 9999), st.integers(0, 8)),
        max_size=20,
        unique_by=lambda row: row[:2],
    ),
    st.randoms(),
)
def test_in_any_order_and_any_number_of_rounds_the_sum_is_the_same(rows, random):
    text = [
        f"c|{job}|{job}|{submit}|10|20|{elapsed}|COMPLETED|gres/gpu={gpus}|p|u|gpu|normal"
        for job, submit, elapsed, gpus in rows
    ]
    attempts, _ = parse_attempts("\n".join(text))
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as name:
        units = 0
        for _ in range(3):
            part = random.sample(attempts, random.randint(0, len(attempts)))
            settle_rows(Path(name), part)
        _, units = settle_rows(Path(name), attempts)
    assert units == sum(elapsed * gpus for *_, elapsed, gpus in rows) * UNITS_PER_GPU_SECOND


def test_a_job_that_failed_at_its_start_costs_nothing_for_sure():
    (row,), _ = parse_attempts("c|1|1|1|5|5|0|FAILED||p|u|gpu|normal")
    assert charge_of(row) == Cost(0, 0)
