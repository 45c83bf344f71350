"""The summary at the end: one line for people, one JSON file for programs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from yolo_slurm.train.callbacks import Epoch
from yolo_slurm.train.errors import InputError, TrainError


class Summary(msgspec.Struct, frozen=True):
    """What a finished training did. None is unknown, never zero.

    epochs: done by this run, without those before a resume. seconds_per_epoch: mean.
    best_metric: what the task is judged by, and its best epoch. peak_memory_bytes: the
    largest of the processes, each on its own GPU. batch: at the end, over all GPUs.
    wall_seconds: the whole program, with imports.
    """

    epochs: int
    seconds_per_epoch: float | None
    best_metric: str | None
    best_value: float | None
    best_epoch: int | None
    peak_memory_bytes: int | None
    batch: int | None
    device: str | None
    gpus: int
    save_dir: str
    wall_seconds: float
    torch: str
    ultralytics: str
    version: int = 1


def read_epochs(path: Path) -> list[Epoch]:
    """Return the records in *path*, as they were written; none when there is no file."""
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return []
    decoder = msgspec.json.Decoder(Epoch)
    return [decoder.decode(line) for line in lines]


def summarize(
    epochs: Sequence[Epoch],
    *,
    metric: str | None,
    gpus: int,
    save_dir: str,
    wall_seconds: float,
    versions: tuple[str, str],
) -> Summary:
    """Sum up *epochs*; pure. versions: torch's and ultralytics'."""
    first = [epoch for epoch in epochs if epoch.rank <= 0]
    scores = [
        (value, -epoch.epoch)  # the earliest of equals
        for epoch in first
        if metric is not None and (value := epoch.metrics.get(metric)) is not None
    ]
    best = max(scores, default=None)
    peaks = [epoch.peak_bytes for epoch in epochs if epoch.peak_bytes is not None]
    return Summary(
        epochs=len(first),
        seconds_per_epoch=sum(epoch.seconds for epoch in first) / len(first) if first else None,
        best_metric=metric if best else None,
        best_value=best[0] if best else None,
        best_epoch=-best[1] if best else None,
        peak_memory_bytes=max(peaks, default=None),
        batch=first[-1].batch if first else None,
        device=first[-1].device if first else None,
        gpus=gpus,
        save_dir=save_dir,
        wall_seconds=wall_seconds,
        torch=versions[0],
        ultralytics=versions[1],
    )


def line(summary: Summary, cwd: Path) -> str:
    """Return the summary as one line; paths in *cwd* are shown relative to it."""
    save_dir = Path(summary.save_dir)
    if save_dir.is_relative_to(cwd):
        save_dir = save_dir.relative_to(cwd)
    parts = [f"{summary.epochs} epoch" if summary.epochs == 1 else f"{summary.epochs} epochs"]
    if summary.seconds_per_epoch is not None:
        parts.append(f"{summary.seconds_per_epoch:.1f} s/epoch")
    if summary.best_value is not None:
        parts.append(f"{summary.best_metric} {summary.best_value:.3g}")
    peak = "unknown"
    if summary.peak_memory_bytes is not None:
        peak = f"{summary.peak_memory_bytes / 2**30:.2f} GiB"
    parts += [f"peak GPU memory {peak}", f"results in {save_dir}"]
    return ", ".join(parts)


def check_target(path: Path) -> None:
    """Raise InputError when a summary could not be written to *path*; remove an old one.

    Known before hours of training, and an old summary is not taken for this run's.
    """
    if path.is_dir():
        raise InputError(f"--summary {path}: is a directory")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise InputError(f"--summary {path}: {path.parent} is not a directory to write in")
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"--summary {path}: {error.strerror}") from error


def write(summary: Summary, path: Path) -> None:
    """Write *summary* to *path* whole or not at all; raises TrainError."""
    text = msgspec.json.format(msgspec.json.encode(summary), indent=2) + b"\n"
    temporary = None
    try:
        with tempfile.NamedTemporaryFile(
            dir=path.parent, prefix=f".{path.name}.", delete=False
        ) as file:
            temporary = Path(file.name)
            file.write(text)
            file.flush()
            os.fchmod(file.fileno(), 0o644)
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise TrainError(f"--summary {path}: {error.strerror}") from error
