"""``yolo-train``: parse, call, print."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

import click

from yolo_slurm.train import report, run, sample
from yolo_slurm.train.errors import TrainError

_DEFAULT: Final = "train"
_CONTEXT: Final = {"help_option_names": ["-h", "--help"]}


class _TrainByDefault(click.Group):
    """A group in which ``yolo-train data=…`` means ``yolo-train train data=…``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in {*self.commands, *_CONTEXT["help_option_names"]}:
            args = [_DEFAULT, *args]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return ["[OPTIONS]", "[--]", "KEY=VALUE..."]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # One page tells it all: the options are those of the command that is implied.
        self.commands[_DEFAULT].format_options(ctx, formatter)
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, command.get_short_help_str(80))
                    for name, command in self.commands.items()
                    if name != _DEFAULT
                ]
            )


@click.group(cls=_TrainByDefault, context_settings=_CONTEXT)
def group() -> None:
    """Train a YOLO model inside a Slurm job, offline and on the job's GPUs.

    KEY=VALUE are ultralytics' own training arguments (data=, model=, epochs=, …). What
    you say always wins over what the settings file or yolo-train would choose.

    \b
    A first run, on a generated data set:
      yolo-train sample-data shapes
      yolo-train -- data=shapes/data.yaml model=yolov8n.yaml epochs=2 imgsz=64
    Continue a run that was interrupted:
      yolo-train -- resume=runs/detect/train/weights/last.pt
    See what would be set, and why, without training:
      yolo-train --settings job.json --explain -- model=yolov8n.yaml

    Allocator settings, threads and offline variables that are already in the
    environment (PYTORCH_CUDA_ALLOC_CONF, OMP_NUM_THREADS, YOLO_CONFIG_DIR, …) are left
    alone. Exit codes: 0 trained, 1 training failed, 2 an argument or a file is wrong.
    """


@group.command(_DEFAULT, context_settings=_CONTEXT)
@click.option(
    "--settings",
    "settings_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The job's settings, JSON, written at submission. Without it: defaults.",
)
@click.option(
    "--summary",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write what the training did as JSON, when it is done.",
)
@click.option(
    "--explain", is_flag=True, help="Print every setting, its source and effect; do not train."
)
@click.option(
    "--traceback",
    "show_traceback",
    is_flag=True,
    envvar="YOLO_TRAIN_TRACEBACK",
    help="Print the traceback of a failed training, instead of leaving it beside the results. "
    "Also YOLO_TRAIN_TRACEBACK=1.",
)
@click.argument("words", metavar="KEY=VALUE...", nargs=-1, type=click.UNPROCESSED)
def train(
    settings_file: Path | None,
    summary: Path | None,
    explain: bool,
    show_traceback: bool,
    words: tuple[str, ...],
) -> None:
    """Train (the command that is meant when none is named)."""
    started = time.monotonic()
    with run.prepared(settings_file, words, check=not explain) as job:
        for note in job.notes:
            click.echo(f"yolo-train: {note}", err=True)
        if explain:
            click.echo(run.explained(job))
            return
        if summary is not None:
            report.check_target(summary)
        result = run.train(job, started, show_traceback=show_traceback)
    click.echo(f"yolo-train: {report.line(result, Path.cwd())}")
    if summary is not None:
        report.write(result, summary)


@group.command("sample-data", context_settings=_CONTEXT)
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--images",
    type=click.IntRange(1, 100_000),
    default=16,
    show_default=True,
    help="Training images; a quarter as many more are for validation.",
)
@click.option(
    "--size",
    type=click.IntRange(32, 4096),
    default=96,
    show_default=True,
    help="Pixels of a side.",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="The same seed, the same data."
)
def sample_data(directory: Path, images: int, size: int, seed: int) -> None:
    """Write a tiny generated detection data set into DIR."""
    click.echo(sample.write(directory, images, size, seed))


def main() -> None:
    """Run ``yolo-train``; an error of ours is one line and its exit code."""
    try:
        group(prog_name="yolo-train")
    except TrainError as error:
        click.echo(f"yolo-train: {error}", err=True)
        raise SystemExit(error.exit_code) from None


if __name__ == "__main__":
    main()
