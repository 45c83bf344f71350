"""One private cluster for all tests that need a real Slurm."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from yolo_slurm.devcluster import layout as layouts
from yolo_slurm.devcluster import prerequisites
from yolo_slurm.devcluster.daemons import command_environment
from yolo_slurm.errors import YoloSlurmError

YOLO_SLURM = (sys.executable, "-P", "-m", "yolo_slurm")


@dataclass(frozen=True)
class Cluster:
    """A cluster that runs, and how to run commands in it."""

    dir: Path
    env: Mapping[str, str]

    def run(
        self,
        argv: Sequence[str],
        user: str | None = None,
        check: bool = True,
        input: str | None = None,  # noqa: A002 - as subprocess names it
        timeout: float = 60,
    ) -> subprocess.CompletedProcess[str]:
        """Run *argv* as a user of this host, in a directory that all may write to."""
        identity = {}
        if user is not None:
            entry = pwd.getpwnam(user)
            identity = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
        done = subprocess.run(
            argv,
            env=dict(self.env),
            cwd=layouts.Layout(self.dir).work,
            input=input,
            stdin=subprocess.DEVNULL if input is None else None,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            **identity,
        )
        if check and done.returncode != 0:
            pytest.fail(f"{argv}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.cluster)


@pytest.fixture(scope="session")
def host() -> None:
    """Fail, not skip, where no cluster can be started: a suite that tests nothing is no pass."""
    try:
        prerequisites.require_root()
        prerequisites.programs()
    except YoloSlurmError as error:
        pytest.fail(str(error), pytrace=False)


@pytest.fixture(scope="session")
def cluster(host: None) -> Iterator[Cluster]:
    """A cluster with hooks and no settler, until the session's end."""
    directory = Path(tempfile.mkdtemp(prefix="yolo-slurm-", dir="/tmp"))
    command = (*YOLO_SLURM, "devcluster")
    done = subprocess.run(
        [*command, "up", "--no-service", "--dir", str(directory)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if done.returncode != 0:
        pytest.fail(f"devcluster up: {done.stderr}", pytrace=False)
    try:
        yield Cluster(directory, command_environment(layouts.Layout(directory), os.environ))
    finally:
        subprocess.run(
            [*command, "down", "--dir", str(directory)], timeout=60, check=True, capture_output=True
        )
