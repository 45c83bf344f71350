"""Real clusters: they come up, keep apart, and leave nothing behind, however they end."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import pwd
import select
import signal
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest

from yolo_slurm.devcluster.daemons import interpreter

if TYPE_CHECKING:
    from conftest import Cluster

YOLO_SLURM = (str(interpreter()), "-P", "-m", "yolo_slurm")
SMALL = ("--no-service", "--nodes", "t4:2x1")
DEVCLUSTER = (*YOLO_SLURM, "devcluster")


def devcluster(*args: str, timeout: float = 90, **kwargs: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*DEVCLUSTER, *args],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        stdin=subprocess.DEVNULL,
        **kwargs,
    )


def processes_of(directory: Path) -> dict[int, str]:
    """Who names *directory* in its command line or environment: command lines by id."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            command = (entry / "cmdline").read_bytes()
            text = command + (entry / "environ").read_bytes()
        except OSError:
            continue
        if os.fsencode(directory) in text:
            found[int(entry.name)] = os.fsdecode(command.replace(b"\0", b" "))
    return found


def wait_until(done: Callable[[], Any], seconds: float = 15) -> bool:
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def assert_nothing_runs(directory: Path) -> None:
    wait_until(lambda: not processes_of(directory))
    assert processes_of(directory) == {}


@pytest.fixture
def directory(host: None) -> Iterator[Path]:
    """A name for a cluster's directory, which does not exist yet."""
    parent = Path(tempfile.mkdtemp(prefix="devc-", dir="/tmp"))
    parent.chmod(0o755)
    yield parent / "c"
    devcluster("down", "--dir", str(parent / "c"))
    assert_nothing_runs(parent)
    for left in (parent / "c", parent):
        if left.exists():
            left.rmdir()


class TestUp:
    def test_up_status_down(self, directory: Path) -> None:
        begin = time.monotonic()
        up = devcluster("up", "--dir", str(directory))
        assert up.returncode == 0, up.stderr
        assert time.monotonic() - begin < 10
        assert f"export SLURM_CONF={directory}/etc/slurm.conf" in up.stdout
        assert up.stderr == ""

        status = json.loads(devcluster("status", "--json", "--dir", str(directory)).stdout)
        assert status["ready"] is True
        assert [node["name"] for node in status["nodes"]] == ["g1", "g2", "g3", "g4"]
        assert {node["state"] for node in status["nodes"]} == {"idle"}
        assert all(daemon["alive"] for daemon in status["daemons"])
        names = {daemon["name"] for daemon in status["daemons"]}
        assert names == {
            *("supervisor", "munged", "mariadbd", "slurmdbd", "slurmctld", "settler"),
            *("g1", "g2", "g3", "g4"),
        }

        again = devcluster("up", *SMALL, "--dir", str(directory))
        assert again.returncode == 1
        assert "already runs" in again.stderr
        assert again.stderr.count("\n") == 1

        assert devcluster("down", "--dir", str(directory)).returncode == 0
        assert not directory.exists()
        assert_nothing_runs(directory)
        twice = devcluster("down", "--dir", str(directory))
        assert (twice.returncode, twice.stdout) == (0, f"nothing runs in {directory}\n")

    def test_export_can_be_evaluated(self, directory: Path) -> None:
        script = 'eval "$("$@")" && sinfo -h -o %T && test -r "$YOLO_SLURM_POLICY"'
        argv = [*DEVCLUSTER, "up", "--export", *SMALL, "--dir", str(directory)]
        done = subprocess.run(
            ["/bin/sh", "-c", script, "sh", *argv], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout) == (0, "idle\n"), done.stderr

    def test_a_daemon_that_fails_is_named(self, directory: Path, tmp_path: Path) -> None:
        lines = tmp_path / "lines"
        lines.write_text("SelectType=select/none_such\n")
        done = devcluster("up", *SMALL, "--slurm-conf", str(lines), "--dir", str(directory))
        assert done.returncode == 3
        assert "slurmctld ended early" in done.stderr
        assert done.stderr.count("\n") == 1
        assert_nothing_runs(directory)

    def test_a_directory_of_something_else_is_left_alone(self, tmp_path: Path, host: None) -> None:
        directory = Path(tempfile.mkdtemp(dir="/tmp"))
        directory.chmod(0o755)
        (directory / "thesis.tex").write_text("x")
        try:
            for command in (("up", *SMALL), ("down",)):
                done = devcluster(*command, "--dir", str(directory))
                assert "devcluster" in done.stderr or "nothing runs" in done.stdout
                assert (directory / "thesis.tex").read_text() == "x"
        finally:
            (directory / "thesis.tex").unlink()
            directory.rmdir()


class TestUse:
    def test_another_user_submits_and_gets_gpus(self, cluster: Cluster) -> None:
        done = cluster.run(
            ["srun", "--gres=gpu:a100:2", "sh", "-c", "id -un; echo $CUDA_VISIBLE_DEVICES"],
            user="nobody",
        )
        assert done.stdout == "nobody\n0,1\n"

    def test_every_user_is_in_every_project(self, cluster: Cluster) -> None:
        argv = ["sacctmgr", "-nP", "show", "assoc", "format=user,account"]
        rows = {tuple(line.split("|")) for line in cluster.run(argv).stdout.split()}
        users = ("root", "nobody", "daemon", "games")
        assert {(user, account) for user in users for account in ("demo", "defect")} <= rows

    def test_the_first_project_is_the_default(self, cluster: Cluster) -> None:
        done = cluster.run(["srun", "sh", "-c", "echo $SLURM_JOB_ACCOUNT"], user="games")
        assert done.stdout == "demo\n"

    def test_the_hook_tells_of_a_start_and_an_end(self, cluster: Cluster) -> None:
        settler = cluster.pid("settler")
        os.kill(settler, signal.SIGSTOP)  # else it takes the files away
        try:
            done = cluster.run(["srun", "sh", "-c", "echo $SLURM_JOB_ID"], user="games")
            job = done.stdout.strip()
            spool = cluster.dir / "spool"
            assert wait_until(lambda: any(spool.glob(f"2.{job}.0.*")))
            assert any(spool.glob(f"1.{job}.0.*"))
        finally:
            os.kill(settler, signal.SIGCONT)

    @pytest.mark.parametrize(
        ("path", "owner", "mode"),
        [
            (".", "root", 0o755),
            ("etc/slurm.conf", "root", 0o644),
            ("etc/policy.toml", "root", 0o644),
            ("etc/slurmdbd.conf", "slurm", 0o600),
            ("etc/site.toml", "slurm", 0o600),
            ("spool", "slurm", 0o700),
            ("ledger", "slurm", 0o700),
            ("db", "slurm", 0o700),
            ("munge/munge.key", "munge", 0o400),
        ],
    )
    def test_who_may_read_what(self, cluster: Cluster, path: str, owner: str, mode: int) -> None:
        found = (cluster.dir / path).stat()
        assert pwd.getpwuid(found.st_uid).pw_name == owner
        assert stat.S_IMODE(found.st_mode) == mode


class TestRun:
    def test_the_exit_code_comes_back(self, directory: Path) -> None:
        script = "sinfo -h -N -o %T; command -v yolo-slurm; exit 7"
        done = devcluster("run", *SMALL, "--dir", str(directory), "--", "sh", "-c", script)
        assert done.returncode == 7, done.stderr
        assert done.stdout.split("\n")[0] == "idle"
        assert not directory.exists()
        assert_nothing_runs(directory)

    def test_a_command_that_a_signal_ends(self, directory: Path) -> None:
        done = devcluster("run", *SMALL, "--dir", str(directory), "--", "sh", "-c", "kill -9 $$")
        assert done.returncode == 128 + 9

    def test_no_such_command(self) -> None:
        done = devcluster("run", *SMALL, "--", "no-such-command")
        assert done.returncode == 127
        assert done.stderr == "yolo-slurm: no-such-command: no such command\n"

    def test_two_at_once_and_lines_of_the_users_own(self, directory: Path, tmp_path: Path) -> None:
        lines = tmp_path / "lines"
        lines.write_text("KillWait=17\n")
        script = (
            "srun -Q true && scontrol show config | grep -E '^(ClusterName|KillWait)' &&"
            " srun -Q sh -c 'echo $SLURM_JOB_ID'"
        )
        results: list[subprocess.CompletedProcess[str]] = []

        def start(name: str) -> None:
            where = ("--dir", f"{directory}{name}")
            more = ("--slurm-conf", str(lines), *where)
            results.append(devcluster("run", *SMALL, *more, "--", "sh", "-c", script))

        threads = [threading.Thread(target=start, args=(name,)) for name in ("1", "2")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [done.returncode for done in results] == [0, 0], results
        assert all("= 17 sec" in done.stdout for done in results)
        assert all(done.stdout.split()[-1] == "2" for done in results)
        names = {done.stdout.split("ClusterName")[1].split()[1] for done in results}
        assert len(names) == 2

    @pytest.mark.parametrize(("number", "told"), [(signal.SIGTERM, "TERM"), (signal.SIGINT, "INT")])
    def test_a_signal_reaches_the_command_and_then_all_ends(
        self, directory: Path, number: signal.Signals, told: str
    ) -> None:
        heard = directory.with_name("heard")
        script = f"trap 'echo INT >{heard}; exit 130' INT; trap 'echo TERM >{heard}; exit 9' TERM;"
        script += "echo ready; while :; do sleep 0.1; done"
        process = start_run(directory, "sh", "-c", script)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert process.wait(30) == 128 + number
        process.stdout.close()
        assert heard.read_text() == f"{told}\n"
        heard.unlink()
        assert not directory.exists()


def start_run(directory: Path, *argv: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*DEVCLUSTER, "run", *SMALL, "--dir", str(directory), "--", *argv],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


class Terminal:
    """A devcluster command on a terminal of its own."""

    def __init__(self, *args: str, env: Mapping[str, str] = MappingProxyType({})) -> None:
        self.said = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(DEVCLUSTER[0], [*DEVCLUSTER, *args], {**os.environ, **env})  # noqa: S606

    def expect(self, text: str, seconds: float = 30) -> None:
        """Read until the command, not its echo, has said *text*."""
        deadline = time.monotonic() + seconds
        while text not in self.said and time.monotonic() < deadline:
            if select.select([self.fd], [], [], 0.1)[0]:
                try:
                    self.said += os.read(self.fd, 4096).decode()
                except OSError:  # the other side is closed
                    break
        assert text in self.said

    def type(self, text: str) -> None:
        os.write(self.fd, text.encode())

    def wait(self) -> int:
        """The exit code; what is said meanwhile is read, so that nobody waits for us."""
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            if select.select([self.fd], [], [], 0.1)[0]:
                with contextlib.suppress(OSError):
                    self.said += os.read(self.fd, 4096).decode()
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                os.close(self.fd)
                return os.waitstatus_to_exitcode(status)
        pytest.fail(f"still runs; said {self.said!r}")


class TestTerminal:
    def test_ctrl_c_is_the_commands_once(self, directory: Path) -> None:
        script = "n=0; trap 'n=$((n+1)); echo heard $n' INT; echo ready;"
        script += "for i in $(seq 20); do sleep 0.1; done; exit $((n+40))"
        terminal = Terminal("run", *SMALL, "--dir", str(directory), "--", "sh", "-c", script)
        terminal.expect("ready\r\n")
        terminal.type("\x03")
        assert terminal.wait() == 41
        assert "heard 2" not in terminal.said
        assert not directory.exists()

    def test_ctrl_c_while_it_starts(self, directory: Path) -> None:
        terminal = Terminal("run", *SMALL, "--dir", str(directory), "--", "true")
        terminal.expect("starting: slurmdbd")
        terminal.type("\x03")
        assert terminal.wait() == 130
        assert not directory.exists()
        assert_nothing_runs(directory)

    def test_a_shell_with_job_control(self, host: None) -> None:
        terminal = Terminal(
            "shell", *SMALL, "--dir", "/tmp/no-devcluster", env={"SHELL": "/bin/bash"}
        )
        terminal.expect("starting: nodes")
        terminal.type("set -m; sleep 60 &\nkill %1; sinfo -h -o =%T=; exit 4\n")
        assert terminal.wait() == 4
        assert "=idle=" in terminal.said
        assert "no job control" not in terminal.said


# A job whose process hides: it leaves the session and wipes its environment.
LONG = f"1009.{os.getpid()}"  # seconds; no other test's sleep is as long
HIDING_JOB = f"""
srun -Q env -i setsid sh -c 'sleep {LONG} & sleep {LONG}' &
until squeue -h -t R | grep -q .; do sleep 0.1; done
sleep 0.5
echo ready
sleep {LONG}
"""


def sleepers() -> list[int]:
    return [
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit()
        and (entry / "cmdline").is_file()
        and _cmdline(entry) == f"sleep\0{LONG}\0".encode()
    ]


def _cmdline(entry: Path) -> bytes:
    try:
        return (entry / "cmdline").read_bytes()
    except OSError:
        return b""


class TestKilled:
    @pytest.mark.parametrize("seconds", [0.1, 0.3, 0.6, 1.0, 1.6, 2.4])
    @pytest.mark.parametrize("command", ["up", "run"])
    def test_while_it_starts(self, directory: Path, command: str, seconds: float) -> None:
        argv = [*DEVCLUSTER, command, *SMALL, "--dir", str(directory)]
        argv += ["--", "sleep", LONG] if command == "run" else []
        process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, start_new_session=True)
        time.sleep(seconds)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert_nothing_runs(directory)
        assert sleepers() == []

    def test_run_with_a_job_that_hides(self, directory: Path) -> None:
        process = start_run(directory, "sh", "-c", HIDING_JOB)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        assert wait_until(lambda: len(sleepers()) >= 3)
        process.kill()
        process.wait()
        assert_nothing_runs(directory)
        assert wait_until(lambda: not sleepers())
        process.stdout.close()

    @pytest.mark.parametrize("who", ["supervisor", "guard", "both"])
    def test_the_supervisor_of_an_up(self, directory: Path, who: str) -> None:
        assert devcluster("up", *SMALL, "--dir", str(directory)).returncode == 0
        env = {**os.environ, "SLURM_CONF": str(directory / "etc/slurm.conf")}
        # With both gone, nothing ties a process to the cluster that left its
        # step and wiped its environment; with one alive it is a descendant.
        hide = [] if who == "both" else ["setsid"]
        srun = ["srun", "-Q", "env", "-i", *hide, "sleep", LONG]
        job = subprocess.Popen(srun, env=env, stderr=subprocess.DEVNULL, start_new_session=True)
        assert wait_until(sleepers)
        state = json.loads((directory / "state.json").read_text())
        supervisor = state["supervisor"]["pid"]
        guard = int(Path(f"/proc/{supervisor}/stat").read_text().rpartition(")")[2].split()[1])
        victims = {"supervisor": [supervisor], "guard": [guard], "both": [guard, supervisor]}
        for pid in victims[who]:
            os.kill(pid, signal.SIGKILL)
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()
        if who == "both":
            assert devcluster("down", "--dir", str(directory)).returncode == 0
        assert_nothing_runs(directory)
        assert wait_until(lambda: not sleepers())
        if who == "guard":  # what a dead cluster left is no obstacle
            again = devcluster("up", *SMALL, "--dir", str(directory))
            assert again.returncode == 0, again.stderr

    def test_the_guard_of_a_run(self, directory: Path) -> None:
        process = start_run(directory, "sh", "-c", HIDING_JOB)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        supervisor = json.loads((directory / "state.json").read_text())["supervisor"]["pid"]
        fields = Path(f"/proc/{supervisor}/stat").read_text().rpartition(")")[2].split()
        os.kill(int(fields[1]), signal.SIGKILL)
        assert process.wait(30) == 3
        process.stdout.close()
        assert not directory.exists()
        assert processes_of(directory) == {}
        assert sleepers() == []


class TestRefusals:
    def test_a_missing_package_is_one_line(self, tmp_path: Path, host: None) -> None:
        for program in ("slurmd", "slurmdbd", "sinfo", "sacctmgr", "munged"):
            (tmp_path / program).symlink_to("/bin/true")
        for program in ("mariadbd", "mariadb-install-db"):
            (tmp_path / program).symlink_to("/bin/true")
        done = devcluster("up", env={"PATH": str(tmp_path)})
        assert done.returncode == 3
        assert "slurmctld not found" in done.stderr
        assert "apt-get install -y --no-install-recommends slurmctld" in done.stderr
        assert done.stderr.count("\n") == 1

    def test_not_root_is_one_line(self, cluster: Cluster) -> None:
        done = cluster.run([*DEVCLUSTER, "up", *SMALL], user="nobody", check=False)
        assert done.returncode == 3
        assert "root" in done.stderr
        assert done.stderr.count("\n") == 1

    @pytest.mark.parametrize(
        ("args", "told"),
        [
            (("--nodes", "a100"), "TYPE:GPUSxNODES"),
            (("--projects", "De Mo"), "not a name"),
            (("--users", "root,nobody_of_that_name"), "no such user"),
            (("--dir", "/tmp/" + "x" * 60), "longer than"),
            (("--dir", "/tmp/a b"), "letters, digits"),
        ],
    )
    def test_bad_input_is_one_line(self, host: None, args: tuple[str, ...], told: str) -> None:
        done = devcluster("up", *args)
        assert done.returncode == 2
        assert told in done.stderr
        assert done.stderr.count("\n") == 1


def test_a_link_is_no_directory_for_a_cluster(host: None, tmp_path: Path) -> None:
    """Root would follow a link that another user laid in /tmp."""
    target = tmp_path / "target"
    target.mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(target)
    done = devcluster("up", "--dir", str(tmp_path / "link"))
    assert done.returncode == 2
    assert "symbolic link" in done.stderr
    assert target.stat().st_mode & 0o777 == 0o700
