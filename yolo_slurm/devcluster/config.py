"""The configuration files of a devcluster, as text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from yolo_slurm.devcluster.layout import Layout, Spec
from yolo_slurm.errors import InputError

_CPUS_PER_GPU: Final = 2
_MEMORY_MB: Final = 65536
_HOOK_SPOOL: Final = "spool=/var/spool/yolo-slurm"
# Lines of slurm.conf that stand once for each name, not once for the file.
_NAMED: Final = frozenset({"nodename", "partitionname", "nodeset", "downnodes", "frontendname"})


@dataclass(frozen=True)
class Cluster:
    """All that the configuration follows from."""

    name: str  # letters and digits
    layout: Layout
    spec: Spec
    hostname: str
    controller_port: int
    database_port: int
    node_ports: tuple[int, ...]
    version: tuple[int, int]  # of Slurm, as 22, 5


def slurm_conf(cluster: Cluster) -> str:
    """slurm.conf. A key that the user's own lines set is left out of ours."""
    ours = [
        *_general(cluster),
        *(_hooks(cluster) if cluster.spec.hooks else ()),
        *_nodes(cluster),
        "PartitionName=gpu Nodes=ALL Default=YES State=UP DefaultTime=01:00:00 MaxTime=7-00:00:00",
    ]
    theirs = cluster.spec.slurm_conf.replace("\\\n", " ").splitlines()
    taken = {key for line in theirs if (key := _key(line))}
    return "\n".join([*(line for line in ours if _key(line) not in taken), *theirs, ""])


def _key(line: str) -> str:
    """What a line sets, in lower case; empty for a comment."""
    found = re.match(r"\s*(\w+)\s*=\s*(\S*)", line)
    if found is None:
        return ""
    key = found[1].lower()
    return f"{key}={found[2].lower()}" if key in _NAMED else key


def _general(cluster: Cluster) -> list[str]:
    layout = cluster.layout
    tres = ",".join(["gres/gpu", *(f"gres/gpu:{name}" for name in cluster.spec.gpu_types)])
    return [
        f"ClusterName={cluster.name}",
        f"SlurmctldHost={cluster.hostname}(127.0.0.1)",
        f"SlurmctldPort={cluster.controller_port}",
        "SlurmUser=slurm",
        "AuthType=auth/munge",
        "CredType=cred/munge",
        f"AuthInfo=socket={layout.munge_socket}",
        "AccountingStorageType=accounting_storage/slurmdbd",
        "AccountingStorageHost=127.0.0.1",
        f"AccountingStoragePort={cluster.database_port}",
        f"AccountingStoragePass={layout.munge_socket}",
        "AccountingStorageEnforce=associations,limits,qos,safe",
        f"AccountingStorageTRES={tres}",
        "GresTypes=gpu",
        "SelectType=select/cons_tres",
        "SelectTypeParameters=CR_Core",
        "PriorityType=priority/multifactor",
        "PriorityDecayHalfLife=0",
        "PriorityUsageResetPeriod=NONE",
        "ProctrackType=proctrack/linuxproc",
        "TaskPlugin=task/none",
        "JobAcctGatherType=jobacct_gather/linux",
        "SlurmdParameters=config_overrides",
        "PropagateResourceLimits=NONE",
        "ReturnToService=2",
        "JobRequeue=1",
        "OverTimeLimit=0",
        "KillWait=5",
        "MailProg=/bin/true",
        f"StateSaveLocation={layout.state}",
        f"SlurmdSpoolDir={layout.slurmd}/%n",
        f"SlurmctldPidFile={layout.run}/slurmctld.pid",
        f"SlurmdPidFile={layout.run}/%n.pid",
    ]


def _hooks(cluster: Cluster) -> list[str]:
    return [
        f"PrologSlurmctld={cluster.layout.hook}",
        f"EpilogSlurmctld={cluster.layout.hook}",
        f"Epilog={cluster.layout.node_epilog}",
    ]


def _nodes(cluster: Cluster) -> list[str]:
    lines = []
    ports = iter(cluster.node_ports)
    names = iter(cluster.spec.node_names)
    for group in cluster.spec.groups:
        cpus = _CPUS_PER_GPU * group.gpus
        lines += [
            f"NodeName={next(names)} NodeHostname={cluster.hostname} NodeAddr=127.0.0.1"
            f" Port={next(ports)} CPUs={cpus} Sockets=1 CoresPerSocket={cpus} ThreadsPerCore=1"
            f" RealMemory={_MEMORY_MB} Gres=gpu:{group.gpu_type}:{group.gpus} State=UNKNOWN"
            for _ in range(group.nodes)
        ]
    return lines


def gres_conf(cluster: Cluster) -> str:
    """gres.conf: nodes share the device files, as nothing opens them."""
    lines = ["AutoDetect=off"]
    names = iter(cluster.spec.node_names)
    for group in cluster.spec.groups:
        last = group.gpus - 1
        files = f"{cluster.layout.gpus}/gpu[0-{last}]" if last else f"{cluster.layout.gpus}/gpu0"
        lines += [
            f"NodeName={next(names)} Name=gpu Type={group.gpu_type} File={files}"
            for _ in range(group.nodes)
        ]
    return "\n".join([*lines, ""])


def cgroup_conf(cluster: Cluster) -> str:
    """cgroup.conf: none are used, which Slurm can be told since 23.11."""
    plugin = "disabled" if cluster.version >= (23, 11) else "cgroup/v1"
    return f"CgroupPlugin={plugin}\n"


def slurmdbd_conf(cluster: Cluster) -> str:
    """slurmdbd.conf. The database knows its user by the socket."""
    layout = cluster.layout
    return "\n".join(
        [
            f"DbdHost={cluster.hostname}",
            "DbdAddr=127.0.0.1",
            f"DbdPort={cluster.database_port}",
            "SlurmUser=slurm",
            "AuthType=auth/munge",
            f"AuthInfo=socket={layout.munge_socket}",
            "StorageType=accounting_storage/mysql",
            "StorageHost=localhost",
            "StorageUser=slurm",
            "StorageLoc=slurm_acct_db",
            f"PidFile={layout.run}/slurmdbd.pid",
            "DebugLevel=info",
            "",
        ]
    )


def hook(cluster: Cluster, script: str) -> str:
    """The hook *script* with this cluster's spool.

    Raises:
        InputError: the script has no line that names a spool.
    """
    lines = script.splitlines(keepends=True)
    if f"{_HOOK_SPOOL}\n" not in lines:
        raise InputError(f"job_event.sh has no line {_HOOK_SPOOL}")
    ours = f"spool={cluster.layout.spool}\n"
    return "".join(ours if line == f"{_HOOK_SPOOL}\n" else line for line in lines)


def policy_toml(cluster: Cluster) -> str:
    """The policy: every GPU type at price 1, no tiers."""
    prices = "".join(f'"{name}" = 1.0\n' for name in cluster.spec.gpu_types)
    return f"""[prices.gpu]
{prices}
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


def site_toml(cluster: Cluster) -> str:
    """What only the controller may read."""
    return f"""[ledger]
url = "sqlite:///{cluster.layout.ledger}/ledger.db"

[hook]
spool = "{cluster.layout.spool}"
"""


def accounting(cluster: Cluster) -> str:
    """What sacctmgr reads from its stdin: every user in every project."""
    projects, users = ",".join(cluster.spec.projects), ",".join(cluster.spec.users)
    default = cluster.spec.projects[0]
    return "\n".join(
        [
            f"add cluster {cluster.name}",
            f"add account {projects} cluster={cluster.name}",
            f"add user {users} cluster={cluster.name} account={projects} defaultaccount={default}",
            "quit",
            "",
        ]
    )
