"""The configuration files, as text."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from yolo_slurm.devcluster import config, daemons
from yolo_slurm.devcluster.config import Cluster
from yolo_slurm.devcluster.files import hook_script
from yolo_slurm.devcluster.layout import Layout, Spec, parse_nodes
from yolo_slurm.errors import InputError

CLUSTER = Cluster(
    name="dev1",
    layout=Layout(Path("/tmp/c")),
    spec=Spec(parse_nodes("a100:4x2,t4:1x1"), ("demo", "defect"), ("root", "nobody")),
    hostname="host",
    controller_port=20001,
    database_port=20002,
    node_ports=(20003, 20004, 20005),
    version=(22, 5),
)


def with_lines(text: str) -> list[str]:
    spec = replace(CLUSTER.spec, slurm_conf=text)
    return config.slurm_conf(replace(CLUSTER, spec=spec)).splitlines()


def values(lines: list[str], key: str) -> list[str]:
    return [line.partition("=")[2] for line in lines if line.lower().startswith(f"{key.lower()}=")]


def test_each_node_has_its_port_and_gpus() -> None:
    lines = [line for line in with_lines("") if line.startswith("NodeName=")]
    ports = [line.split("Port=")[1].split()[0] for line in lines]
    assert ports == ["20003", "20004", "20005"]
    assert [line.split("Gres=")[1].split()[0] for line in lines] == [
        "gpu:a100:4",
        "gpu:a100:4",
        "gpu:t4:1",
    ]


def test_every_type_is_accounted() -> None:
    assert values(with_lines(""), "AccountingStorageTRES") == ["gres/gpu,gres/gpu:a100,gres/gpu:t4"]


@pytest.mark.parametrize("line", ["KillWait=99", "killwait = 99", "  KILLWAIT=99 # why"])
def test_a_key_of_the_users_own_replaces_ours(line: str) -> None:
    lines = with_lines(f"# mine\n{line}\n")
    assert "KillWait=5" not in lines
    assert line in lines


def test_a_comment_replaces_nothing() -> None:
    assert values(with_lines("#KillWait=99\n"), "KillWait") == ["5"]


def test_a_partition_replaces_ours_by_name_only() -> None:
    more = with_lines("PartitionName=long Nodes=ALL\n")
    assert len(values(more, "PartitionName")) == 2
    instead = with_lines("PartitionName=gpu Nodes=g1 \\\n Default=YES\n")
    assert [v.split() for v in values(instead, "PartitionName")] == [
        ["gpu", "Nodes=g1", "Default=YES"]
    ]


def test_hooks_can_be_left_out() -> None:
    assert values(with_lines(""), "EpilogSlurmctld") == ["/tmp/c/etc/job_event.sh"]
    assert values(with_lines(""), "Epilog") == ["/tmp/c/etc/node_epilog.sh"]
    bare = config.slurm_conf(replace(CLUSTER, spec=replace(CLUSTER.spec, hooks=False)))
    assert "SlurmctldProlog" not in bare
    assert "EpilogSlurmctld" not in bare


def test_the_hook_gets_our_spool_and_nothing_else() -> None:
    script = hook_script()
    ours = config.hook(CLUSTER, script)
    assert "spool=/tmp/c/spool\n" in ours
    assert ours.replace("spool=/tmp/c/spool\n", "spool=/var/spool/yolo-slurm\n") == script


def test_a_hook_without_a_spool_is_an_error() -> None:
    with pytest.raises(InputError, match="spool="):
        config.hook(CLUSTER, "#!/bin/sh\n")


def test_gres_conf_with_one_gpu_and_with_several() -> None:
    assert config.gres_conf(CLUSTER).splitlines() == [
        "AutoDetect=off",
        "NodeName=g1 Name=gpu Type=a100 File=/tmp/c/gpu/gpu[0-3]",
        "NodeName=g2 Name=gpu Type=a100 File=/tmp/c/gpu/gpu[0-3]",
        "NodeName=g3 Name=gpu Type=t4 File=/tmp/c/gpu/gpu0",
    ]


@pytest.mark.parametrize(
    ("version", "plugin"),
    [((22, 5), "cgroup/v1"), ((23, 11), "disabled"), ((26, 5), "disabled")],
)
def test_cgroups_by_version(version: tuple[int, int], plugin: str) -> None:
    conf = config.cgroup_conf(replace(CLUSTER, version=version))
    assert conf == f"CgroupPlugin={plugin}\n"


def test_policy_and_site_are_toml() -> None:
    policy = tomllib.loads(config.policy_toml(CLUSTER))
    assert policy["prices"]["gpu"] == {"a100": 1.0, "t4": 1.0}
    assert "tiers" not in policy
    site = tomllib.loads(config.site_toml(CLUSTER))
    assert site["ledger"]["url"] == "sqlite:////tmp/c/ledger/ledger.db"
    assert site["hook"]["spool"] == "/tmp/c/spool"


def test_accounting_names_every_user_and_project_once() -> None:
    lines = config.accounting(CLUSTER).splitlines()
    assert lines[1] == "add account demo,defect cluster=dev1"
    assert lines[2].split()[2:] == [
        *("root,nobody", "cluster=dev1", "account=demo,defect", "defaultaccount=demo"),
    ]


def test_a_daemon_gets_nothing_of_the_users_environment() -> None:
    assert set(daemons.environment(CLUSTER)) == {
        *("PATH", "LANG", daemons.MARK, "SLURM_CONF", "YOLO_SLURM_POLICY"),
    }


def test_a_command_finds_our_scripts_first() -> None:
    env = daemons.command_environment(CLUSTER.layout, {"PATH": "/bin", "HOME": "/root"})
    assert env["PATH"].split(":")[0] == str(daemons.interpreter().parent)
    assert env["PATH"].endswith(":/bin")
    assert env["HOME"] == "/root"
    assert env["SLURM_CONF"] == "/tmp/c/etc/slurm.conf"
