"""``yolo-slurm budget``: grants, statements and history, for an administrator."""

from __future__ import annotations

import json

import click

from yolo_slurm.cli.table import table
from yolo_slurm.errors import InputError
from yolo_slurm.service import counter
from yolo_slurm.service.books import open_controller
from yolo_slurm.service.present import entry_json, statement_json
from yolo_slurm.tokens import format_tokens, say_tokens


@click.group()
def budget() -> None:
    """What projects were given and what they spent. On the controller, as root or SlurmUser."""


@budget.command()
@click.argument("project")
@click.argument("tokens")
@click.option("--reason", required=True, help="What the tokens are for; kept with the entry.")
@click.option("--json", "as_json", is_flag=True, help="Print the grant as one JSON object.")
def grant(project: str, tokens: str, reason: str, as_json: bool) -> None:
    """Give TOKENS (GPU-hours) to PROJECT, a Slurm account.

    The project's limit in Slurm (GrpTRESMins) follows at once, and is read
    back.

    \b
      yolo-slurm budget grant demo 100 --reason "first quarter"
    """
    given = counter.give(open_controller(), project, tokens, reason)
    if as_json:
        click.echo(
            json.dumps(
                {
                    "entry": given.entry,
                    "project": project,
                    "tokens": format_tokens(given.units),
                    "units": str(given.units),
                    "limit_minutes": given.limit,
                    "problem": given.problem,
                }
            )
        )
    else:
        limit = ""
        if given.limit is not None:
            limit = f"; its limit in Slurm is {given.limit} GPU-minutes"
        elif not given.problem:
            limit = "; the policy's mode is observe, so no limit is set"
        click.echo(
            f"granted {say_tokens(given.units, 8)} to {project} (entry {given.entry}){limit}"
        )
    if given.problem:
        click.echo(
            f"yolo-slurm: the grant is in the books, its limit in Slurm is not set yet: "
            f"{given.problem}; the service sets it later, do not grant again",
            err=True,
        )


@budget.command()
@click.argument("project", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print a list of JSON objects.")
def show(project: str | None, as_json: bool) -> None:
    """Show the balance of PROJECT, or of every project that has entries.

    available = balance − reserved (what running jobs could cost) − unsettled
    (what ended and is not in the books yet).
    """
    statements = [statement_json(each) for each in counter.show(open_controller(), project)]
    if as_json:
        click.echo(json.dumps(statements))
        return
    heads = ("granted", "adjusted", "debited", "balance", "reserved", "unsettled", "available")
    rows = [
        [each["project"], *("?" if each[head] is None else _short(each[head]) for head in heads)]
        for each in statements
    ]
    if not rows:
        click.echo("no project has entries yet; give one some: yolo-slurm budget grant")
        return
    click.echo(table(("project", *heads), rows, numbers=range(1, 8)))
    for each in statements:
        if not each["managed"]:
            click.echo(f"{each['project']}: never granted anything, so nothing limits it")
        elif each["available"] is None:
            click.echo(f"{each['project']}: slurmctld did not tell what is reserved", err=True)
        if each["unknown_attempts"]:
            click.echo(
                f"{each['project']}: {each['unknown_attempts']} attempts ended whose cost is "
                "unknown; they are not charged"
            )


def _short(tokens: str) -> str:
    whole, point, rest = tokens.partition(".")
    return f"{whole}{point}{rest[:4]}".rstrip(".")


@budget.command()
@click.argument("project", required=False)
@click.option("--all", "everything", is_flag=True, help="The entries of every project.")
@click.option("--json", "as_json", is_flag=True, help="Print a list of JSON objects.")
def history(project: str | None, everything: bool, as_json: bool) -> None:
    """List the entries of PROJECT, oldest first: grants, and one debit for each attempt."""
    if (project is None) is not everything:
        raise InputError("budget history: name a PROJECT, or give --all")
    entries = [entry_json(each) for each in counter.history(open_controller(), project)]
    if as_json:
        click.echo(json.dumps(entries))
        return
    rows = [
        [
            str(each["id"]),
            each["at"],
            each["project"],
            each["kind"],
            each["tokens"],
            each["attempt"]["job"] if each["attempt"] else "",
            each["by"],
            each["reason"],
        ]
        for each in entries
    ]
    click.echo(
        table(
            ("id", "at", "project", "kind", "tokens", "job", "by", "reason"), rows, numbers=(0, 4)
        )
    )
