"""What an attempt costs, from its sacct row. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from yolo_slurm.slurm.client import Attempt
from yolo_slurm.slurm.text import parse_tres
from yolo_slurm.tokens import Units, of_gpu_seconds


@dataclass(frozen=True, slots=True)
class Open:
    """It has not ended: nothing to settle yet."""


@dataclass(frozen=True, slots=True)
class NeverRan:
    """It ended without a start: it costs nothing."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """It ran, and what it held is not recorded: left unsettled and shown, never guessed."""

    why: str


@dataclass(frozen=True, slots=True)
class Cost:
    """It ran and ended."""

    gpu_seconds: int
    gpus: int

    @property
    def units(self) -> Units:
        """Its price at 1 token per GPU-hour."""
        return of_gpu_seconds(self.gpu_seconds)


Charge = Open | NeverRan | Unknown | Cost


def charge_of(attempt: Attempt) -> Charge:
    """Return what *attempt* costs.

    Elapsed seconds × the GPUs of the whole job; suspended time is in neither.
    """
    if not attempt.final:
        return Open()
    if attempt.start is None:
        return NeverRan()
    if attempt.elapsed == 0:
        return Cost(0, 0)  # it failed at its start: whatever it held, it cost nothing
    gpus = parse_tres(attempt.alloc_tres)
    if gpus.total is None:
        return Unknown("sacct has no allocation for it")
    if gpus.shards:
        return Unknown("it ran on shards, which have no price yet")
    return Cost(attempt.elapsed * gpus.total, gpus.total)
