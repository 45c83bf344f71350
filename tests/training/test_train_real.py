"""One real training on the CPU, as a job's process sees it: offline, without a home."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("ultralytics")

pytestmark = pytest.mark.training

SETTINGS = {
    "version": 1,
    "memory_fraction": 0.85,
    "max_split_size_mb": 128,
    "cudnn_benchmark": True,
    "offline": True,
    "font": None,
    "gpus": 1,
}
WORDS = ["model=yolov8n.yaml", "imgsz=64", "batch=8", "workers=0", "plots=False", "amp=False"]


def yolo_train(cwd: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run ``yolo-train`` with a job's bare environment, without a network where that can be."""
    command = [sys.executable, "-m", "yolo_slurm.train.cli", *arguments]
    # A user who may not make a network namespace still runs the test, offline by setting.
    isolated = ["unshare", "-n", "--"]
    if subprocess.run([*isolated, "true"], capture_output=True, check=False).returncode == 0:
        command = [*isolated, *command]
    (cwd / "tmp").mkdir(exist_ok=True)
    job = {
        "PATH": os.environ["PATH"],
        "HOME": "/proc/nonexistent",
        "TMPDIR": str(cwd / "tmp"),
        "SLURM_JOB_ID": "7",
        "SLURM_CPUS_PER_TASK": "2",
        **environ,
    }
    return subprocess.run(
        command, cwd=cwd, env=job, capture_output=True, text=True, timeout=240, check=False
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with settings.json and the sample data set in shapes/."""
    (tmp_path / "settings.json").write_text(json.dumps(SETTINGS))
    assert yolo_train(tmp_path, "sample-data", "shapes").returncode == 0
    return tmp_path


def test_two_epochs_and_a_summary_that_agrees_with_results_csv(folder: Path) -> None:
    done = yolo_train(
        folder,
        *("--settings", "settings.json", "--summary", "summary.json", "--"),
        *("data=shapes/data.yaml", "epochs=2", "project=my job", "name=$(x)", *WORDS),
        # A test cluster's GPU: granted, and not there.
        CUDA_VISIBLE_DEVICES="0",
    )
    assert done.returncode == 0, done.stderr
    note, *rest = done.stderr.splitlines()
    assert "CUDA_VISIBLE_DEVICES=0 grants 1 GPU, but CUDA is not available" in note
    assert rest == []

    save_dir = folder / "runs" / "detect" / "my job" / "$(x)"
    summary = json.loads((folder / "summary.json").read_text())
    with (save_dir / "results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert summary["epochs"] == len(rows) == 2
    assert summary["best_metric"] == "metrics/mAP50-95(B)"
    best = max(float(row["metrics/mAP50-95(B)"]) for row in rows)
    assert summary["best_value"] == pytest.approx(best, abs=1e-5)
    # results.csv's time ends before the checkpoint is written, ours after it.
    assert summary["seconds_per_epoch"] * 2 >= float(rows[-1]["time"])
    assert summary["wall_seconds"] > summary["seconds_per_epoch"] * 2
    assert summary["peak_memory_bytes"] is None
    assert (summary["batch"], summary["device"], summary["gpus"]) == (8, "cpu", 0)
    assert summary["save_dir"] == str(save_dir)
    assert (save_dir / "weights" / "last.pt").is_file()
    assert done.stdout.splitlines()[-1].startswith("yolo-train: 2 epochs, ")
    assert list((folder / "tmp").glob("yolo-train-*")) == []  # the job's own folder is gone

    # A finished run is not resumed into something else.
    again = yolo_train(folder, f"resume={save_dir}/weights/last.pt")
    assert again.returncode == 2
    assert "that training is finished" in again.stderr.splitlines()[-1]


def test_a_failing_training_is_one_line_and_a_traceback_beside_the_results(folder: Path) -> None:
    words = ["data=shapes/data.yaml", "epochs=1", "optimizer=Nope", *WORDS]
    done = yolo_train(folder, *words)
    assert done.returncode == 1
    assert done.stderr.startswith("yolo-train: training failed: NotImplementedError: Optimizer")
    assert done.stderr.count("\n") == 1
    kept = folder / "runs" / "detect" / "train" / "traceback.txt"
    assert f"(traceback in {kept})" in done.stderr
    assert "NotImplementedError" in kept.read_text()


def test_a_value_that_ultralytics_refuses_is_one_line(folder: Path) -> None:
    done = yolo_train(folder, "data=shapes/data.yaml", "epochs=many", *WORDS)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "epochs=many" in done.stderr


def test_explain_trains_nothing(folder: Path) -> None:
    done = yolo_train(folder, "--settings", "settings.json", "--explain", "--", "epochs=3")
    assert done.returncode == 0
    lines = {line.split()[0]: line for line in done.stdout.splitlines()}
    assert lines["memory_fraction"].split()[1:4] == ["0.85", "settings", "file"]
    assert lines["epochs"].split()[1:3] == ["3", "user"]
    assert lines["OMP_NUM_THREADS"].split()[1:3] == ["2", "yolo-train"]
    assert not (folder / "runs").exists()
