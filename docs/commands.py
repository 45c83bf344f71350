"""Writes docs/commands.md from the commands' own --help. Run: python docs/commands.py."""

from __future__ import annotations

from pathlib import Path

import click

from yolo_slurm.cli.main import group
from yolo_slurm.cli.sbatch import sbatch
from yolo_slurm.train.cli import group as train

HEAD = """# Commands

Written by `python docs/commands.py` from each command's own `--help`.
"""


def sections(command: click.Command, name: str, parent: click.Context | None = None) -> list[str]:
    """Return the help of *command* and of all commands below it, as Markdown."""
    settings = {**command.context_settings, "terminal_width": 88, "max_content_width": 88}
    context = click.Context(command, info_name=name, parent=parent, **settings)
    title = f"## `{context.command_path}`"
    text = command.get_help(context).rstrip()
    found = [f"{title}\n\n```\n{text}\n```\n"]
    if isinstance(command, click.Group):
        for each in command.list_commands(context):
            below = command.get_command(context, each)
            if below is not None:
                found.extend(sections(below, each, context))
    return found


def render() -> str:
    """Return docs/commands.md."""
    roots = ((sbatch, "yolo-sbatch"), (group, "yolo-slurm"), (train, "yolo-train"))
    return "\n".join([HEAD, *(part for command, name in roots for part in sections(command, name))])


if __name__ == "__main__":
    Path(__file__).with_suffix(".md").write_text(render())
