"""``--explain``: each setting, its value, where it comes from, and what it does here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from yolo_slurm.train.device import Cuda
from yolo_slurm.train.environment import ALLOCATOR, Environment
from yolo_slurm.train.plan import Plan
from yolo_slurm.train.settings import Settings

Row = tuple[str, str, str, str]


def rows(
    settings: Settings,
    keys: frozenset[str],
    environment: Environment,
    environ: Mapping[str, str],
    plan: Plan,
    cuda: Cuda,
) -> list[Row]:
    """Return setting, value, source, how; pure. *environ* is the one before ours."""
    return [
        *_settings(settings, keys, environment, cuda),
        *_variables(environment, environ),
        *_arguments(plan),
    ]


def table(lines: Iterable[Row]) -> str:
    """Lay *lines* out in columns under a heading."""
    every = [("SETTING", "VALUE", "SOURCE", "HOW"), *lines]
    widths = [max(len(row[column]) for row in every) for column in range(3)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]])
        for row in every
    )


def _settings(
    settings: Settings, keys: frozenset[str], environment: Environment, cuda: Cuda
) -> Iterator[Row]:
    by_call = "torch.cuda.set_per_process_memory_fraction in each process"
    fraction = by_call if environment.fraction_by_call else f"in {ALLOCATOR[0]}"
    idle = "" if cuda.available else "; no effect without CUDA"
    how = {
        "memory_fraction": fraction + idle,
        "max_split_size_mb": f"in {ALLOCATOR[0]}{idle}",
        "cudnn_benchmark": f"torch.backends.cudnn.benchmark when training starts{idle}",
        "offline": "YOLO_OFFLINE, YOLO_AUTOINSTALL",
        "font": "copied into YOLO_CONFIG_DIR",
        "gpus": "only where Slurm's variables do not tell",
        "version": "the format of the settings file",
    }
    if settings.max_split_size_mb is None:
        how["max_split_size_mb"] = "left to torch"
    if environment.allocator_is_users:
        how["max_split_size_mb"] = "not used: the allocator's variable is already set"
    for name in settings.__struct_fields__:
        source = "settings file" if name in keys else "default"
        value = msgspec.json.encode(getattr(settings, name)).decode()
        yield name, value, source, how[name]


def _variables(environment: Environment, environ: Mapping[str, str]) -> Iterator[Row]:
    for name, value in environment.values.items():
        yield name, value, "yolo-train", "environment, before torch is imported"
    for name in (*ALLOCATOR, "YOLO_CONFIG_DIR", "MPLCONFIGDIR", "YOLO_OFFLINE", "OMP_NUM_THREADS"):
        if name in environ and name not in environment.values:
            yield name, environ[name], "user", "environment, left as it is"


def _arguments(plan: Plan) -> Iterator[Row]:
    for key, (value, reason) in plan.defaults.items():
        yield key, str(value), "yolo-train", f"training argument: {reason}"
    for key, value in plan.words.items():
        yield key, str(value), "user", "training argument"
