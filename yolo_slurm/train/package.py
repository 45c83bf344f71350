"""What ultralytics ships, read without importing it: importing it imports torch."""

from __future__ import annotations

import glob
import importlib.util
import re
from pathlib import Path
from typing import Final

from yolo_slurm.train.errors import InputError
from yolo_slurm.train.words import top_level_keys

# ultralytics' own rules for a model's name: yolov8n.yaml is yolov8.yaml at scale n.
_SCALE: Final = re.compile(r"(\d+)([nslmx])(.+)?$")
_OLD_P6: Final = re.compile(r"(yolov[58])([nsmlx])6$")


def directory(module: str) -> Path | None:
    """Return the folder of an installed package, or None; nothing is imported."""
    spec = importlib.util.find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)))


def ultralytics() -> Path:
    """Return ultralytics' folder; raises InputError where it is not installed."""
    found = directory("ultralytics")
    if found is None:
        raise InputError("ultralytics is not installed here: pip install 'yolo_slurm[train]'")
    return found


def repository(package: Path) -> Path | None:
    """Return the git work tree that *package* is installed in, if it is in one."""
    return next((folder for folder in package.parents if (folder / ".git").exists()), None)


def argument_keys(package: Path) -> frozenset[str]:
    """Return every argument in ultralytics' default.yaml."""
    return top_level_keys((package / "cfg" / "default.yaml").read_text(encoding="utf-8"))


def ships_dataset(package: Path, name: str) -> bool:
    """Tell whether *name*, with or without its suffix, is a data set file of ultralytics."""
    return any(
        (package / "cfg" / "datasets" / f"{name}{suffix}").is_file()
        for suffix in ("", ".yaml", ".yml")
    )


def ships_model(package: Path, name: str) -> bool:
    """Tell whether *name*, such as yolov8n.yaml, is a model configuration of ultralytics."""
    if "/" in name:
        return False
    path = Path(name)
    stem = _OLD_P6.sub(r"\1\2-p6", path.stem)
    current = f"{stem}{path.suffix}"
    unified = _SCALE.sub(r"\1\3", current)
    folder = package / "cfg" / "models"
    return any(any(folder.glob(f"*/{glob.escape(name)}")) for name in (current, unified))
