"""Opens the ledger: one writer at a time, durable, and nobody else's file."""

from __future__ import annotations

import fcntl
import os
import pwd
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, insert, select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from yolo_slurm.errors import InputError, RefusedError, UnavailableError
from yolo_slurm.ledger import schema


class Ledger:
    """An open ledger. Use it as a context manager; `transaction` is all or nothing."""

    def __init__(self, engine: Engine, lock: int) -> None:
        self._engine = engine
        self._lock = lock

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Yield a connection whose work is committed at the end, or not at all.

        Raises UnavailableError where the database does not take it.
        """
        try:
            with self._engine.begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise UnavailableError(
                f"the ledger did not take the change: {_first(error)}"
            ) from error

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self._engine.dispose()
        os.close(self._lock)


def _first(error: SQLAlchemyError) -> str:
    return str(error).splitlines()[0]


def ledger_path(url: str) -> Path:
    """Return the file of a SQLite *url*. Raises InputError for any other engine, and for memory."""
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise InputError("ledger.url in site.toml is not a database URL") from None
    if (
        parsed.get_backend_name() != "sqlite"
        or not parsed.database
        or parsed.database == ":memory:"
    ):
        raise InputError(
            f"ledger.url in site.toml: {parsed.get_backend_name()} is not supported yet: "
            "expected sqlite:////PATH/TO/ledger.db"
        )
    return Path(parsed.database)


def become_owner(url: str) -> None:
    """Where root runs this, become the user that the ledger's directory belongs to.

    A file that root made beside the ledger (SQLite's journal) would lock its
    owner out. Raises RefusedError for anyone else, and for a directory that
    others may write to.
    """
    directory = ledger_path(url).parent
    try:
        status = directory.stat()
    except FileNotFoundError:
        raise InputError(
            f"{directory}: no such directory; make it for the ledger, owned by SlurmUser, mode 0700"
        ) from None
    except PermissionError:
        raise _not_yours(directory) from None
    if status.st_mode & 0o022:
        raise RefusedError(f"{directory} can be written by others than its owner: chmod 0700 it")
    if os.geteuid() == 0 and status.st_uid != 0:
        owner = pwd.getpwuid(status.st_uid)
        os.initgroups(owner.pw_name, owner.pw_gid)
        os.setgid(owner.pw_gid)
        os.setuid(owner.pw_uid)
        os.environ["HOME"] = owner.pw_dir
        os.environ["USER"] = os.environ["LOGNAME"] = owner.pw_name
    elif os.geteuid() != status.st_uid:
        raise _not_yours(directory)


def _not_yours(directory: Path) -> RefusedError:
    return RefusedError(
        f"the ledger in {directory} is not yours: run this as root or as its owner on the "
        "controller; `yolo-slurm balance` shows a project's available tokens to anyone"
    )


def open_ledger(url: str, *, wait: float = 60.0) -> Ledger:
    """Open the ledger at *url*, making its tables where there are none.

    The lock of its one writer is waited for, *wait* seconds at most; the
    kernel gives it back when its holder dies. Raises UnavailableError,
    InputError, RefusedError.
    """
    path = ledger_path(url)
    lock = _take_lock(path.with_suffix(".lock"), wait)
    try:
        engine = create_engine(url)
        event.listen(engine, "connect", _set_up)
        event.listen(engine, "begin", _begin)
        with engine.begin() as connection:
            _make_tables(connection, path)
        path.chmod(0o600)
    except SQLAlchemyError as error:
        os.close(lock)
        raise UnavailableError(f"the ledger {path} cannot be opened: {_first(error)}") from None
    except BaseException:
        os.close(lock)
        raise
    return Ledger(engine, lock)


def _make_tables(connection: Connection, path: Path) -> None:
    schema.metadata.create_all(connection)
    found = connection.scalar(select(schema.version.c.version))
    if found is None:
        connection.execute(insert(schema.version).values(version=schema.SCHEMA_VERSION))
    elif found != schema.SCHEMA_VERSION:
        raise InputError(
            f"{path}: the ledger has schema {found}, this program reads "
            f"{schema.SCHEMA_VERSION}: upgrade yolo_slurm"
        )


def _take_lock(path: Path, wait: float) -> int:
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise UnavailableError(f"{path}: {error.strerror}") from None
    deadline = time.monotonic() + wait
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                os.close(lock)
                raise UnavailableError(
                    f"the ledger is in use: {path} has been locked for {wait:g} s"
                ) from None
            time.sleep(0.02)
        else:
            return lock


def _set_up(connection: Any, _record: Any) -> None:
    # SQLAlchemy's own recipe: the driver opens no transaction by itself.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.execute("PRAGMA busy_timeout=30000")
    cursor.close()


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")
