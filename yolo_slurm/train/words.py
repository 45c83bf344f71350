"""The training words: ``key=value`` as ultralytics' own command line reads them.

A value is data. It is never evaluated: at most it is read as a Python literal,
and for keys that hold a name or a path not even that, so ``name=007`` and
``project=my job`` arrive as they were written.
"""

from __future__ import annotations

import ast
import difflib
import re
import warnings
from collections.abc import Iterable, Sequence
from typing import Final

from yolo_slurm.train.errors import InputError

Value = None | bool | int | float | str | list[object] | tuple[object, ...]

# Ultralytics reads `name=007x1` and `name=1e3` as it likes; a name is a name.
TEXT_KEYS: Final = frozenset(
    {"cfg", "data", "distill_model", "model", "name", "project", "save_dir", "task"}
)
# Accepted beside default.yaml's keys: one that the trainer adds, and the old
# spellings that ultralytics itself maps to new ones with a warning.
EXTRA_KEYS: Final = frozenset({"save_dir"})
DEPRECATED_KEYS: Final = frozenset(
    {
        "boxes",
        "crop_fraction",
        "end2end",
        "half",
        "hide_conf",
        "hide_labels",
        "int8",
        "keras",
        "label_smoothing",
        "line_thickness",
        "save_hybrid",
    }
)
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TOP_LEVEL_KEY = re.compile(r"^([A-Za-z_][A-Za-z0-9_]*)\s*:", re.MULTILINE)
_NAMED: Final[dict[str, bool | None]] = {"none": None, "true": True, "false": False}


def parse(words: Sequence[str]) -> dict[str, Value]:
    """Parse *words*; raise InputError for one without ``=``, a bad or a repeated key."""
    parsed: dict[str, Value] = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not equals or not _KEY.fullmatch(key):
            raise InputError(
                f"{word!r} is not a training argument: expected key=value, such as epochs=100"
            )
        if key in parsed:
            raise InputError(f"{key} is given twice: say it once")
        if not text:
            raise InputError(f"{key}= has no value: say {key}=None for none")
        parsed[key] = parse_value(key, text)
    return parsed


def parse_value(key: str, text: str) -> Value:
    """Read *text*: None, True, False (any case), a number, a string, a list or a tuple."""
    lowered = text.lower()
    if key in TEXT_KEYS:
        return None if lowered == "none" else text
    if lowered in _NAMED:
        return _NAMED[lowered]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # `a\d` is text here, not a dubious escape
            literal = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
    return literal if isinstance(literal, bool | int | float | str | list | tuple) else text


def check_keys(keys: Iterable[str], known: frozenset[str]) -> None:
    """Raise InputError for a key that ultralytics does not have, with what is close to it."""
    for key in keys:
        if key in known or key in EXTRA_KEYS or key in DEPRECATED_KEYS:
            continue
        close = difflib.get_close_matches(key, sorted(known), n=3)
        hint = f"; did you mean {' or '.join(close)}?" if close else ""
        raise InputError(f"{key} is not a training argument of ultralytics{hint}")


def top_level_keys(yaml_text: str) -> frozenset[str]:
    """Return the top-level keys of a flat YAML file, without a YAML parser."""
    return frozenset(_TOP_LEVEL_KEY.findall(yaml_text))
