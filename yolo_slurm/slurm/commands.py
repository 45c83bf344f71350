"""`Jobs` and `Limits` over Slurm's command line: squeue, sacct, scontrol, sacctmgr.

Text formats that are the same in all versions are used rather than JSON that
is not. Times are asked for as epoch seconds: local ones repeat when clocks go
back. Nothing that a user can write (a name, a comment) is among the fields,
except a job's name, which comes last.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from yolo_slurm.errors import InputError, UnavailableError
from yolo_slurm.slurm import gateway
from yolo_slurm.slurm.client import (
    Association,
    Associations,
    Attempt,
    AttemptKey,
    BadRow,
    QueuedJob,
    TresMinutes,
)
from yolo_slurm.slurm.text import (
    Gpus,
    Limit,
    is_digits,
    parse_epoch,
    parse_job_id,
    parse_time_limit,
    parse_tres,
)

_EPOCH: Final = {"SLURM_TIME_FORMAT": "%s", "LC_ALL": "C.UTF-8"}
_READ_TIMEOUT: Final = 60.0
_WRITE_TIMEOUT: Final = 60.0
_HISTORY_TIMEOUT: Final = 600.0

ATTEMPT_FIELDS: Final = (
    "Cluster,JobIDRaw,JobID,Submit,Start,End,ElapsedRaw,State,AllocTRES,Account,User,Partition,QOS"
)
_ATTEMPT_WIDTH: Final = ATTEMPT_FIELDS.count(",") + 1
_SACCT: Final = ("sacct", "-D", "-X", "-P", "-n", "-o", ATTEMPT_FIELDS)


def parse_attempt(line: str) -> Attempt:
    """Return the attempt in a line of ``sacct -X -P -n -o ATTEMPT_FIELDS``. Raises InputError."""
    fields = line.split("|")
    if len(fields) != _ATTEMPT_WIDTH:
        raise InputError(f"expected {_ATTEMPT_WIDTH} fields, found {len(fields)}")
    (cluster, raw, job, submit, start, end, elapsed, state, tres, account, user, partition,
     qos) = fields  # fmt: skip
    submitted = parse_epoch(submit)
    if submitted is None:
        raise InputError("the row has no submit time")
    if not is_digits(elapsed):
        raise InputError(f"{elapsed!r} is not an elapsed time in seconds")
    if not state:
        raise InputError("the row has no state")
    return Attempt(
        key=AttemptKey(cluster, int(raw) if is_digits(raw) else parse_job_id(raw).job, submitted),
        job=job,
        start=parse_epoch(start),
        end=parse_epoch(end),
        elapsed=int(elapsed),
        state=state.split(None, 1)[0],
        alloc_tres=tres,
        account=account,
        user=user,
        partition=partition,
        qos=qos,
    )


def _read_row(line: str, left_out: str = "") -> Attempt | BadRow:
    """Return the attempt in *line*, or why it is none: one bad row costs no other.

    left_out: what stands for the last fields, where sacct was not asked for them.
    """
    try:
        return parse_attempt(line + left_out)
    except InputError as error:
        return BadRow(line, str(error))


def parse_attempts(text: str) -> tuple[list[Attempt], list[BadRow]]:
    """Return the attempts in *text*, and the lines that are none."""
    good: list[Attempt] = []
    bad: list[BadRow] = []
    for line in filter(None, text.splitlines()):
        row = _read_row(line)
        if isinstance(row, BadRow):
            bad.append(row)
        else:
            good.append(row)
    return good, bad


# The width is wide enough for the longest TRES list seen; what is cut is
# noticed, since the separator then stands where it should not.
_QUEUE_FIELDS: Final = (
    ("Cluster", 64), ("JobID", 20), ("JobArrayID", 512), ("SubmitTime", 20), ("StartTime", 20),
    ("EndTime", 20), ("TimeLimit", 30), ("State", 30), ("Account", 128), ("UserName", 128),
    ("Partition", 256), ("QOS", 128), ("Reason", 128), ("tres-alloc", 1024),
    ("tres-per-node", 256), ("tres-per-job", 256), ("NumNodes", 20), ("Name", 256),
)  # fmt: skip
_QUEUE_FORMAT: Final = ",".join(f"{name}:{width}|" for name, width in _QUEUE_FIELDS)


class CommandJobs:
    """Jobs over squeue and sacct."""

    def queued(self, *, user: str | None = None) -> list[QueuedJob]:
        """Return the jobs that slurmctld holds, those that ended a short time ago too.

        Raises UnavailableError when slurmctld does not answer.
        """
        argv = ["squeue", "--noheader", "--states=all", "--all", f"--Format={_QUEUE_FORMAT}"]
        if user is not None:
            argv.append(f"--user={user}")
        done = gateway.run(argv, timeout=_READ_TIMEOUT, env=_EPOCH)
        return list(parse_queue(done.stdout))

    def attempts(self, job_ids: Iterable[int], *, since: int) -> tuple[list[Attempt], list[BadRow]]:
        """Return every attempt of *job_ids* (raw ids) that was there after epoch second *since*.

        Raises UnavailableError when slurmdbd does not answer.
        """
        ids = ",".join(str(job_id) for job_id in sorted(set(job_ids)))
        if not ids:
            return [], []
        return self._sacct([f"--jobs={ids}", f"--starttime={_window(since)}", "--endtime=now"])

    def stream(
        self, *, since: int, until: int | None = None, everyone: bool = True
    ) -> Iterator[Attempt | BadRow]:
        """Yield every attempt between *since* and *until* (epoch s; None: now) as sacct prints it.

        `Attempt.qos` is left empty: sacct fetches all QOS from slurmdbd to
        name one, a third of the time of a short answer (measured, 22.05).
        """
        span = [f"--starttime={_window(since)}", f"--endtime={_window(until)}"]
        fields = ATTEMPT_FIELDS.removesuffix(",QOS")
        argv = [*_SACCT[:-1], fields, *(["--allusers"] if everyone else []), *span]
        for line in gateway.lines(argv, timeout=_HISTORY_TIMEOUT, env=_EPOCH):
            if line:
                yield _read_row(line, left_out="|")

    def _sacct(self, words: Sequence[str]) -> tuple[list[Attempt], list[BadRow]]:
        done = gateway.run([*_SACCT, *words], timeout=_HISTORY_TIMEOUT, env=_EPOCH)
        return parse_attempts(done.stdout)


def _window(epoch: int | None) -> str:
    """Return *epoch* as sacct takes it. Source: sacct(1), ``--starttime``: uts."""
    # sacct takes no uts0.
    return "now" if epoch is None else f"uts{max(epoch, 1)}"


def parse_queue(text: str) -> Iterator[QueuedJob]:
    """Yield the jobs in what ``squeue --Format`` printed for `_QUEUE_FORMAT`."""
    for line in text.splitlines():
        if not line.strip():
            continue
        fields: list[str] = []
        at = 0
        for _, width in _QUEUE_FIELDS[:-1]:
            end = line.find("|", at + width)
            if end < 0:
                raise UnavailableError(f"squeue printed a line that is not understood: {line!r}")
            fields.append(line[at:end].strip())
            at = end + 1
        yield _queued(fields, line[at:].rstrip("|").rstrip())


def _queued(fields: Sequence[str], name: str) -> QueuedJob:
    (cluster, raw, job, submit, start, end, limit, state, account, user, partition, qos, reason,
     allocated, per_node, per_job, nodes) = fields  # fmt: skip
    gpus = parse_tres("" if allocated in {"N/A", "(null)"} else allocated)
    if gpus.total is None:
        gpus = parse_tres(per_job.replace("N/A", "") or per_node)
        if gpus.per_node and per_job in {"", "N/A"} and gpus.total:
            count = int(nodes) if nodes.isdigit() else 1
            types = {kind: n * count for kind, n in (gpus.by_type or {}).items()}
            gpus = Gpus(gpus.total * count, types, gpus.shards * count)
    seconds = None if limit in {"", "NOT_SET", "INVALID"} else parse_time_limit(limit)
    return QueuedJob(
        key=AttemptKey(cluster, int(raw), parse_epoch(submit) or 0),
        job=job,
        account=account,
        user=user,
        partition=partition,
        qos=qos,
        state=state,
        reason=reason,
        start=parse_epoch(start),
        end=parse_epoch(end),
        limit=None if isinstance(seconds, Limit) else seconds,
        gpus=gpus,
        tasks=parse_job_id(job).tasks,
        name=name,
    )


_RECORD: Final = re.compile(
    r"ClusterName=(?P<cluster>\S*) Account=(?P<account>\S*) "
    r"UserName=(?P<user>[^\s(]*)(?:\([^)]*\))? "
)
_PARENT: Final = re.compile(r"\bParentAccount=([^\s(]*)")
_DEFAULT: Final = re.compile(r"^UserName=(?P<user>[^\s(]+)\([^)]*\) DefAccount=(?P<account>\S+)")
_TRES: Final = re.compile(r"\b(GrpTRESMins|GrpTRESRunMins)=(\S*)")
_COUNTED: Final = re.compile(r"([^,=]+)=([N0-9]+)\(([0-9]+)\)")


def parse_associations(text: str, user: str | None = None) -> Associations:
    """Return the records in what ``scontrol -o show assoc_mgr`` printed.

    Source: measured, one record a line; used minutes stand in brackets,
    ``N`` is no limit.
    """
    records: list[Association] = []
    default: str | None = None
    for line in text.splitlines():
        if found := _DEFAULT.match(line):
            if found["user"] == user:
                default = found["account"]
        elif found := _RECORD.match(line):
            lists = {m[1]: _COUNTED.findall(m[2]) for m in _TRES.finditer(line)}
            running = {name: int(now) for name, _, now in lists.get("GrpTRESRunMins", [])}
            tres = {
                name: TresMinutes(
                    None if most == "N" else int(most), int(used), running.get(name, 0)
                )
                for name, most, used in lists.get("GrpTRESMins", [])
            }
            parent = _PARENT.search(line)
            records.append(
                Association(
                    found["cluster"],
                    found["account"],
                    found["user"],
                    parent[1] if parent else "",
                    tres,
                )
            )
    return Associations(tuple(records), default)


class CommandLimits:
    """Limits over scontrol (what slurmctld holds) and sacctmgr (what slurmdbd is told)."""

    def associations(self, *, user: str | None = None) -> Associations:
        """Return the associations that slurmctld holds in memory.

        user: whose default account to tell. Raises UnavailableError.
        """
        argv = ["scontrol", "--oneliner", "show", "assoc_mgr", "flags=users,assoc"]
        done = gateway.run(argv, timeout=_READ_TIMEOUT, env=_EPOCH)
        return parse_associations(done.stdout, user)

    def set_minutes(self, account: str, tres: str, minutes: int, *, cluster: str) -> None:
        """Set GrpTRESMins of *account* in *cluster* for *tres*, in minutes.

        Slurm reads a negative limit as none, so that is refused here. Raises
        UnavailableError.
        """
        if minutes < 0:
            raise ValueError(f"a limit of {minutes} minutes would be none at all")
        gateway.run(
            [
                "sacctmgr", "--immediate", "--quiet", "modify", "account", "where",
                f"name={account}", f"cluster={cluster}", "set", f"GrpTRESMins={tres}={minutes}",
            ],
            timeout=_WRITE_TIMEOUT,
        )  # fmt: skip
