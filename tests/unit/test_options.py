"""sbatch's command line and directives, read as sbatch reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yolo_slurm.errors import InputError
from yolo_slurm.submit import directives
from yolo_slurm.submit.options import effective, from_environment, parse
from yolo_slurm.submit.plan import OWN_OPTIONS


def read(*words: str):
    command = parse(words, OWN_OPTIONS)
    return [[(o.name, o.value) for o in part] for part in command.components], list(command.words)


@pytest.mark.parametrize(
    ("words", "options", "rest"),
    [
        (["-N2", "job.sh", "-N", "3"], [("nodes", "2")], ["job.sh", "-N", "3"]),
        (["-N", "2", "job.sh"], [("nodes", "2")], ["job.sh"]),
        (["--nodes", "2", "job.sh"], [("nodes", "2")], ["job.sh"]),
        (["--nodes=2", "job.sh"], [("nodes", "2")], ["job.sh"]),
        (["--node=2", "job.sh"], [("node", "2")], ["job.sh"]),  # nodes, nodefile or nodelist
        (["--time-m=5", "job.sh"], [("time-min", "5")], ["job.sh"]),
        (["--acco", "x", "job.sh"], [("account", "x")], ["job.sh"]),
        (["-HWJ", "a b", "x"], [("hold", None), ("wait", None), ("job-name", "a b")], ["x"]),
        (["-J", "-x", "job.sh"], [("job-name", "-x")], ["job.sh"]),
        (["--exclusive", "job.sh"], [("exclusive", None)], ["job.sh"]),
        (["--exclusive=user", "job.sh"], [("exclusive", "user")], ["job.sh"]),
        (["-k", "job.sh"], [("no-kill", None)], ["job.sh"]),
        (["--tasks-per-node=2", "job.sh"], [("ntasks-per-node", "2")], ["job.sh"]),
        (["--some-plugin=4", "job.sh"], [("some-plugin", "4")], ["job.sh"]),
        (["--tokens", "2", "job.sh"], [("tokens", "2")], ["job.sh"]),
        (["-", "x"], [], ["-", "x"]),
        ([], [], []),
    ],
)
def test_options_end_where_the_script_begins(words, options, rest):
    assert read(*words) == ([options], rest)


def test_het_components_are_kept_apart():
    assert read("--gpus=1", ":", "--gpus=2", "job.sh") == (
        [[("gpus", "1")], [("gpus", "2")]],
        ["job.sh"],
    )


@given(st.lists(st.text(min_size=1, max_size=8), max_size=6))
def test_no_word_is_lost_or_changed(words):
    command = parse(words, OWN_OPTIONS)
    again: list[str] = []
    for index, component in enumerate(command.components):
        again += [":"] * (index > 0)
        again += [word for option in component for word in option.words]
    again += ["--"] * command.dashes
    again += command.words
    assert again == words


def test_precedence_is_script_then_environment_then_command_line():
    script = directives.read(b"#!/bin/bash\n#SBATCH -t 1 --gpus=1 -A a\ntrue\n#SBATCH -t 9\n")[0]
    environment = from_environment({"SBATCH_TIMELIMIT": "2", "SBATCH_GPUS": "2"})
    outer = parse(["--time=3"], OWN_OPTIONS).components[0]
    assert effective(script, environment, outer) == {"time": "3", "gpus": "2", "account": "a"}


def test_directives_of_het_components():
    script = b"#!/bin/sh\n#SBATCH --gpus=1\n\n# note\n#SBATCH hetjob\n#SBATCH --gpus=2\necho\n"
    found = directives.read(script)
    assert [[(o.name, o.value) for o in part] for part in found] == [
        [("gpus", "1")],
        [("gpus", "2")],
    ]


def test_texts_come_back_from_a_directive(text_case):
    roles = text_case.get("roles", ["name"])
    if text_case["expect"] == "refuse":
        if text_case["text"]:
            with pytest.raises(InputError):
                directives.quote(text_case["text"])
        return
    if "name" in roles:
        line = f"--job-name={directives.quote(text_case['text'])}  # a comment"
        assert directives.split(line) == [f"--job-name={text_case['text']}"]


@given(st.text(st.characters(exclude_characters="\0\n", exclude_categories=["Cs"])))
def test_any_line_comes_back_from_a_directive(text):
    assert directives.split(f"-J {directives.quote(text)}") == ["-J", text]
