"""Plan -> job id: the one step that touches the world."""

from __future__ import annotations

import msgspec

from yolo_slurm.errors import RefusedError, StoppedError
from yolo_slurm.slurm.client import Limits
from yolo_slurm.slurm.submission import Sent, StopSignal, Submission
from yolo_slurm.submit.check import judge
from yolo_slurm.submit.plan import Plan


class Outcome(msgspec.Struct, frozen=True):
    """A job that slurmctld took, what the user should know of it, and the running sbatch.

    default_project: what pays for a component that names no project, where
    slurmctld was asked.
    """

    sent: Sent
    notes: tuple[str, ...]
    default_project: str | None
    submission: Submission


def send(plan: Plan, limits: Limits, user: str, *, timeout: float) -> Outcome:
    """Check *plan* against what its project has available, and submit it once.

    slurmctld alone is asked. timeout: seconds until sbatch's answer counts as
    lost. Raises RefusedError for a job that can never start or that Slurm
    refuses, UnavailableError when slurmctld does not answer, StoppedError
    after a signal.
    """
    notes = list(plan.notes)
    project: str | None = None
    if plan.units and plan.clusters is None:
        verdict = judge(plan, limits.associations(user=user), user)
        project = verdict.default_project
        if verdict.refusal:
            raise RefusedError(f"refused: {verdict.refusal}")
        notes.extend(verdict.notes)
    submission = Submission(plan.argv, stdin=plan.script, timeout=timeout)
    try:
        sent = submission.job()
    except StopSignal as signal:
        job = submission.abandon()
        raise StoppedError(
            signal.number,
            "stopped; no job of this submission is known to slurmctld"
            if job is None
            else f"stopped, but job {job.job} was submitted: scancel {job.job} ends it",
        ) from None
    if sent.found_again:
        notes.append("sbatch's answer was lost; the job was looked up in slurmctld")
    return Outcome(sent, tuple(notes), project, submission)
