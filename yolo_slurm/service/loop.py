"""The settle loop: a round when the hook left something, and now and then without."""

from __future__ import annotations

import signal
import sys
import threading
import time
from datetime import UTC, datetime
from typing import Final

from yolo_slurm.errors import UnavailableError
from yolo_slurm.service.books import Controller
from yolo_slurm.settle.round import Report, run_round
from yolo_slurm.settle.spool import read_spool
from yolo_slurm.tokens import say_tokens

POLL_SECONDS: Final = 0.25
# The pause after a round: a burst of ends is settled in few rounds.
ROUND_SECONDS: Final = 1.0
# An event that sacct has not answered for so long is asked about no oftener
# than limits are compared.
RETRY_SECONDS: Final = 60.0
# How often limits are compared when nothing ended: they can be edited by hand.
QUIET_SECONDS: Final = 30.0
_LONGEST_PAUSE: Final = 10.0


def log(text: str) -> None:
    """Write one line with the time, in UTC, to stderr."""
    stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    sys.stderr.write(f"{stamp} {text}\n")
    sys.stderr.flush()


def one_round(controller: Controller) -> Report:
    """Settle what the spool tells of and bring limits in line. Raises UnavailableError."""
    return run_round(
        controller.ledger,
        controller.jobs,
        controller.limits,
        controller.spool,
        now=int(time.time()),
        enforce=controller.enforce,
    )


def describe(report: Report) -> list[str]:
    """Return a line for each thing that a round did."""
    lines = [
        f"debit {attempt.account} {say_tokens(units, 9)} for job {attempt.job} "
        f"({attempt.state}, {attempt.elapsed} s)"
        for attempt, units in report.debits
    ]
    lines += [
        f"limit {change.project} gres/gpu {change.before} -> {change.after} minutes"
        for change in report.changes
    ]
    lines += [
        f"unknown: job {attempt.job} of {attempt.account} is not charged: {why}"
        for attempt, why in report.unknown
    ]
    lines += [f"passed over a row of sacct: {bad.why}: {bad.text!r}" for bad in report.bad_rows]
    return lines


def run_forever(controller: Controller) -> None:
    """Settle until SIGTERM or SIGINT; a round that is under way is finished first.

    Where Slurm or the database does not answer, nothing is lost: the spool
    stays, and the round is tried again after a pause.
    """
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    log(f"settling {controller.spool} into the ledger")
    pause = POLL_SECONDS
    quiet_until = 0.0
    complaint = ""
    while not stop.is_set():
        try:
            recent = time.time() - RETRY_SECONDS
            news = any(event.at >= recent for event in read_spool(controller.spool))
            if news or time.monotonic() >= quiet_until:
                report = one_round(controller)
                for line in describe(report):
                    log(line)
                quiet_until = time.monotonic() + QUIET_SECONDS
                pause = ROUND_SECONDS
            else:
                pause = POLL_SECONDS
            if complaint:
                log("answered again")
                complaint = ""
        except UnavailableError as error:
            if str(error) != complaint:
                log(f"waiting: {error}")
            complaint = str(error)
            pause = min(pause * 2, _LONGEST_PAUSE)
        stop.wait(pause)
    log("stopped")
