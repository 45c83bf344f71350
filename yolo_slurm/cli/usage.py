"""``yolo-slurm usage``: what was used, by project, user, GPU type, day, month or state."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path

import click

from yolo_slurm.cli.table import table
from yolo_slurm.report import place as places
from yolo_slurm.report import present
from yolo_slurm.report.aggregate import By, Question
from yolo_slurm.report.ask import parse_by, parse_names
from yolo_slurm.report.place import Place
from yolo_slurm.report.usage import Reader, Usage
from yolo_slurm.report.window import local_zone, parse_window
from yolo_slurm.slurm.commands import CommandJobs


@click.command()
@click.option(
    "--by",
    multiple=True,
    metavar="|".join(By) + ",…",
    help="What to sum by; may be repeated. Default: project,user.",
)
@click.option(
    "--since",
    metavar="DATE|Nd",
    help="From this local day or time on, or from midnight N days ago. Default: 30d.",
)
@click.option(
    "--until", metavar="DATE|Nd", help="To the end of this local day, or this time. Default: now."
)
@click.option("--project", multiple=True, metavar="P,…", help="Only these projects.")
@click.option("--user", multiple=True, metavar="U,…", help="Only these users.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV, without totals.")
@click.option("--json", "as_json", is_flag=True, help="Print a list of JSON objects.")
@click.option("--no-cache", is_flag=True, help="Ask sacct for everything, keep nothing.")
@click.option("--refresh", is_flag=True, help="Throw the cache away and fill it anew.")
def usage(
    by: tuple[str, ...],
    since: str | None,
    until: str | None,
    project: tuple[str, ...],
    user: tuple[str, ...],
    as_csv: bool,
    as_json: bool,
    no_cache: bool,
    refresh: bool,
) -> None:
    """Show jobs, GPU-hours and tokens of the last 30 days, from sacct alone.

    Every attempt that ran is charged by its own row of `sacct -D -X`: elapsed
    seconds × GPUs, at 1 token per GPU-hour. One that spans days or months is
    shared out among them. What sacct shows you is what is counted.

    \b
      yolo-slurm usage
      yolo-slurm usage --by type,day --since 7d
      yolo-slurm usage --by user --since 2026-11-01 --until 2026-11-30 --csv

    The rows are kept in ~/.cache/yolo-slurm, and the next report asks sacct
    only for what is new.
    """
    if as_csv and as_json:
        raise click.UsageError("--csv and --json exclude each other")
    now = int(time.time())
    tz, note = local_zone(os.environ, Path("/etc/localtime"))
    question = Question(
        parse_window(since, until, now=now, tz=tz),
        parse_by(by),
        parse_names(project, "--project"),
        parse_names(user, "--user"),
    )
    where = Place(None) if no_cache else _place()
    progress = _progress if sys.stderr.isatty() else _quiet
    found = Reader(CommandJobs(), where, now, tz, progress, refresh).usage(question)
    if sys.stderr.isatty():
        click.echo("\r\033[K", err=True, nl=False)
    for line in [*([note] if note else []), *found.notes]:
        click.echo(f"yolo-slurm: {line}", err=True)
    _print(found, as_csv=as_csv, as_json=as_json)


def _print(found: Usage, *, as_csv: bool, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(present.as_objects(found)))
    elif as_csv:
        click.echo(present.as_csv(found), nl=False)
    elif not found.groups.rows:
        click.echo("no attempt ran in this time")
    else:
        heads, rows = present.as_table(found)
        click.echo(table(heads, rows, numbers=range(len(found.question.by), len(heads))))
    for line in present.remarks(found):
        click.echo(f"yolo-slurm: {line}", err=as_csv or as_json or not found.groups.rows)


def _place() -> Place:
    uid = os.getuid()
    name = places.identity(os.environ)
    return places.place(os.environ, uid, name, Path(tempfile.gettempdir()))


def _progress(rows: int) -> None:
    click.echo(f"\r\033[Kreading sacct: {rows} rows", err=True, nl=False)


def _quiet(_rows: int) -> None:
    """Say nothing: nobody watches."""
