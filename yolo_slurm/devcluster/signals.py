"""SIGINT, SIGTERM and SIGHUP as an orderly end."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Self


class Signals:
    """SIGINT, SIGTERM and SIGHUP as an orderly end with exit code 128 + n.

    Only while armed do they interrupt what is going on: a supervisor that has
    just been started, or is taking all down, is waited for.
    """

    def __init__(self) -> None:
        self.on_interrupt: Callable[[], None] | None = None
        self._armed = False
        self._pending = 0
        self._previous: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup, or a shell's `&`
                self._previous[number] = signal.signal(number, self._heard)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        if self._pending:
            raise SystemExit(128 + self._pending)

    @contextlib.contextmanager
    def armed(self) -> Iterator[None]:
        """From here to the end of the block a signal raises SystemExit."""
        self._armed = True
        try:
            if self._pending:
                raise SystemExit(128 + self._pending)
            yield
        finally:
            self._armed = False
            self.on_interrupt = None

    def _heard(self, number: int, _: FrameType | None) -> None:
        if number == signal.SIGINT and self.on_interrupt is not None:
            self.on_interrupt()
            return
        self._pending = self._pending or number
        if self._armed:
            self._armed = False
            raise SystemExit(128 + number)
