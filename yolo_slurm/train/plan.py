"""The arguments of the training: what we would say, under what the user said."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from yolo_slurm.train.device import Device
from yolo_slurm.train.settings import Settings
from yolo_slurm.train.words import Value


@dataclasses.dataclass(frozen=True)
class Plan:
    """``defaults`` are ours, with the reason for each; ``words`` are the user's."""

    words: dict[str, Value]
    defaults: dict[str, tuple[Value, str]]
    notes: tuple[str, ...]

    def arguments(self) -> dict[str, Value]:
        """Return what ultralytics' train is called with. The user's words win."""
        return {key: value for key, (value, _) in self.defaults.items()} | self.words


def make(
    settings: Settings,
    words: Mapping[str, Value],
    cfg_keys: frozenset[str],
    device: Device,
    amp_weights: bool,
) -> Plan:
    """Return the plan; pure. Nothing that changes results is changed on a CPU.

    cfg_keys: what the user's ``cfg=`` file sets, which are his words too.
    amp_weights: whether the weights that ultralytics' AMP check wants are on disk.
    """
    defaults: dict[str, tuple[Value, str]] = {}
    notes = []
    own = cfg_keys | set(words)
    if device.argument is not None and "device" not in own:
        reason = "Slurm's GPUs are 0..n-1 inside the job" if device.gpus else "no GPU to use"
        defaults["device"] = (device.argument, reason)
    if device.note and "device" not in own:
        notes.append(device.note)
    # A resumed run keeps its own settings; ultralytics ignores all but a few words.
    if device.gpus and not words.get("resume"):
        if settings.cudnn_benchmark and "deterministic" not in own:
            defaults["deterministic"] = (False, "cudnn_benchmark may choose any algorithm")
        if settings.offline and not amp_weights and "amp" not in own:
            defaults["amp"] = (False, "offline, and the AMP check's weights are not on disk")
            notes.append(
                "amp=False: ultralytics' AMP check wants yolo26n.pt in its weights_dir and this "
                "node is offline; place it there or say amp=True to train faster"
            )
    return Plan(dict(words), defaults, tuple(notes))
