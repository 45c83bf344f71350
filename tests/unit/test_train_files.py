"""Fonts, ultralytics' settings, and the files that words name, without importing torch."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from yolo_slurm.train import config_dir, inputs
from yolo_slurm.train.errors import InputError
from yolo_slurm.train.package import argument_keys, ships_dataset, ships_model
from yolo_slurm.train.words import Value


@pytest.fixture
def ultralytics(tmp_path: Path) -> Path:
    """Lay out what the checks read of ultralytics' own folder."""
    package = tmp_path / "site-packages" / "ultralytics"
    for name in (
        "cfg/models/v8/yolov8.yaml",
        "cfg/models/v8/yolov8-p6.yaml",
        "cfg/models/26/yolo26-seg.yaml",
        "cfg/datasets/coco8.yaml",
    ):
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (package / "cfg/default.yaml").write_text("task: detect\n# x: 1\nepochs: 100 # (int)\n")
    return package


@pytest.mark.parametrize(
    "name", ["yolov8n.yaml", "yolov8.yaml", "yolov8x6.yaml", "yolo26n-seg.yaml"]
)
def test_models_of_ultralytics_are_known_at_every_scale(ultralytics: Path, name: str) -> None:
    assert ships_model(ultralytics, name)


@pytest.mark.parametrize("name", ["yolov9n.yaml", "x/yolov8n.yaml", "*.yaml", "../v8/yolov8.yaml"])
def test_other_models_are_not(ultralytics: Path, name: str) -> None:
    assert not ships_model(ultralytics, name)


def test_data_sets_and_keys(ultralytics: Path) -> None:
    assert ships_dataset(ultralytics, "coco8")
    assert ships_dataset(ultralytics, "coco8.yaml")
    assert not ships_dataset(ultralytics, "coco9.yaml")
    assert argument_keys(ultralytics) == {"task", "epochs"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Be in a folder with a data set, weights and a checkpoint."""
    folder = tmp_path / "cwd"
    folder.mkdir()
    for name in ("data.yaml", "own.pt", "own.yaml", "last.pt"):
        (folder / name).touch()
    (folder / "weights").mkdir()
    (folder / "weights" / "kept.pt").touch()
    monkeypatch.chdir(folder)
    return folder


def check(ultralytics: Path, *, offline: bool = True, cfg: str = "", **words: Value) -> None:
    inputs.check(
        words,
        frozenset(cfg.split()),
        offline=offline,
        ultralytics=ultralytics,
        weights=Path("weights").absolute(),
    )


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "words",
    [
        {"model": "own.pt", "data": "data.yaml"},
        {"model": "kept.pt", "data": "data.yaml"},
        {"model": "own.yaml", "data": "coco8.yaml"},
        {"model": "yolov8n.yaml", "data": "coco8"},
        {"resume": "last.pt"},
        {"model": "own.pt", "data": "imagenet10", "mode": "train"},
    ],
)
def test_what_is_there_passes(ultralytics: Path, words: dict[str, Value]) -> None:
    check(ultralytics, **words)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"data": "data.yaml"}, "model= is missing"),
        ({"model": "own.pt"}, "data= is missing"),
        ({"model": "own.pt", "data": "no.yaml"}, "data=no.yaml: no such file"),
        ({"model": "own.pt", "data": "no/such"}, "data=no/such: no such file"),
        ({"model": "own.pt", "data": "https://x/y.zip"}, "offline"),
        ({"model": "yolov8n.pt", "data": "data.yaml"}, "model=yolov8n.pt: no such file"),
        ({"model": "yolo26n", "data": "data.yaml"}, "model=yolo26n.pt: no such file"),
        ({"model": "https://x/y.pt", "data": "data.yaml"}, "offline"),
        ({"model": "no.yaml", "data": "data.yaml"}, "model=no.yaml: no such file"),
        ({"model": "a.onnx", "data": "data.yaml"}, ".onnx cannot train"),
        ({"model": "own.yaml", "data": "data.yaml", "pretrained": "no.pt"}, "pretrained=no.pt"),
        ({"resume": True}, "say which"),
        ({"resume": "no.pt"}, "resume=no.pt: no such file"),
        ({"mode": "val", "model": "own.pt", "data": "data.yaml"}, "only trains"),
    ],
)
def test_what_is_not_there_is_one_line(
    ultralytics: Path, words: dict[str, Value], message: str
) -> None:
    with pytest.raises(InputError) as caught:
        check(ultralytics, **words)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("folder")
def test_online_ultralytics_may_download(ultralytics: Path) -> None:
    check(ultralytics, offline=False, model="yolov8n.pt", data="https://x/y.zip")


@pytest.mark.usefixtures("folder")
def test_data_may_come_from_the_users_cfg_file(ultralytics: Path) -> None:
    check(ultralytics, cfg="data", model="own.pt")


def test_the_named_font_is_taken_and_a_missing_one_told(tmp_path: Path) -> None:
    font = tmp_path / "own.ttf"
    font.touch()
    assert config_dir.find_font(str(font)) == (font, None)
    _, note = config_dir.find_font(str(tmp_path / "no.ttf"))
    assert note is not None


def test_fonts_lie_where_ultralytics_looks_and_stay(tmp_path: Path) -> None:
    font = tmp_path / "own.ttf"
    font.write_bytes(b"new")
    (tmp_path / "Ultralytics").mkdir()
    (tmp_path / "Ultralytics" / "Arial.ttf").write_bytes(b"old")
    config_dir.place_fonts(tmp_path, font)
    assert (tmp_path / "Ultralytics" / "Arial.ttf").read_bytes() == b"old"
    assert (tmp_path / "Ultralytics" / "Arial.Unicode.ttf").read_bytes() == b"new"


def seeded(tmp_path: Path, user: dict[str, str] | None) -> dict[str, str]:
    path = tmp_path / "user.json"
    if user is not None:
        path.write_text(json.dumps(user))
    repository = tmp_path / "repository"
    config_dir.seed_settings(tmp_path, path if user is not None else None, Path("/cwd"), repository)
    result: dict[str, str] = json.loads((tmp_path / "Ultralytics" / "settings.json").read_text())
    return result


def test_results_go_to_the_current_folder_unless_the_user_chose(tmp_path: Path) -> None:
    assert seeded(tmp_path, None)["runs_dir"] == "/cwd/runs"
    assert config_dir.weights_directory(tmp_path, Path("/cwd")) == Path("/cwd/weights")
    chosen = {"runs_dir": "/scratch/me", "wandb": "x", "weights_dir": "/w"}
    assert seeded(tmp_path, chosen) == chosen
    assert config_dir.weights_directory(tmp_path, Path("/cwd")) == Path("/w")


def test_a_place_that_ultralytics_chose_for_itself_is_not_the_users(tmp_path: Path) -> None:
    user = {"runs_dir": str(tmp_path / "repository" / "runs"), "wandb": "x"}
    assert seeded(tmp_path, user) == {"runs_dir": "/cwd/runs", "wandb": "x"}


def test_the_job_folder_is_private_and_removed(tmp_path: Path) -> None:
    environ = {"TMPDIR": str(tmp_path), "SLURM_JOB_ID": "77"}
    with config_dir.job_directory(environ) as path:
        assert path.parent == tmp_path
        assert path.name.startswith("yolo-train-77-")
        assert path.stat().st_mode & 0o777 == 0o700
    assert not path.exists()


def test_refusals_come_before_torch(tmp_path: Path) -> None:
    """A bad word costs no import of torch, which takes seconds."""
    code = (
        "import sys\nfrom yolo_slurm.train import cli\n"
        "sys.argv = ['yolo-train', 'nonsense']\n"
        "try: cli.main()\nexcept SystemExit as end: assert end.code == 2, end.code\n"
        "loaded = {'torch', 'ultralytics', 'matplotlib'} & set(sys.modules)\n"
        "assert not loaded, loaded\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("\n") == 1
