"""Ports that nobody else takes while the cluster runs."""

from __future__ import annotations

import random
import socket
from typing import Final

from yolo_slurm.errors import UnavailableError

# Below Linux's ephemeral ports (32768 and up), so that an outgoing connection
# of some other program does not take one between our choice and its use.
_FIRST: Final = 20000
_LAST: Final = 32000


class Ports:
    """Reserved TCP ports, held until :meth:`close`.

    Each is bound, not listening, and allows reuse: a Slurm daemon, which sets
    SO_REUSEADDR, can still listen on it, and another devcluster, which looks
    without it, cannot.
    """

    def __init__(self, count: int) -> None:
        """Reserve *count* ports.

        Raises:
            UnavailableError: there are not that many free ones.
        """
        self._held: list[socket.socket] = []
        candidates = list(range(_FIRST, _LAST))
        random.shuffle(candidates)
        for port in candidates:
            if len(self._held) == count:
                break
            candidate = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            try:
                candidate.bind(("0.0.0.0", port))  # noqa: S104 - never listens
            except OSError:
                candidate.close()
                continue
            candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._held.append(candidate)
        if len(self._held) < count:
            self.close()
            raise UnavailableError(f"fewer than {count} free ports from {_FIRST} to {_LAST}")
        self.numbers: tuple[int, ...] = tuple(s.getsockname()[1] for s in self._held)

    def close(self) -> None:
        """Give the ports back."""
        for held in self._held:
            held.close()
        self._held.clear()
