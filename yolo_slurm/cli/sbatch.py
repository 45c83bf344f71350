"""``yolo-sbatch``: like sbatch, and it speaks tokens."""

from __future__ import annotations

import json
import math
import os
import shlex
import signal
from collections.abc import Sequence
from typing import Any, Final

import click

from yolo_slurm import __version__
from yolo_slurm.cli.main import drop_output, run
from yolo_slurm.errors import StoppedError, UnavailableError, YoloSlurmError
from yolo_slurm.policy import load_policy, policy_path
from yolo_slurm.slurm.commands import CommandLimits
from yolo_slurm.slurm.identity import user_name
from yolo_slurm.slurm.submission import StopSignal
from yolo_slurm.submit.describe import cost_words, plan_json
from yolo_slurm.submit.options import CommandLine, parse
from yolo_slurm.submit.plan import OWN_OPTIONS, Plan
from yolo_slurm.submit.prepare import Prepared, TemplateOptions, prepare, read_stdin
from yolo_slurm.submit.send import Outcome, send

_OUR_FAULT: Final = 125
_COMMAND: Final = "yolo_slurm.command"


class SbatchCommand(click.Command):
    """A command whose own options are click's and whose others are sbatch's, untouched."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep sbatch's words aside, and let click parse ours."""
        command = parse(args, OWN_OPTIONS)
        ctx.meta[_COMMAND] = command
        options = [option for each in command.components for option in each]
        words = [
            f"--{option.name}" if option.value is None else f"--{option.name}={option.value}"
            for option in options
            if option.name in OWN_OPTIONS
        ]
        return super().parse_args(ctx, words)

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Show both forms."""
        formatter.write_usage("yolo-sbatch", "[TOKEN OPTIONS] [any sbatch option] SCRIPT [ARGS]")
        formatter.write_usage(
            "yolo-sbatch", "[TOKEN OPTIONS] [any sbatch option] -- data=… model=… epochs=…"
        )


@click.command(
    cls=SbatchCommand,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 submitted, 1 refused, 2 usage, 3 Slurm did not answer; with --wait the "
    "job's own, 125 when it was not the job that failed.",
)
@click.option("--tokens", metavar="N", help="GPU-hours to spend: sets the time limit to N / GPUs.")
@click.option("--gpus", metavar="[TYPE:]N", help="sbatch's own: GPUs in all, such as 2 or a100:2.")
@click.option("--time", metavar="TIME", help="sbatch's own: with --gpus it gives the tokens.")
@click.option("--tier", metavar="NAME", help="A tier of the policy (sets --qos).")
@click.option("--project", metavar="NAME", help="The project that pays (= --account).")
@click.option(
    "--template", metavar="NAME", help="The job template for the words after --  [train]."
)
@click.option(
    "--mem-fraction",
    "memory_fraction",
    metavar="F",
    type=click.FloatRange(0, 1, min_open=True),
    help="Share of the GPU's memory that a template's job may take.",
)
@click.option(
    "--cudnn-benchmark/--no-cudnn-benchmark",
    default=None,
    help="Let cuDNN try its algorithms in a template's job.",
)
@click.option("--dry-run", is_flag=True, help="Print the arguments and the script; submit nothing.")
@click.option(
    "--parsable", is_flag=True, help="Print only the job id (and ;cluster), as sbatch does."
)
@click.option("--json", "as_json", is_flag=True, help="Print the submission as one JSON object.")
@click.option("-W", "--wait", is_flag=True, help="Wait for the job and exit with its exit code.")
@click.version_option(__version__, "-V", "--version", prog_name="yolo-sbatch")
@click.pass_context
def sbatch(
    ctx: click.Context,
    /,
    template: str | None,
    memory_fraction: float | None,
    cudnn_benchmark: bool | None,
    dry_run: bool,
    parsable: bool,
    as_json: bool,
    wait: bool,
    **_rest: Any,
) -> None:
    """Submit a batch job that pays in tokens: one token is one GPU-hour.

    Everything that is not a token option below is sbatch's and passes through
    untouched: long, short and --opt=value forms, #SBATCH lines and SBATCH_*
    variables keep their precedence.

    \b
      yolo-sbatch --tokens 12 --gpus a100:2 job.sh       6 hours on two a100
      yolo-sbatch --gpus 1 --time 2:00:00 job.sh         2 tokens
      yolo-sbatch --tokens 4 -- data=parts.yaml model=yolov8n.pt epochs=100
    """
    command: CommandLine = ctx.meta[_COMMAND]
    waits = wait
    try:
        prepared = prepare(
            command,
            TemplateOptions(template, memory_fraction, cudnn_benchmark),
            load_policy(policy_path()),
            os.environ,
            read_stdin,
        )
        waits = prepared.plan.wait
        if dry_run:
            _print_dry_run(prepared, as_json)
            return
        code = _submit(prepared.plan, parsable=parsable, as_json=as_json)
    except YoloSlurmError as error:
        if not waits or isinstance(error, StoppedError):
            raise
        click.echo(f"yolo-sbatch: {error}", err=True)
        code = _OUR_FAULT
    ctx.exit(code)


def _submit(plan: Plan, *, parsable: bool, as_json: bool) -> int:
    user = user_name()
    outcome = send(plan, CommandLimits(), user, timeout=_timeout())
    try:
        _print_sent(outcome, plan, parsable=parsable, as_json=as_json)
    except OSError as error:
        drop_output()
        job = outcome.sent.job
        number = job.job if job else "none"
        click.echo(f"yolo-sbatch: job {number} was submitted; stdout: {error.strerror}", err=True)
    if not plan.wait:
        return outcome.sent.exit_code
    if outcome.sent.found_again:
        raise UnavailableError("sbatch's answer was lost, so the job is not waited for")
    try:
        return outcome.submission.finish()
    except StopSignal as signal_:
        number = outcome.sent.job.job if outcome.sent.job else 0
        raise StoppedError(
            signal_.number, f"stopped; job {number} goes on: scancel {number} ends it"
        ) from None


def _timeout() -> float:
    """Return the seconds after which sbatch's answer counts as lost."""
    text = os.environ.get("YOLO_SBATCH_TIMEOUT", "120")
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < math.inf:  # NaN is in no range
        raise click.UsageError(f"YOLO_SBATCH_TIMEOUT={text!r}: expected a number of seconds")
    return seconds


def _print_sent(outcome: Outcome, plan: Plan, *, parsable: bool, as_json: bool) -> None:
    job = outcome.sent.job
    if as_json:
        head = {"job_id": job.job if job else None, "cluster": job.cluster if job else None}
        described = plan_json(plan, outcome.notes, outcome.default_project)
        click.echo(json.dumps({**head, **described}))
        return
    _print_notes(outcome.notes, None if parsable else plan)
    if job and parsable:
        click.echo(f"{job.job};{job.cluster}" if job.cluster else str(job.job))
    elif job:
        on = f" on cluster {job.cluster}" if job.cluster else ""
        click.echo(f"Submitted batch job {job.job}{on}")


def _print_notes(notes: Sequence[str], plan: Plan | None) -> None:
    for note in notes:
        click.echo(f"yolo-sbatch: {note}", err=True)
    if plan is not None and plan.units:
        click.echo(f"yolo-sbatch: {cost_words(plan)}", err=True)


def _print_dry_run(prepared: Prepared, as_json: bool) -> None:
    plan = prepared.plan
    if as_json:
        script = prepared.script.decode("utf-8", "replace")
        click.echo(
            json.dumps({"argv": plan.argv, "script": script, **plan_json(plan, plan.notes, None)})
        )
        return
    _print_notes(plan.notes, plan)
    line = shlex.join(plan.argv)
    click.echo(line.encode("utf-8", "surrogateescape") + b"\n\n" + prepared.script, nl=False)


def _stop(number: int, _frame: object) -> None:
    raise StopSignal(number)


def main() -> None:
    """Run ``yolo-sbatch``; a signal ends its sbatch too, which leads a session of its own."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stop)
    try:
        run(sbatch, "yolo-sbatch")
    except StopSignal as stop:
        raise SystemExit(128 + stop.number) from None
