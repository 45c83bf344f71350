"""Measures `yolo-slurm usage` beside the `sacct` call it rests on, over 100,000 jobs of history.

    python bench/usage_history.py [--jobs 100000] [--pairs 5] [--json FILE]

As root, on a host with Slurm's and MariaDB's packages. It brings up a private
cluster, runs one real job, copies that job's row in slurmdbd's table with
other ids, times, users, accounts, states and allocations, and takes the
cluster down again. In each pair it runs, one after another and each in a
process of its own:

raw     `sacct` with the same fields and the same window, its output thrown away;
first   `yolo-slurm usage` with an empty cache;
second  `yolo-slurm usage` again.

and prints each one's seconds, first ÷ raw, and whether the medians keep the
bar: first ÷ raw ≤ 2 and second < 0.5 s. Exit code 1 where they do not.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from yolo_slurm.slurm.commands import ATTEMPT_FIELDS

DAYS: Final = 29
MOST_RATIO: Final = 2.0
MOST_SECONDS: Final = 0.5
DATABASE: Final = "slurm_acct_db"
YOLO_SLURM: Final = (sys.executable, "-P", "-m", "yolo_slurm")

# Spread evenly over DAYS; run times of 100 to 3,600 s; one in ten of each kind of failure.
SUBMIT: Final = f"@now - {DAYS * 86400} + s.seq * {DAYS * 86400} DIV {{jobs}} - 4000"
VARIED: Final = {
    "id_job": "1000 + s.seq",
    "time_submit": SUBMIT,
    "time_eligible": SUBMIT,
    "time_start": f"{SUBMIT} + 100 + s.seq MOD 97",
    "time_end": f"{SUBMIT} + 300 + (s.seq * 7919) MOD 3500",
    "state": "ELT(1 + s.seq MOD 10, 3, 3, 3, 3, 3, 3, 3, 4, 5, 6)",
    "id_assoc": "a.id_assoc",
    "account": "a.acct",
    "tres_alloc": "CONCAT('1=4,4=1,5=4,1001=', 1 + s.seq MOD 4, ',', 1002 + s.seq MOD 2, '=',"
    " 1 + s.seq MOD 4)",
}


def sql(socket: Path, statement: str) -> list[str]:
    """Run *statement* in the cluster's own MariaDB and return the lines of its answer."""
    argv = ["mariadb", "--no-defaults", "-N", "-B", f"--socket={socket}", "-u", "root", DATABASE]
    done = subprocess.run(argv, input=statement, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def fill(socket: Path, cluster: str, jobs: int) -> None:
    """Add *jobs* rows in the shape of the cluster's first job."""
    table = f"{cluster}_job_table"
    columns = [
        name
        for name in sql(
            socket,
            "SELECT column_name FROM information_schema.columns "  # noqa: S608 - names are ours
            f"WHERE table_schema = '{DATABASE}' AND table_name = '{table}'",
        )
        if name != "job_db_inx"
    ]
    values = [VARIED.get(name, f"t.`{name}`").format(jobs=jobs) for name in columns]
    sql(
        socket,
        f"""
        -- The names are the cluster's own, the numbers this file's.
        SET @now = UNIX_TIMESTAMP(), @n = -1;
        CREATE TEMPORARY TABLE associations AS
            SELECT @n := @n + 1 AS n, id_assoc, acct FROM {cluster}_assoc_table WHERE user <> '';
        SET @many = (SELECT COUNT(*) FROM associations);
        INSERT INTO {table} ({", ".join(f"`{name}`" for name in columns)})
            SELECT {", ".join(values)}
            FROM (SELECT * FROM {table} ORDER BY job_db_inx LIMIT 1) t
            JOIN seq_1_to_{jobs} s
            JOIN associations a ON a.n = s.seq MOD @many;
        ANALYZE TABLE {table};
        """,  # noqa: S608
    )


def seconds(argv: Sequence[str], env: Mapping[str, str]) -> float:
    """Return how long *argv* takes."""
    started = time.perf_counter()
    subprocess.run(argv, env=dict(env), check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def one_job(env: Mapping[str, str]) -> None:
    """Run a job to its end, as slurmdbd has it."""
    script = "#!/bin/sh\nsleep 1\n"
    words = ["sbatch", "--parsable", "--gpus=a100:1", "-t", "1", "-o", "/dev/null"]
    subprocess.run(
        words, env=dict(env), cwd="/", input=script, text=True, check=True, capture_output=True
    )
    for _ in range(300):
        words = ["sacct", "-X", "-n", "-P", "-a", "-o", "State"]
        done = subprocess.run(words, env=dict(env), capture_output=True, text=True, check=True)
        if "COMPLETED" in done.stdout:
            return
        time.sleep(0.1)
    raise SystemExit("the first job did not end")


def measure(env: Mapping[str, str], cache: Path, pairs: int) -> list[dict[str, float]]:
    """Return the seconds of each pair; the first of all only warms the database up."""
    usage = [*YOLO_SLURM, "usage"]
    epoch = {**env, "SLURM_TIME_FORMAT": "%s"}
    found = []
    for pair in range(pairs + 1):
        for file in cache.rglob("*.db"):
            file.unlink()
        since = int(time.time()) - 31 * 86400
        fields = ATTEMPT_FIELDS.removesuffix(",QOS")  # as `CommandJobs.stream` asks for them
        raw = [
            "sacct",
            "-D",
            "-X",
            "-P",
            "-n",
            "-o",
            fields,
            "-a",
            "-S",
            f"uts{since}",
            "-E",
            "now",
        ]
        times = {
            "raw": seconds(raw, epoch),
            "first": seconds(usage, env),
            "second": seconds(usage, env),
        }
        if pair:
            found.append({**times, "ratio": times["first"] / times["raw"]})
            print(
                "  ".join(f"{name} {value:6.3f}" for name, value in found[-1].items()), flush=True
            )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write the figures to this file as well")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="usage-", dir="/tmp") as name:
        Path(name).chmod(0o755)  # Slurm's own user works in it too
        directory, cache = Path(name, "cluster"), Path(name, "cache")
        cache.mkdir()
        cluster = [*YOLO_SLURM, "devcluster"]
        up = [*cluster, "up", "--no-hooks", "--no-service", "--json", "--dir", str(directory)]
        subprocess.run(up, check=True, stdout=subprocess.DEVNULL)
        try:
            conf = directory / "etc" / "slurm.conf"
            env = {**os.environ, "SLURM_CONF": str(conf), "XDG_CACHE_HOME": str(cache)}
            lines = conf.read_text(encoding="utf-8").splitlines()
            named = next(line for line in lines if line.startswith("ClusterName="))
            one_job(env)
            fill(directory / "db" / "socket", named.partition("=")[2], options.jobs)
            pairs = measure(env, cache, options.pairs)
        finally:
            subprocess.run([*cluster, "down", "--dir", str(directory)], check=True)
    medians = {key: round(statistics.median(pair[key] for pair in pairs), 3) for key in pairs[0]}
    kept = medians["ratio"] <= MOST_RATIO and medians["second"] < MOST_SECONDS
    report = {"jobs": options.jobs, "medians": medians, "bar_kept": kept, "pairs": pairs}
    print(json.dumps(report))
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    raise SystemExit(0 if kept else 1)


if __name__ == "__main__":
    main()
