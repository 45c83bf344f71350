"""Grants: tokens for a project."""

from __future__ import annotations

from yolo_slurm.errors import InputError
from yolo_slurm.ledger import entries
from yolo_slurm.ledger.store import Ledger
from yolo_slurm.slurm.client import Limits
from yolo_slurm.tokens import Units


def check_project(project: str, limits: Limits) -> None:
    """Raise InputError unless *project* is a Slurm account that slurmctld knows."""
    known = limits.associations()
    if known.of_account(project) is None:
        names = sorted({r.account for r in known.records if not r.user and r.account != "root"})
        raise InputError(
            f"project {project!r} is not a Slurm account; the accounts are: "
            f"{', '.join(names) or 'none'}; make it with: sacctmgr add account {project!r}"
        )
    below = sorted({r.account for r in known.records if not r.user and r.parent == project})
    if below:
        raise InputError(
            f"project {project!r} has accounts below it ({', '.join(below)}), whose usage its "
            "books do not hold yet: grant to each of them"
        )


def grant(ledger: Ledger, project: str, units: Units, *, by: str, reason: str, now: int) -> int:
    """Give *units* to *project* and return the entry's id.

    With its first grant a project becomes managed. What it used before then
    is on record and not charged: an adjustment brings it to 0. Raises
    InputError.
    """
    if not reason.strip():
        raise InputError("--reason is empty: say what the tokens are for")
    if not reason.isprintable() or len(reason) > 1000:
        raise InputError("--reason: expected one line of at most 1000 printable characters")
    with ledger.transaction() as connection:
        account = entries.accounts(connection).get(project)
        if account is not None and not account.managed and account.units:
            entries.post(
                connection,
                kind="adjustment",
                project=project,
                units=-account.units,
                by=by,
                reason="usage before the first grant is not charged",
                at=now,
            )
        return entries.post(
            connection, kind="grant", project=project, units=units, by=by, reason=reason, at=now
        )
