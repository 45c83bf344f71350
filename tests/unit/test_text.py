"""Parsers of Slurm's text, on inputs that other tools got wrong."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yolo_slurm.errors import InputError
from yolo_slurm.slurm.text import (
    Limit,
    count_array_tasks,
    parse_elapsed,
    parse_epoch,
    parse_job_id,
    parse_sbatch,
    parse_time_limit,
    parse_tres,
)


def test_tres(tres_case):
    found = parse_tres(tres_case["text"])
    assert found.total == tres_case["gpus"]
    assert found.by_type == tres_case["by_type"]
    assert found.shards == tres_case.get("shards", 0)
    if tres_case.get("per") == "node":
        assert found.per_node


def test_time_limits(cases):
    for case in cases("times")["limit"]:
        if case.get("error"):
            with pytest.raises(InputError):
                parse_time_limit(case["text"])
        else:
            found = parse_time_limit(case["text"])
            assert (found.value if isinstance(found, Limit) else found) == case["seconds"], case


def test_elapsed_times(cases):
    for case in cases("times")["elapsed"]:
        assert parse_elapsed(case["text"]) == case["seconds"], case


def test_job_ids(job_ids_case):
    case = job_ids_case
    if case.get("error"):
        with pytest.raises(InputError):
            parse_job_id(case["text"])
        return
    found = parse_job_id(case["text"])
    assert (found.job, found.tasks, found.task, found.het, found.step) == (
        case["job"],
        case["tasks"],
        case.get("task"),
        case.get("het"),
        case.get("step"),
    )


def test_sbatch_output(sbatch_output_case):
    case = sbatch_output_case
    if case.get("error"):
        with pytest.raises(InputError):
            parse_sbatch(case["stdout"])
        return
    found = parse_sbatch(case["stdout"])
    assert (found.job, found.cluster) == (case["job"], case.get("cluster"))


@pytest.mark.parametrize("text", ["2026-11-01T10:00:00", "-1", "1e9", "٤", "12 "])
def test_a_time_that_is_not_in_epoch_seconds_is_an_error(text):
    with pytest.raises(InputError):
        parse_epoch(text)


@pytest.mark.parametrize("text", ["3-1", "1-9:0", "1,", "a", "1-2%", "1-2%x", "0-99999999999"])
def test_an_array_that_is_none_is_an_error(text):
    with pytest.raises(InputError):
        count_array_tasks(text)


def test_an_array_counts_a_task_that_is_named_twice_once():
    assert count_array_tasks("1-5,3,5-6") == 6


@given(st.integers(0, 400), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_a_limit_of_days_reads_back(days, hours, minutes, seconds):
    wanted = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    assert parse_time_limit(f"{days}-{hours}:{minutes:02}:{seconds:02}") == wanted
    assert parse_elapsed(f"{days}-{hours:02}:{minutes:02}:{seconds:02}") == wanted


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text):
    for parse in (parse_time_limit, parse_job_id, parse_sbatch, parse_epoch, count_array_tasks):
        with suppress(InputError):
            parse(text)
    parse_tres(text)
    parse_elapsed(text)


@given(
    st.dictionaries(
        st.from_regex(r"[a-z][a-z0-9_.]{0,8}", fullmatch=True), st.integers(0, 99), max_size=4
    ),
    st.integers(0, 99),
)
def test_typed_and_untyped_gpus_are_never_added(types, extra):
    total = sum(types.values())
    parts = [f"gres/gpu:{kind}={count}" for kind, count in types.items()]
    text = ",".join(["cpu=1", *parts, f"gres/gpu={total + extra}"])
    assert parse_tres(text).total == total + extra
