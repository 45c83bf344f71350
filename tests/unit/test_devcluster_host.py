"""Ports, processes, directories and programs of this host."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest

from yolo_slurm.devcluster import prerequisites, state
from yolo_slurm.devcluster.daemons import MARK
from yolo_slurm.devcluster.layout import Layout, Spec, parse_nodes
from yolo_slurm.devcluster.ports import Ports
from yolo_slurm.devcluster.sweep import descendants, leftovers, started, sweep
from yolo_slurm.errors import InputError, RefusedError


def test_ports_are_distinct_and_below_the_ephemeral_ones() -> None:
    first, second = Ports(20), Ports(20)
    try:
        both = first.numbers + second.numbers
        assert len(set(both)) == 40
        assert max(both) < 32768
    finally:
        first.close()
        second.close()


def test_a_held_port_is_a_daemons_to_listen_on_and_nobody_elses() -> None:
    ports = Ports(1)
    try:
        address = ("127.0.0.1", ports.numbers[0])
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(address)
        with socket.socket() as daemon:
            daemon.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            daemon.bind(address)
            daemon.listen()
            with socket.create_connection(address):
                pass
    finally:
        ports.close()


def test_leftovers_are_those_with_the_mark_and_their_children(tmp_path: Path) -> None:
    script = "env -i sleep 60 & echo $!; wait"
    marked = subprocess.Popen(
        ["sh", "-c", script],
        env={**os.environ, MARK: str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    user = subprocess.Popen(
        ["sleep", "60"], env={"SLURM_CONF": str(Layout(tmp_path).slurm_conf), "SLURM_JOB_ID": "1"}
    )
    try:
        assert marked.stdout is not None
        child = int(marked.stdout.readline())
        assert leftovers(Layout(tmp_path)) == {marked.pid, child}
        assert descendants([marked.pid]) == {child}
        assert leftovers(Layout(tmp_path / "other")) == set()
        assert sweep(Layout(tmp_path)) >= 1
        assert marked.wait(10) != 0
        assert started(child) == 0
        assert user.poll() is None
    finally:
        for process in (marked, user):
            process.kill()
            process.wait()
        marked.stdout.close()


def test_started_names_a_process_for_good() -> None:
    process = subprocess.Popen(["sleep", "60"])
    assert started(process.pid) > 0
    process.kill()
    process.wait()
    assert started(process.pid) == 0


def test_a_missing_program_is_told_with_what_installs_it(tmp_path: Path) -> None:
    with pytest.raises(prerequisites.HostError) as caught:
        prerequisites.programs(str(tmp_path))
    assert "apt-get install -y --no-install-recommends slurmctld slurmd slurmdbd" in str(
        caught.value
    )
    assert "\n" not in str(caught.value)


def test_an_unknown_user_is_told() -> None:
    spec = Spec(parse_nodes("t4:1x1"), ("demo",), ("root", "nobody_of_that_name"))
    with pytest.raises(InputError, match="nobody_of_that_name: no such user"):
        prerequisites.require_users(spec)


def test_a_directory_that_others_cannot_enter(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o700)
    with pytest.raises(InputError, match="cannot enter"):
        prerequisites.require_reachable(Layout(tmp_path / "closed" / "c"))


def test_a_directory_below_one_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such directory"):
        prerequisites.require_reachable(Layout(tmp_path / "none" / "c"))


SPEC = Spec(parse_nodes("t4:1x1"), ("demo",), ("root",), slurm_conf="KillWait=9\n")


root_only = pytest.mark.skipif(os.geteuid() != 0, reason="a devcluster's directory is root's")


@root_only
def test_claim_locks_out_a_second_one(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "c")
    fd = state.claim(layout)
    state.write_spec(layout, SPEC)
    assert state.is_running(layout)
    with pytest.raises(RefusedError, match="already runs"):
        state.claim(layout)
    os.close(fd)
    assert not state.is_running(layout)
    os.close(state.claim(layout))
    assert state.read_spec(layout) == SPEC


def test_claim_refuses_what_holds_something_else(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(InputError, match="not empty"):
        state.claim(Layout(tmp_path))
    with pytest.raises(InputError, match="not a directory"):
        state.claim(Layout(tmp_path / "thesis.tex"))
    with pytest.raises(InputError, match="does not exist"):
        state.claim(Layout(tmp_path / "a" / "b"))


def test_only_a_clusters_directory_is_cleared(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    layout = Layout(tmp_path)
    with pytest.raises(InputError, match="nothing was removed"):
        state.clear(layout)
    state.remove(layout)
    assert (tmp_path / "thesis.tex").exists()


@root_only
def test_clear_follows_no_link(tmp_path: Path) -> None:
    kept, layout = tmp_path / "kept", Layout(tmp_path / "c")
    kept.mkdir()
    (kept / "file").touch()
    os.close(state.claim(layout))
    state.write_spec(layout, SPEC)
    (layout.root / "link").symlink_to(kept)
    state.remove(layout)
    assert not layout.root.exists()
    assert (kept / "file").exists()
