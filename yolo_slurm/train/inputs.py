"""The files that the words name, checked before torch is imported.

A missing weights file costs ultralytics minutes of download attempts on a node
without a network before it fails, and importing torch costs seconds: what can be
known from the disk is known first.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from yolo_slurm.train import package
from yolo_slurm.train.errors import InputError
from yolo_slurm.train.words import Value

_YAML: Final = frozenset({".yaml", ".yml"})
_WEIGHTS: Final = frozenset({".pt", ".pth"})


def check(
    words: Mapping[str, Value],
    cfg_keys: frozenset[str],
    *,
    offline: bool,
    ultralytics: Path,
    weights: Path,
) -> None:
    """Raise InputError for a missing argument or a file that cannot be found.

    cfg_keys: what the user's ``cfg=`` file sets. weights: ultralytics' weights_dir.
    """
    if words.get("mode", "train") != "train":
        raise InputError(f"mode={words['mode']}: yolo-train only trains; leave mode out")
    resume = words.get("resume")
    if resume:
        _check_resume(resume)
        return
    model, data = words.get("model"), words.get("data")
    if model is None:
        raise InputError("model= is missing: say model=yolov8n.yaml or model=weights.pt")
    if data is None and "data" not in cfg_keys:
        raise InputError("data= is missing: say data=path/to/data.yaml")
    _check_model(str(model), offline=offline, ultralytics=ultralytics, weights=weights)
    for key in ("pretrained", "distill_model"):
        value = words.get(key)
        if isinstance(value, str) and Path(value).suffix in _WEIGHTS:
            _check_weights(key, value, offline=offline, weights=weights)
    if data is not None:
        _check_data(str(data), offline=offline, ultralytics=ultralytics)


def read_cfg(words: Mapping[str, Value]) -> str:
    """Return the text of the user's ``cfg=`` file, empty without one; raises InputError."""
    cfg = words.get("cfg")
    if cfg is None:
        return ""
    try:
        return Path(str(cfg)).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cfg={cfg}: {getattr(error, 'strerror', None) or error}") from error


def _check_resume(resume: Value) -> None:
    # Ultralytics turns resume=True with a finished checkpoint into a new training
    # on a sample data set; a path says which run is meant.
    if not isinstance(resume, str):
        raise InputError(f"resume={resume}: say which: resume=runs/detect/train/weights/last.pt")
    if not Path(resume).is_file():
        raise InputError(f"resume={resume}: no such file in {Path.cwd()}")


def _check_model(model: str, *, offline: bool, ultralytics: Path, weights: Path) -> None:
    suffix = Path(model).suffix.lower()
    if suffix in _YAML:
        if not Path(model).is_file() and not package.ships_model(ultralytics, model):
            raise InputError(
                f"model={model}: no such file in {Path.cwd()}, and no model of ultralytics"
            )
    elif suffix in _WEIGHTS or "://" in model:
        _check_weights("model", model, offline=offline, weights=weights)
    elif not suffix or suffix[1:].isdigit():  # yolo26n is yolo26n.pt
        _check_weights("model", f"{model}.pt", offline=offline, weights=weights)
    else:
        raise InputError(f"model={model}: expected a .pt or a .yaml file; {suffix} cannot train")


def _check_weights(key: str, value: str, *, offline: bool, weights: Path) -> None:
    if "://" not in value and (Path(value).is_file() or (weights / value).is_file()):
        return
    if offline:
        raise InputError(
            f"{key}={value}: no such file in {Path.cwd()} or {weights}, and this node is offline: "
            "download it on a login node first"
        )


def _check_data(data: str, *, offline: bool, ultralytics: Path) -> None:
    if "://" in data:
        if offline:
            raise InputError(
                f"data={data}: this node is offline: download it on a login node first"
            )
        return
    if Path(data).exists() or package.ships_dataset(ultralytics, data):
        return
    if "/" in data or Path(data).suffix.lower() in _YAML:
        raise InputError(f"data={data}: no such file or directory in {Path.cwd()}")
