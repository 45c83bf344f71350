"""My projects, my jobs, what to do next."""

from __future__ import annotations

from collections.abc import Sequence

from yolo_slurm.report.balance import Available
from yolo_slurm.slurm.client import QueuedJob

_NO_TOKENS = ("AssocGrpGRESMinutes", "AssocGrpBillingMinutes", "AssocGrpGRES")


def live(jobs: Sequence[QueuedJob]) -> list[QueuedJob]:
    """Return the jobs that run or wait, the running ones first."""
    kept = [job for job in jobs if job.running or job.state == "PENDING"]
    return sorted(kept, key=lambda job: (not job.running, job.key.job_id))


def advice(projects: Sequence[Available], jobs: Sequence[QueuedJob]) -> list[str]:
    """Return what the user could do now, a line each."""
    lines: list[str] = []
    if not projects:
        lines.append(
            "You are in no project: ask an administrator to add you to one "
            "(sacctmgr add user NAME account=PROJECT)."
        )
    starved = sorted({job.account for job in jobs if job.reason in _NO_TOKENS})
    lines.extend(
        f"Jobs of {project} wait for tokens: they start when running jobs give some back, "
        "or when an administrator grants more (yolo-slurm budget grant)."
        for project in starved
    )
    empty = [each.project for each in projects if each.available == 0]
    lines.extend(
        f"{project} has no token left: ask an administrator for a grant."
        for project in empty
        if project not in starved
    )
    if projects and not jobs:
        lines.append("Submit a job: yolo-sbatch --tokens 1 --gpus 1 job.sh")
    if any(job.running for job in jobs):
        lines.append("What it costs so far: yolo-slurm usage")
    return lines
