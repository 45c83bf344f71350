"""sbatch is run once, whatever becomes of its answer. The stand-ins print what sbatch printed."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from yolo_slurm.errors import RefusedError, UnavailableError
from yolo_slurm.slurm import submission
from yolo_slurm.slurm.gateway import CommandError, CommandMissingError, CommandTimeoutError, run
from yolo_slurm.slurm.submission import Submission


@pytest.fixture
def place(tmp_path, monkeypatch) -> Path:
    """A directory that is PATH, with a squeue that lists what `jobs` holds."""
    (tmp_path / "jobs").touch()
    program(tmp_path, "squeue", f"/bin/cat {tmp_path / 'jobs'}")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(submission, "_LOOK_UPS", 2)
    return tmp_path


def program(place: Path, name: str, body: str) -> None:
    path = place / name
    path.write_text(f"#!/bin/bash\n{body}\n")
    path.chmod(0o755)


def submit(timeout: float = 20, stdin: bytes | None = b"#!/bin/sh\n") -> Submission:
    return Submission(["sbatch", "--parsable"], stdin=stdin, timeout=timeout)


def test_the_job_is_what_sbatch_names(place):
    program(place, "sbatch", "/bin/cat >/dev/null; echo '41;alpha'")
    sent = submit().job()
    assert sent.job is not None
    assert (sent.job.job, sent.job.cluster, sent.found_again) == (41, "alpha", False)


def test_a_refusal_is_a_refusal(place, capsys):
    program(
        place,
        "sbatch",
        "echo 'sbatch: error: Batch job submission failed: Invalid qos' >&2; exit 1",
    )
    with pytest.raises(RefusedError):
        submit().job()
    assert "Invalid qos" in capsys.readouterr().err


def test_an_answer_that_is_lost_is_looked_up_and_not_submitted_again(place):
    program(
        place,
        "sbatch",
        f'echo x >>{place}/calls; printf "77|%s|%s|\\n" $$ {int(time.time())} >{place}/jobs; '
        "exec /bin/sleep 60",
    )
    sent = submit(timeout=1).job()
    assert sent.job is not None
    assert sent.job.job == 77
    assert sent.found_again
    assert (place / "calls").read_text() == "x\n"


def test_a_socket_that_timed_out_is_looked_up_too(place):
    program(
        place,
        "sbatch",
        f'printf "78|%s|%s|\\n" $$ {int(time.time())} >{place}/jobs; '
        "echo 'sbatch: error: Batch job submission failed: Socket timed out on send/recv operation'"
        " >&2; exit 1",
    )
    sent = submit().job()
    assert sent.job is not None
    assert sent.found_again


def test_a_job_of_another_session_or_of_an_older_process_is_not_ours(place):
    old = int(time.time()) - 1000
    program(
        place,
        "sbatch",
        f'printf "1|%s|{old}|\\n2|1|{old + 5000}|\\n" $$ >{place}/jobs; exec /bin/sleep 60',
    )
    with pytest.raises(UnavailableError, match="was not submitted again"):
        submit(timeout=0.5).job()


def test_what_a_hanging_sbatch_started_is_ended_with_it(place):
    program(place, "sbatch", f"/bin/sleep 300 & echo $! >{place}/child; wait")
    with pytest.raises(UnavailableError):
        submit(timeout=0.5).job()
    child = Path("/proc", (place / "child").read_text().strip(), "status")
    assert not child.exists() or "State:\tZ" in child.read_text()


def test_a_controller_that_is_down_is_unavailable(place):
    program(
        place,
        "sbatch",
        "echo 'sbatch: error: Batch job submission failed: Unable to contact slurm controller "
        "(connect failure)' >&2; exit 1",
    )
    with pytest.raises(UnavailableError, match="no job was submitted"):
        submit().job()


def test_two_ids_are_no_answer(place):
    program(place, "sbatch", "echo 1; echo 2")
    with pytest.raises(UnavailableError, match="2 jobs"):
        submit().job()


def test_test_only_makes_no_job(place):
    program(place, "sbatch", "echo 'sbatch: Job 9 to start at 2026-12-01T08:00:00' >&2")
    sent = submit().job()
    assert sent.job is None
    assert sent.exit_code == 0


def test_wait_returns_the_jobs_exit_code(place):
    program(place, "sbatch", "echo 5; /bin/sleep 0.3; exit 7")
    running = submit()
    assert running.job().job is not None
    assert running.finish() == 7


def test_a_missing_sbatch_is_one_line(place):
    with pytest.raises(CommandMissingError, match="sbatch: command not found"):
        submit()


def test_sbatch_leads_a_session_of_its_own(place):
    """slurmctld keeps the session's id with the job; it is what the job is looked up by."""
    program(place, "sbatch", "read -r _ _ _ _ _ session _ </proc/self/stat; echo $session; exit 0")
    running = submit()
    sent = running.job()
    assert sent.job is not None
    assert sent.job.job == running._process.pid
    assert os.getsid(0) != running._process.pid


def test_the_gateways_errors_tell_command_code_and_stderr(place):
    program(place, "bad", "echo first; echo broken >&2; exit 3")
    with pytest.raises(CommandError) as caught:
        run(["bad", "x"], timeout=5)
    assert caught.value.done.exit_code == 3
    assert "bad failed (exit code 3): broken" in str(caught.value)
    program(place, "slow", "exec /bin/sleep 30")
    with pytest.raises(CommandTimeoutError, match=r"slow did not answer within 0\.2 s"):
        run(["slow"], timeout=0.2)
    with pytest.raises(CommandMissingError):
        run(["none"], timeout=1)


def test_a_signal_ends_sbatch_and_tells_what_became_of_the_job(place):
    """It leads a session of its own, so that no Ctrl-C of the terminal reaches it."""
    program(place, "sbatch", f"echo $$ >{place}/pid; exec /bin/sleep 60")
    running = submit()
    while not (place / "pid").exists() or not (place / "pid").read_text():
        time.sleep(0.01)
    assert running.abandon() is None
    assert not Path("/proc", (place / "pid").read_text().strip()).exists()


def test_a_job_that_was_submitted_before_the_signal_is_found(place):
    program(
        place,
        "sbatch",
        f'printf "79|%s|%s|\\n" $$ {int(time.time())} >{place}/new; '
        f"/bin/mv {place}/new {place}/jobs; exec /bin/sleep 60",
    )
    running = submit()
    while not (place / "jobs").read_text():
        time.sleep(0.01)
    found = running.abandon()
    assert found is not None
    assert found.job == 79


def test_many_digits_are_no_job(place):
    program(place, "sbatch", "printf '9%.0s' {1..6000}; echo")
    with pytest.raises(UnavailableError):
        submit().job()
