"""The books as JSON: amounts as decimal strings and whole units, times in UTC."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from yolo_slurm.ledger.entries import Entry
from yolo_slurm.service.counter import Statement
from yolo_slurm.tokens import format_tokens


def utc(epoch: int) -> str:
    """Return an epoch second as ISO 8601 in UTC."""
    return datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def entry_json(entry: Entry) -> dict[str, Any]:
    """Return *entry* as a JSON object; a debit's tokens are negative."""
    attempt = entry.attempt
    return {
        "id": entry.id,
        "kind": entry.kind,
        "project": entry.project,
        "tokens": format_tokens(entry.units),
        "units": str(entry.units),
        "attempt": None
        if attempt is None
        else {
            "cluster": attempt.cluster,
            "job_id": attempt.job_id,
            "submit": attempt.submit,
            "job": entry.job,
        },
        "at": utc(entry.at),
        "by": entry.by,
        "reason": entry.reason,
    }


def statement_json(statement: Statement) -> dict[str, Any]:
    """Return *statement* as a JSON object; null is what slurmctld did not tell."""
    account, standing = statement.account, statement.standing
    return {
        "project": account.project,
        "managed": account.managed,
        "granted": format_tokens(account.granted),
        "adjusted": format_tokens(account.adjusted),
        "debited": format_tokens(account.debited),
        "balance": format_tokens(account.units),
        "balance_units": str(account.units),
        "reserved": None if standing is None else format_tokens(standing.reserved),
        "unsettled": None if standing is None else format_tokens(standing.unsettled),
        "available": None if standing is None else format_tokens(standing.available),
        "limit_minutes": None if standing is None else standing.limit,
        "unknown_attempts": statement.unknown_attempts,
    }
