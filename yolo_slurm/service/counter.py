"""The bank's counter for an administrator on the controller: grant, show, history."""

from __future__ import annotations

import time
from dataclasses import dataclass

from yolo_slurm.budget.grant import check_project, grant
from yolo_slurm.errors import InputError, UnavailableError
from yolo_slurm.ledger import entries
from yolo_slurm.ledger.entries import Account, Entry
from yolo_slurm.service.books import Controller
from yolo_slurm.settle.limits import LimitChange, Standing, converge
from yolo_slurm.settle.round import standings
from yolo_slurm.slurm.client import GPU
from yolo_slurm.tokens import Units, parse_tokens


@dataclass(frozen=True, slots=True)
class Granted:
    """A grant that is in the books. problem: why the limit in Slurm does not say so yet."""

    entry: int
    units: Units
    limit: int | None
    problem: str | None


@dataclass(frozen=True, slots=True)
class Statement:
    """One project's books, with its standing in Slurm where slurmctld answered."""

    account: Account
    standing: Standing | None
    unknown_attempts: int


def give(controller: Controller, project: str, tokens: str, reason: str) -> Granted:
    """Grant *tokens* to *project*, set its limit and read it back.

    Once the entry is in the books it is not undone: a limit that cannot be
    set now is set by the service later. Raises InputError, UnavailableError.
    """
    units = parse_tokens(tokens)
    check_project(project, controller.limits)
    with controller.ledger() as ledger:
        number = grant(
            ledger, project, units, by=controller.by, reason=reason, now=int(time.time())
        )
        if not controller.enforce:
            return Granted(number, units, None, None)
        try:
            found = [
                s
                for s in standings(ledger, controller.jobs, controller.limits)
                if s.project == project
            ]
            changes = converge(found, controller.limits)
            limit = _read_back(controller, project, changes, found)
        except UnavailableError as error:
            return Granted(number, units, None, str(error))
    return Granted(number, units, limit, None)


def _read_back(
    controller: Controller, project: str, changes: list[LimitChange], found: list[Standing]
) -> int | None:
    """Return the limit that slurmctld holds, once it holds what was written."""
    wanted = changes[0].after if changes else found[0].limit if found else None
    limit = None
    for _ in range(50):
        record = controller.limits.associations().of_account(project)
        limit = record.minutes(GPU).limit if record else None
        if limit == wanted:
            return limit
        time.sleep(0.1)
    raise UnavailableError(
        f"slurmctld holds a limit of {limit} minutes for {project} where {wanted} was written"
    )


def show(controller: Controller, project: str | None) -> list[Statement]:
    """Return the books of *project*, or of every project that has any. Raises InputError."""
    with controller.ledger() as ledger:
        with ledger.transaction() as connection:
            books = entries.accounts(connection)
            unknown = entries.unknown_attempts(connection)
        try:
            found = {s.project: s for s in standings(ledger, controller.jobs, controller.limits)}
        except UnavailableError:
            found = {}
    if project is not None:
        books = {name: account for name, account in books.items() if name == project}
        if not books:
            raise _no_entries(project)
    return [Statement(books[name], found.get(name), unknown.get(name, 0)) for name in sorted(books)]


def history(controller: Controller, project: str | None) -> list[Entry]:
    """Return the entries of *project*, or all, oldest first. Raises InputError."""
    with controller.ledger() as ledger, ledger.transaction() as connection:
        found = entries.history(connection, None if project is None else [project])
    if project is not None and not found:
        raise _no_entries(project)
    return found


def _no_entries(project: str) -> InputError:
    return InputError(f"project {project!r} has no entries in the ledger")
