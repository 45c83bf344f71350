"""Limits say what the books say, and never none at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yolo_slurm.settle.limits import converge, survey
from yolo_slurm.slurm.client import (
    GPU,
    Association,
    Associations,
    AttemptKey,
    QueuedJob,
    TresMinutes,
)
from yolo_slurm.slurm.commands import CommandLimits, parse_associations, parse_queue
from yolo_slurm.slurm.text import Gpus
from yolo_slurm.tokens import UNITS_PER_GPU_SECOND

MINUTE = 60 * UNITS_PER_GPU_SECOND


def job(number: int, state: str, *, gpus: int = 1, limit: int | None = 600, start=100, end=None):
    return QueuedJob(
        AttemptKey("c", number, 50), str(number), "demo", "u", "gpu", "normal", state, "None",
        start, end, limit, Gpus(gpus, {}), 1, "",
    )  # fmt: skip


class Slurm:
    """slurmctld's associations and jobs, held still or moving."""

    def __init__(self, jobs, *, used=0, running=0, limit=None, moves=0):
        self.jobs = jobs
        self.used, self.running, self.limit, self.moves = used, running, limit, moves
        self.written: list[tuple[str, str, int]] = []

    def queued(self, *, user=None):
        return self.jobs

    def attempts(self, job_ids, *, since):
        return [], []

    def associations(self, *, user=None):
        if self.moves:
            self.moves -= 1
            self.used += 1
        minutes = TresMinutes(self.limit, self.used, self.running)
        records = (
            Association("c", "root", "", "", {}),
            Association("c", "demo", "", "root", {GPU: minutes}),
        )
        return Associations(records, None)

    def set_minutes(self, account, tres, minutes, *, cluster):
        assert minutes >= 0
        self.written.append((account, tres, minutes))


def stand(slurm, balance, settled=()):
    return survey(slurm, slurm, lambda: {"demo": balance}, lambda keys: keys & set(settled))


def test_a_balance_without_jobs_is_the_limit_above_usage():
    slurm = Slurm([], used=7)
    (standing,) = stand(slurm, 100 * MINUTE + 5)
    assert standing.wanted == 107
    converge([standing], slurm)
    assert slurm.written == [("demo", GPU, 107)]


def test_running_jobs_keep_their_whole_worst_case():
    slurm = Slurm([job(1, "RUNNING", gpus=2)], used=4, running=16)
    (standing,) = stand(slurm, 100 * MINUTE)
    assert standing.reserved == 20 * MINUTE
    assert standing.wanted == 100


def test_what_ended_and_is_not_in_the_books_is_held_back():
    ended = job(1, "COMPLETED", start=100, end=100 + 600)
    slurm = Slurm([ended], used=10)
    assert stand(slurm, 100 * MINUTE)[0].wanted == 100
    assert stand(slurm, 90 * MINUTE, [ended.key])[0].wanted == 100


def test_a_waiting_job_holds_nothing():
    slurm = Slurm([job(1, "PENDING", start=None)])
    assert stand(slurm, 100 * MINUTE)[0].wanted == 100


def test_usage_that_moves_meanwhile_is_read_again():
    slurm = Slurm([], moves=3)
    assert stand(slurm, 10 * MINUTE)[0].wanted == 10 + 3


def test_nothing_is_written_where_nothing_differs():
    slurm = Slurm([], used=7, limit=107)
    converge(stand(slurm, 100 * MINUTE), slurm)
    assert slurm.written == []


def test_a_limit_is_lowered_but_not_raised_while_an_end_is_unknown():
    low, high = Slurm([], limit=5), Slurm([], limit=500)
    converge(stand(low, 100 * MINUTE), low, may_raise=False)
    converge(stand(high, 100 * MINUTE), high, may_raise=False)
    assert low.written == []
    assert high.written == [("demo", GPU, 100)]


@given(
    st.integers(-(10**18), 10**18),
    st.integers(0, 10**6),
    st.integers(0, 10**6),
    st.one_of(st.none(), st.integers(0, 10**6)),
    st.integers(0, 100),
)
def test_no_balance_yields_an_unlimited_account(balance, used, running, limit, gpus):
    slurm = Slurm([job(1, "RUNNING", gpus=gpus)], used=used, running=running, limit=limit)
    converge(stand(slurm, balance), slurm)
    for _, _, minutes in slurm.written:
        assert minutes >= 0


def test_a_negative_limit_is_never_passed_to_sacctmgr():
    with pytest.raises(ValueError, match="none at all"):
        CommandLimits().set_minutes("demo", GPU, -1, cluster="c")


RECORD = (
    "ClusterName=c Account=demo UserName= Partition= Priority=0 ID=4 ParentAccount=root(1) Lft=4 "
    "DefAssoc=No GrpTRESMins=cpu=N(0),gres/gpu=10(5),gres/gpu:a100=N(5) "
    "GrpTRESRunMins=cpu=N(0),gres/gpu=N(8),gres/gpu:a100=N(8)"
)


def test_associations_as_scontrol_prints_them():
    text = (
        "Current Association Manager state\n\nUser Records\n\n"
        "UserName=alice(1001) DefAccount=demo DefWckey= AdminLevel=None\n"
        "UserName=bob(1002) DefAccount=other DefWckey= AdminLevel=None\n"
        f"Association Records\n\n{RECORD}\n"
        f"{RECORD.replace('UserName= ', 'UserName=alice(1001) ')}\n"
    )
    found = parse_associations(text, "alice")
    assert found.default_account == "demo"
    own = found.of_account("demo")
    assert own is not None
    assert own.minutes("gres/gpu") == TresMinutes(10, 5, 8)
    assert own.minutes("gres/gpu:a100").limit is None
    assert own.parent == "root"
    assert [each.user for each in found.chain("demo", "alice")] == ["alice", ""]


def test_a_queue_line_that_is_cut_is_an_error_and_a_name_with_bars_is_not():
    from yolo_slurm.errors import UnavailableError
    from yolo_slurm.slurm.commands import _QUEUE_FIELDS

    values = dict.fromkeys((name for name, _ in _QUEUE_FIELDS), "N/A")
    values |= {
        "Cluster": "c", "JobID": "8", "JobArrayID": "7_[1-3]", "SubmitTime": "5",
        "TimeLimit": "1:00:00", "State": "PENDING", "tres-alloc": "cpu=1,gres/gpu=4",
        "Name": "a|b | c",
    }  # fmt: skip
    line = "".join(f"{values[name]:<{width}}|" for name, width in _QUEUE_FIELDS)
    (found,) = parse_queue(line + "\n")
    assert (found.name, found.gpus.total, found.tasks, found.limit) == ("a|b | c", 4, 3, 3600)
    with pytest.raises(UnavailableError):
        list(parse_queue("x|y\n"))
