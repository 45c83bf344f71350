"""Who runs this process, as Slurm names users."""

from __future__ import annotations

import os
import pwd


def user_name() -> str:
    """Return the name of the real user; the number where the host has no name for it."""
    uid = os.getuid()
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
