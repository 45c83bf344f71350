"""The errors that end ``yolo-train`` with one line and an exit code.

They are this package's own: on a compute node nothing else of ours is imported.
"""

from typing import ClassVar


class TrainError(Exception):
    """The training could not be done; the message says what happened."""

    exit_code: ClassVar[int] = 1


class InputError(TrainError):
    """A word, a file or a setting is not what was expected."""

    exit_code = 2
