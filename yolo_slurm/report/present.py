"""Usage as a table, as CSV and as JSON. Pure."""

from __future__ import annotations

import csv
import io
from typing import Final

from yolo_slurm.report.aggregate import Sum
from yolo_slurm.report.usage import Usage
from yolo_slurm.tokens import format_tokens, of_gpu_seconds

NUMBERS: Final = ("jobs", "attempts", "gpu_hours", "tokens")
_FIELDS: Final = (
    "jobs", "attempts", "running", "unknown_attempts", "gpu_seconds", "gpu_hours", "tokens",
)  # fmt: skip


def _values(group: Sum) -> dict[str, int | str]:
    # At the price of 1 that all GPUs have here, hours and tokens are the same number.
    return {
        "jobs": group.jobs,
        "attempts": group.attempts,
        "running": group.running,
        "unknown_attempts": group.unknown,
        "gpu_seconds": group.gpu_seconds,
        "gpu_hours": format_tokens(of_gpu_seconds(group.gpu_seconds)),
        "tokens": format_tokens(group.units),
    }


def as_objects(usage: Usage) -> list[dict[str, int | str]]:
    """Return one object for each group. Amounts are decimal strings, to 9 decimals."""
    names = [each.value for each in usage.question.by]
    return [
        {**dict(zip(names, key, strict=True)), **_values(group)}
        for key, group in usage.groups.sorted()
    ]


def as_csv(usage: Usage) -> str:
    """Return the same as CSV, with a line of heads. No line of totals: it would be summed too."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*(each.value for each in usage.question.by), *_FIELDS])
    writer.writerows(list(row.values()) for row in as_objects(usage))
    return out.getvalue()


def as_table(usage: Usage) -> tuple[list[str], list[list[str]]]:
    """Return the heads and the rows of a table, the total last; hours and tokens to 4 decimals."""
    names = [each.value for each in usage.question.by]
    rows = [[*key, *_cells(group)] for key, group in usage.groups.sorted()]
    total = ["total", *([""] * (len(names) - 1)), *_cells(usage.groups.total)]
    return [*names, "jobs", "attempts", "GPU-hours", "tokens"], [*rows, total]


def _cells(group: Sum) -> list[str]:
    amount = _four_decimals(group)
    return [str(group.jobs), str(group.attempts), amount, amount]


def _four_decimals(group: Sum) -> str:
    whole, _, rest = format_tokens(group.units, 4).partition(".")
    return f"{whole}.{rest:0<4}"


def remarks(usage: Usage) -> list[str]:
    """Return what the numbers do not say by themselves, one line each."""
    total = usage.groups.total
    said = []
    if total.running:
        said.append(f"{_attempts(total.running)} still running, counted up to now")
    if total.unknown:
        said.append(
            f"{_attempts(total.unknown)} of unknown cost (no allocation in sacct, or shards, "
            "which have no price): counted as attempts, not in GPU-hours"
        )
    if usage.unreadable:
        plural = "row" if usage.unreadable == 1 else "rows"
        said.append(f"{usage.unreadable} {plural} of sacct could not be read and are left out")
    return said


def _attempts(count: int) -> str:
    return f"{count} attempt{'' if count == 1 else 's'}"
