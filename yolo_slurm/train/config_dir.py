"""The job's own configuration folder for ultralytics and matplotlib.

HOME may not exist on a compute node, and jobs that share one settings file
overwrite each other's: each job gets a private folder and removes it at its end.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from yolo_slurm.train import package
from yolo_slurm.train.errors import TrainError

# Ultralytics looks for the first; with class names beyond ASCII for the second.
FONTS: Final = ("Arial.ttf", "Arial.Unicode.ttf")


@contextlib.contextmanager
def job_directory(environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield a private folder (mode 0700) in SLURM_TMPDIR or TMPDIR, removed at the end."""
    base = environ.get("SLURM_TMPDIR") or environ.get("TMPDIR") or tempfile.gettempdir()
    name = f"yolo-train-{environ.get('SLURM_JOB_ID', 'local')}-"
    try:
        # The name is not predictable, so nobody else can have made it before us.
        path = Path(tempfile.mkdtemp(prefix=name.replace("/", "_"), dir=base))
    except OSError as error:
        raise TrainError(f"cannot make a temporary folder in {base}: {error.strerror}") from error
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def find_font(wanted: str | None) -> tuple[Path | None, str | None]:
    """Return a TrueType font and a note for the log when it is not the wanted one."""
    note = None
    if wanted is not None:
        if Path(wanted).is_file():
            return Path(wanted), None
        note = f"font {wanted} does not exist: using the one that matplotlib ships"
    matplotlib = package.directory("matplotlib")
    if matplotlib is not None:
        shipped = matplotlib / "mpl-data" / "fonts" / "ttf" / "DejaVuSans.ttf"
        if shipped.is_file():
            return shipped, note
    return None, "no font was found: ultralytics may look for one in the network"


def place_fonts(config: Path, font: Path) -> None:
    """Copy *font* to where ultralytics looks; a font that is there already stays."""
    with _writing(config) as folder:
        for name in FONTS:
            if not (folder / name).exists():
                shutil.copyfile(font, folder / name)


def seed_settings(config: Path, user: Path | None, cwd: Path, repository: Path | None) -> None:
    """Write ultralytics' settings.json: the *user*'s own where he has one.

    Results go to ``runs`` in *cwd* unless the user chose another place. Installed in a
    git work tree (*repository*) ultralytics would put them beside its own code, and
    writes that into the user's file as if he had chosen it.
    """
    settings = _read(user) if user is not None else {}
    if not settings:
        names = {"runs_dir": "runs", "weights_dir": "weights", "datasets_dir": "datasets"}
        settings = {key: str(cwd / name) for key, name in names.items()}
    elif repository is not None and settings.get("runs_dir") == str(repository / "runs"):
        settings["runs_dir"] = str(cwd / "runs")
    with _writing(config) as folder:
        (folder / "settings.json").write_text(json.dumps(settings))


@contextlib.contextmanager
def _writing(config: Path) -> Iterator[Path]:
    folder = config / "Ultralytics"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
    except OSError as error:
        raise TrainError(f"cannot write to {folder}: {error.strerror or error}") from error


def user_settings(environ: Mapping[str, str]) -> Path | None:
    """Return the settings file that ultralytics would use for this user, if it is there."""
    base = environ.get("XDG_CONFIG_HOME")
    if not base:
        home = environ.get("HOME")
        if not home:
            return None
        base = f"{home}/.config"
    path = Path(base) / "Ultralytics" / "settings.json"
    try:
        with path.open("rb"):
            return path
    except OSError:
        return None


def weights_directory(config: Path, cwd: Path) -> Path:
    """Return ultralytics' weights_dir as *config* has it."""
    value = _read(config / "Ultralytics" / "settings.json").get("weights_dir")
    return cwd / value if isinstance(value, str) else cwd / "weights"


def _read(path: Path) -> dict[str, object]:
    """Return a settings file's object, empty when there is none to read."""
    try:
        settings = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return settings if isinstance(settings, dict) else {}
