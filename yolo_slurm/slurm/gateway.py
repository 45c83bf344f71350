"""The one place that runs a command: an argument list, a timeout, an error that tells all."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from yolo_slurm.errors import UnavailableError


class Completed(msgspec.Struct, frozen=True):
    """What a command printed, and how it ended."""

    argv: tuple[str, ...]
    exit_code: int
    stdout: str
    stderr: str


class CommandError(UnavailableError):
    """A command failed; carries the command, its exit code and its stderr."""

    def __init__(self, done: Completed) -> None:
        self.done = done
        said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        detail = "; ".join(said[-3:]) or "it printed nothing"
        if "configuration source" in detail:
            detail = "no slurm.conf was found; SLURM_CONF names it where it is not in /etc/slurm"
        super().__init__(f"{done.argv[0]} failed (exit code {done.exit_code}): {detail}")


class CommandTimeoutError(UnavailableError):
    """A command did not end in time and was killed."""

    def __init__(self, argv: Sequence[str], seconds: float) -> None:
        self.argv = tuple(argv)
        super().__init__(f"{argv[0]} did not answer within {seconds:g} s")


class CommandMissingError(UnavailableError):
    """The command is not installed on this host."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name}: command not found; is Slurm's client installed here and in PATH?"
        )


def run(
    argv: Sequence[str],
    *,
    timeout: float,
    check: bool = True,
    env: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
) -> Completed:
    """Run *argv* for at most *timeout* seconds and return what it printed.

    *env* is added to this process's environment. Bytes that are not UTF-8
    come back as U+FFFD: what Slurm prints is text.

    Raises CommandMissingError, CommandTimeoutError, and with *check*
    CommandError on an exit code other than 0.
    """
    environment = {**os.environ, **env} if env else None
    try:
        done = subprocess.run(
            list(argv),
            timeout=timeout,
            capture_output=True,
            check=False,
            env=environment,
            input=stdin or b"",
        )
    except FileNotFoundError:
        raise CommandMissingError(Path(argv[0]).name) from None
    except PermissionError:
        raise CommandMissingError(argv[0]) from None
    except subprocess.TimeoutExpired:
        raise CommandTimeoutError(argv, timeout) from None
    completed = Completed(
        tuple(argv),
        done.returncode,
        done.stdout.decode("utf-8", "replace"),
        done.stderr.decode("utf-8", "replace"),
    )
    if check and done.returncode != 0:
        raise CommandError(completed)
    return completed


def lines(
    argv: Sequence[str], *, timeout: float, env: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Yield the lines that *argv* prints while it runs, without their newlines.

    For output that is too long to hold. The command is killed after *timeout*
    seconds, or when the caller takes no more.

    Raises what `run` raises, after the last line that came.
    """
    environment = {**os.environ, **env} if env else None
    late = threading.Event()
    with tempfile.TemporaryFile() as stderr:
        try:
            process = subprocess.Popen(
                list(argv),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=environment,
                encoding="utf-8",
                errors="replace",
            )
        except FileNotFoundError:
            raise CommandMissingError(Path(argv[0]).name) from None
        except PermissionError:
            raise CommandMissingError(argv[0]) from None

        def stop() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(timeout, stop)
        timer.daemon = True
        timer.start()
        try:
            assert process.stdout is not None  # noqa: S101
            with process.stdout as stdout:
                for line in stdout:
                    yield line.rstrip("\n")
            code = process.wait()
        finally:
            timer.cancel()
            process.kill()
            process.wait()
        if late.is_set():
            raise CommandTimeoutError(argv, timeout)
        if code != 0:
            stderr.seek(0)
            said = stderr.read().decode("utf-8", "replace")
            raise CommandError(Completed(tuple(argv), code, "", said))


def start(argv: Sequence[str], *, stdin: bytes | None) -> subprocess.Popen[bytes]:
    """Start *argv* as the leader of a session of its own, its output in pipes.

    *stdin* is fed to it; None gives it this process's own stdin. Raises
    CommandMissingError.
    """
    try:
        process = subprocess.Popen(
            list(argv),
            stdin=None if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (FileNotFoundError, PermissionError):
        raise CommandMissingError(Path(argv[0]).name) from None
    if process.stdin is not None and stdin is not None:
        # Where it ends before it read its script, its exit code tells why.
        with suppress(BrokenPipeError):
            process.stdin.write(stdin)
        with suppress(BrokenPipeError):
            process.stdin.close()
    return process


def kill_session(process: subprocess.Popen[bytes]) -> None:
    """Kill what `start` started, and what that started in its own process group."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
