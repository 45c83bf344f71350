"""The environment before torch is imported, from settings, environment and torch's version."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from yolo_slurm.train.environment import (
    ALLOCATOR,
    Environment,
    compute,
    cpu_threads,
    threads,
)
from yolo_slurm.train.settings import Settings

JOB = Path("/job")
DEFAULTS = Settings()


def computed(
    environ: Mapping[str, str] = MappingProxyType({}),
    settings: Settings = DEFAULTS,
    torch: tuple[int, int] | None = (2, 14),
    gpus: int | None = None,
) -> Environment:
    return compute(settings, environ, torch, JOB, gpus)


@pytest.mark.parametrize("torch", [(2, 10), (2, 14), (3, 0)])
def test_from_2_10_on_the_fraction_is_in_both_variables(torch: tuple[int, int]) -> None:
    environment = computed(torch=torch)
    expected = "max_split_size_mb:128,per_process_memory_fraction:0.85"
    assert [environment.values[name] for name in ALLOCATOR] == [expected, expected]
    assert not environment.fraction_by_call


@pytest.mark.parametrize("torch", [(2, 9), (1, 13), None])
def test_before_2_10_the_fraction_would_abort_the_process(torch: tuple[int, int] | None) -> None:
    environment = computed(torch=torch)
    assert [environment.values[name] for name in ALLOCATOR] == ["max_split_size_mb:128"] * 2
    assert environment.fraction_by_call


def test_nothing_to_say_sets_nothing() -> None:
    environment = computed(settings=Settings(max_split_size_mb=None), torch=(2, 9))
    assert not set(ALLOCATOR) & set(environment.values)


def test_a_small_fraction_is_written_without_an_exponent() -> None:
    value = computed(settings=Settings(memory_fraction=0.00001)).values[ALLOCATOR[0]]
    assert value.endswith("per_process_memory_fraction:0.00001")


@pytest.mark.parametrize("name", ALLOCATOR)
def test_the_users_allocator_wins_under_both_names_and_is_told(name: str) -> None:
    environment = computed({name: "expandable_segments:True"})
    (other,) = set(ALLOCATOR) - {name}
    assert environment.values[other] == "expandable_segments:True"
    assert name not in environment.values
    assert environment.allocator_is_users
    assert len(environment.notes) == 1
    assert f"{name}=expandable_segments:True" in environment.notes[0]
    assert environment.fraction_by_call  # the cap still holds


def test_a_fraction_in_the_users_allocator_is_his_cap() -> None:
    environment = computed({ALLOCATOR[0]: "per_process_memory_fraction:0.3"})
    assert not environment.fraction_by_call


def test_of_two_the_one_that_cuda_honours_wins() -> None:
    environment = computed({ALLOCATOR[0]: "a:1", ALLOCATOR[1]: "b:2"})
    assert environment.values[ALLOCATOR[1]] == "a:1"
    assert ALLOCATOR[0] not in environment.values


def test_offline_and_folders() -> None:
    values = computed().values
    assert values["YOLO_OFFLINE"] == "1"
    assert values["YOLO_AUTOINSTALL"] == "false"
    assert values["YOLO_CONFIG_DIR"] == "/job"
    assert values["MPLCONFIGDIR"] == "/job/matplotlib"
    online = computed(settings=Settings(offline=False)).values
    assert not {"YOLO_OFFLINE", "YOLO_AUTOINSTALL"} & set(online)


def test_what_is_set_already_stays() -> None:
    own = {"YOLO_OFFLINE": "0", "YOLO_CONFIG_DIR": "/x", "MPLCONFIGDIR": "/y"}
    environment = computed({**own, "OMP_NUM_THREADS": "3", "SLURM_CPUS_PER_TASK": "8"})
    assert not {*own, "OMP_NUM_THREADS"} & set(environment.values)
    assert any("YOLO_OFFLINE=0" in note for note in environment.notes)


@pytest.mark.parametrize(
    ("environ", "gpus", "expected"),
    [
        ({"SLURM_CPUS_PER_TASK": "8"}, None, "8"),
        ({"SLURM_CPUS_PER_TASK": "8", "SLURM_CPUS_ON_NODE": "64"}, 1, "8"),
        ({"SLURM_CPUS_ON_NODE": "16"}, 4, "4"),
        ({"SLURM_CPUS_PER_TASK": "2"}, 4, "1"),
        ({"SLURM_CPUS_PER_TASK": "8"}, 0, "8"),
    ],
)
def test_threads_are_the_jobs_cpus_per_process(
    environ: dict[str, str], gpus: int | None, expected: str
) -> None:
    assert computed(environ, gpus=gpus).values["OMP_NUM_THREADS"] == expected


@pytest.mark.parametrize("environ", [{}, {"SLURM_CPUS_PER_TASK": "x"}, {"SLURM_CPUS_ON_NODE": ""}])
def test_without_slurm_threads_are_left_alone(environ: dict[str, str]) -> None:
    assert threads(environ, 1) is None
    assert "OMP_NUM_THREADS" not in computed(environ).values


def test_cpu_training_takes_all_cpus_or_the_users_number() -> None:
    assert cpu_threads({"SLURM_CPUS_PER_TASK": "8"}) == 8
    assert cpu_threads({"SLURM_CPUS_PER_TASK": "8", "OMP_NUM_THREADS": "3"}) == 3
    assert cpu_threads({"OMP_NUM_THREADS": "4,2"}) is None
    assert cpu_threads({}) is None
