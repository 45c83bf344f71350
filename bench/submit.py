"""yolo-sbatch (plan, check, render, submit) beside submitit, for the same trivial job.

Each is a whole process, as a user starts it: A B A B …, and the ratio pair by
pair. Run: .venv/bin/python bench/submit.py [PAIRS]
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time

from private import Private, cluster

SUBMITIT = """
import submitit
executor = submitit.SlurmExecutor(folder="submitit")
executor.update_parameters(time=1, gpus_per_node=1)
print(executor.submit(print).job_id)
"""
TEMPLATE = ["--", "data=a.yaml", "model=yolov8n.yaml", "epochs=1"]


def seconds(place: Private, argv: list[str], stdin: str) -> float:
    """Return how long *argv* takes, from its start to its end."""
    start = time.perf_counter()
    subprocess.run(
        argv, env=dict(place.env), cwd=place.dir / "work", input=stdin.encode(), check=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    return time.perf_counter() - start


def main(pairs: int) -> dict[str, object]:
    """Measure, print and return the medians and the ratios."""
    plain = ["yolo-sbatch", "--hold", "--gpus=1", "--time=1", "--output=/dev/null"]
    result: dict[str, object] = {}
    with cluster("--no-service") as place:
        limit = "GrpTRESMins=gres/gpu=99999"
        place.run("sacctmgr", "-iQ", "modify", "account", "demo", "set", limit)
        for name, words, script in (
            ("script", plain, "#!/bin/bash\ntrue\n"),
            ("template", [*plain, *TEMPLATE], ""),
        ):
            ours, theirs = [], []
            for index in range(pairs + 1):
                a = seconds(place, words, script)
                b = seconds(place, [sys.executable, "-c", SUBMITIT], "")
                if index:  # the first pair warms the file cache
                    ours.append(a)
                    theirs.append(b)
            ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
            result[name] = {
                "yolo_sbatch_s": round(statistics.median(ours), 3),
                "submitit_s": round(statistics.median(theirs), 3),
                "ratio": round(statistics.median(ratios), 3),
                "ratio_max": round(max(ratios), 3),
                "bar": 1.0,
            }
            place.run("scancel", "--user=root")
    print(json.dumps({"submit": result}, indent=2))
    return result


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
