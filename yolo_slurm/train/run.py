"""One training, from settings and words to a summary, each step in its place.

What can be refused from the disk is refused first; then the environment is made;
only then are torch and ultralytics imported.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from yolo_slurm.train import (
    config_dir,
    device,
    environment,
    explain,
    inputs,
    package,
    plan,
    report,
    words,
)
from yolo_slurm.train.callbacks import Callbacks
from yolo_slurm.train.errors import InputError, TrainError
from yolo_slurm.train.settings import Settings, load


@dataclasses.dataclass(frozen=True)
class Job:
    """A training that is ready: every file is there and the environment is set."""

    settings: Settings
    setting_keys: frozenset[str]
    environment: environment.Environment
    environ: Mapping[str, str]
    cuda: device.Cuda
    device: device.Device
    plan: plan.Plan
    directory: Path
    notes: tuple[str, ...]


@contextlib.contextmanager
def prepared(settings_file: Path | None, texts: Sequence[str], *, check: bool) -> Iterator[Job]:
    """Yield the job that *texts* describe, inside its temporary folder.

    Changes os.environ, and imports torch to ask it for devices. check: whether the
    files that the words name must exist. Raises InputError and TrainError.
    """
    settings, keys = load(settings_file)
    parsed = words.parse(texts)
    ultralytics = package.ultralytics()
    words.check_keys(parsed, package.argument_keys(ultralytics))
    cfg_keys = words.top_level_keys(inputs.read_cfg(parsed))
    environ = dict(os.environ)
    cwd = Path.cwd()
    with config_dir.job_directory(environ) as directory:
        granted, _ = device.granted(environ, settings.gpus)
        variables = environment.compute(
            settings, environ, environment.torch_version(), directory, granted
        )
        config = Path(variables.values.get("YOLO_CONFIG_DIR") or environ["YOLO_CONFIG_DIR"])
        font, font_note = config_dir.find_font(settings.font)
        if font is not None:
            config_dir.place_fonts(config, font)
        if config == directory:
            user = config_dir.user_settings(environ)
            config_dir.seed_settings(config, user, cwd, package.repository(ultralytics))
        weights = config_dir.weights_directory(config, cwd)
        if check:
            inputs.check(
                parsed, cfg_keys, offline=settings.offline, ultralytics=ultralytics, weights=weights
            )
        os.environ.update(variables.values)
        cuda = probe()
        chosen = device.choose(cuda, environ, settings.gpus)
        amp_weights = (weights / "yolo26n.pt").is_file()
        planned = plan.make(settings, parsed, cfg_keys, chosen, amp_weights)
        notes = (*variables.notes, *([font_note] if font_note else []), *planned.notes)
        yield Job(settings, keys, variables, environ, cuda, chosen, planned, directory, notes)


def probe() -> device.Cuda:
    """Ask torch for CUDA devices; raises InputError where torch is not installed."""
    try:
        import torch
    except ImportError as error:
        raise InputError(f"torch cannot be imported: {error}") from error
    if not torch.cuda.is_available():
        return device.Cuda(available=False, count=0)
    return device.Cuda(available=True, count=torch.cuda.device_count())


def explained(job: Job) -> str:
    """Return what ``--explain`` prints."""
    return explain.table(
        explain.rows(
            job.settings, job.setting_keys, job.environment, job.environ, job.plan, job.cuda
        )
    )


def train(job: Job, started: float, *, show_traceback: bool) -> report.Summary:
    """Train and sum up. *started* is time.monotonic() at the program's start.

    Raises InputError for a value that ultralytics refuses, TrainError when training
    fails; the traceback is printed or left beside the results.
    """
    import torch
    import ultralytics
    from ultralytics.cfg import TASK2METRIC, get_cfg

    arguments: dict[str, Any] = dict(job.plan.arguments())
    try:
        get_cfg(overrides=dict(arguments))
    except (TypeError, ValueError, SyntaxError) as error:
        raise InputError(one_line(error)) from error
    for key in ("model", "task", "mode"):
        arguments.pop(key, None)
    resume = arguments.get("resume")
    if resume:
        _check_resumable(str(resume))

    by_call = job.environment.fraction_by_call and job.device.gpus > 0
    fraction = job.settings.memory_fraction if by_call else None
    if fraction is not None and job.device.gpus == 1:
        torch.cuda.set_per_process_memory_fraction(fraction)  # before AutoBatch measures
    records = job.directory / "epochs.jsonl"
    model = None
    try:
        model = ultralytics.YOLO(resume or job.plan.words["model"], task=job.plan.words.get("task"))
        Callbacks(
            str(records),
            fraction=fraction,
            benchmark=job.settings.cudnn_benchmark,
            cpu_threads=environment.cpu_threads(job.environ),
        ).register(model)
        model.train(**arguments)
    except Exception as error:
        trainer = getattr(model, "trainer", None)
        where = _keep_traceback(getattr(trainer, "save_dir", None), show=show_traceback)
        raise TrainError(
            f"training failed: {type(error).__name__}: {one_line(error)}{where}"
        ) from error
    return report.summarize(
        report.read_epochs(records),
        metric=TASK2METRIC.get(model.task),
        gpus=job.device.gpus,
        save_dir=str(model.trainer.save_dir),
        wall_seconds=time.monotonic() - started,
        versions=(str(torch.__version__), str(ultralytics.__version__)),
    )


def one_line(error: BaseException) -> str:
    """Return an error's message with its line breaks and runs of blanks taken out."""
    return " ".join(str(error).split()) or "no message"


def _check_resumable(path: str) -> None:
    # With a finished checkpoint ultralytics starts something else, silently.
    from ultralytics.utils.patches import torch_load

    try:
        checkpoint = torch_load(path, map_location="cpu")
        epoch, optimizer = checkpoint.get("epoch", -1), checkpoint.get("optimizer")
    except Exception as error:
        raise InputError(f"resume={path}: not a checkpoint: {one_line(error)}") from error
    if epoch < 0 or optimizer is None:
        raise InputError(f"resume={path}: that training is finished; start a new one with model=")


def _keep_traceback(save_dir: Path | None, *, show: bool) -> str:
    """Print the traceback or write it beside the results; return where it is, for a message."""
    if show:
        traceback.print_exc()
        return ""
    if save_dir is not None and Path(save_dir).is_dir():
        path = Path(save_dir) / "traceback.txt"
        with contextlib.suppress(OSError):
            path.write_text(traceback.format_exc(), encoding="utf-8")
            return f" (traceback in {path})"
    return " (--traceback shows where)"
