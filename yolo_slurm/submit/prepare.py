"""From the command line to a plan: finds the batch script, or writes it from a template."""

from __future__ import annotations

import shutil
import stat
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from yolo_slurm.errors import InputError
from yolo_slurm.policy import Policy
from yolo_slurm.submit import directives, script
from yolo_slurm.submit.options import CommandLine, Option, effective, from_environment
from yolo_slurm.submit.plan import OWN_OPTIONS, Plan, is_template_call, make_plan

_GPU_OPTIONS: Final = frozenset(
    {"gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket", "gres", "tres-per-task"}
)
# What sbatch reads as text of a user's: an empty or two-line one is refused.
_TEXTS: Final = {
    "job-name": True, "output": True, "error": True, "input": True, "chdir": True, "comment": False,
}  # fmt: skip


class TemplateOptions(msgspec.Struct, frozen=True):
    """The options that only a template's job listens to."""

    template: str | None = None
    memory_fraction: float | None = None
    cudnn_benchmark: bool | None = None


class Prepared(msgspec.Struct, frozen=True):
    """A plan, and the batch script as sbatch will read it, from stdin or from its file."""

    plan: Plan
    script: bytes


def prepare(
    command: CommandLine,
    options: TemplateOptions,
    policy: Policy,
    environ: Mapping[str, str],
    read_stdin: Callable[[], bytes],
) -> Prepared:
    """Return the plan of *command*. Raises InputError and RefusedError."""
    _check_texts(command)
    fraction = options.memory_fraction
    if fraction is not None and not 0 < fraction <= 1:
        raise InputError(f"--mem-fraction {fraction}: expected more than 0 and at most 1")
    environment = from_environment(environ)
    if is_template_call(command, options.template):
        return _from_template(command, options, policy, environment)
    if options.memory_fraction is not None or options.cudnn_benchmark is not None:
        raise InputError(
            "--mem-fraction and --[no-]cudnn-benchmark are for a job from a template: "
            "give its settings after --, such as -- data=… model=… epochs=…"
        )
    given = effective(*command.components)
    words = command.words
    stdin: bytes | None
    if "wrap" in given:
        batch, stdin = b"", None
    elif command.words:
        batch, stdin = _read_script(command.words[0], given.get("chdir"))
        if stdin is not None:
            words = _no_arguments(words)
    else:
        batch = stdin = read_stdin()
        if not batch.strip():
            raise InputError(
                "no script: name one, feed one on stdin, or give a training after --, "
                "such as -- data=… model=… epochs=…"
            )
    plan = make_plan(
        command,
        policy=policy,
        environment=environment,
        batch=batch,
        words=words,
        stdin=stdin,
    )
    return Prepared(plan, batch)


def _from_template(
    command: CommandLine,
    options: TemplateOptions,
    policy: Policy,
    environment: tuple[Option, ...],
) -> Prepared:
    given = effective(environment, *command.components)
    if "wrap" in given:
        raise InputError("--wrap and a template's settings after -- are two jobs: give one of them")
    if len(command.components) > 1:
        raise InputError("a template makes one job: het components (':') need a script of your own")
    first = command.components[0]
    if not _GPU_OPTIONS & given.keys():
        first = (Option("gpus", "1", ("--gpus=1",)), *first)
    name = given.get("job-name")
    text = script.render(
        options.template or script.DEFAULT_TEMPLATE,
        words=command.words,
        name=script.default_name(command.words) if name is None else name,
        settings=script.settings_json(
            policy.training,
            memory_fraction=options.memory_fraction,
            cudnn_benchmark=options.cudnn_benchmark,
        ),
    )
    plan = make_plan(
        CommandLine((first,), (), dashes=False),
        policy=policy,
        environment=environment,
        batch=text,
        words=(),
        stdin=text,
    )
    return Prepared(plan, text)


def _check_texts(command: CommandLine) -> None:
    for component in command.components:
        for option in component:
            if option.name in _TEXTS and option.value is not None:
                if _TEXTS[option.name] and not option.value:
                    raise InputError(f"--{option.name} is empty: expected some text")
                directives.check_text(option.value, f"--{option.name}")
            elif option.value is not None and option.name in OWN_OPTIONS:
                directives.check_text(option.value, f"--{option.name}")


def _read_script(name: str, chdir: str | None) -> tuple[bytes, bytes | None]:
    """Return the script that sbatch will read, looked for below --chdir, then in PATH.

    A pipe (``<(…)``) can be read once: its text is returned a second time, for
    sbatch's stdin. Raises InputError.
    """
    path = Path(chdir or ".") / name
    found = path if path.exists() else Path(shutil.which(name, mode=0) or name)
    try:
        kind = found.stat().st_mode
        if not (stat.S_ISREG(kind) or stat.S_ISFIFO(kind)):
            raise InputError(f"{name}: not a file: expected a batch script")
        content = found.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{name}: no such script") from None
    except OSError as error:
        raise InputError(f"{name}: {error.strerror}") from None
    if not content.startswith(b"#!"):
        raise InputError(f"{name}: not a batch script: its first line does not start with #!")
    return content, content if stat.S_ISFIFO(kind) else None


def _no_arguments(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return no word where *words* are a script alone: one from stdin takes no arguments."""
    if len(words) > 1:
        raise InputError(f"{words[0]}: a script from a pipe takes no arguments: save it to a file")
    return ()


def read_stdin() -> bytes:
    """Return all of this process's stdin."""
    return b"" if sys.stdin is None else sys.stdin.buffer.read()
