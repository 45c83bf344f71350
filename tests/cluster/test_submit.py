"""yolo-sbatch on a real Slurm: a drop-in for sbatch, whose texts arrive as they were given."""

from __future__ import annotations

import json
import re
import shutil
import time
from pathlib import Path

import pytest

JOB = "#!/bin/bash\ntrue\n"


def field(cluster, job: int | str, form: str) -> str:
    done = cluster.run(["squeue", "-h", "-a", "-t", "all", "-j", str(job), "-o", form])
    return done.stdout.removesuffix("\n")


def submit(cluster, *words: str, env: dict[str, str] | None = None, **more) -> int:
    variables = [f"{key}={value}" for key, value in (env or {}).items()]
    done = cluster.run(
        ["env", *variables, "yolo-sbatch", "--parsable", "--output=/dev/null", *words],
        user="nobody",
        **more,
    )
    return int(done.stdout)


@pytest.fixture
def folder(cluster, tmp_path_factory):
    """A folder that every user may write to, below the cluster's."""
    place = cluster.dir / "work" / tmp_path_factory.mktemp("texts").name
    place.mkdir()
    place.chmod(0o777)
    yield place
    shutil.rmtree(place)


def test_names_and_comments_arrive_as_they_were_given(cluster, cases):
    jobs = []
    for case in cases("text"):
        text = case["text"]
        roles = case.get("roles", ["name", "comment"])
        for role, option, form in (("name", "--job-name", "%j"), ("comment", "--comment", "%k")):
            if role not in roles or "\0" in text:
                continue
            words = [
                "yolo-sbatch",
                "--parsable",
                "--hold",
                "--gpus=1",
                "-t",
                "1",
                f"{option}={text}",
            ]
            if role == "name":  # from a template, so that the name is in a directive too
                words += ["--", "data=a", "model=b"]
            done = cluster.run(words, user="nobody", check=False, input=JOB)
            if case["expect"] == "refuse":
                assert done.returncode == 2
                assert done.stderr.count("\n") == 1 + text.count("\n") or "\\n" in done.stderr
                continue
            assert done.returncode == 0, done.stderr
            jobs.append(done.stdout.strip())
            assert field(cluster, jobs[-1], form) == text
    cluster.run(["scancel", *jobs])
    assert len(jobs) > 40


def test_a_name_in_a_directive_is_read_back_by_sbatch(cluster, cases):
    """The script of --dry-run alone, given to plain sbatch, makes a job of the same name."""
    texts = [c["text"] for c in cases("text") if c["expect"] == "same"]
    jobs = []
    for text in texts:
        dry = cluster.run(
            ["yolo-sbatch", "--dry-run", "--json", f"--job-name={text}", "--", "data=a"],
            user="nobody",
        )
        done = cluster.run(
            ["sbatch", "--parsable", "--hold", "-t", "1"],
            user="nobody",
            input=json.loads(dry.stdout)["script"],
        )
        jobs.append(done.stdout.strip())
        assert field(cluster, jobs[-1], "%j") == text
    cluster.run(["scancel", *jobs])


def test_it_is_a_drop_in(cluster, folder):
    script = folder / "my job.sh"
    script.write_text('#!/bin/bash\n#SBATCH -t 7 -J inner\nprintf "%s\\n" "$@" >out\n')
    job = submit(
        cluster, "-D", str(folder), "-J", "it's", "-W", str(script), "a b", "--gpus=9", "$(id)"
    )
    assert (folder / "out").read_text() == "a b\n--gpus=9\n$(id)\n"
    assert field(cluster, job, "%j|%l") == "it's|7:00"


def test_variables_are_stronger_than_the_script_and_weaker_than_the_command_line(cluster):
    script = "#!/bin/bash\n#SBATCH --time=7 --gpus=1 --hold\n"
    by_variable = submit(cluster, env={"SBATCH_TIMELIMIT": "8"}, input=script)
    by_tokens = submit(cluster, "--tokens=0.15", env={"SBATCH_TIMELIMIT": "8"}, input=script)
    assert field(cluster, by_variable, "%l") == "8:00"
    assert field(cluster, by_tokens, "%l") == "9:00"
    cluster.run(["scancel", str(by_variable), str(by_tokens)])


def test_wrap_an_array_and_het_components(cluster):
    wrapped = submit(cluster, "--hold", "--tokens=1", "--gpus=t4:2", "--wrap=true")
    assert field(cluster, wrapped, "%l") == "30:00"
    done = cluster.run(
        ["yolo-sbatch", "--json", "--hold", "--tokens=1", "--gpus=1", "-a", "1-3"],
        user="nobody",
        input=JOB,
    )
    array = json.loads(done.stdout)
    assert array["tokens"] == "3"
    assert array["components"][0]["project"] == "demo"
    done = cluster.run(
        [
            "yolo-sbatch",
            "--parsable",
            "--hold",
            "--tokens=1",
            "--gpus=1",
            ":",
            "--tokens=1",
            "--gpus=2",
        ],
        user="nobody",
        input=JOB,
    )
    het = int(done.stdout)
    limits = cluster.run(["squeue", "-h", "-a", "-j", str(het), "-o", "%i %l"]).stdout
    assert sorted(limits.splitlines()) == [f"{het}+0 1:00:00", f"{het}+1 30:00"]
    cluster.run(["scancel", str(wrapped), str(array["job_id"]), str(het)])


def test_an_answer_that_is_lost_makes_one_job(cluster, folder):
    """The real sbatch submits, and its answer never comes: the job is found by its session."""
    fake = folder / "sbatch"
    fake.write_text(f'#!/bin/bash\n{shutil.which("sbatch")} "$@" >/dev/null\nexec sleep 60\n')
    fake.chmod(0o755)
    name = f"lost-{time.time_ns()}"
    done = cluster.run(
        ["env", f"PATH={folder}:{cluster.env['PATH']}", "YOLO_SBATCH_TIMEOUT=2",
         "yolo-sbatch", "--hold", "--gpus=1", "-t", "1", f"--job-name={name}"],
        user="nobody",
        input=JOB,
    )  # fmt: skip
    found = re.search(r"Submitted batch job (\d+)", done.stdout)
    assert found
    assert "looked up" in done.stderr
    queue = cluster.run(["squeue", "-h", "-a", "-n", name, "-o", "%i"]).stdout.split()
    assert queue == [found[1]]
    cluster.run(["scancel", found[1]])


def test_wait_tells_the_jobs_failure_from_ours(cluster):
    run = ["yolo-sbatch", "--wait", "--gpus=1", "-t", "1", "--output=/dev/null"]
    failed = cluster.run(run, user="nobody", input="#!/bin/bash\nexit 9\n", check=False)
    assert failed.returncode == 9
    ours = cluster.run([*run, "-A", "nosuch"], user="nobody", input=JOB, check=False)
    assert ours.returncode == 125
    bad = cluster.run([*run, "--tokens=x"], user="nobody", input=JOB, check=False)
    assert bad.returncode == 125


def test_a_user_without_a_project_is_told_by_slurm(cluster):
    done = cluster.run(["yolo-sbatch", "--gpus=1", "-t", "1"], user="man", input=JOB, check=False)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr


def test_overview_shows_projects_and_jobs_and_what_to_do(cluster):
    job = submit(cluster, "--hold", "--gpus=1", "-t", "5", "-J", "x\x1b[31my", input=JOB)
    done = cluster.run(["yolo-slurm"], user="nobody")
    assert "demo (default)" in done.stdout
    assert str(job) in done.stdout
    assert "\x1b" not in done.stdout
    data = json.loads(cluster.run(["yolo-slurm", "--json"], user="nobody").stdout)
    assert {project["project"] for project in data["projects"]} >= {"demo", "defect"}
    assert job in {int(each["job"]) for each in data["jobs"]}
    cluster.run(["scancel", str(job)])


def test_completion_knows_the_options(cluster):
    done = cluster.run(
        ["env", "_YOLO_SBATCH_COMPLETE=bash_complete", "COMP_WORDS=yolo-sbatch --tok",
         "COMP_CWORD=1", "yolo-sbatch"],
    )  # fmt: skip
    assert "--tokens" in done.stdout
    done = cluster.run(
        ["env", "_YOLO_SLURM_COMPLETE=bash_complete", "COMP_WORDS=yolo-slurm bud", "COMP_CWORD=1",
         "yolo-slurm"],
    )  # fmt: skip
    assert "budget" in done.stdout


def test_a_signal_leaves_no_sbatch_behind(cluster, folder):
    fake = folder / "sbatch"
    fake.write_text(f"#!/bin/bash\necho $$ >{folder}/pid\nexec sleep 60\n")
    fake.chmod(0o755)
    (folder / "job.sh").write_text(JOB)
    path = f"{folder}:{cluster.env['PATH']}"
    line = (
        f"yolo-sbatch -t 1 {folder}/job.sh & until [ -s {folder}/pid ]; do sleep 0.05; done; "
        'kill -TERM $!; wait $!; echo "code $?"'
    )
    done = cluster.run(["env", f"PATH={path}", "bash", "-c", line], user="nobody")
    assert "code 143" in done.stdout
    assert "no job of this submission" in done.stderr
    assert not Path("/proc", (folder / "pid").read_text().strip()).exists()


@pytest.mark.parametrize(
    "words", [["yolo-slurm"], ["yolo-slurm", "usage"], ["yolo-slurm", "balance"]]
)
def test_a_full_disk_behind_stdout_is_one_line(cluster, words):
    line = " ".join(words) + " >/dev/full"
    done = cluster.run(["bash", "-c", line], user="nobody", check=False)
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    assert "No space left" in done.stderr


def test_a_job_whose_id_cannot_be_printed_is_told_on_stderr(cluster):
    line = "yolo-sbatch --hold -t 1 --wrap=true >/dev/full"
    done = cluster.run(["bash", "-c", line], user="nobody", check=False)
    assert done.returncode == 0
    found = re.search(r"job (\d+) was submitted", done.stderr)
    assert found
    cluster.run(["scancel", found[1]])


def test_a_user_without_a_name_gets_no_traceback(cluster):
    for words in (["yolo-slurm"], ["yolo-slurm", "balance"]):
        done = cluster.run(
            ["setpriv", "--reuid=54321", "--regid=54321", "--clear-groups", *words], check=False
        )
        assert "Traceback" not in done.stderr
        assert done.returncode in {0, 1, 2, 3}


@pytest.mark.parametrize("text", ["nan", "inf", "0", "-1", "soon"])
def test_a_time_to_wait_that_is_none_is_a_usage_error(cluster, text):
    """A wait that never ends would hang a pipeline."""
    words = [
        "env",
        f"YOLO_SBATCH_TIMEOUT={text}",
        "yolo-sbatch",
        "--hold",
        "-t",
        "1",
        "--wrap=true",
    ]
    done = cluster.run(words, user="nobody", check=False)
    assert done.returncode == 2
    assert "YOLO_SBATCH_TIMEOUT" in done.stderr
