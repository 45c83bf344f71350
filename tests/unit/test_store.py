"""The ledger's file: one writer, its owner's, all or nothing."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from yolo_slurm.budget.grant import grant
from yolo_slurm.errors import InputError, RefusedError, UnavailableError
from yolo_slurm.ledger import entries
from yolo_slurm.ledger.store import become_owner, ledger_path, open_ledger
from yolo_slurm.tokens import MAX_UNITS, Units


@pytest.fixture
def url(tmp_path) -> str:
    return f"sqlite:///{tmp_path / 'ledger.db'}"


def test_a_transaction_is_all_or_nothing(url):
    def fail(ledger) -> None:
        with ledger.transaction() as connection:
            entries.post(connection, kind="grant", project="p", units=5, by="x", reason="y", at=1)
            raise RuntimeError

    with open_ledger(url) as ledger:
        with pytest.raises(RuntimeError):
            fail(ledger)
        with ledger.transaction() as connection:
            assert entries.history(connection) == []


def test_the_lock_is_held_by_one_and_freed_by_death(url, tmp_path):
    code = (
        "import sys, time\nfrom yolo_slurm.ledger.store import open_ledger\n"
        "held = open_ledger(sys.argv[1])\nprint('held', flush=True)\ntime.sleep(60)\n"
    )
    other = subprocess.Popen([sys.executable, "-c", code, url], stdout=subprocess.PIPE)
    assert other.stdout is not None
    assert other.stdout.readline() == b"held\n"
    with pytest.raises(UnavailableError, match="in use"):
        open_ledger(url, wait=0.2)
    other.kill()
    other.wait()
    with open_ledger(url, wait=5):
        pass


def test_the_file_is_its_owners_alone(url, tmp_path):
    with open_ledger(url):
        pass
    assert (tmp_path / "ledger.db").stat().st_mode & 0o777 == 0o600


def test_a_directory_that_others_can_write_to_is_refused(url, tmp_path):
    tmp_path.chmod(0o777)
    with pytest.raises(RefusedError, match="chmod 0700"):
        become_owner(url)


@pytest.mark.parametrize(
    "text", ["nonsense", "postgresql://u:secret@h/d", "sqlite://", "sqlite:///:memory:"]
)
def test_another_engine_is_one_line_without_the_secret(text):
    with pytest.raises(InputError) as caught:
        ledger_path(text)
    assert "secret" not in str(caught.value)


def test_no_directory_is_said(tmp_path):
    with pytest.raises(InputError, match="no such directory"):
        become_owner(f"sqlite:///{tmp_path / 'none' / 'ledger.db'}")


def test_a_file_that_is_no_database_is_one_line(url, tmp_path):
    (tmp_path / "ledger.db").write_bytes(b"not a database" * 100)
    with pytest.raises(UnavailableError) as caught:
        open_ledger(url)
    assert "\n" not in str(caught.value)
    assert (tmp_path / "ledger.db").read_bytes().startswith(b"not a database")


def test_a_newer_schema_is_refused(url):
    with open_ledger(url) as ledger, ledger.transaction() as connection:
        connection.exec_driver_sql("UPDATE schema_version SET version = 99")
    with pytest.raises(InputError, match="schema 99"):
        open_ledger(url)


def test_a_killed_transaction_leaves_nothing(url):
    code = (
        "import os, signal, sys\nfrom yolo_slurm.ledger import entries\n"
        "from yolo_slurm.ledger.store import open_ledger\n"
        "with open_ledger(sys.argv[1]) as ledger, ledger.transaction() as connection:\n"
        "    entries.post(connection, kind='grant', project='p', units=5, by='', reason='', at=1)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([sys.executable, "-c", code, url], check=False).returncode < 0
    with open_ledger(url) as ledger, ledger.transaction() as connection:
        assert entries.history(connection) == []


def test_a_balance_cannot_pass_its_bound(url):
    with open_ledger(url) as ledger:
        grant(ledger, "p", Units(MAX_UNITS), by="x", reason="y", now=1)
        with pytest.raises(InputError, match="would pass"):
            grant(ledger, "p", Units(1), by="x", reason="y", now=1)
        with ledger.transaction() as connection:
            assert len(entries.history(connection)) == 1


def test_usage_before_the_first_grant_is_on_record_and_not_charged(url):
    with open_ledger(url) as ledger:
        with ledger.transaction() as connection:
            entries.post(
                connection, kind="debit", project="p", units=-7, by="settler", reason="r", at=1
            )
            assert not entries.accounts(connection)["p"].managed
        grant(ledger, "p", Units(100), by="root", reason="start", now=2)
        with ledger.transaction() as connection:
            account = entries.accounts(connection)["p"]
            kinds = [entry.kind for entry in entries.history(connection)]
    assert (account.units, account.managed, account.debited) == (100, True, -7)
    assert kinds == ["debit", "adjustment", "grant"]


@pytest.mark.parametrize("reason", ["", "  ", "a\nb", "x" * 1001])
def test_a_reason_is_one_line(url, reason):
    with open_ledger(url) as ledger, pytest.raises(InputError, match="--reason"):
        grant(ledger, "p", Units(1), by="x", reason=reason, now=1)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_root_becomes_the_owner(url, tmp_path):
    os.chown(tmp_path, 65534, 65534)
    tmp_path.chmod(0o700)
    code = (
        "import os, sys\nfrom yolo_slurm.ledger.store import become_owner\n"
        "become_owner(sys.argv[1])\nprint(os.getuid(), os.getgid(), os.geteuid(), os.getresuid())\n"
    )
    done = subprocess.run([sys.executable, "-c", code, url], check=True, capture_output=True)
    assert done.stdout.split()[:3] == [b"65534", b"65534", b"65534"]
