"""What projects have available, as slurmctld holds it: no ledger and no deployment needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from yolo_slurm.errors import InputError
from yolo_slurm.slurm.client import GPU, Associations
from yolo_slurm.tokens import Units, of_minutes


@dataclass(frozen=True, slots=True)
class Available:
    """One project. available is None where nothing limits it; running is what jobs still hold."""

    project: str
    available: Units | None
    running: Units
    default: bool


def balances(
    associations: Associations, user: str, projects: Sequence[str] = ()
) -> list[Available]:
    """Return what *projects* have available, or those that *user* may submit to.

    The tightest limit of the account, the accounts above it and the user's
    own cap counts. Raises InputError for an account that there is not.
    """
    mine = sorted({record.account for record in associations.records if record.user == user})
    for name in projects:
        if associations.of_account(name) is None:
            raise InputError(
                f"project {name!r} is not a Slurm account; yours are: {', '.join(mine) or 'none'}"
            )
    found: list[Available] = []
    for name in projects or mine:
        free: int | None = None
        for record in associations.chain(name, user):
            minutes = record.minutes(GPU)
            if minutes.limit is not None:
                left = max(0, minutes.limit - minutes.held)
                free = left if free is None else min(free, left)
        own = associations.of_account(name)
        running = own.minutes(GPU).running if own else 0
        found.append(
            Available(
                name,
                None if free is None else of_minutes(free),
                of_minutes(running),
                name == associations.default_account,
            )
        )
    return found
