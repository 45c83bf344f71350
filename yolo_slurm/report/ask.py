"""Reads what a report is asked for: lists of names, and what to sum by. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from yolo_slurm.errors import InputError
from yolo_slurm.report.aggregate import By

DEFAULT_BY: Final = (By.PROJECT, By.USER)


def parse_by(texts: Sequence[str]) -> tuple[By, ...]:
    """Return what ``--by`` names, each once, in the order given. Raises InputError."""
    names = parse_names(texts, "--by")
    known = [each.value for each in By]
    for name in names:
        if name not in known:
            raise InputError(f"--by {name}: expected one or more of {', '.join(known)}")
    return tuple(By(name) for name in names) or DEFAULT_BY


def parse_names(texts: Sequence[str], option: str) -> tuple[str, ...]:
    """Return the names in lists such as ``a,b``, each once. Raises InputError for an empty one."""
    names = [name.strip() for text in texts for name in text.split(",")]
    if not all(names):
        raise InputError(f"{option} {','.join(texts)!r}: a name is empty")
    return tuple(dict.fromkeys(names))
