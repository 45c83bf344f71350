"""A policy that is wrong is one line that names the key, the value and what was expected."""

from __future__ import annotations

from decimal import Decimal

import pytest

from yolo_slurm.errors import InputError
from yolo_slurm.policy import load_policy, load_site

GOOD = """
[prices.gpu]
a100 = 1.0
"a100_3g.20gb" = 1
[tiers.high]
qos = "yolo-high"
weight = 0.5
preempts = ["low"]
[tiers.low]
qos = "yolo-low"
requeue = true
[admission.default]
rate_per_minute = 5
burst = 20
[training]
memory_fraction = 0.85
max_workers_per_gpu = 2
max_split_size_mb = 128
cudnn_benchmark = true
[charging]
suspended = false
refund = ["NODE_FAIL", "BOOT_FAIL"]
[projects]
unmanaged = "free"
mode = "enforce"
"""


def test_a_policy_is_read_with_exact_decimals(tmp_path):
    path = tmp_path / "policy.toml"
    path.write_text(GOOD)
    policy = load_policy(path)
    assert policy.training.memory_fraction == Decimal("0.85")
    assert policy.tiers["low"].requeue
    with pytest.raises(AttributeError):
        policy.training.memory_fraction = Decimal(1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[prices.gpu]\nt4 = 0.25", ["prices.gpu.t4", "0.25", "expected 1.0"]),
        ("[prices.gpu]\nt4 = 'x'", ["prices.gpu", "'x'"]),
        ("[prices.shard]\nt4 = 0.13", ["prices.shard.t4", "not charged yet"]),
        ("[tiers.high]\nqos='h'\nusage_factor=0.5", ["tiers.high.usage_factor", "0.5"]),
        ("[training]\nmemory_fraction = 1.5", ["training.memory_fraction", "1.5", "at most 1"]),
        ("[training]\nmemory_fraction = nan", ["training.memory_fraction", "NaN"]),
        ("[training]\nmax_split_size_mb = 20", ["training.max_split_size_mb", "20"]),
        ("[training]\ncolour = 1", ["training", "colour"]),
        ("[admission.default]\nburst = 0", ["admission.default.burst", "1 or more"]),
        ("[charging]\nsuspended = true", ["charging.suspended"]),
        ("[projects]\nmode = 'strict'", ["projects.mode", "'strict'"]),
        ("[projects\n", ["not TOML"]),
    ],
)
def test_a_wrong_policy_is_one_line(tmp_path, text, words):
    path = tmp_path / "policy.toml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        load_policy(path)
    for word in [str(path), *words]:
        assert word in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_policy_that_is_named_must_be_there(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        load_policy(tmp_path / "none.toml")


def test_what_is_not_text_is_an_error(tmp_path):
    path = tmp_path / "policy.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="UTF-8"):
        load_policy(path)


def test_the_sites_file_lies_beside_the_policy(tmp_path):
    (tmp_path / "site.toml").write_text("[hook]\nspool = '/x'\n")
    assert load_site(tmp_path / "policy.toml").hook.spool == "/x"
