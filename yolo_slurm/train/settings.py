"""The settings file: what the submit side decided for this job.

One JSON object, written at submission and read here, so that a compute node
needs neither the policy nor a connection to whoever owns it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import msgspec

from yolo_slurm.train.errors import InputError

_PATH = re.compile(r" - at `\$\.([A-Za-z0-9_]+)")
_UNKNOWN = re.compile(r"unknown field `([^`]*)`")


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a training job treats its GPUs. Every key may be left out.

    memory_fraction: the part of a GPU's memory that one process may hold.
    max_split_size_mb: MiB; larger free blocks are not split, which keeps a long
        training from fragmenting its memory. PyTorch refuses 20 and less.
    cudnn_benchmark: let cudnn time its convolution algorithms. Not reproducible.
    offline: no network on the compute node; nothing is downloaded or installed.
    font: a TrueType file for plots; null takes the one that matplotlib ships.
    gpus: GPUs per node that were asked for, where Slurm's variables do not tell.
    """

    version: Annotated[int, msgspec.Meta(ge=1, le=1)] = 1
    memory_fraction: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.85
    max_split_size_mb: Annotated[int, msgspec.Meta(gt=20)] | None = 128
    cudnn_benchmark: bool = True
    offline: bool = True
    font: str | None = None
    gpus: Annotated[int, msgspec.Meta(ge=1)] | None = None


def decode(data: bytes, name: str) -> Settings:
    """Decode a settings file's bytes; *name* is how errors call it.

    Raises InputError naming the key, its value and what was expected.
    """
    try:
        raw = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{name}: not JSON: {error}") from error
    if not isinstance(raw, dict):
        raise InputError(f"{name}: expected one JSON object, found {_shown(raw)}")
    try:
        return msgspec.convert(raw, Settings)
    except msgspec.ValidationError as error:
        raise InputError(f"{name}: {_explained(str(error), raw)}") from error


def load(path: Path | None) -> tuple[Settings, frozenset[str]]:
    """Return the settings in *path* and the keys it sets; defaults without a path.

    Raises InputError when the file cannot be read or is not what is expected.
    """
    if path is None:
        return Settings(), frozenset()
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"settings file {path}: {error.strerror or error}") from error
    settings = decode(data, f"settings file {path}")
    return settings, frozenset(msgspec.json.decode(data))


def _explained(message: str, raw: dict[str, object]) -> str:
    """Turn msgspec's message, which names the key alone, into key, value, expectation."""
    if unknown := _UNKNOWN.search(message):
        key = unknown.group(1)
        known = ", ".join(Settings.__struct_fields__)
        return f"unknown key {key} = {_shown(raw.get(key))}; expected one of: {known}"
    if at := _PATH.search(message):
        key = at.group(1)
        expected = message[: at.start()]
        expected = expected[:1].lower() + expected[1:]
        return f"{key} = {_shown(raw.get(key))}: {expected}"
    return message


def _shown(value: object) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 60 else f"{text[:57]}..."
