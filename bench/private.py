"""A private cluster for a measurement, and how to run commands in it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

YOLO_SLURM = (sys.executable, "-P", "-m", "yolo_slurm")


@dataclass(frozen=True)
class Private:
    """A cluster that runs."""

    dir: Path
    env: Mapping[str, str]

    def run(self, *argv: str, stdin: str = "") -> str:
        """Run *argv* in the cluster's environment and return its stdout."""
        done = subprocess.run(
            argv,
            env=dict(self.env),
            cwd=self.dir / "work",
            input=stdin,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout


@contextmanager
def cluster(*options: str) -> Iterator[Private]:
    """Bring up a cluster with *options* of `devcluster up`, and take it down."""
    directory = Path(tempfile.mkdtemp(prefix="yolo-bench-", dir="/tmp"))
    command: Sequence[str] = (*YOLO_SLURM, "devcluster")
    subprocess.run(
        [*command, "up", "--dir", str(directory), *options], check=True, stdout=subprocess.DEVNULL
    )
    # An installed package is compiled; so is this one after the first run.
    environ = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    try:
        yield Private(
            directory,
            {
                **environ,
                "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
                "SLURM_CONF": str(directory / "etc/slurm.conf"),
                "YOLO_SLURM_POLICY": str(directory / "etc/policy.toml"),
            },
        )
    finally:
        subprocess.run([*command, "down", "--dir", str(directory)], check=True, capture_output=True)
