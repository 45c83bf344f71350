"""The device, from what Slurm granted and what CUDA sees, and the plan that follows."""

import pytest

from yolo_slurm.train.device import Cuda, Device, choose, granted
from yolo_slurm.train.plan import Plan, make
from yolo_slurm.train.settings import Settings
from yolo_slurm.train.words import Value

NO_CUDA = Cuda(available=False, count=0)
MIG = "MIG-7c4a9a2e-0000-1111-2222-333344445555"


@pytest.mark.parametrize(
    ("environ", "gpus", "count"),
    [
        ({"CUDA_VISIBLE_DEVICES": "3"}, None, 1),
        ({"CUDA_VISIBLE_DEVICES": "4,7", "SLURM_GPUS_ON_NODE": "8"}, 8, 2),
        ({"CUDA_VISIBLE_DEVICES": MIG}, None, 1),
        ({"CUDA_VISIBLE_DEVICES": ""}, 2, 0),
        ({"CUDA_VISIBLE_DEVICES": "NoDevFiles"}, None, 0),
        ({"CUDA_VISIBLE_DEVICES": "-1"}, None, 0),
        ({"SLURM_GPUS_ON_NODE": "2"}, 1, 2),
        ({"SLURM_GPUS_ON_NODE": "a100:2,t4:1"}, 1, 3),
        ({"SLURM_GPUS_ON_NODE": "?"}, 4, 4),
        ({}, 4, 4),
        ({}, None, None),
    ],
)
def test_granted(environ: dict[str, str], gpus: int | None, count: int | None) -> None:
    assert granted(environ, gpus)[0] == count


@pytest.mark.parametrize(
    ("cuda", "environ", "expected"),
    [
        (1, {"CUDA_VISIBLE_DEVICES": "5"}, Device(None, 1)),
        (1, {"CUDA_VISIBLE_DEVICES": MIG}, Device(None, 1)),
        (2, {"CUDA_VISIBLE_DEVICES": "4,7"}, Device("0,1", 2)),
        (8, {"SLURM_GPUS_ON_NODE": "2"}, Device("0,1", 2)),
        (8, {}, Device(None, 1)),
    ],
)
def test_devices_are_counted_from_0(cuda: int, environ: dict[str, str], expected: Device) -> None:
    assert choose(Cuda(available=True, count=cuda), environ, None) == expected


def test_gpus_that_are_not_there_mean_the_cpu_and_are_told() -> None:
    device = choose(NO_CUDA, {"CUDA_VISIBLE_DEVICES": "0,1"}, None)
    assert (device.argument, device.gpus) == ("cpu", 0)
    assert device.note is not None
    assert "CUDA_VISIBLE_DEVICES=0,1 grants 2 GPUs" in device.note


def test_a_cpu_job_is_not_told_anything() -> None:
    assert choose(NO_CUDA, {}, None) == Device("cpu", 0)


def test_cuda_that_sees_less_is_told() -> None:
    device = choose(Cuda(available=True, count=1), {"CUDA_VISIBLE_DEVICES": "0,1"}, None)
    assert (device.argument, device.gpus) == (None, 1)
    assert device.note is not None


def planned(chosen: Device, /, *, amp_weights: bool = False, cfg: str = "", **words: Value) -> Plan:
    return make(Settings(), words, frozenset(cfg.split()), chosen, amp_weights)


def test_on_one_gpu_benchmark_wants_no_determinism_and_amp_its_weights() -> None:
    plan = planned(Device(None, 1))
    assert plan.arguments() == {"deterministic": False, "amp": False}
    assert any("amp=True" in note for note in plan.notes)
    assert planned(Device(None, 1), amp_weights=True).arguments() == {"deterministic": False}


def test_on_a_cpu_nothing_that_changes_results_is_changed() -> None:
    assert planned(Device("cpu", 0)).arguments() == {"device": "cpu"}


def test_the_users_words_win_and_so_does_his_cfg_file() -> None:
    words: dict[str, Value] = {"device": "1", "deterministic": True, "amp": True}
    assert planned(Device("0,1", 2), **words).arguments() == words
    assert planned(Device("0,1", 2), cfg="device deterministic amp").arguments() == {}


def test_a_resumed_run_keeps_its_own() -> None:
    plan = planned(Device("0,1", 2), resume="last.pt")
    assert plan.arguments() == {"device": "0,1", "resume": "last.pt"}
