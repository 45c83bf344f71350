"""A plan in words and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from yolo_slurm.submit.plan import Component, Plan
from yolo_slurm.tokens import Units, format_tokens, say_tokens


def whole_units(plan: Plan) -> Units | None:
    """Return what all array tasks of all components cost at most; None if it cannot be known."""
    if plan.units is None:
        return None
    return Units(sum(each.whole or 0 for each in plan.components))


def cost_words(plan: Plan) -> str:
    """Return one line for the user: the most that the job can cost, and of what it is made."""
    parts = [
        f"{each.gpus} for {each.minutes} min" + (f" × {each.tasks} tasks" if each.tasks > 1 else "")
        for each in plan.components
        if each.units
    ]
    return f"up to {say_tokens(whole_units(plan) or 0)} ({', '.join(parts)}); the rest comes back"


def plan_json(plan: Plan, notes: Sequence[str], default_project: str | None) -> dict[str, Any]:
    """Return *plan* as a JSON object; null is what cannot be known before it runs."""
    whole = whole_units(plan)
    return {
        "tokens": None if whole is None else format_tokens(whole),
        "components": [_component_json(each, default_project) for each in plan.components],
        "notes": list(notes),
    }


def _component_json(component: Component, default_project: str | None) -> dict[str, Any]:
    return {
        "project": component.project or default_project,
        "gpus": component.gpus.total,
        "gpu_types": dict(component.gpus.by_type),
        "minutes": component.minutes,
        "tokens": None if component.units is None else format_tokens(component.units),
        "tasks": component.tasks,
    }
