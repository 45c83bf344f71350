"""``yolo-slurm balance``, and ``yolo-slurm`` alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click

from yolo_slurm.cli.table import table
from yolo_slurm.report.balance import Available, balances
from yolo_slurm.report.mine import advice, live
from yolo_slurm.slurm.client import QueuedJob
from yolo_slurm.slurm.commands import CommandJobs, CommandLimits
from yolo_slurm.slurm.identity import user_name
from yolo_slurm.tokens import format_tokens


@click.command()
@click.argument("projects", nargs=-1, metavar="[PROJECT]...")
@click.option("--json", "as_json", is_flag=True, help="Print a list of JSON objects.")
def balance(projects: tuple[str, ...], as_json: bool) -> None:
    """Show the tokens that PROJECTs (or all of yours) have available now.

    As slurmctld holds it, so for anyone and without the ledger: what the
    limit leaves after usage and after what running jobs may still use.
    """
    user = user_name()
    found = balances(CommandLimits().associations(user=user), user, projects)
    if as_json:
        click.echo(json.dumps([_available_json(each) for each in found]))
    elif found:
        click.echo(_project_table(found))
    else:
        click.echo("you are in no project")


def overview(as_json: bool) -> None:
    """Print my projects, my jobs, and what to do next."""
    user = user_name()
    projects = balances(CommandLimits().associations(user=user), user)
    jobs = live(CommandJobs().queued(user=user))
    lines = advice(projects, jobs)
    if as_json:
        click.echo(
            json.dumps(
                {
                    "projects": [_available_json(each) for each in projects],
                    "jobs": [_job_json(job) for job in jobs],
                    "next": lines,
                }
            )
        )
        return
    parts = []
    if projects:
        parts.append(_project_table(projects))
    if jobs:
        rows = [
            (job.job, job.account, job.state, _count(job), _limit(job), job.reason, job.name)
            for job in jobs
        ]
        heads = ("job", "project", "state", "GPUs", "limit", "reason", "name")
        parts.append(table(heads, rows, numbers=(3, 4)))
    parts.extend(lines)
    click.echo("\n\n".join(parts))


def _project_table(projects: Sequence[Available]) -> str:
    rows = [
        (
            each.project + (" (default)" if each.default else ""),
            "no limit" if each.available is None else format_tokens(each.available, 4),
            format_tokens(each.running, 4),
        )
        for each in projects
    ]
    return table(("project", "available tokens", "held by running jobs"), rows, numbers=(1, 2))


def _available_json(each: Available) -> dict[str, Any]:
    return {
        "project": each.project,
        "available": None if each.available is None else format_tokens(each.available),
        "running": format_tokens(each.running),
        "default": each.default,
    }


def _count(job: QueuedJob) -> str:
    return "?" if job.gpus.total is None else str(job.gpus.total)


def _limit(job: QueuedJob) -> str:
    return "none" if job.limit is None else f"{job.limit // 60} min"


def _job_json(job: QueuedJob) -> dict[str, Any]:
    return {
        "job": job.job,
        "project": job.account,
        "state": job.state,
        "reason": job.reason,
        "gpus": job.gpus.total,
        "gpu_types": job.gpus.by_type,
        "limit_minutes": None if job.limit is None else job.limit // 60,
        "start": job.start,
        "name": job.name,
    }
