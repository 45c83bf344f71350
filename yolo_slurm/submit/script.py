"""Plan -> script: a batch script from `job_templates/`. Pure: text in, text out."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from importlib import resources
from pathlib import PurePath
from typing import Final

import msgspec

from yolo_slurm.errors import InputError
from yolo_slurm.policy import Training
from yolo_slurm.submit.directives import check_text, quote

DEFAULT_TEMPLATE: Final = "train"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*", re.ASCII)
_PACKAGE: Final = "yolo_slurm.job_templates"
_SUFFIX: Final = ".sbatch.j2"


def template_names() -> list[str]:
    """Return the names of the templates that are installed."""
    found = (each.name for each in resources.files(_PACKAGE).iterdir())
    return sorted(name.removesuffix(_SUFFIX) for name in found if name.endswith(_SUFFIX))


def settings_json(
    training: Training, *, memory_fraction: float | None, cudnn_benchmark: bool | None
) -> str:
    """Return what `yolo-train` is told, as one line of ASCII JSON."""
    settings = {
        "version": 1,
        "memory_fraction": memory_fraction or float(training.memory_fraction),
        "max_split_size_mb": training.max_split_size_mb,
        "cudnn_benchmark": training.cudnn_benchmark if cudnn_benchmark is None else cudnn_benchmark,
        "offline": True,
    }
    return msgspec.json.encode(settings).decode()


def default_name(words: Sequence[str]) -> str:
    """Return a job name for a training: the stem of its model."""
    values = dict(word.split("=", 1) for word in words if "=" in word)
    stem = PurePath(values.get("model", "")).stem
    return f"yolo-{stem}" if _NAME.fullmatch(stem) else "yolo-train"


def render(
    template: str,
    *,
    words: Sequence[str],
    name: str,
    settings: str,
) -> bytes:
    """Return the batch script of *template*.

    words: what the program in the job gets, one argument each, as they are.
    name: the job's name. settings: one line of JSON.

    Raises InputError for an unknown template or text that a script cannot carry.
    """
    if not _NAME.fullmatch(template) or template not in (known := template_names()):
        known = template_names()
        raise InputError(f"--template {template!r}: expected one of {', '.join(known)}")
    check_name(name)
    for word in words:
        check_text(word, "an argument")
    # Jinja2 takes a third of a login node's start-up time, and only a
    # template needs it.
    import jinja2

    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701
    )
    environment.filters["directive"] = quote
    environment.filters["sh"] = shlex.quote
    source = resources.files(_PACKAGE).joinpath(template + _SUFFIX).read_text()
    text = environment.from_string(source).render(name=name, words=list(words), settings=settings)
    return text.encode("utf-8", "surrogateescape")


def check_name(name: str) -> None:
    """Raise InputError where *name* cannot be a job's name."""
    if not name:
        raise InputError("--job-name is empty: a job needs a name")
    check_text(name, "--job-name")
