"""`yolo-slurm usage` on a real Slurm: what sacct says, summed, for a plain user."""

from __future__ import annotations

import csv
import io
import json
import time
from dataclasses import replace

import pytest

JOBS = {"a100:2": 2, "t4:1": 3, "a100:1": 1}


@pytest.fixture(scope="module")
def own(cluster, tmp_path_factory):
    """The cluster, seen by a user whose HOME is none, with a directory for caches."""
    caches = tmp_path_factory.mktemp("caches")
    caches.chmod(0o777)
    for parent in caches.parents[:2]:
        parent.chmod(0o755)
    env = {**cluster.env, "HOME": "/proc/nonexistent", "XDG_CACHE_HOME": str(caches), "TZ": "UTC"}
    return replace(cluster, env=env)


@pytest.fixture(scope="module")
def ended(own):
    """The ids of jobs of the user daemon that have ended; one was requeued while it ran."""
    ids = [sbatch(own, f"--gpus={gpus}", body=f"sleep {n}") for gpus, n in JOBS.items()]
    again = sbatch(own, "--gpus=t4:1", "--requeue", body="sleep 2")
    wait_for(lambda: "RUNNING" in state(own, again), "the job to be requeued runs")
    own.run(["scontrol", "requeue", str(again)])
    own.run(["scontrol", "update", f"jobid={again}", "starttime=now"], check=False)
    wait_for(lambda: "REQUEUED" in rows(own, again), "the requeue is recorded")
    own.run(["scancel", str(again)], user="daemon")
    wait_for(
        lambda: (
            not own.run(["squeue", "-h", "-u", "daemon", "-t", "PD,R,CG"]).stdout.strip()
            and all("COMPLETED" in rows(own, each) for each in ids)
        ),
        "the jobs end",
    )
    return ids


def sbatch(cluster, *words: str, body: str) -> int:
    done = cluster.run(
        ["sbatch", "--parsable", "-t", "5", "-A", "defect", "-o", "/dev/null", *words],
        user="daemon",
        input=f"#!/bin/sh\n{body}\n",
    )
    return int(done.stdout)


def rows(cluster, job: int) -> str:
    return cluster.run(["sacct", "-D", "-X", "-n", "-P", "-j", str(job), "-o", "State"]).stdout


def state(cluster, job: int) -> str:
    return cluster.run(["squeue", "-h", "-j", str(job), "-o", "%T"], check=False).stdout


def wait_for(condition, what: str, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"not within {seconds} s: {what}")
        time.sleep(0.2)


def usage(cluster, *words: str, user: str = "daemon") -> list[dict]:
    return json.loads(cluster.run(["yolo-slurm", "usage", "--json", *words], user=user).stdout)


def by_hand(cluster) -> tuple[int, int]:
    """GPU-seconds and attempts of daemon, added up from sacct's text."""
    done = cluster.run(
        ["sacct", "-a", "-D", "-X", "-n", "-P", "-S", "now-2hours", "-E", "now", "-u", "daemon",
         "-o", "Start,ElapsedRaw,AllocTRES"]
    )  # fmt: skip
    ran = [
        line.split("|")
        for line in done.stdout.splitlines()
        if line.split("|")[0] not in {"None", "Unknown", ""}
    ]
    gpus = [dict(item.split("=") for item in tres.split(",") if item) for _, _, tres in ran]
    return sum(
        int(elapsed) * int(held.get("gres/gpu", 0))
        for (_, elapsed, _), held in zip(ran, gpus, strict=True)
    ), len(ran)


def test_a_plain_user_sees_what_sacct_shows_to_the_second(own, ended):
    # Over all jobs of a user slurmdbd can lag behind what it tells of one job.
    wait_for(lambda: by_hand(own)[1] > len(ended), "sacct shows the requeued job's attempt too")
    expected, attempts = by_hand(own)
    for words in ([], ["--no-cache"], ["--by", "type"], ["--by", "day,state"]):
        found = usage(own, "--user", "daemon", *words)
        assert sum(row["gpu_seconds"] for row in found) == expected
        if not words:
            (row,) = found
            assert (row["project"], row["user"]) == ("defect", "daemon")
            assert (row["attempts"], row["unknown_attempts"]) == (attempts, 0)
            assert row["jobs"] == len(ended) + 1
    types = {row["type"]: row["gpu_seconds"] for row in usage(own, "--user=daemon", "--by=type")}
    assert set(types) == {"a100", "t4"}


def test_a_running_job_counts_up_to_now(own):
    job = sbatch(own, "--gpus=t4:1", body="sleep 300")
    wait_for(lambda: "RUNNING" in rows(own, job), "slurmdbd knows that the job runs")
    try:
        time.sleep(2)
        first = usage(own, "--user=daemon", "--by=state")
        running = next(row for row in first if row["state"] == "RUNNING")
        assert running["running"] == 1
        assert running["gpu_seconds"] >= 2
        shown = own.run(["yolo-slurm", "usage", "--user=daemon"], user="daemon").stdout
        assert "1 attempt still running" in shown
    finally:
        own.run(["scancel", str(job)])
    wait_for(lambda: "CANCELLED" in rows(own, job), "the job ends")
    assert not any(row["running"] for row in usage(own, "--user=daemon"))
    assert sum(row["gpu_seconds"] for row in usage(own, "--user=daemon")) == by_hand(own)[0]


def test_a_user_without_a_home_has_a_cache_for_him_alone(own, ended, tmp_path):
    tmp_path.chmod(0o777)
    env = {**own.env, "TMPDIR": str(tmp_path)}
    del env["XDG_CACHE_HOME"]
    command = ["yolo-slurm", "usage", "--user", "daemon", "--json"]
    homeless = replace(own, env=env)
    expected = usage(own, "--user", "daemon")
    for user, uid in (("nobody", 65534), ("daemon", 1)):
        done = homeless.run(command, user=user)
        directory = tmp_path / f"yolo-slurm-{uid}"
        assert json.loads(done.stdout) == expected
        assert f"the cache is in {directory}" in done.stderr
        (file,) = directory.iterdir()
        assert file.name.endswith(f"-{uid}.db")
        assert (file.stat().st_uid, file.stat().st_mode & 0o777) == (uid, 0o600)


def test_a_table_has_totals_and_csv_has_none(own, ended):
    table = own.run(["yolo-slurm", "usage", "--user", "daemon"], user="daemon").stdout
    assert table.splitlines()[0].split() == [
        "project", "user", "jobs", "attempts", "GPU-hours", "tokens",
    ]  # fmt: skip
    assert table.splitlines()[2].startswith("total")
    text = own.run(["yolo-slurm", "usage", "--user", "daemon", "--csv"], user="daemon").stdout
    (line,) = csv.DictReader(io.StringIO(text))
    assert int(line["gpu_seconds"]) == by_hand(own)[0]


def test_without_slurmdbd_one_line_and_exit_code_3(own, ended):
    stopped = own.stop("slurmdbd")
    try:
        done = own.run(["yolo-slurm", "usage"], user="daemon", check=False)
    finally:
        own.start(stopped)
    assert done.returncode == 3
    assert done.stdout == ""
    assert done.stderr.startswith("yolo-slurm: sacct failed")
    assert done.stderr.count("\n") == 1
    wait_for(
        lambda: own.run(["sacct", "-n"], check=False).returncode == 0, "slurmdbd answers again"
    )
    assert usage(own, "--user=daemon")
