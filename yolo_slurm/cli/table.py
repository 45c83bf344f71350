"""Prints a table of text, aligned by what a terminal shows."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def printable(text: str) -> str:
    """Return *text* with control characters escaped: a job's name cannot move the cursor."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """Return the lines of a table; the columns in *numbers* are set to the right."""
    clean = [[printable(cell) for cell in row] for row in [heads, *rows]]
    widths = [max(_width(row[column]) for row in clean) for column in range(len(heads))]

    def line(row: Sequence[str]) -> str:
        cells = []
        for column, cell in enumerate(row):
            pad = " " * (widths[column] - _width(cell))
            cells.append(pad + cell if column in numbers else cell + pad)
        return "  ".join(cells).rstrip()

    return "\n".join(line(row) for row in clean)
