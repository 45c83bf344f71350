"""Callbacks, with a trainer that does what ultralytics' does, and the summary."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from yolo_slurm.train import report
from yolo_slurm.train.callbacks import Callbacks, Epoch
from yolo_slurm.train.errors import InputError

METRIC = "metrics/mAP50-95(B)"


def record(epoch: int, score: float | None = 0.0, **changes: object) -> Epoch:
    values = {
        "rank": -1,
        "epoch": epoch,
        "seconds": 2.0,
        "metrics": {METRIC: score},
        "batch": 8,
        "device": "cpu",
        "peak_bytes": None,
        **changes,
    }
    return Epoch(**values)  # type: ignore[arg-type]


def run(callbacks: Callbacks, epochs: int) -> None:
    """Call back as BaseTrainer does: each epoch, then the final evaluation at epoch + 1."""
    trainer = SimpleNamespace(
        device=SimpleNamespace(type="cpu"),
        epochs=100,
        epoch_time=1.5,
        batch_size=4,
        metrics={METRIC: 0.25},
    )
    trainer.device = type("D", (), {"type": "cpu", "__str__": lambda self: "cpu"})()
    for epoch in range(epochs):
        trainer.epoch = epoch
        callbacks.on_train_epoch_start(trainer)
        callbacks.on_fit_epoch_end(trainer)
    trainer.epoch = epochs
    callbacks.on_fit_epoch_end(trainer)


def test_the_final_evaluation_is_no_epoch_even_when_stopped_early(tmp_path: Path) -> None:
    path = tmp_path / "epochs.jsonl"
    run(Callbacks(str(path), fraction=None, benchmark=True, cpu_threads=None), 3)
    epochs = report.read_epochs(path)
    assert [epoch.epoch for epoch in epochs] == [1, 2, 3]
    assert epochs[0] == Epoch(-1, 1, 1.5, {METRIC: 0.25}, 4, "cpu", None)


def test_a_report_that_cannot_be_written_does_not_end_the_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    callbacks = Callbacks(
        str(tmp_path / "no" / "x"), fraction=None, benchmark=True, cpu_threads=None
    )
    run(callbacks, 1)
    assert "epoch 1 is not reported" in capsys.readouterr().err


def summarized(*epochs: Epoch) -> report.Summary:
    return report.summarize(
        epochs,
        metric=METRIC,
        gpus=0,
        save_dir="/cwd/runs/train",
        wall_seconds=9.0,
        versions=("2.14.1", "8.4.190"),
    )


def test_best_is_the_earliest_highest_and_unknown_is_never_zero() -> None:
    summary = summarized(
        record(1, 0.1), record(2, 0.3, seconds=4.0), record(3, 0.3), record(4, None)
    )
    assert (summary.best_metric, summary.best_value, summary.best_epoch) == (METRIC, 0.3, 2)
    assert (summary.epochs, summary.seconds_per_epoch) == (4, 2.5)
    assert summary.peak_memory_bytes is None
    nothing = summarized()
    assert (nothing.epochs, nothing.seconds_per_epoch, nothing.best_value) == (0, None, None)


def test_workers_count_once_and_the_largest_peak_is_told() -> None:
    summary = summarized(
        record(1, 0.1, rank=0, peak_bytes=5, batch=16),
        record(1, 0.9, rank=1, peak_bytes=7, batch=16),
    )
    assert (summary.epochs, summary.best_value, summary.peak_memory_bytes) == (1, 0.1, 7)


def test_the_line() -> None:
    line = report.line(summarized(record(1, 0.0123), record(2, 0.0)), Path("/cwd"))
    assert line == (
        "2 epochs, 2.0 s/epoch, metrics/mAP50-95(B) 0.0123, peak GPU memory unknown, "
        "results in runs/train"
    )
    gib = report.line(summarized(record(1, peak_bytes=3 * 2**29)), Path("/elsewhere"))
    assert "1 epoch, " in gib
    assert "peak GPU memory 1.50 GiB, results in /cwd/runs/train" in gib


def test_the_file_is_whole_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "summary.json"
    path.write_text("old")
    report.check_target(path)
    assert not path.exists()
    report.write(summarized(record(1)), path)
    assert json.loads(path.read_text())["epochs"] == 1
    assert list(tmp_path.iterdir()) == [path]


def test_a_target_that_cannot_be_written_is_known_before_the_training(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a directory"):
        report.check_target(tmp_path)
    with pytest.raises(InputError, match="not a directory to write in"):
        report.check_target(tmp_path / "no" / "summary.json")


def test_callbacks_import_no_torch() -> None:
    assert Callbacks.__module__ in sys.modules
    assert Callbacks.__module__ != "__main__"  # workers unpickle it by name
