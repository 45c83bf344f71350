"""What happens inside the training, in each process that trains.

Several GPUs are trained by fresh Python processes that inherit the environment and
unpickle these callbacks, and nothing else: so they live in an importable module,
set what a process must set for itself, and report through a file.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import msgspec


class Epoch(msgspec.Struct, frozen=True):
    """One epoch as one process saw it.

    rank: -1 without workers. epoch: from 1. seconds: training, validation and saving.
    batch: the batch really used, over all processes; an out-of-memory in the first epoch
    halves it. peak_bytes: the most that this process has reserved; None is unknown.
    """

    rank: int
    epoch: int
    seconds: float
    metrics: dict[str, float | None]
    batch: int
    device: str
    peak_bytes: int | None


class Callbacks:
    """The callbacks of one training; cloudpickle carries it to the workers."""

    def __init__(
        self,
        records: str,
        *,
        fraction: float | None,
        benchmark: bool,
        cpu_threads: int | None,
    ) -> None:
        """Set up.

        records: the file that epochs are appended to. fraction: of the GPU's memory,
        None when the allocator's variable already says it. cpu_threads: for training
        on a CPU, None leaves ultralytics' choice.
        """
        self.records = records
        self.fraction = fraction
        self.benchmark = benchmark
        self.cpu_threads = cpu_threads
        self._in_epoch = False

    def register(self, model: Any) -> None:
        """Add every callback to an ultralytics model."""
        for event in (
            "on_pretrain_routine_end",
            "on_train_start",
            "on_train_epoch_start",
            "on_fit_epoch_end",
        ):
            model.add_callback(event, getattr(self, event))

    def on_pretrain_routine_end(self, trainer: Any) -> None:
        """Cap this process's memory and threads: the first event in every worker.

        On a CPU ultralytics sets the node's number of CPUs less one, at most 8,
        whatever the job was given, when it selects the device.
        """
        import torch

        if self.fraction is not None and trainer.device.type == "cuda":
            torch.cuda.set_per_process_memory_fraction(self.fraction, trainer.device)
        if self.cpu_threads is not None and trainer.device.type == "cpu":
            torch.set_num_threads(self.cpu_threads)

    def on_train_start(self, trainer: Any) -> None:
        """Turn cudnn's benchmark on; before this AutoBatch would give up and say 16."""
        if self.benchmark and trainer.device.type == "cuda" and not trainer.args.deterministic:
            import torch

            torch.backends.cudnn.benchmark = True

    def on_train_epoch_start(self, trainer: Any) -> None:  # noqa: ARG002
        """Remember that an epoch runs, see on_fit_epoch_end."""
        self._in_epoch = True

    def on_fit_epoch_end(self, trainer: Any) -> None:
        """Append the epoch to the file.

        The final evaluation calls this once more, with epoch + 1, which is not the
        number of epochs when the training stopped early; no epoch started before it.
        """
        if not self._in_epoch:
            return
        self._in_epoch = False
        record = Epoch(
            rank=int(os.environ.get("RANK", "-1")),
            epoch=int(trainer.epoch) + 1,
            seconds=float(trainer.epoch_time),
            metrics={key: float(value) for key, value in (trainer.metrics or {}).items()},
            batch=int(trainer.batch_size),
            device=str(trainer.device),
            peak_bytes=_peak_bytes(trainer),
        )
        line = msgspec.json.encode(record) + b"\n"
        try:
            # One write to a file opened for appending: workers do not mix their lines.
            file = os.open(self.records, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(file, line)
            finally:
                os.close(file)
        except OSError as error:  # a report is not worth a training
            sys.stderr.write(f"yolo-train: epoch {record.epoch} is not reported: {error}\n")


def _peak_bytes(trainer: Any) -> int | None:
    if trainer.device.type != "cuda":
        return None
    import torch

    return int(torch.cuda.max_memory_reserved(trainer.device))
