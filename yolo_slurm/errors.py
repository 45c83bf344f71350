"""The errors that a command turns into one line and an exit code."""


class YoloSlurmError(Exception):
    """An error with a message for the user: what happened, to what, and what to do."""

    exit_code: int = 1


class RefusedError(YoloSlurmError):
    """The request is understood and refused."""

    exit_code = 1


class InputError(YoloSlurmError):
    """An argument, a file or a setting is not what was expected."""

    exit_code = 2


class UnavailableError(YoloSlurmError):
    """Slurm or the database did not answer."""

    exit_code = 3


class StoppedError(YoloSlurmError):
    """A signal ended the command; exits with 128 + its number, as a shell tells it."""

    def __init__(self, number: int, message: str) -> None:
        super().__init__(message)
        self.exit_code = 128 + number
