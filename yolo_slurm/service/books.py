"""Opens the books as the user whose they are, with what is needed to keep them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from yolo_slurm.ledger.store import Ledger, become_owner, open_ledger
from yolo_slurm.policy import Policy, Site, load_policy, load_site, policy_path
from yolo_slurm.slurm.client import Jobs, Limits
from yolo_slurm.slurm.commands import CommandJobs, CommandLimits
from yolo_slurm.slurm.identity import user_name


@dataclass(frozen=True, slots=True)
class Controller:
    """What a controller has. by: who runs this, for the entries."""

    policy: Policy
    site: Site
    jobs: Jobs
    limits: Limits
    by: str

    @property
    def spool(self) -> Path:
        """Where the hook leaves its files."""
        return Path(self.site.hook.spool)

    @property
    def enforce(self) -> bool:
        """Whether limits are set in Slurm."""
        return self.policy.projects.mode == "enforce"

    @contextmanager
    def ledger(self) -> Iterator[Ledger]:
        """Hold the open ledger. Raises UnavailableError, InputError, RefusedError."""
        with open_ledger(self.site.ledger.url) as ledger:
            yield ledger


def open_controller() -> Controller:
    """Read the policy and the site's file, and become the ledger's owner if root runs this.

    Raises InputError, RefusedError.
    """
    path = policy_path()
    policy = load_policy(path)
    site = load_site(path)
    by = user_name()
    become_owner(site.ledger.url)
    return Controller(policy, site, CommandJobs(), CommandLimits(), by)
