"""Which spans of time the cache holds for good. Pure arithmetic on intervals of epoch seconds."""

from __future__ import annotations

from collections.abc import Iterable

Span = tuple[int, int]  # from the first up to, not including, the second


def union(spans: Iterable[Span]) -> list[Span]:
    """Return *spans* in order, those that touch as one, empty ones left out."""
    found: list[Span] = []
    for lo, hi in sorted(span for span in spans if span[0] < span[1]):
        if found and lo <= found[-1][1]:
            found[-1] = (found[-1][0], max(hi, found[-1][1]))
        else:
            found.append((lo, hi))
    return found


def missing(asked: Span, covered: Iterable[Span]) -> list[Span]:
    """Return the parts of *asked* that no span of *covered* holds."""
    found: list[Span] = []
    at, end = asked
    for lo, hi in union(covered):
        if lo >= end:
            break
        if lo > at:
            found.append((at, lo))
        at = max(at, hi)
    return [*found, (at, end)] if at < end else found
