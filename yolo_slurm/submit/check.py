"""A plan against what the project has available, as slurmctld holds it in memory."""

from __future__ import annotations

import msgspec

from yolo_slurm.slurm.client import GPU, Association, Associations
from yolo_slurm.submit.plan import Component, Plan
from yolo_slurm.tokens import of_minutes, say_tokens, to_minutes


class Verdict(msgspec.Struct, frozen=True):
    """refusal: why the job can never start, None if it can; notes: why it will wait.

    default_project: what pays for a component that names no project.
    """

    refusal: str | None
    notes: tuple[str, ...]
    default_project: str | None


def _tokens(minutes: int) -> str:
    """Return GPU-minutes at price 1 as words: ``2.5 tokens``."""
    return say_tokens(of_minutes(minutes))


def judge(plan: Plan, associations: Associations, user: str) -> Verdict:
    """Compare *plan* with the limits that slurmctld would hold it to.

    slurmctld starts a job if used + what running jobs may still use + the
    request fits the limit of every association above it. What running jobs do
    not use comes back, so a job can never start only if the request and the
    usage alone are over the limit.
    """
    notes: list[str] = []
    needs: dict[str, list[Component]] = {}
    for component in plan.components:
        project = component.project or associations.default_account
        if project and component.units:
            needs.setdefault(project, []).append(component)
    for project, components in needs.items():
        minutes = sum(to_minutes(component.units or 0) for component in components)
        for record in associations.chain(project, user):
            refusal, note = _judge_one(record, minutes, components)
            if refusal:
                return Verdict(refusal, tuple(notes), associations.default_account)
            if note and note not in notes:
                notes.append(note)
    return Verdict(None, tuple(notes), associations.default_account)


def _judge_one(
    record: Association, minutes: int, components: list[Component]
) -> tuple[str | None, str | None]:
    held = record.minutes(GPU)
    if held.limit is None:
        return None, None
    whose = record.account + (f" (the cap of {record.user})" if record.user else "")
    free = held.limit - held.held
    have = _tokens(max(free, 0))
    need = _tokens(minutes)
    if minutes > held.limit - held.used:
        reserved = f" and {_tokens(held.running)} held by running jobs" if held.running else ""
        return (
            f"project {whose} has {have} available{reserved}; this job needs {need} "
            f"({_words(components)}) and would never start. {_fits(max(free, 0), components)}",
            None,
        )
    if minutes > free:
        return None, (
            f"it will wait: project {whose} has {have} available, this job needs {need}; "
            f"it starts when running jobs give back what they do not use of the "
            f"{_tokens(held.running)} they hold, or when the budget grows"
        )
    whole = sum(to_minutes(component.whole or 0) for component in components)
    if whole > free and minutes:
        return None, (
            f"not all of it fits at once: the whole array needs {_tokens(whole)}, "
            f"project {whose} has {have}, enough for {free // minutes} tasks at their full time; "
            "the others wait"
        )
    return None, None


def _words(components: list[Component]) -> str:
    return ", ".join(f"{each.gpus} for {each.minutes} min" for each in components)


def _fits(free: int, components: list[Component]) -> str:
    total = sum(each.gpus.total or 0 for each in components)
    if len(components) == 1 and total and free // total >= 1:
        return (
            f"What would fit now: --time {free // total} ({_tokens(free // total * total)}) "
            f"on {components[0].gpus}. "
            "Ask an administrator for a larger budget otherwise"
        )
    return "Ask an administrator for a larger budget"
