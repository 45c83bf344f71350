"""The whole path on a real Slurm: grant, yolo-sbatch, hook, settler, ledger."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable

import pytest

from yolo_slurm.slurm.text import parse_tres

UNITS_PER_GPU_SECOND = 1_000_000


def script(body: str) -> str:
    return f"#!/bin/bash\n{body}\n"


def submit(cluster, *words: str, body: str = "sleep 1", user: str = "nobody") -> int:
    done = cluster.run(
        ["yolo-sbatch", "--parsable", "--output=/dev/null", *words], user=user, input=script(body)
    )
    return int(done.stdout)


def debits(cluster, project: str | None = None) -> list[dict]:
    where = [project] if project else ["--all"]
    history = json.loads(cluster.run(["yolo-slurm", "budget", "history", *where, "--json"]).stdout)
    return [entry for entry in history if entry["kind"] == "debit"]


def sacct_rows(cluster, *fields: str) -> list[list[str]]:
    done = cluster.run(
        ["sacct", "-a", "-D", "-X", "-P", "-n", "-S", "now-1hour", "-o", ",".join(fields)]
    )
    return [line.split("|") for line in done.stdout.splitlines()]


def sacct_gpu_seconds(cluster) -> int:
    rows = sacct_rows(cluster, "ElapsedRaw", "Start", "AllocTRES", "State")
    return sum(
        int(elapsed) * (parse_tres(tres).total or 0)
        for elapsed, start, tres, state in rows
        if start not in {"Unknown", "None", ""} and state not in {"RUNNING", "PENDING"}
    )


def wait_until(condition: Callable[[], object], seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"not within {seconds} s: {what}")
        time.sleep(0.1)


def live(cluster, job: int | None = None) -> list[str]:
    which = [f"--job={job}"] if job else []
    done = cluster.run(["squeue", "-h", "-a", "-r", "-o", "%i %T %r", *which], check=False)
    return done.stdout.split("\n")[:-1]


@pytest.fixture(scope="module", autouse=True)
def grants(cluster):
    for project in ("demo", "defect"):
        cluster.run(["yolo-slurm", "budget", "grant", project, "1000", "--reason", "tests"])


def test_every_kind_of_end_is_debited_to_the_second(cluster):
    """Jobs that fail, time out, are cancelled or requeued, and an array: Σ debits = Σ sacct."""
    for index in range(4):
        submit(cluster, "--gpus=a100:1", "-t", "5", body=f"sleep {index}")
    for index in range(3):
        submit(cluster, "--gpus=t4:2", "-t", "5", body=f"sleep 1; exit {index + 1}")
    submit(cluster, "--gpus=1", "-t", "5", "--array=0-9", body="sleep $((SLURM_ARRAY_TASK_ID % 3))")
    pending = [submit(cluster, "--gpus=1", "-t", "5", "--hold") for _ in range(3)]
    running = [submit(cluster, "--gpus=1", "-t", "5", body="sleep 300") for _ in range(3)]
    timed_out = submit(cluster, "--gpus=1", "-t", "1", body="sleep 300")
    requeued = submit(cluster, "--gpus=1", "-t", "5", "--requeue", body="sleep 300")
    cpu_only = submit(cluster, "-t", "5", body="sleep 1")
    cluster.run(["scancel", *map(str, pending)])
    wait_until(
        lambda: all("RUNNING" in str(live(cluster, job)) for job in [*running, requeued]),
        60,
        "the jobs run",
    )
    time.sleep(2)
    cluster.run(["scancel", *map(str, running)])
    cluster.run(["scontrol", "update", f"job={timed_out}", "timelimit=0:01"])
    cluster.run(["scontrol", "requeue", str(requeued)])

    def runs_again() -> bool:
        # Slurm holds a requeued job back for two minutes. Its start is set once:
        # each setting moves it to now again, and the scheduler never gets to it.
        seen = str(live(cluster, requeued))
        if "BeginTime" in seen:
            cluster.run(["scontrol", "update", f"job={requeued}", "starttime=now"], check=False)
            time.sleep(5)
        return "RUNNING" in seen

    wait_until(lambda: "PENDING" in str(live(cluster, requeued)), 30, "the job is requeued")
    wait_until(runs_again, 240, "the requeued job runs again")
    time.sleep(1)
    cluster.run(["scancel", str(requeued)])
    wait_until(lambda: not live(cluster), 150, "all jobs have ended")
    wanted = sacct_gpu_seconds(cluster)
    wait_until(
        lambda: sum(int(e["units"]) for e in debits(cluster)) == -wanted * UNITS_PER_GPU_SECOND,
        5,
        f"debits of {wanted} GPU-seconds",
    )
    assert wanted > 30
    posted = debits(cluster)
    keys = [(e["attempt"]["job_id"], e["attempt"]["submit"]) for e in posted]
    assert len(set(keys)) == len(keys)
    assert len([e for e in posted if e["attempt"]["job_id"] == requeued]) == 2
    assert cpu_only not in {e["attempt"]["job_id"] for e in posted}
    assert set(pending).isdisjoint(e["attempt"]["job_id"] for e in posted)
    assert not list((cluster.dir / "spool").iterdir())
    assert {e["project"] for e in posted} == {"demo"}


def test_settling_again_changes_nothing(cluster):
    before = debits(cluster)
    job = before[-1]["attempt"]["job_id"]
    event = cluster.dir / "spool" / f"2.{job}.0.99999"
    cluster.run(["touch", str(event)], user="slurm")
    wait_until(lambda: not event.exists(), 10, "the hook's file is taken")
    assert debits(cluster) == before


@pytest.fixture(scope="module")
def poor(cluster):
    """A project with one token."""
    name = "poor"
    cluster.run(["sacctmgr", "-iQ", "add", "account", name])
    cluster.run(["sacctmgr", "-iQ", "add", "user", "nobody", f"account={name}"])
    cluster.run(["yolo-slurm", "budget", "grant", name, "1", "--reason", "one"])
    return name


def test_a_project_with_one_token_cannot_spend_two(cluster, poor):
    refused = cluster.run(
        ["yolo-sbatch", "--project", poor, "--tokens=2", "--gpus=1"],
        user="nobody",
        input=script("true"),
        check=False,
    )
    assert refused.returncode == 1
    assert "1 token" in refused.stderr
    assert "2 tokens" in refused.stderr
    assert "--time 60" in refused.stderr
    assert refused.stderr.count("\n") == 1
    plain = cluster.run(
        ["sbatch", "--parsable", "-A", poor, "-t", "120", "--gpus=1", "-o", "/dev/null"],
        user="nobody",
        input=script("true"),
    )
    job = int(plain.stdout)
    wait_until(
        lambda: "AssocGrpGRESMinutes" in str(live(cluster, job)), 20, "Slurm gives the reason"
    )
    fits = submit(cluster, "--project", poor, "--tokens=1", "--gpus=1")
    wait_until(lambda: not live(cluster, fits), 40, "the job that fits has run")
    assert "PENDING AssocGrpGRESMinutes" in str(live(cluster, job))
    cluster.run(["scancel", str(job)])


def test_a_job_that_must_wait_is_submitted_and_told(cluster, poor):
    first = submit(cluster, "--project", poor, "--gpus=1", "-t", "50", body="sleep 60")
    wait_until(lambda: "RUNNING" in str(live(cluster, first)), 30, "the first runs")
    second = cluster.run(
        ["yolo-sbatch", "--project", poor, "--gpus=1", "-t", "30"],
        user="nobody",
        input=script("true"),
    )
    assert "it will wait" in second.stderr
    number = re.search(r"Submitted batch job (\d+)", second.stdout)
    assert number
    cluster.run(["scancel", str(first), number[1]])


def test_the_limit_follows_the_books(cluster):
    """An edit by hand is set right; a grant raises the limit at once and is read back."""
    given = json.loads(
        cluster.run(
            ["yolo-slurm", "budget", "grant", "defect", "0.5", "--reason", "more", "--json"]
        ).stdout
    )
    assert given["problem"] is None
    shown = json.loads(cluster.run(["yolo-slurm", "budget", "show", "defect", "--json"]).stdout)
    assert shown[0]["limit_minutes"] == given["limit_minutes"]
    cluster.run(["sacctmgr", "-iQ", "modify", "account", "defect", "set", "GrpTRESMins=gres/gpu=1"])
    cluster.run(["yolo-slurm", "settle"])
    shown = json.loads(cluster.run(["yolo-slurm", "budget", "show", "defect", "--json"]).stdout)
    assert shown[0]["limit_minutes"] == given["limit_minutes"]
    mine = json.loads(
        cluster.run(["yolo-slurm", "balance", "defect", "--json"], user="games").stdout
    )
    assert float(mine[0]["available"]) == pytest.approx(float(shown[0]["available"]), abs=1 / 60)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["budget", "grant", "nosuch", "1", "--reason", "x"], "not a Slurm account"),
        (["budget", "grant", "demo", "-1", "--reason", "x"], "No such option"),
        (["budget", "grant", "demo", "1e3", "--reason", "x"], "not a number of tokens"),
        (["budget", "grant", "demo", "2000000000", "--reason", "x"], "at most"),
        (["budget", "grant", "demo", "1000000000", "--reason", "x"], "would pass"),
        (["budget", "grant", "demo", "1", "--reason", " "], "--reason is empty"),
        (["budget", "grant", "demo", "1", "--reason", "a\x1b[31m"], "printable"),
        (["budget", "grant", "demo", "1", "--reason", b"\xff"], "printable"),
        (["budget", "grant", "root", "1", "--reason", "x"], "accounts below it"),
        (["budget", "history"], "name a PROJECT"),
        (["budget", "show", "nosuch"], "no entries"),
    ],
)
def test_bad_input_is_one_line_and_changes_nothing(cluster, words, message):
    before = cluster.run(["yolo-slurm", "budget", "history", "--all", "--json"]).stdout
    done = cluster.run(["yolo-slurm", *words], check=False)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert cluster.run(["yolo-slurm", "budget", "history", "--all", "--json"]).stdout == before


def test_a_user_cannot_open_the_books(cluster):
    done = cluster.run(
        ["yolo-slurm", "budget", "grant", "demo", "5", "--reason", "x"], user="nobody", check=False
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1


def test_what_slurmdbd_missed_is_settled_when_it_is_back(cluster):
    """With slurmdbd stopped yolo-sbatch submits, and no settlement is lost."""
    dbd = cluster.stop("slurmdbd")
    try:
        job = submit(cluster, "--gpus=a100:2", "-t", "5", body="sleep 2")
        done = cluster.run(["yolo-slurm", "usage"], user="nobody", check=False)
        assert done.returncode == 3
        assert done.stderr.count("\n") == 1
        wait_until(lambda: "RUNNING" not in str(live(cluster, job)), 60, "the job has ended")
        time.sleep(2)
        assert job not in {e["attempt"]["job_id"] for e in debits(cluster)}
    finally:
        cluster.start(dbd)
    wait_until(
        lambda: job in {e["attempt"]["job_id"] for e in debits(cluster)}, 60, "the job is debited"
    )
    wanted = sacct_gpu_seconds(cluster)
    wait_until(
        lambda: sum(int(e["units"]) for e in debits(cluster)) == -wanted * UNITS_PER_GPU_SECOND,
        10,
        "the books balance",
    )


def test_without_slurmctld_one_line_and_exit_3(cluster):
    ctld = cluster.stop("slurmctld")
    try:
        done = cluster.run(
            ["yolo-sbatch", "--gpus=1", "-t", "5"], user="nobody", input=script("true"), check=False
        )
        assert done.returncode == 3
        assert done.stderr.count("\n") == 1, done.stderr
    finally:
        cluster.start(ctld)
