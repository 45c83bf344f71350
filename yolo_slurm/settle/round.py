"""One round: take the spool, ask sacct once, post in one transaction, bring limits in line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from sqlalchemy import Connection

from yolo_slurm.ledger import entries
from yolo_slurm.ledger.store import Ledger
from yolo_slurm.settle import spool
from yolo_slurm.settle.charge import Cost, NeverRan, Unknown, charge_of
from yolo_slurm.settle.limits import LimitChange, Standing, converge, survey
from yolo_slurm.slurm.client import Attempt, AttemptKey, BadRow, Jobs, Limits
from yolo_slurm.tokens import Units

SETTLER: Final = "settler"
# Jobs that sacct is asked about in one call, and how much earlier than the
# oldest hook file it looks: attempts are found by when they ended.
_BATCH: Final = 500
_MARGIN: Final = 3600
# While an attempt that ended this many seconds ago or less is still open in
# sacct, limits are lowered and not raised.
_FRESH: Final = 60


@dataclass(slots=True)
class Report:
    """What a round did."""

    debits: list[tuple[Attempt, Units]] = field(default_factory=list)
    unknown: list[tuple[Attempt, str]] = field(default_factory=list)
    bad_rows: list[BadRow] = field(default_factory=list)
    waiting: int = 0  # events that sacct cannot answer yet
    changes: list[LimitChange] = field(default_factory=list)


OpenLedger = Callable[[], AbstractContextManager[Ledger]]


def settle(
    books: OpenLedger, jobs: Jobs, directory: Path, *, now: int, report: Report
) -> list[spool.Event]:
    """Post what the spool in *directory* tells of; return the events that stay in it.

    Files are removed after the commit. The ledger is not held while sacct is
    asked. Raises UnavailableError with the spool untouched.
    """
    events = spool.read_spool(directory)
    left: list[spool.Event] = []
    for at in range(0, len(events), _BATCH):
        batch = events[at : at + _BATCH]
        asked = {event.job_id for event in batch if event.kind is spool.EventKind.END}
        since = min(event.at for event in batch) - _MARGIN
        attempts, bad = jobs.attempts(asked, since=since)
        report.bad_rows.extend(bad)
        if attempts:
            with books() as ledger:
                _post(ledger, attempts, now, report)
        answered: list[spool.Event] = []
        for event in batch:
            (answered if spool.is_answered(event, attempts) else left).append(event)
        spool.remove(answered)
    report.waiting = len(left)
    return left


def _post(ledger: Ledger, attempts: Sequence[Attempt], now: int, report: Report) -> None:
    """Add an observation for each attempt that ended and is new, and a debit where it cost."""
    final = {attempt.key: attempt for attempt in attempts if attempt.final}
    with ledger.transaction() as connection:
        known = entries.settled(connection, final)
        for key, attempt in sorted(final.items(), key=lambda item: (item[1].end or 0, item[0])):
            if key in known:
                continue
            charge = charge_of(attempt)
            if isinstance(charge, Unknown):
                entries.observe(connection, attempt, now, entries.UNKNOWN)
                report.unknown.append((attempt, charge.why))
            elif isinstance(charge, NeverRan):
                entries.observe(connection, attempt, now, entries.NEVER_RAN)
            elif isinstance(charge, Cost):
                observed = entries.observe(connection, attempt, now, entries.COST)
                if charge.units:
                    _debit(connection, attempt, charge, observed, now)
                    report.debits.append((attempt, charge.units))


def _debit(connection: Connection, attempt: Attempt, charge: Cost, observed: int, now: int) -> None:
    entries.post(
        connection,
        kind="debit",
        project=attempt.account,
        units=-charge.units,
        by=SETTLER,
        reason=f"{charge.gpus} GPU × {attempt.elapsed} s, {attempt.state}",
        at=now,
        charges=attempt.key,
        observation_id=observed,
    )


def standings(ledger: Ledger, jobs: Jobs, limits: Limits) -> list[Standing]:
    """Return where each managed project stands. Raises UnavailableError."""

    def balances() -> dict[str, Units]:
        with ledger.transaction() as connection:
            return {
                name: account.units
                for name, account in entries.accounts(connection).items()
                if account.managed
            }

    def settled(keys: set[AttemptKey]) -> set[AttemptKey]:
        with ledger.transaction() as connection:
            return entries.settled(connection, keys)

    return survey(jobs, limits, balances, settled)


def run_round(
    books: OpenLedger, jobs: Jobs, limits: Limits, directory: Path, *, now: int, enforce: bool
) -> Report:
    """Settle the spool, then set the limits that the books ask for, if the policy enforces."""
    report = Report()
    left = settle(books, jobs, directory, now=now, report=report)
    if enforce:
        fresh = any(now - event.at <= _FRESH for event in left)
        with books() as ledger:
            found = standings(ledger, jobs, limits)
            report.changes = converge(found, limits, may_raise=not fresh)
    return report
