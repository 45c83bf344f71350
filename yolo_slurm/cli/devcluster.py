"""``yolo-slurm devcluster``: a private real Slurm on this host."""

from __future__ import annotations

import functools
import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from yolo_slurm.devcluster import layout as layouts
from yolo_slurm.devcluster import session
from yolo_slurm.devcluster.daemons import command_environment
from yolo_slurm.devcluster.layout import Layout, Spec
from yolo_slurm.devcluster.status import status as status_of
from yolo_slurm.errors import YoloSlurmError

_F = TypeVar("_F", bound=Callable[..., Any])


class CommandNotFoundError(YoloSlurmError):
    """What `run` was to run does not exist."""

    exit_code = 127  # as env, nice and timeout have it


def _cluster_options(command: _F) -> _F:
    """The options that say what to bring up, gathered into a :class:`Spec`."""

    @click.option(
        "--nodes",
        default=layouts.DEFAULT_NODES,
        show_default=True,
        metavar="TYPE:GPUSxNODES,…",
        help="GPU type, GPUs in a node, nodes.",
    )
    @click.option(
        "--projects",
        default=layouts.DEFAULT_PROJECTS,
        show_default=True,
        help="Slurm accounts; the first is each user's default.",
    )
    @click.option(
        "--users",
        default=layouts.DEFAULT_USERS,
        show_default=True,
        help="Users of this host who may submit, in every project.",
    )
    @click.option(
        "--slurm-conf",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Lines to add to slurm.conf; a key set there replaces ours.",
    )
    @click.option("--no-hooks", is_flag=True, help="Leave Prolog- and EpilogSlurmctld out.")
    @click.option("--no-service", is_flag=True, help="Start no settler.")
    @functools.wraps(command)
    def gathered(
        nodes: str,
        projects: str,
        users: str,
        slurm_conf: Path | None,
        no_hooks: bool,
        no_service: bool,
        **rest: Any,
    ) -> Any:
        spec = Spec(
            groups=layouts.parse_nodes(nodes),
            projects=layouts.parse_names(projects, "--projects"),
            users=layouts.parse_names(users, "--users"),
            slurm_conf=layouts.read_lines(slurm_conf) if slurm_conf else "",
            hooks=not no_hooks,
            service=not no_service,
        )
        return command(spec=spec, **rest)

    return gathered  # type: ignore[return-value]


_directory = click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path),
    default=layouts.DEFAULT_DIRECTORY,
    show_default=True,
    help="The cluster's directory.",
)


@click.group()
def devcluster() -> None:
    """A private real Slurm on this host, with fake GPUs."""


@devcluster.command()
@_directory
@_cluster_options
@click.option("--export", is_flag=True, help="Print only lines for `eval`.")
@click.option("--json", "as_json", is_flag=True, help="Print the cluster's status as JSON.")
def up(directory: Path, spec: Spec, export: bool, as_json: bool) -> None:
    """Start a cluster that stays until `down`."""
    layout = layouts.parse_directory(directory)

    def ready() -> None:
        if as_json:
            click.echo(json.dumps(status_of(layout), indent=2))
        else:
            click.echo(_exports(layout))
        if not export and not as_json:
            click.echo(f"# take it down: yolo-slurm devcluster down --dir {layout.root}")

    session.up(layout, spec, _progress, ready)


@devcluster.command()
@_directory
@click.option("--keep", is_flag=True, help="Leave the directory, with its logs.")
def down(directory: Path, keep: bool) -> None:
    """Take a cluster down, or what a crash left of it, and remove its directory."""
    layout = layouts.parse_directory(directory)
    if not session.down(layout, keep=keep):
        click.echo(f"nothing runs in {layout.root}")


@devcluster.command()
@_directory
@click.option("--json", "as_json", is_flag=True)
def status(directory: Path, as_json: bool) -> None:
    """Tell which daemons run, and the nodes' states."""
    layout = layouts.parse_directory(directory)
    report = status_of(layout)
    if as_json:
        click.echo(json.dumps(report, indent=2))
    elif not report["running"]:
        click.echo(f"nothing runs in {layout.root}")
    else:
        click.echo(f"cluster {report['cluster']} in {layout.root}")
        for daemon in report["daemons"]:
            click.echo(f"{daemon['name']:<12} {daemon['pid'] if daemon['alive'] else 'dead'}")
        for node in report["nodes"]:
            click.echo(f"{node['name']:<12} {node['state']:<10} {node['gres']}")


@devcluster.command(context_settings={"ignore_unknown_options": True})
@click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path),
    help="Default: a new one. Removed at the end.",
)
@click.option("--keep", is_flag=True, help="Leave the directory, with its logs.")
@_cluster_options
@click.argument("argv", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- CMD…")
def run(directory: Path | None, keep: bool, spec: Spec, argv: tuple[str, ...]) -> None:
    """Run a command in a cluster of its own and exit with its code."""
    raise SystemExit(_run(directory, keep, spec, argv))


@devcluster.command()
@_directory
@_cluster_options
def shell(directory: Path, spec: Spec) -> None:
    """Open a shell in the cluster that runs in --dir, or else in one of its own."""
    layout = layouts.parse_directory(directory)
    argv = (os.environ.get("SHELL", "/bin/sh"),)
    if status_of(layout)["ready"]:
        os.execvpe(argv[0], argv, command_environment(layout, os.environ))  # noqa: S606
    raise SystemExit(_run(None, False, spec, argv))


def _run(directory: Path | None, keep: bool, spec: Spec, argv: tuple[str, ...]) -> int:
    if shutil.which(argv[0]) is None:
        raise CommandNotFoundError(f"{argv[0]}: no such command")
    layout = layouts.parse_directory(directory) if directory else None
    return session.run(layout, spec, argv, _progress, keep=keep)


def _exports(layout: Layout) -> str:
    return "\n".join(
        f"export {name}={shlex.quote(value)}" for name, value in layout.environment().items()
    )


def _progress(step: str) -> None:
    """Show each step in the same line, on a terminal only; an empty one wipes it."""
    if sys.stderr.isatty():
        click.echo("\r\033[K" + (f"starting: {step}" if step else ""), err=True, nl=False)
