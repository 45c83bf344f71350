"""What is installed where: a login node stays light, and a wheel needs no checkout."""

from __future__ import annotations

import configparser
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def loaded(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-P", "-c", f"{code}\nimport sys\nprint(*sys.modules)"],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "YOLO_SLURM_POLICY": ""},
    )
    return set(done.stdout.splitlines()[-1].split())


def dry_run(*words: str) -> str:
    return (
        "from yolo_slurm.cli.sbatch import sbatch\n"
        f"sbatch({['--dry-run', *words]!r}, standalone_mode=False)"
    )


def test_yolo_sbatch_loads_no_toolkit_and_a_template_only_jinja(tmp_path):
    job = tmp_path / "job.sh"
    job.write_text("#!/bin/bash\n")
    heavy = {"sqlalchemy", "sqlite_utils", "torch", "ultralytics", "numpy"}
    plain = loaded(dry_run("--gpus=1", "-t", "5", str(job)))
    assert not plain & (heavy | {"jinja2"})
    template = loaded(dry_run("--gpus=1", "-t", "5", "--", "data=a", "model=b"))
    assert not template & heavy
    assert "jinja2" in template


def test_training_settings_load_no_torch():
    assert not loaded("import yolo_slurm.train.cli") & {"torch", "ultralytics", "numpy"}


def test_every_package_is_listed():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    listed = set(config["options"]["packages"].split())
    found = {
        ".".join(path.parent.relative_to(ROOT).parts)
        for path in (ROOT / "yolo_slurm").rglob("__init__.py")
    } | {"yolo_slurm.job_templates", "yolo_slurm.spank_hooks"}
    assert listed == found


@pytest.fixture(scope="session")
def wheel(tmp_path_factory) -> Path:
    """A wheel built from a copy of the checkout."""
    out = tmp_path_factory.mktemp("wheel")
    copy = out / "checkout"
    copy.mkdir()
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    for name in ("yolo_slurm", "job_templates", "spank_hooks"):
        shutil.copytree(ROOT / name, copy / name)
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, copy],
        check=True,
        capture_output=True,
    )
    (built,) = out.glob("*.whl")
    return built


def test_a_wheel_in_another_folder_works_without_the_checkout(wheel, tmp_path):
    place = tmp_path / "venv"
    venv.create(place, system_site_packages=False, with_pip=False)
    (site,) = place.glob("lib/python*/site-packages")
    here = Path(sys.prefix).joinpath(
        "lib", f"python{sys.version_info.major}.{sys.version_info.minor}", "site-packages"
    )
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", site, wheel],
        check=True,
    )
    # The dependencies of a plain install, and nothing else, from this environment.
    for name in ("click", "jinja2", "markupsafe", "msgspec"):
        (site / name).symlink_to(here / name)
    code = (
        "import sys\nfrom yolo_slurm.cli.sbatch import main\n"
        "sys.argv = ['yolo-sbatch', '--dry-run', '--tokens=1', '--', 'data=a', 'model=b']\nmain()"
    )
    done = subprocess.run(
        [place / "bin/python", "-c", code],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin"},
    )
    assert "yolo-train --settings" in done.stdout
    hook = (
        "from importlib.resources import files\n"
        "print(files('yolo_slurm.spank_hooks') / 'job_event.sh')"
    )
    done = subprocess.run(
        [place / "bin/python", "-c", hook], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert Path(done.stdout.strip()).is_file()
    assert str(ROOT) not in done.stdout
