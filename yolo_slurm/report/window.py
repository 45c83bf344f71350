"""The span of time that a report is about, in the viewer's time zone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Final

from yolo_slurm.errors import InputError

DEFAULT_DAYS: Final = 30
_AGO: Final = re.compile(r"([0-9]{1,5})d", re.ASCII)
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_TIME: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Window:
    """From *since* up to, not including, *until*: epoch seconds."""

    since: int
    until: int


def epoch_of(day: date, tz: tzinfo) -> int:
    """Return the first second of *day* in *tz*.

    Where clocks skip midnight, that is the second of the change; where they
    pass it twice, the first time.
    """
    return int(datetime(day.year, day.month, day.day, tzinfo=tz).timestamp())


def parse_window(since: str | None, until: str | None, *, now: int, tz: tzinfo) -> Window:
    """Return the window that ``--since`` and ``--until`` ask for.

    A date stands for a whole day of *tz*, so *until* includes it; ``7d`` is
    midnight seven days ago. None: the last 30 days. It ends with today at the latest.

    Raises InputError.
    """
    today = datetime.fromtimestamp(now, tz).date()
    first = _instant(since or f"{DEFAULT_DAYS}d", today, tz, "--since", days=0)
    tonight = _midnight(today, 1, tz)
    last = min(_instant(until, today, tz, "--until", days=1) if until else tonight, tonight)
    if last <= first:
        raise InputError(
            f"the window is empty: --since {since or f'{DEFAULT_DAYS}d'} is not before "
            f"--until {until or 'today'}"
        )
    return Window(first, last)


def _instant(text: str, today: date, tz: tzinfo, option: str, *, days: int) -> int:
    try:
        if ago := _AGO.fullmatch(text):
            return _midnight(today, days - int(ago[1]), tz)
        if _DATE.fullmatch(text):
            return _midnight(date.fromisoformat(text), days, tz)
        if _TIME.fullmatch(text):
            return max(0, int(datetime.fromisoformat(text).replace(tzinfo=tz).timestamp()))
    except (ValueError, OverflowError):
        pass
    raise InputError(
        f"{option} {text}: expected a date such as 2026-11-01, a time such as 2026-11-01T09:30, "
        "or a number of days ago such as 7d"
    )


def _midnight(day: date, days: int, tz: tzinfo) -> int:
    return max(0, epoch_of(day + timedelta(days=days), tz))


def local_zone(env: Mapping[str, str], localtime: Path) -> tuple[tzinfo, str | None]:
    """Return the viewer's time zone, and a note where it is not known and UTC stands for it.

    Source: tzset(3): TZ names a zone, or a file; without it *localtime*
    (``/etc/localtime``) is the host's zone.
    """
    from zoneinfo import ZoneInfo

    name = env.get("TZ")
    if name == "":
        return UTC, None
    name = name.removeprefix(":") if name is not None else str(localtime)
    try:
        if name.startswith("/"):
            with Path(name).open("rb") as file:
                return ZoneInfo.from_file(file), None
        return ZoneInfo(name), None
    except (OSError, ValueError, KeyError):
        if name == str(localtime):
            return UTC, None  # a host without it keeps UTC
        return UTC, f"TZ={env['TZ']} is not a time zone that is known here; days are those of UTC"
