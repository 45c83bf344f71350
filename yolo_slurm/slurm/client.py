"""What the rest of the house asks of Slurm, and the records that come back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, Protocol

import msgspec

from yolo_slurm.slurm.text import Gpus

# The TRES that budgets are limits on. It counts GPUs of every type, asked for
# by type or not.
GPU: Final = "gres/gpu"

# States in which an attempt has ended for good. A row in another state can
# still change. Source: sacct(1), "JOB STATE CODES".
FINAL_STATES: Final = frozenset(
    {
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "DEADLINE",
        "FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PREEMPTED",
        "REQUEUED",
        "REVOKED",
        "TIMEOUT",
    }
)


class AttemptKey(NamedTuple):
    """What makes an attempt one: a recycled id or a requeue has another submit time (epoch s)."""

    cluster: str
    job_id: int
    submit: int


class Attempt(msgspec.Struct, frozen=True):
    """One row of ``sacct -D -X``: one run of one job, or one that never ran.

    Times are epoch seconds, None where there is none yet; elapsed is in
    seconds, without suspended time.
    """

    key: AttemptKey
    job: str  # as users know it: 12_3, 12+0
    start: int | None
    end: int | None
    elapsed: int
    state: str  # one word: CANCELLED, never "CANCELLED by 1001"
    alloc_tres: str
    account: str
    user: str
    partition: str
    qos: str

    @property
    def final(self) -> bool:
        """Whether it has ended, so that the row is not expected to change."""
        return self.state in FINAL_STATES and (self.end is not None or self.start is None)


class BadRow(msgspec.Struct, frozen=True):
    """A row that could not be read, and why. The rows around it are not lost."""

    text: str
    why: str


class QueuedJob(msgspec.Struct, frozen=True):
    """A job that slurmctld holds: waiting, running, or ended a short time ago.

    Times are epoch seconds; limit is in seconds, None for no limit; tasks is
    the number of array tasks that the record stands for, None if not known.
    """

    key: AttemptKey
    job: str
    account: str
    user: str
    partition: str
    qos: str
    state: str
    reason: str
    start: int | None
    end: int | None
    limit: int | None
    gpus: Gpus
    tasks: int | None
    name: str

    @property
    def running(self) -> bool:
        """Whether it holds its allocation now."""
        return self.state in {"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "CONFIGURING"}


class TresMinutes(msgspec.Struct, frozen=True):
    """One TRES of one association: limit, usage held, and what running jobs may still use.

    In minutes, floored as slurmctld prints them; limit is None for no limit.
    """

    limit: int | None
    used: int
    running: int

    @property
    def held(self) -> int:
        """What slurmctld counts against the limit: usage, and what running jobs may still use."""
        return self.used + self.running


class Association(msgspec.Struct, frozen=True):
    """One record of slurmctld's association manager; user is '' for an account's own."""

    cluster: str
    account: str
    user: str
    parent: str
    tres: dict[str, TresMinutes]  # by TRES name, such as gres/gpu

    def minutes(self, tres: str) -> TresMinutes:
        """Return the minutes of *tres*; no limit and no usage where it has none."""
        return self.tres.get(tres, TresMinutes(None, 0, 0))


class Associations(msgspec.Struct, frozen=True):
    """What slurmctld holds in memory of accounts and users."""

    records: tuple[Association, ...]
    default_account: str | None  # of the user who was asked for

    def of_account(self, account: str) -> Association | None:
        """Return the record of the account itself."""
        return next((a for a in self.records if a.account == account and not a.user), None)

    def chain(self, account: str, user: str) -> list[Association]:
        """Return the records whose limits hold a job of *user* in *account*, nearest first."""
        found = [a for a in self.records if a.account == account and user and a.user == user]
        name = account
        while name and (record := self.of_account(name)) and record not in found:
            found.append(record)
            name = record.parent
        return found


class Jobs(Protocol):
    """Jobs and their attempts."""

    def queued(self, *, user: str | None = None) -> list[QueuedJob]:
        """Return the jobs that slurmctld holds, each array task that runs on its own."""

    def attempts(self, job_ids: Iterable[int], *, since: int) -> tuple[list[Attempt], list[BadRow]]:
        """Return every attempt of *job_ids* since epoch second *since*, from slurmdbd."""


class Limits(Protocol):
    """Associations and the limits on them."""

    def associations(self, *, user: str | None = None) -> Associations:
        """Return what slurmctld holds in memory; slurmdbd is not asked."""

    def set_minutes(self, account: str, tres: str, minutes: int, *, cluster: str) -> None:
        """Limit *account* to *minutes* of *tres* in all (GrpTRESMins)."""
