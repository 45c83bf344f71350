"""Tokens, GPUs and time: the arithmetic of a plan."""

from __future__ import annotations

import os
import subprocess
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yolo_slurm.errors import InputError, RefusedError
from yolo_slurm.policy import Policy, Tier
from yolo_slurm.submit.options import parse
from yolo_slurm.submit.plan import OWN_OPTIONS, Plan
from yolo_slurm.submit.prepare import Prepared, TemplateOptions, prepare
from yolo_slurm.tokens import format_tokens, parse_tokens

JOB = b"#!/bin/bash\ntrue\n"


def prepared(
    *words: str,
    script: bytes = JOB,
    environ: dict[str, str] | None = None,
    policy: Policy | None = None,
) -> Prepared:
    command = parse(words, OWN_OPTIONS)
    options = effective_template(words)
    return prepare(command, options, policy or Policy(), environ or {}, lambda: script)


def effective_template(words: tuple[str, ...]) -> TemplateOptions:
    named = [word.partition("=")[2] for word in words if word.startswith("--template=")]
    return TemplateOptions(named[0] if named else None)


def plan(*words: str, **more) -> Plan:
    return prepared(*words, **more).plan


def test_tokens_and_gpus_give_the_time():
    found = plan("--tokens", "12", "--gpus", "a100:2")
    assert found.components[0].minutes == 360
    assert found.argv == ("sbatch", "--parsable", "--time=360", "--gpus", "a100:2")


def test_time_and_gpus_give_the_tokens():
    found = plan("--time=1:30:00", "--gres=gpu:2", "-N2")
    assert found.units == parse_tokens("6")
    assert found.argv == ("sbatch", "--parsable", "--time=1:30:00", "--gres=gpu:2", "-N2")


def test_time_and_tokens_that_agree_are_fine():
    assert plan("--tokens=2", "--gpus=2", "-t", "60").components[0].minutes == 60


def test_time_and_tokens_that_do_not_agree_show_both():
    with pytest.raises(InputError) as caught:
        plan("--tokens=2", "--gpus=2", "-t", "61")
    assert "1:00:00" in str(caught.value)
    assert "1:01:00" in str(caught.value)


def test_a_time_in_the_script_gives_way_to_tokens_on_the_command_line():
    found = plan("--tokens=2", "--gpus=2", script=b"#!/bin/sh\n#SBATCH -t 9:00:00\n")
    assert "--time=60" in found.argv
    assert "9:00:00" in found.notes[0]


@pytest.mark.parametrize(
    ("words", "words_of_error"),
    [
        (["--tokens=0.03", "--gpus=2"], "0.0334"),
        (["--tokens=1"], "add --gpus"),
        (["--tokens=1", "--exclusive"], "--exclusive"),
        (["--tokens=1", "--gpus=1", "--exclusive"], "--exclusive"),
        (["--tokens=1", "--gpus-per-task=1", "-N2-3", "--gpus-per-socket=1"], None),
        (["--tokens=1", "--gres=gpu:1", "-n4"], "--nodes"),
        (["--tokens=1", "--gpus-per-socket=1"], "sockets"),
    ],
)
def test_tokens_that_buy_no_time_are_refused(words, words_of_error):
    if words_of_error is None:
        assert plan(*words).components[0].gpus.total == 3
        return
    with pytest.raises(RefusedError, match=words_of_error):
        plan(*words)


def test_rounding_is_told_when_it_loses_more_than_a_hundredth():
    assert plan("--tokens=1.01", "--gpus=1").notes == ()
    (note,) = plan("--tokens=0.025", "--gpus=1").notes
    assert "0:01:00" in note
    assert "33.3 %" in note


@given(st.integers(1, 10**6), st.integers(1, 64))
def test_a_plan_never_costs_more_than_was_asked(milli, gpus):
    asked = parse_tokens(format_tokens(milli * 3_600_000))
    try:
        found = plan(f"--tokens={format_tokens(asked)}", f"--gpus={gpus}")
    except RefusedError:
        assert asked < gpus * 60_000_000
        return
    assert found.units is not None
    assert asked - gpus * 60_000_000 < found.units <= asked


def test_tokens_are_per_array_task():
    found = plan("--tokens=2", "--gpus=2", "--array=0-9%2")
    assert found.components[0].minutes == 60
    assert found.components[0].whole == parse_tokens("20")


def test_tokens_are_per_het_component():
    found = plan("--tokens=2", "--gpus=2", ":", "--tokens=1", "--gpus=t4:1")
    assert [each.minutes for each in found.components] == [60, 60]
    assert found.units == parse_tokens("3")
    assert found.argv == (
        "sbatch", "--parsable", "--time=60", "--gpus=2", ":", "--time=60", "--gpus=t4:1",
    )  # fmt: skip


def test_what_is_not_ours_passes_through_untouched():
    words = ["-N2", "--mem", "4G", "-vvH", "--new-option=x", "-J", "a b", "--nice"]
    assert plan(*words).argv[2:] == tuple(words)


def test_project_and_tier_are_account_and_qos():
    policy = Policy(tiers={"low": Tier(qos="yolo-low")})
    found = plan("--project=p", "--tier=low", policy=policy)
    assert found.argv[2:] == ("--account=p", "--qos=yolo-low")
    with pytest.raises(InputError, match="expected one of low"):
        plan("--tier=high", policy=policy)
    with pytest.raises(InputError, match="the same"):
        plan("--project=p", "-A", "q")


@pytest.mark.parametrize("text", ["1h", "", "٤"])
def test_a_time_that_is_none_is_an_error(text):
    with pytest.raises(InputError):
        plan("--gpus=1", f"--time={text}")


@pytest.mark.parametrize("text", ["-5", "12:99", "UNLIMITED", "0", "Partition_Limit"])
def test_a_time_without_a_number_passes_untouched(text):
    found = plan("--gpus=1", f"--time={text}")
    assert found.units is None
    assert found.argv[-1] == f"--time={text}"
    with pytest.raises(InputError):
        plan("--gpus=1", "--tokens=1", f"--time={text}")


def run_script(script: bytes, tmp_path) -> list[str]:
    """Run a generated script with a stand-in for srun that keeps its arguments; return them."""
    place = tmp_path / "bin"
    place.mkdir()
    for name in ("srun", "yolo-train"):
        (place / name).write_text('#!/bin/bash\nprintf "%s\\0" "$@" >"$OUT"\n')
        (place / name).chmod(0o755)
    out = tmp_path / "out"
    subprocess.run(
        ["bash"],
        input=script,
        env={"PATH": f"{place}:/usr/bin:/bin", "OUT": str(out), "TMPDIR": str(tmp_path)},
        check=True,
        cwd=tmp_path,
    )
    return out.read_bytes().decode().split("\0")[:-1]


def test_texts_survive_as_arguments_and_names(text_case, tmp_path):
    text = text_case["text"]
    roles = text_case.get("roles", ["name", "path", "argument", "comment"])
    words = [f"--job-name={text}"] if "name" in roles and text else []
    words += ["--", f"data={text}", f"name={text}"]
    if text_case["expect"] == "refuse" and "argument" in roles:
        with pytest.raises(InputError):
            prepared(*words)
        return
    found = prepared(*words)
    arguments = run_script(found.script, tmp_path)
    assert arguments[-2:] == [f"data={text}", f"name={text}"]
    assert not list(tmp_path.glob("yolo-train.*")), "the settings file is removed"


@pytest.mark.parametrize("option", ["--job-name", "--output", "--chdir"])
def test_an_empty_name_or_path_is_refused(option):
    with pytest.raises(InputError, match=option):
        plan(f"{option}=", "--gpus=1")


def test_text_of_two_lines_is_refused_for_a_plain_script_too():
    for option in ("--job-name", "--comment", "--output"):
        with pytest.raises(InputError, match="newline"):
            plan(f"{option}=a\nb")


def test_a_template_gets_a_gpu_unless_it_asks_for_some():
    assert "--gpus=1" in plan("--", "data=a", "epochs=1").argv
    assert "--gpus=1" not in plan("--gres=gpu:1", "--", "data=a").argv


def test_words_after_dashes_that_are_no_settings_are_a_script(tmp_path):
    path = tmp_path / "job.sh"
    path.write_bytes(JOB)
    assert plan("--gpus=1", "--", str(path), "a=b").argv[2:] == ("--gpus=1", "--", str(path), "a=b")


def test_an_unknown_template_lists_those_there_are():
    with pytest.raises(InputError, match="train"):
        plan("--template=../x", "--", "data=a")


def test_a_script_that_is_none_is_an_error(tmp_path):
    with pytest.raises(InputError, match="no such script"):
        plan(str(tmp_path / "none.sh"))
    bad = tmp_path / "bad.sh"
    bad.write_text("echo\n")
    with pytest.raises(InputError, match="#!"):
        plan(str(bad))


def test_an_exclusive_jobs_cost_is_unknown_whatever_gpus_it_asks_for():
    """Slurm gives it, and charges it for, all the GPUs of its nodes."""
    found = plan("--gpus=1", "--exclusive", "-t", "60")
    assert found.units is None
    assert "--exclusive" in found.notes[0]
    assert plan("--gpus=1", "--exclusive=user", "-t", "60").units == parse_tokens("1")


def test_a_type_without_a_number_is_one():
    assert plan("--gpus=a100", "-t", "60").units == parse_tokens("1")


@pytest.mark.parametrize("text", ["9" * 56, "-1", "a100:", ":2", "a100:x", ""])
def test_a_number_of_gpus_that_is_none_is_an_error(text):
    with pytest.raises(InputError, match="--gpus"):
        plan(f"--gpus={text}", "-t", "60")


def test_a_time_that_is_no_number_is_not_said_to_be_missing():
    (note,) = plan("--gpus=1", "--time=UNLIMITED").notes
    assert "UNLIMITED" in note
    assert "no time limit is given" not in note


@pytest.mark.parametrize("fraction", [float("nan"), 0.0, -1.0, 1.01, float("inf")])
def test_a_share_of_memory_that_is_none_is_an_error(fraction):
    command = parse(["--", "data=a"], OWN_OPTIONS)
    with pytest.raises(InputError, match="--mem-fraction"):
        prepare(command, TemplateOptions(None, fraction), Policy(), {}, lambda: b"")


def test_a_script_from_a_pipe_is_read_once_and_sent(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(JOB,))
    writer.start()
    found = prepared("--gpus=1", str(pipe))
    writer.join()
    assert found.plan.script == JOB
    assert found.plan.argv[2:] == ("--gpus=1",)


def test_a_script_that_is_a_folder_or_a_device_is_an_error(tmp_path):
    for name in (str(tmp_path), "/dev/zero"):
        with pytest.raises(InputError, match="not a file"):
            plan(name)
