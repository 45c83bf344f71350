"""``yolo-slurm``: the command group. A subcommand is imported when it is called."""

from __future__ import annotations

import importlib
import os
from typing import Final

import click

from yolo_slurm import __version__
from yolo_slurm.errors import UnavailableError, YoloSlurmError

# name -> (module:attribute, one line for the list of commands)
_COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "balance": ("yolo_slurm.cli.balance:balance", "Tokens that projects have available now."),
    "budget": ("yolo_slurm.cli.budget:budget", "Grants, statements and history of projects."),
    "devcluster": (
        "yolo_slurm.cli.devcluster:devcluster",
        "A private real Slurm on this host, with fake GPUs.",
    ),
    "service": ("yolo_slurm.cli.service:service", "The process on the controller."),
    "settle": ("yolo_slurm.cli.service:settle", "Settle once: debits, then limits."),
    "usage": ("yolo_slurm.cli.usage:usage", "Jobs, GPU-hours and tokens, from sacct alone."),
}


class LazyGroup(click.Group):
    """A group whose commands are imported on use, so that each starts fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, _, attribute = _COMMANDS[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)  # noqa: S101
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, _COMMANDS[name][1]) for name in self.list_commands(ctx)])


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option("--json", "as_json", is_flag=True, help="Without a command: print JSON.")
@click.version_option(__version__, prog_name="yolo-slurm")
@click.pass_context
def group(ctx: click.Context, as_json: bool) -> None:
    """GPU time as a currency on Slurm: one token is one GPU-hour.

    Without a command: my projects, my jobs, what to do next.
    """
    if ctx.invoked_subcommand is None:
        from yolo_slurm.cli.balance import overview

        overview(as_json)


def main() -> None:
    """Run ``yolo-slurm``; an error of ours is one line and its exit code."""
    run(group, "yolo-slurm")


def run(command: click.Command, name: str) -> None:
    """Run *command* as the program *name* and exit with its code."""
    try:
        command(prog_name=name)
    except YoloSlurmError as error:
        click.echo(f"{name}: {error}", err=True)
        raise SystemExit(error.exit_code) from None
    except OSError as error:
        drop_output()
        where = f"{error.filename}: " if error.filename else "output: "
        click.echo(f"{name}: {where}{error.strerror or error}", err=True)
        raise SystemExit(UnavailableError.exit_code) from None


def drop_output() -> None:
    """Let nothing more be written to stdout, which failed: Python would try again at its exit."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)
