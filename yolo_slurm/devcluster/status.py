"""What runs in a cluster's directory."""

from __future__ import annotations

import os
import subprocess
from typing import Any, Final

from yolo_slurm.devcluster import prerequisites, state
from yolo_slurm.devcluster.layout import Layout

_SINFO_PATIENCE: Final = 15.0  # seconds


def status(layout: Layout) -> dict[str, Any]:
    """What runs in the directory: daemons with their process ids, nodes as sinfo tells."""
    current = state.read_state(layout) if state.is_cluster(layout) else None
    running = current is not None and state.is_running(layout)
    report: dict[str, Any] = {
        "directory": str(layout.root),
        "running": running,
        "ready": running and current is not None and current.ready,
        "cluster": current.name if current is not None and running else None,
        "environment": layout.environment(),
        "daemons": [],
        "nodes": [],
    }
    if current is not None and running:
        processes = [current.supervisor, *current.daemons]
        report["daemons"] = [
            {"name": process.name, "pid": process.pid, "alive": process.alive}
            for process in processes
        ]
        report["nodes"] = _nodes(layout)
    return report


def _nodes(layout: Layout) -> list[dict[str, str]]:
    """Each node's name, state and GPUs; empty when slurmctld does not answer."""
    argv = [prerequisites.programs()["sinfo"], "-h", "-N", "-o", "%N %T %G"]
    env = {**os.environ, **layout.environment()}
    try:
        done = subprocess.run(
            argv, env=env, capture_output=True, text=True, timeout=_SINFO_PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        return []
    rows = (line.split(None, 2) for line in done.stdout.splitlines())
    return [dict(zip(("name", "state", "gres"), row, strict=False)) for row in rows]
