"""``#SBATCH`` lines: read as sbatch reads them, and written so that it reads back the same text."""

from __future__ import annotations

import re
from typing import Final

from yolo_slurm.errors import InputError
from yolo_slurm.submit.options import Option, parse

_HET: Final = re.compile(r"(?:hetjob|packjob)(?=\s|$)", re.IGNORECASE)
_BLANK: Final = " \t\v\f\r"


def read(script: bytes) -> tuple[tuple[Option, ...], ...]:
    """Return the options in the ``#SBATCH`` lines of *script*, one tuple per het component.

    sbatch stops at the first line that is no comment.
    """
    components: list[list[str]] = [[]]
    for line in script.decode("utf-8", "surrogateescape").split("\n"):
        if line.startswith(("#SBATCH", "#SLURM")):
            text = line.removeprefix("#SBATCH").removeprefix("#SLURM").lstrip(_BLANK)
            if het := _HET.match(text):
                components.append([])
                text = text[het.end() :]
            components[-1].extend(split(text))
        elif line.strip(_BLANK) and not line.lstrip(_BLANK).startswith("#"):
            break
    return tuple(
        tuple(option for part in parse(words, {}).components for option in part)
        for words in components
    )


def split(text: str) -> list[str]:
    """Split the text of a directive into words, by sbatch's rules.

    Quotes of both kinds; a backslash takes the next character as it is,
    between quotes too; an unquoted ``#`` starts a comment. Source:
    `get_argument` in Slurm's src/sbatch/opt.c.
    """
    words: list[str] = []
    word: str | None = None
    quote = ""
    at = 0
    while at < len(text):
        char = text[at]
        if char == "\\" and at + 1 < len(text):
            at += 1
            word = (word or "") + text[at]
        elif quote:
            if char == quote:
                quote = ""
            else:
                word = (word or "") + char
        elif char in "\"'":
            quote = char
            word = word or ""
        elif char == "#":
            break
        elif char in _BLANK:
            if word is not None:
                words.append(word)
                word = None
        else:
            word = (word or "") + char
        at += 1
    if word is not None:
        words.append(word)
    return words


def quote(value: str) -> str:
    """Return *value* so that sbatch reads it back from a directive as it is.

    Raises InputError for a newline or a NUL, which a directive cannot carry.
    """
    check_text(value, "a directive's value")
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def check_text(value: str, what: str) -> None:
    """Raise InputError, naming *what*, where *value* holds a newline or a NUL."""
    for char, name in (("\n", "a newline"), ("\0", "a NUL byte")):
        if char in value:
            raise InputError(
                f"{what} holds {name}: {value!r}; a batch script's directive cannot carry it"
            )
