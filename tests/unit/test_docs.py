"""The docs say what the commands say, and their links and examples hold."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path

import pytest

from yolo_slurm.submit.options import SBATCH_OPTIONS, parse
from yolo_slurm.submit.plan import OWN_OPTIONS

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])


def test_commands_are_documented_as_they_are():
    path = ROOT / "docs" / "commands.py"
    spec = importlib.util.spec_from_file_location("commands", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert path.with_suffix(".md").read_text() == module.render(), "run: python docs/commands.py"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page):
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_of_yolo_sbatch_have_options_that_exist(page):
    known = (ROOT / "docs" / "commands.md").read_text()
    for line in page.read_text().splitlines():
        if line.startswith("yolo-sbatch --"):
            words = shlex.split(line, comments=True)[1:]
            command = parse(words, OWN_OPTIONS)
            for option in command.components[0]:
                ours = f"--{option.name} " in known or f"--{option.name}\n" in known
                assert ours or option.name in SBATCH_OPTIONS, option.name


def test_nothing_in_the_tree_tells_of_the_machine_it_was_written_on():
    for page in PAGES:
        assert str(ROOT) + "/" not in page.read_text()
