"""Posts entries and reads them back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, Table, case, func, insert, select

from yolo_slurm.errors import InputError
from yolo_slurm.ledger.schema import entry, observation
from yolo_slurm.slurm.client import Attempt, AttemptKey
from yolo_slurm.tokens import MAX_TOKENS, MAX_UNITS, Units

COST: Final = "cost"
NEVER_RAN: Final = "never-ran"
UNKNOWN: Final = "unknown"


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry. units are signed: a debit is negative; at is epoch seconds."""

    id: int
    at: int
    kind: str
    project: str
    units: Units
    by: str
    reason: str
    attempt: AttemptKey | None
    job: str | None  # as users know it: 12_3


@dataclass(frozen=True, slots=True)
class Account:
    """One project's sums. managed: whether anything but debits was ever posted to it."""

    project: str
    units: Units
    granted: Units
    adjusted: Units  # what is neither a grant nor a debit
    debited: Units  # negative
    managed: bool


def attempt_text(key: AttemptKey) -> str:
    """Return the unique key of an attempt as one word."""
    return f"{key.cluster}/{key.job_id}/{key.submit}"


def settled(connection: Connection, keys: Iterable[AttemptKey]) -> set[AttemptKey]:
    """Return those of *keys* whose end is in the books; one of unknown cost is not."""
    wanted = set(keys)
    found: set[AttemptKey] = set()
    jobs = sorted({key.job_id for key in wanted})
    for at in range(0, len(jobs), 500):
        rows = connection.execute(
            select(observation.c.cluster, observation.c.job_id, observation.c.submit).where(
                observation.c.job_id.in_(jobs[at : at + 500]),
                observation.c.outcome != UNKNOWN,
            )
        )
        found.update(AttemptKey(*row) for row in rows)
    return found & wanted


def _insert(connection: Connection, table: Table, **values: object) -> int:
    """Add a row to *table* and return its id."""
    key = connection.execute(insert(table).values(**values)).inserted_primary_key
    assert key is not None  # noqa: S101 - every table here has one
    return int(key[0])


def observe(connection: Connection, attempt: Attempt, seen_at: int, outcome: str) -> int:
    """Keep *attempt* as it was read at *seen_at*; return the observation's id."""
    return _insert(
        connection,
        observation,
        seen_at=seen_at,
        cluster=attempt.key.cluster,
        job_id=attempt.key.job_id,
        submit=attempt.key.submit,
        job=attempt.job,
        account=attempt.account,
        user=attempt.user,
        partition=attempt.partition,
        qos=attempt.qos,
        state=attempt.state,
        start=attempt.start,
        end=attempt.end,
        elapsed=attempt.elapsed,
        alloc_tres=attempt.alloc_tres,
        outcome=outcome,
    )


def post(
    connection: Connection,
    *,
    kind: str,
    project: str,
    units: int,
    by: str,
    reason: str,
    at: int,
    charges: AttemptKey | None = None,
    observation_id: int | None = None,
) -> int:
    """Add an entry and return its id. Raises InputError where the balance would pass 1e9 tokens."""
    balance = connection.scalar(select(func.sum(entry.c.units)).where(entry.c.project == project))
    if abs(units) > MAX_UNITS or abs(int(balance or 0) + units) > MAX_UNITS:
        raise InputError(f"project {project}: the balance would pass {MAX_TOKENS} tokens")
    return _insert(
        connection,
        entry,
        at=at,
        kind=kind,
        project=project,
        units=units,
        by=by,
        reason=reason,
        charges=attempt_text(charges) if charges else None,
        observation_id=observation_id,
    )


def unknown_attempts(connection: Connection) -> dict[str, int]:
    """Return, by project, how many attempts ended whose cost is still unknown."""
    later = observation.alias()
    known = (
        select(later.c.id)
        .where(
            later.c.cluster == observation.c.cluster,
            later.c.job_id == observation.c.job_id,
            later.c.submit == observation.c.submit,
            later.c.outcome != UNKNOWN,
        )
        .exists()
    )
    keys = (
        select(
            observation.c.account, observation.c.cluster, observation.c.job_id, observation.c.submit
        )
        .where(observation.c.outcome == UNKNOWN, ~known)
        .distinct()
        .subquery()
    )
    rows = connection.execute(select(keys.c.account, func.count()).group_by(keys.c.account))
    return {account: int(count) for account, count in rows}


def accounts(connection: Connection) -> dict[str, Account]:
    """Return the sums of every project that has entries."""
    others = case((entry.c.kind == "debit", 0), else_=1)
    rows = connection.execute(
        select(
            entry.c.project,
            func.sum(entry.c.units),
            func.sum(case((entry.c.kind == "grant", entry.c.units), else_=0)),
            func.sum(case((entry.c.kind == "debit", entry.c.units), else_=0)),
            func.max(others),
        ).group_by(entry.c.project)
    )
    found: dict[str, Account] = {}
    for project, *sums, managed in rows:
        units, granted, debited = map(int, sums)
        adjusted = Units(units - granted - debited)
        found[project] = Account(
            project, Units(units), Units(granted), adjusted, Units(debited), bool(managed)
        )
    return found


def history(connection: Connection, projects: Sequence[str] | None = None) -> list[Entry]:
    """Return the entries, oldest first, of *projects* (None: of all)."""
    query = (
        select(
            entry.c.id, entry.c.at, entry.c.kind, entry.c.project, entry.c.units, entry.c.by,
            entry.c.reason, observation.c.cluster, observation.c.job_id, observation.c.submit,
            observation.c.job,
        )
        .select_from(entry.outerjoin(observation, entry.c.observation_id == observation.c.id))
        .order_by(entry.c.id)
    )  # fmt: skip
    if projects is not None:
        query = query.where(entry.c.project.in_(projects))
    return [
        Entry(
            id=row.id,
            at=row.at,
            kind=row.kind,
            project=row.project,
            units=Units(row.units),
            by=row.by,
            reason=row.reason,
            attempt=None
            if row.cluster is None
            else AttemptKey(row.cluster, row.job_id, row.submit),
            job=row.job,
        )
        for row in connection.execute(query)
    ]
