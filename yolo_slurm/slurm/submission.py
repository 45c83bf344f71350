"""One sbatch, submitted once: streamed, timed, and looked up again when its answer is lost.

sbatch runs as the leader of a session of its own. slurmctld keeps that
session's id with the job (``AllocSid``), so (user, host, session) is a tag
that is unique for as long as the process id is not used again, and that needs
nothing in the job's name, comment or environment.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import IO, Final

import msgspec

from yolo_slurm.errors import InputError, RefusedError, UnavailableError
from yolo_slurm.slurm import gateway
from yolo_slurm.slurm.text import Submitted, parse_sbatch

# What sbatch prints when slurmctld was not reached, or its answer was lost.
# Source: slurm_errno.c of 22.05 to 26.05.
_NO_ANSWER: Final = (
    "unable to contact slurm controller",
    "timed out",
    "zero bytes were transmitted",
    "connection refused",
    "communication connection failure",
    "message receive failure",
    "message send failure",
    "could not establish a configuration source",
)
_LOOK_UPS: Final = 5


class StopSignal(BaseException):
    """A signal that should end this process came; raised by its handler."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Sent(msgspec.Struct, frozen=True):
    """A submission that slurmctld took. job is None for ``--test-only``, which makes none.

    exit_code: sbatch's own; with ``--wait`` the job's.
    found_again: whether the job was looked up because sbatch's answer was lost.
    """

    job: Submitted | None
    exit_code: int
    found_again: bool = False


class Submission:
    """A running sbatch. Use: `job`, then, where it waits, `finish`."""

    def __init__(self, argv: Sequence[str], *, stdin: bytes | None, timeout: float) -> None:
        """Start *argv*; *stdin* is what it reads, None for this process's own stdin.

        timeout: seconds until its answer counts as lost. Raises CommandMissingError.
        """
        self._deadline = time.monotonic() + timeout
        self._timeout = timeout
        self._since = int(time.time())
        self._process = gateway.start(argv, stdin=stdin)
        self._stdout: list[str] = []
        self._stderr: list[str] = []
        self._answered = threading.Event()
        self._readers = [
            threading.Thread(target=self._read, args=(stream, to, echo), daemon=True)
            for stream, to, echo in (
                (self._process.stdout, self._stdout, False),
                (self._process.stderr, self._stderr, True),
            )
        ]
        for reader in self._readers:
            reader.start()

    def _read(self, stream: IO[bytes], lines: list[str], echo: bool) -> None:
        for raw in stream:
            line = raw.decode("utf-8", "replace")
            lines.append(line)
            if echo:
                sys.stderr.write(line)
                sys.stderr.flush()
            else:
                self._answered.set()
        if not echo:
            self._answered.set()

    def job(self) -> Sent:
        """Return the job, as soon as sbatch names it.

        Raises RefusedError when Slurm refuses it, UnavailableError when
        nothing tells whether it was submitted.
        """
        while not self._answered.wait(0.05):
            if time.monotonic() > self._deadline:
                break
        try:
            named: Submitted | None = parse_sbatch("".join(self._stdout))
        except InputError:
            named = None
        if named is not None:
            return Sent(named, 0)
        try:
            code = self._process.wait(max(0.1, self._deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            gateway.kill_session(self._process)
            code = None
        for reader in self._readers:
            reader.join(1.0)
        return self._without_answer(code)

    def _without_answer(self, code: int | None) -> Sent:
        said = "".join(self._stderr).lower()
        try:
            return Sent(parse_sbatch("".join(self._stdout)), code or 0)
        except InputError as error:
            if code == 0 and not "".join(self._stdout).strip():
                return Sent(None, 0)
            problem = str(error)
        lost = code is None or any(text in said for text in _NO_ANSWER)
        if not lost and code != 0:
            how = f"exit code {code}" if code is None or code >= 0 else f"killed by signal {-code}"
            raise RefusedError(f"sbatch submitted no job ({how}); its reason is above")
        found = self._look_up(_LOOK_UPS)
        if found is not None:
            return Sent(found, 0, found_again=True)
        if code is None:
            raise UnavailableError(
                f"sbatch did not answer within {self._timeout:g} s and no job of this submission "
                "is known to slurmctld; it was not submitted again: look with `squeue --me`, "
                "then run the command again if no job is there"
            )
        if lost:
            raise UnavailableError("slurmctld did not answer sbatch; no job was submitted")
        raise UnavailableError(problem)

    def abandon(self) -> Submitted | None:
        """End sbatch, which no signal of our terminal reaches; return the job if it made one."""
        gateway.kill_session(self._process)
        return self._look_up(2)

    def _look_up(self, times: int) -> Submitted | None:
        """Return the job that this submission made, by its session's id; None if there is none."""
        session = str(self._process.pid)
        for attempt in range(times):
            if attempt:
                time.sleep(1.0)
            try:
                found = [
                    job for job, sid, at in _mine() if sid == session and at >= self._since - 1
                ]
            except UnavailableError:
                continue
            if found:
                return Submitted(min(found))
        return None

    def finish(self) -> int:
        """Wait for a ``sbatch --wait`` and return its exit code, which is the job's.

        Raises StopSignal, with sbatch ended, where a signal comes first.
        """
        try:
            code = self._process.wait()
        except StopSignal:
            gateway.kill_session(self._process)
            raise
        for reader in self._readers:
            reader.join(1.0)
        return code if code >= 0 else 128 - code


def _mine() -> list[tuple[int, str, int]]:
    """Return (array or job id, session id, submit time) of this user's jobs from this host."""
    done = gateway.run(
        ["squeue", "--me", "--noheader", "--states=all", "--all",
         "--Format=ArrayJobID:20|,AllocSID:20|,SubmitTime:20|"],
        timeout=30.0,
        env={"SLURM_TIME_FORMAT": "%s"},
    )  # fmt: skip
    rows = (line.split("|") for line in done.stdout.splitlines() if line.count("|") >= 3)
    return [
        (int(job), sid.strip(), int(at))
        for job, sid, at, *_ in rows
        if job.strip().isdigit() and at.strip().isdigit()
    ]
