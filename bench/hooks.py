"""What the hooks cost a cluster: jobs a second, and whether freed nodes are used at once.

Three clusters side by side, one after the other in turns: without hooks, with
hooks, with hooks and settler. An array of trivial jobs, one CPU or one GPU
each, gives the jobs/s; a job that waits behind another on an exclusive node
gives the gap between them.
Run: .venv/bin/python bench/hooks.py [TURNS]
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from contextlib import ExitStack

from private import Private, cluster

JOBS = 200


def jobs_per_second(place: Private, *words: str) -> float:
    """Return the jobs/s of an array, from its submission to its last end."""
    array = [f"--array=1-{JOBS}", "--output=/dev/null", "--wrap=true"]
    start = time.perf_counter()
    place.run("sbatch", "--parsable", "--time=1", *words, *array)
    while place.run("squeue", "--noheader", "--format=%i").strip():
        time.sleep(0.05)
    return JOBS / (time.perf_counter() - start)


def gap(place: Private) -> int:
    """Return the seconds between a job's end and the start of one that waits for its node."""
    words = ["sbatch", "--parsable", "-t1", "--exclusive", "--nodelist=g1", "--output=/dev/null"]
    first = place.run(*words, "--wrap=sleep 2").strip()
    second = place.run(*words, "--wrap=true").strip()
    while place.run("squeue", "--noheader", f"--jobs={first},{second}", "--format=%i").strip():
        time.sleep(0.2)
    time.sleep(1)
    end = _time(place, first, "End")
    return _time(place, second, "Start") - end


def _time(place: Private, job: str, field: str) -> int:
    words = ["sacct", "-X", "-n", "-P", "-j", job, "-o", field]
    text = place.run("env", "SLURM_TIME_FORMAT=%s", *words)
    return int(text.strip())


def main(turns: int) -> dict[str, object]:
    """Measure, print and return the figures."""
    kinds = {
        "without": ("--no-hooks", "--no-service"),
        "hooks": ("--no-service",),
        "hooks_and_settler": (),
    }
    arrays: dict[str, tuple[str, ...]] = {"cpu_array": (), "gpu_array": ("--gpus=1",)}
    speed: dict[str, dict[str, list[float]]] = {
        array: {kind: [] for kind in kinds} for array in arrays
    }
    gaps: dict[str, list[int]] = {kind: [] for kind in kinds}
    with ExitStack() as stack:
        places = {kind: stack.enter_context(cluster(*options)) for kind, options in kinds.items()}
        for turn in range(turns + 1):
            for array, words in arrays.items():
                for kind, place in places.items():
                    rate = jobs_per_second(place, *words)
                    if turn:  # the first turn warms up
                        speed[array][kind].append(rate)
        for _ in range(turns):
            for kind, place in places.items():
                gaps[kind].append(gap(place))
    result: dict[str, object] = {"bar": 0.95, "gap_s": gaps}
    for array, rates in speed.items():
        base = rates["without"]
        for kind, found in rates.items():
            ratios = [a / b for a, b in zip(found, base, strict=True)]
            result[f"{array}/{kind}"] = {
                "jobs_per_s": round(statistics.median(found), 1),
                "ratio": round(statistics.median(ratios), 2),
                "ratios": [round(ratio, 2) for ratio in ratios],
            }
    print(json.dumps({"hooks": result}, indent=2))
    return result


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
