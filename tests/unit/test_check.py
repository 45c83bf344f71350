"""What can never start is refused, what must wait is told."""

from __future__ import annotations

from yolo_slurm.policy import Policy
from yolo_slurm.slurm.client import Association, Associations, TresMinutes
from yolo_slurm.submit.check import judge
from yolo_slurm.submit.options import parse
from yolo_slurm.submit.plan import OWN_OPTIONS
from yolo_slurm.submit.prepare import TemplateOptions, prepare


def plan(*words: str):
    command = parse(words, OWN_OPTIONS)
    return prepare(command, TemplateOptions(), Policy(), {}, lambda: b"#!/bin/sh\n").plan


def held(
    limit: int | None = None, used: int = 0, running: int = 0, parent: int | None = None, cap=None
):
    def record(account, user, above, most, used=0, running=0):
        minutes = TresMinutes(most, used, running)
        return Association("c", account, user, above, {"gres/gpu": minutes})

    return Associations(
        (
            record("root", "", "", None),
            record("lab", "", "root", parent),
            record("demo", "", "lab", limit, used, running),
            record("demo", "ann", "", cap),
        ),
        "demo",
    )


def test_no_limit_is_no_obstacle():
    verdict = judge(plan("--gpus=8", "-t", "9999"), held(), "ann")
    assert (verdict.refusal, verdict.notes) == (None, ())
    assert verdict.default_project == "demo"


def test_what_fits_exactly_is_submitted():
    assert judge(plan("--gpus=2", "-t", "30"), held(limit=100, used=40), "ann").refusal is None


def test_one_minute_more_can_never_start():
    verdict = judge(plan("--gpus=2", "-t", "31"), held(limit=100, used=40), "ann")
    assert verdict.refusal is not None
    for word in ("demo", "1 token available", "1.0333 tokens", "--time 30"):
        assert word in verdict.refusal


def test_what_running_jobs_may_give_back_is_waited_for():
    verdict = judge(plan("--gpus=1", "-t", "60"), held(limit=100, running=50), "ann")
    assert verdict.refusal is None
    assert "it will wait" in verdict.notes[0]


def test_the_limit_of_an_account_above_counts():
    verdict = judge(plan("--gpus=1", "-t", "60"), held(limit=100, parent=30), "ann")
    assert verdict.refusal is not None
    assert "lab" in verdict.refusal


def test_the_users_own_cap_counts():
    verdict = judge(plan("--gpus=1", "-t", "60"), held(cap=30), "ann")
    assert verdict.refusal is not None
    assert "cap of ann" in verdict.refusal
    assert judge(plan("--gpus=1", "-t", "60"), held(cap=30), "bob").refusal is None


def test_an_array_starts_as_far_as_it_fits():
    verdict = judge(plan("--gpus=1", "-t", "60", "-a", "1-9"), held(limit=150), "ann")
    assert verdict.refusal is None
    assert "enough for 2 tasks" in verdict.notes[0]


def test_het_components_need_their_tokens_together():
    words = ("--gpus=1", "-t", "60", ":", "--gpus=1", "-t", "60")
    assert judge(plan(*words), held(limit=119), "ann").refusal is not None
    assert judge(plan(*words), held(limit=120), "ann").refusal is None


def test_a_project_that_slurmctld_does_not_know_is_left_to_sbatch():
    assert judge(plan("-A", "other", "--gpus=1", "-t", "60"), held(limit=0), "ann").refusal is None
