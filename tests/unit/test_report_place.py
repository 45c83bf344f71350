"""Where a cache lies: one for each cluster and each user."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from yolo_slurm.report.place import identity, place

CONF = """
# clustername=commented
ClusterName={name}
AccountingStorageHost=db.example
AccountingStoragePort={port}
"""


@pytest.fixture
def conf(tmp_path):
    def write(directory: str, name: str = "hpc", port: int = 6819) -> dict[str, str]:
        path = tmp_path / directory / "slurm.conf"
        path.parent.mkdir(exist_ok=True)
        path.write_text(CONF.format(name=name, port=port))
        return {"SLURM_CONF": str(path)}

    return write


def test_clusters_that_differ_in_anything_have_names_that_differ(conf):
    names = {
        identity(conf("one")),
        identity(conf("two")),
        identity(conf("one", name="other")),
        identity(conf("one", port=7000)),
        identity({**conf("one"), "SACCT_FEDERATION": "1"}),
    }
    assert len(names) == 5
    assert None not in names
    assert identity(conf("one")) == identity(conf("one"))


def test_a_name_is_fit_for_a_file(conf):
    name = identity(conf("one", name="../../etc/x"))
    assert name is not None
    assert name.startswith(".._.._etc_x-")


def test_without_slurm_conf_the_first_usual_file_is_read(conf, tmp_path):
    conf("one")
    paths = [tmp_path / "none", tmp_path / "one" / "slurm.conf"]
    name = identity({}, paths)
    assert name is not None
    assert name.startswith("hpc-")


def test_without_any_file_scontrol_is_asked(tmp_path, monkeypatch):
    program = tmp_path / "scontrol"
    program.write_text(
        "#!/bin/sh\necho 'AccountingStorageHost   = db'\necho 'ClusterName             = far'\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    name = identity({}, [])
    assert name is not None
    assert name.startswith("far-")
    program.unlink()
    assert identity({}, []) is None


def test_xdg_then_home_then_a_directory_for_temporary_files(tmp_path):
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    (tmp_path / "h").mkdir()
    xdg = place({"XDG_CACHE_HOME": str(tmp_path / "x"), "HOME": "/"}, 5, "c-1", temporary)
    assert xdg.path == tmp_path / "x" / "yolo-slurm" / "usage-c-1-5.db"
    home = place({"HOME": str(tmp_path / "h")}, 5, "c-1", temporary)
    assert home.path == tmp_path / "h" / ".cache" / "yolo-slurm" / "usage-c-1-5.db"
    assert xdg.note is home.note is None
    assert stat.S_IMODE(home.path.parent.stat().st_mode) == 0o700


def test_a_home_that_is_none_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    uid = os.getuid()
    found = place({"HOME": str(tmp_path / "file")}, uid, "c-1", tmp_path)
    assert found.path == tmp_path / f"yolo-slurm-{uid}" / f"usage-c-1-{uid}.db"
    assert found.note is not None
    assert "cannot be written to" in found.note


def test_a_home_that_is_not_there_is_not_made(tmp_path):
    found = place({"HOME": str(tmp_path / "none")}, os.getuid(), "c-1", tmp_path)
    assert found.note is not None
    assert not (tmp_path / "none").exists()


def test_what_another_user_could_have_planted_is_not_used(tmp_path):
    uid = os.getuid()
    nowhere = {"HOME": str(tmp_path / "file")}
    (tmp_path / "file").write_text("")
    planted = tmp_path / f"yolo-slurm-{uid}"
    planted.mkdir(mode=0o755)
    planted.chmod(0o777)
    assert place(nowhere, uid, "c-1", tmp_path).path is None
    planted.rmdir()
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    planted.symlink_to(tmp_path / "elsewhere")
    found = place(nowhere, uid, "c-1", tmp_path)
    assert found.path is None
    assert found.note is not None
    assert "nothing is cached" in found.note


def test_a_cluster_that_is_not_known_has_no_cache(tmp_path):
    assert place({"HOME": str(tmp_path)}, 0, None, Path("/tmp")).path is None
