"""One private cluster for all tests that need a real Slurm."""

from __future__ import annotations

import json
import os
import pwd
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from yolo_slurm.devcluster import layout as layouts
from yolo_slurm.devcluster import prerequisites
from yolo_slurm.devcluster.daemons import command_environment, interpreter
from yolo_slurm.errors import YoloSlurmError

YOLO_SLURM = (str(interpreter()), "-P", "-m", "yolo_slurm")


@dataclass(frozen=True)
class StoppedDaemon:
    """What a daemon was run as."""

    name: str
    argv: Sequence[str]
    env: Mapping[str, str]
    uid: int
    gid: int


@dataclass(frozen=True)
class Cluster:
    """A cluster that runs, and how to run commands in it."""

    dir: Path
    env: Mapping[str, str]
    restarted: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

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

    def pid(self, name: str) -> int:
        """Return the process id of a daemon, as `devcluster status` or our own restart tells it."""
        if name in self.restarted:
            return self.restarted[name].pid
        done = self.run([*YOLO_SLURM, "devcluster", "status", "--json", "--dir", str(self.dir)])
        return next(d["pid"] for d in json.loads(done.stdout)["daemons"] if d["name"] == name)

    def stop(self, name: str) -> StoppedDaemon:
        """End a daemon with SIGTERM, and return what starts it again."""
        process = Path("/proc", str(self.pid(name)))
        status = process.stat()
        stopped = StoppedDaemon(
            name,
            process.joinpath("cmdline").read_text().split("\0")[:-1],
            dict(
                pair.split("=", 1)
                for pair in process.joinpath("environ").read_text().split("\0")
                if "=" in pair
            ),
            status.st_uid,
            status.st_gid,
        )
        os.kill(int(process.name), signal.SIGTERM)
        deadline = time.monotonic() + 30
        while process.exists() and "State:\tZ" not in process.joinpath("status").read_text():
            assert time.monotonic() < deadline, f"{name} does not end"
            time.sleep(0.05)
        return stopped

    def start(self, daemon: StoppedDaemon) -> None:
        """Start again what `stop` ended."""
        log = self.dir.joinpath("restarted.log").open("ab")
        process = subprocess.Popen(
            daemon.argv,
            env=daemon.env,
            user=daemon.uid,
            group=daemon.gid,
            extra_groups=[],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        self.restarted[daemon.name] = process


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
    """A cluster with hooks and a settler, until the session's end."""
    directory = Path(tempfile.mkdtemp(prefix="yolo-slurm-", dir="/tmp"))
    command = (*YOLO_SLURM, "devcluster")
    done = subprocess.run(
        [*command, "up", "--dir", str(directory)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if done.returncode != 0:
        pytest.fail(f"devcluster up: {done.stderr}", pytrace=False)
    try:
        layout = layouts.Layout(directory)
        # A home that every user may write to, and that goes with the cluster.
        home = {"HOME": str(layout.work)}
        running = Cluster(directory, {**command_environment(layout, os.environ), **home})
        yield running
    finally:
        subprocess.run(
            [*command, "down", "--dir", str(directory)], timeout=60, check=True, capture_output=True
        )
        for process in running.restarted.values():
            process.wait(10)
