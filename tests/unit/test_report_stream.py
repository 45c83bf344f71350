"""sacct's rows one by one, while it prints them; and the report's forms of output."""

from __future__ import annotations

import csv
import io
import json
import time

import pytest

from yolo_slurm.errors import InputError
from yolo_slurm.report import present
from yolo_slurm.report.aggregate import By, Groups, Question, Sum
from yolo_slurm.report.ask import parse_by, parse_names
from yolo_slurm.report.usage import Usage
from yolo_slurm.report.window import Window
from yolo_slurm.slurm import gateway
from yolo_slurm.slurm.client import Attempt, BadRow
from yolo_slurm.slurm.commands import CommandJobs

ROW = "c|7|7|100|110|170|60|COMPLETED|gres/gpu=1|vision|alice|gpu"


def sacct(tmp_path, monkeypatch, script: str) -> None:
    """Put a sacct into PATH that prints what a real one printed, or fails as it did."""
    program = tmp_path / "sacct"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")


def test_a_row_comes_before_sacct_has_ended(tmp_path, monkeypatch):
    sacct(tmp_path, monkeypatch, f"echo '{ROW}'; exec sleep 30")
    started = time.monotonic()
    rows = CommandJobs().stream(since=0)
    first = next(rows)
    rows.close()  # takes no more: sacct is ended, not waited for
    assert time.monotonic() - started < 10
    assert isinstance(first, Attempt)
    assert (first.key, first.account, first.user, first.qos) == (
        ("c", 7, 100),
        "vision",
        "alice",
        "",
    )


def test_one_bad_row_costs_no_other(tmp_path, monkeypatch):
    sacct(tmp_path, monkeypatch, f"echo '{ROW}'; echo 'a|b'; echo; printf '%s' '{ROW}'")
    kinds = [type(row) for row in CommandJobs().stream(since=0)]
    assert kinds == [Attempt, BadRow, Attempt]


def test_a_failure_is_told_after_the_last_row(tmp_path, monkeypatch):
    sacct(tmp_path, monkeypatch, f"echo '{ROW}'; echo 'sacct: error: no slurmdbd' >&2; exit 1")
    rows = CommandJobs().stream(since=0)
    assert isinstance(next(rows), Attempt)
    with pytest.raises(gateway.CommandError, match=r"exit code 1\): sacct: error: no slurmdbd"):
        next(rows)


def test_a_command_that_does_not_end_is_killed(tmp_path):
    with pytest.raises(gateway.CommandTimeoutError, match=r"sleep did not answer within 0\.2 s"):
        list(gateway.lines(["sleep", "60"], timeout=0.2))
    with pytest.raises(gateway.CommandMissingError):
        list(gateway.lines([str(tmp_path / "none")], timeout=1))


# --- output -----------------------------------------------------------------

USAGE = Usage(
    Question(Window(0, 10), (By.PROJECT, By.TYPE)),
    Groups(
        {
            ("vision", "t4"): Sum(3601, attempts=2, jobs=1, running=1),
            ("vision", "a100"): Sum(7200, attempts=1, jobs=1),
            ("nlp, old", "unknown"): Sum(0, attempts=1, jobs=1, unknown=1),
        },
        Sum(10801, attempts=4, jobs=3, running=1, unknown=1),
    ),
    2,
    (),
)


def test_json_has_integers_and_decimal_strings():
    objects = json.loads(json.dumps(present.as_objects(USAGE)))
    assert objects[2] == {
        "project": "vision", "type": "t4", "jobs": 1, "attempts": 2, "running": 1,
        "unknown_attempts": 0, "gpu_seconds": 3601, "gpu_hours": "1.000277778",
        "tokens": "1.000277778",
    }  # fmt: skip


def test_csv_says_the_same():
    rows = list(csv.DictReader(io.StringIO(present.as_csv(USAGE))))
    expected = [{k: str(v) for k, v in each.items()} for each in present.as_objects(USAGE)]
    assert rows == expected


def test_a_table_ends_with_the_total():
    heads, rows = present.as_table(USAGE)
    assert heads == ["project", "type", "jobs", "attempts", "GPU-hours", "tokens"]
    assert rows[1] == ["vision", "a100", "1", "1", "2.0000", "2.0000"]
    assert rows[-1] == ["total", "", "3", "4", "3.0003", "3.0003"]


def test_what_the_numbers_do_not_say_is_said():
    running, unknown, unreadable = present.remarks(USAGE)
    assert running == "1 attempt still running, counted up to now"
    assert unknown.startswith("1 attempt of unknown cost")
    assert unreadable == "2 rows of sacct could not be read and are left out"


def test_lists_may_be_repeated_or_have_commas():
    assert parse_by(()) == (By.PROJECT, By.USER)
    assert parse_by(("day,type", "day", "user")) == (By.DAY, By.TYPE, By.USER)
    assert parse_names(("a, b", "a"), "--project") == ("a", "b")
    with pytest.raises(InputError, match="--by week: expected one or more of project, user"):
        parse_by(("week",))
    with pytest.raises(InputError, match="--user 'a,,b': a name is empty"):
        parse_names(("a,,b",), "--user")
