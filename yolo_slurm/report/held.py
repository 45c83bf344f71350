"""What an attempt held, in one short text that a database can group by. Pure."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from yolo_slurm.slurm.client import Attempt
from yolo_slurm.slurm.text import parse_tres

UNTYPED: Final = "untyped"
UNKNOWN: Final = "unknown"
SHARD: Final = "shard"
NO_GPU: Final = "none"

_NOT_RECORDED: Final = "?"
_SHARDS: Final = "shard"


@lru_cache(maxsize=4096)
def encode(alloc_tres: str) -> str:
    """Return the GPUs in *alloc_tres* as ``a100=2,=1``: each type, then those without one.

    ``''`` is no GPU, ``?`` an allocation that is not recorded, ``shard`` one of
    shards, which have no price yet.
    """
    gpus = parse_tres(alloc_tres)
    if gpus.total is None:
        return _NOT_RECORDED
    if gpus.shards:
        return _SHARDS
    typed = sorted((gpus.by_type or {}).items())
    untyped = gpus.total - sum(count for _, count in typed)
    return ",".join(f"{kind}={count}" for kind, count in [*typed, ("", untyped)] if count)


def held_of(attempt: Attempt) -> str:
    """Return `encode` of what *attempt* held; nothing where it failed at its start."""
    if attempt.final and not attempt.elapsed and not attempt.alloc_tres:
        return ""
    return encode(attempt.alloc_tres)


@lru_cache(maxsize=4096)
def decode(text: str) -> tuple[tuple[str, int], ...] | None:
    """Return each type and its count in what `encode` made; None where the charge is unknown."""
    if text in {_NOT_RECORDED, _SHARDS}:
        return None
    if not text:
        return ((NO_GPU, 0),)
    items = (item.rpartition("=") for item in text.split(","))
    return tuple((kind or UNTYPED, int(count)) for kind, _, count in items)


def why_unknown(text: str) -> str:
    """Return the type that stands in a report for what `decode` does not know."""
    return SHARD if text == _SHARDS else UNKNOWN
