"""The hook and its files."""

from __future__ import annotations

import os
import subprocess
from importlib import resources
from pathlib import Path

import pytest

from yolo_slurm.errors import UnavailableError
from yolo_slurm.settle.spool import Event, EventKind, is_answered, read_spool, remove
from yolo_slurm.slurm.commands import parse_attempts


@pytest.fixture
def hook(tmp_path) -> Path:
    """The hook, with a spool of its own."""
    spool = tmp_path / "spool"
    spool.mkdir()
    text = resources.files("yolo_slurm.spank_hooks").joinpath("job_event.sh").read_text()
    path = tmp_path / "hook"
    path.write_text(text.replace("/var/spool/yolo-slurm", str(spool)))
    path.chmod(0o755)
    return path


def call(hook: Path, **variables: str) -> list[str]:
    done = subprocess.run([hook], env=variables, capture_output=True, check=False)
    assert done.returncode == 0
    assert done.stdout == done.stderr == b""
    return sorted(path.name for path in (hook.parent / "spool").iterdir())


def test_an_end_and_a_start_leave_one_file_each(hook):
    names = call(hook, SLURM_JOB_ID="12", SLURM_SCRIPT_CONTEXT="epilog_slurmctld")
    assert names[0].startswith("2.12.0.")
    call(
        hook,
        SLURM_JOB_ID="12",
        SLURM_JOB_RESTART_COUNT="3",
        SLURM_SCRIPT_CONTEXT="prolog_slurmctld",
    )
    events = read_spool(hook.parent / "spool")
    assert sorted((event.kind, event.job_id) for event in events) == [
        (EventKind.START, 12),
        (EventKind.END, 12),
    ]
    assert all(path.stat().st_size == 0 for path in (hook.parent / "spool").iterdir())


@pytest.mark.parametrize(
    "variables",
    [
        {"SLURM_JOB_ID": "../../etc/x", "SLURM_SCRIPT_CONTEXT": "epilog_slurmctld"},
        {"SLURM_JOB_ID": "$(touch owned)", "SLURM_SCRIPT_CONTEXT": "epilog_slurmctld"},
        {"SLURM_JOB_ID": "1;id", "SLURM_SCRIPT_CONTEXT": "epilog_slurmctld"},
        {"SLURM_JOB_ID": "", "SLURM_SCRIPT_CONTEXT": "epilog_slurmctld"},
        {
            "SLURM_JOB_ID": "1",
            "SLURM_JOB_RESTART_COUNT": "x",
            "SLURM_SCRIPT_CONTEXT": "epilog_slurmctld",
        },
        {"SLURM_JOB_ID": "1", "SLURM_SCRIPT_CONTEXT": "task_epilog"},
        {"SLURM_JOB_ID": "1"},
        {},
    ],
)
def test_what_is_no_number_leaves_nothing_and_exits_0(hook, variables):
    assert call(hook, **variables) == []


def test_text_of_users_is_not_read(hook):
    names = call(
        hook,
        SLURM_JOB_ID="5",
        SLURM_SCRIPT_CONTEXT="epilog_slurmctld",
        SLURM_JOB_NAME="$(touch owned)",
        SLURM_JOB_COMMENT="`touch owned`",
        SLURM_JOB_WORK_DIR="/tmp; touch owned",
    )
    assert len(names) == 1
    assert not (hook.parent / "owned").exists()


def test_without_a_spool_it_exits_0(hook):
    (hook.parent / "spool").rmdir()
    done = subprocess.run(
        [hook],
        env={"SLURM_JOB_ID": "5", "SLURM_SCRIPT_CONTEXT": "epilog_slurmctld"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0
    assert done.stderr == b""


def test_other_files_are_left_alone(tmp_path):
    names = ("2.1.0", "x.1.0.2", "2.1.0.2.3", "3.1.0.2", "2.1.0.٤", ".x", "2.99999999999.0.1")
    for name in names:
        (tmp_path / name).touch()
    assert read_spool(tmp_path) == []


def test_a_spool_that_cannot_be_read_is_said(tmp_path):
    with pytest.raises(UnavailableError, match="No such file"):
        read_spool(tmp_path / "none")


def rows(*lines: str):
    return parse_attempts("\n".join(lines))[0]


ENDED = "c|7|7|100|110|150|40|REQUEUED|gres/gpu=1|p|u|gpu|normal"
OPEN = "c|7|7|100|110|Unknown|40|RUNNING|gres/gpu=1|p|u|gpu|normal"
NEXT = "c|7|7|150|170|Unknown|0|RUNNING|gres/gpu=1|p|u|gpu|normal"
WAITS = "c|7|7|150|Unknown|Unknown|0|PENDING||p|u|gpu|normal"
NEVER = "c|7|7|100|None|150|0|CANCELLED by 0||p|u|gpu|normal"
OTHER = "c|8|8|100|110|150|40|COMPLETED|gres/gpu=1|p|u|gpu|normal"


@pytest.mark.parametrize(
    ("lines", "answered"),
    [
        ([], False),
        ([OPEN], False),
        ([OTHER], False),
        ([ENDED], True),
        ([ENDED, NEXT], True),
        ([OPEN, ENDED], False),
        ([ENDED, WAITS], True),
        ([NEVER], True),
    ],
)
def test_an_end_is_answered_when_sacct_knows_it(lines, answered):
    assert is_answered(Event(Path("x"), EventKind.END, 7, 150), rows(*lines)) is answered


def test_the_end_of_a_second_attempt_is_not_answered_by_the_first():
    """slurmdbd knows neither its start nor its end yet: its row still waits."""
    event = Event(Path("x"), EventKind.END, 7, 300)
    assert not is_answered(event, rows(ENDED, WAITS))
    assert is_answered(
        event,
        rows(ENDED, WAITS.replace("Unknown|Unknown|0|PENDING|", "170|299|129|FAILED|gres/gpu=1")),
    )


def test_a_start_needs_no_answer():
    assert is_answered(Event(Path("x"), EventKind.START, 7, 150), [])


def test_the_hook_starts_no_program(hook):
    """It must end within a millisecond or so: it may start nothing, and finds nothing in PATH."""
    trace = subprocess.run(
        ["sh", "-x", hook],
        env={"PATH": "", "SLURM_JOB_ID": "5", "SLURM_SCRIPT_CONTEXT": "epilog_slurmctld"}
        | ({"HOME": os.environ["HOME"]} if "HOME" in os.environ else {}),
        capture_output=True,
        text=True,
        check=True,
        executable="/bin/sh",
    )
    commands = {line.split()[1].split("=")[0] for line in trace.stderr.splitlines()}
    assert commands <= {"spool", "event", "true", "exit"}


def test_the_nodes_epilog_never_drains_a_node(tmp_path):
    """Slurm drains a node whose Epilog exits with anything but 0; PATH is not set there."""
    epilog = resources.files("yolo_slurm.spank_hooks").joinpath("node_epilog.sh")
    done = subprocess.run(["/bin/sh", str(epilog)], env={}, cwd=tmp_path, check=False)
    assert done.returncode == 0


def test_what_is_named_like_an_event_and_is_no_file_is_left_alone(tmp_path):
    (tmp_path / "1.13.0.5").mkdir()
    (tmp_path / "2.17.0.8").symlink_to("2.17.0.8")
    (tmp_path / "2.18.0.8").symlink_to("/etc/passwd")
    (tmp_path / "2.19.0.8").touch()
    assert [event.job_id for event in read_spool(tmp_path)] == [19]


def test_a_file_that_cannot_be_removed_is_one_line(tmp_path):
    (tmp_path / "2.19.0.8").mkdir()
    with pytest.raises(UnavailableError, match="cannot be removed"):
        remove([Event(tmp_path / "2.19.0.8", EventKind.END, 19, 1)])
