"""Limits that converge: GrpTRESMins on a project's association says what its books say.

slurmctld lets a job start if used + running + request ≤ limit, so for each
managed project, in GPU-minutes: limit := U + R + ⌊balance − W − S⌋, never
below 0. U is the usage that slurmctld holds, R what running jobs may still
use, W the whole worst case of running attempts, S what has ended and is not
settled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from yolo_slurm.slurm.client import GPU, AttemptKey, Jobs, Limits, QueuedJob
from yolo_slurm.tokens import Units, of_gpu_seconds, to_minutes

_TRIES: Final = 5


@dataclass(frozen=True, slots=True)
class Standing:
    """One project at one moment: what its books hold, and what running work could still cost."""

    project: str
    balance: Units
    reserved: Units  # W
    unsettled: Units  # S
    held: int  # U + R, minutes
    limit: int | None  # as slurmctld has it, minutes
    cluster: str

    @property
    def available(self) -> Units:
        """balance − reservation − ended but unsettled."""
        return Units(self.balance - self.reserved - self.unsettled)

    @property
    def wanted(self) -> int:
        """The limit that it should have, in minutes."""
        return max(0, self.held + to_minutes(self.available))


@dataclass(frozen=True, slots=True)
class LimitChange:
    """A limit that was set, in minutes; before is None where there was none."""

    project: str
    before: int | None
    after: int


def reserved_of(jobs: Sequence[QueuedJob], project: str) -> Units:
    """Return what the running attempts of *project* cost from their start to their time limit.

    A job without a limit is counted to this moment's end of its limitless
    run: nothing; slurmctld does not start one under a limit.
    """
    return Units(
        sum(
            of_gpu_seconds((job.gpus.total or 0) * (job.limit or 0))
            for job in jobs
            if job.account == project and job.running
        )
    )


def unsettled_of(
    jobs: Sequence[QueuedJob], project: str, settled: Callable[[AttemptKey], bool]
) -> Units:
    """Return what attempts of *project* cost that slurmctld saw end and the books do not have."""
    return Units(
        sum(
            of_gpu_seconds((job.gpus.total or 0) * max(0, job.end - job.start))
            for job in jobs
            if job.account == project
            and not job.running
            and job.state != "PENDING"
            and job.start is not None
            and job.end is not None
            and not settled(job.key)
        )
    )


def survey(
    jobs: Jobs,
    limits: Limits,
    balances: Callable[[], Mapping[str, Units]],
    settled: Callable[[set[AttemptKey]], set[AttemptKey]],
) -> list[Standing]:
    """Return the standing of each managed project that slurmctld knows.

    The reads are not atomic: usage, jobs, books, usage again; where usage
    moved meanwhile all is read again, a few times. Raises UnavailableError.
    """
    before = limits.associations()
    standings: list[Standing] = []
    for _ in range(_TRIES):
        queue = jobs.queued()
        books = balances()
        ended = {job.key for job in queue if not job.running and job.start is not None}
        in_books = settled(ended)
        after = limits.associations()
        standings = []
        moved = False
        for project, balance in sorted(books.items()):
            record, earlier = after.of_account(project), before.of_account(project)
            if record is None or earlier is None:
                continue
            minutes = record.minutes(GPU)
            moved = moved or minutes.held != earlier.minutes(GPU).held
            standings.append(
                Standing(
                    project,
                    balance,
                    reserved_of(queue, project),
                    unsettled_of(queue, project, in_books.__contains__),
                    minutes.held,
                    minutes.limit,
                    record.cluster,
                )
            )
        if not moved:
            break
        before = after
    return standings


def converge(
    standings: Sequence[Standing], limits: Limits, *, may_raise: bool = True
) -> list[LimitChange]:
    """Set the limits that differ from what they should be; write nothing else.

    may_raise: False while an attempt has ended whose cost is not known yet.
    """
    changes: list[LimitChange] = []
    for standing in standings:
        raises = standing.limit is not None and standing.wanted > standing.limit
        if standing.wanted == standing.limit or (raises and not may_raise):
            continue
        limits.set_minutes(standing.project, GPU, standing.wanted, cluster=standing.cluster)
        changes.append(LimitChange(standing.project, standing.limit, standing.wanted))
    return changes
