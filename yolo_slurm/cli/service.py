"""``yolo-slurm service`` and ``yolo-slurm settle``."""

from __future__ import annotations

import json

import click

from yolo_slurm.service.books import open_controller
from yolo_slurm.service.loop import describe, one_round, run_forever
from yolo_slurm.tokens import format_tokens


@click.group()
def service() -> None:
    """The process on the controller that keeps the books."""


@service.command()
def run() -> None:
    """Settle for ever; stop with SIGTERM.

    Runs as SlurmUser on the controller (root becomes the ledger's owner).
    Logs to stderr, one line for each debit and each limit that it sets.
    """
    run_forever(open_controller())


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print the round as one JSON object.")
def settle(as_json: bool) -> None:
    """Settle once: what the hook left, then the limits. For cron, or by hand."""
    report = one_round(open_controller())
    if as_json:
        debits = [
            {
                "project": attempt.account,
                "job": attempt.job,
                "state": attempt.state,
                "tokens": format_tokens(-units),
                "units": str(-units),
            }
            for attempt, units in report.debits
        ]
        limits = [
            {"project": each.project, "before": each.before, "after": each.after}
            for each in report.changes
        ]
        click.echo(
            json.dumps(
                {
                    "debits": debits,
                    "limits": limits,
                    "unknown": [attempt.job for attempt, _ in report.unknown],
                    "bad_rows": len(report.bad_rows),
                    "waiting": report.waiting,
                }
            )
        )
        return
    for line in describe(report):
        click.echo(line)
    click.echo(
        f"{len(report.debits)} debits, {len(report.changes)} limits set, "
        f"{report.waiting} ends not in sacct yet"
    )
