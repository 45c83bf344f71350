"""Amounts and prices: exact integers, parsed and formatted. No float touches an amount.

One token is one GPU-hour at price 1. It is stored as *units*, weighted
GPU-microseconds: GPU-seconds × a price of three decimals × a factor of three
decimals is then a whole number of units.
"""

from __future__ import annotations

import re
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Final, NewType

from yolo_slurm.errors import InputError

Units = NewType("Units", int)

UNITS_PER_TOKEN: Final = 3_600_000_000
UNITS_PER_GPU_SECOND: Final = 1_000_000
MAX_TOKENS: Final = 1_000_000_000
MAX_UNITS: Final = MAX_TOKENS * UNITS_PER_TOKEN

# Eight decimals: the most for which every decimal fraction of a token is a
# whole number of units (3.6e9 = 36 × 10^8).
_DECIMALS: Final = 8
_AMOUNT: Final = re.compile(r"[0-9]{1,10}(?:\.[0-9]{1,8})?|\.[0-9]{1,8}", re.ASCII)
_SHOWN: Final = Decimal("0.000000001")


def parse_tokens(text: str) -> Units:
    """Return the units of a decimal number of tokens, such as ``12`` or ``0.25``.

    Raises InputError unless it is a positive plain decimal with at most eight
    decimals and at most 1e9 tokens.
    """
    if not _AMOUNT.fullmatch(text):
        raise InputError(
            f"{text!r} is not a number of tokens: expected a positive decimal such as 12 or 0.25, "
            f"with at most {_DECIMALS} decimals"
        )
    units = int(Decimal(text) * UNITS_PER_TOKEN)
    if not 0 < units <= MAX_UNITS:
        raise InputError(f"{text} tokens: expected more than 0 and at most {MAX_TOKENS}")
    return Units(units)


def format_tokens(units: int, decimals: int = 9) -> str:
    """Return *units* as a decimal number of tokens, rounded half-even to *decimals* places.

    Trailing zeros are dropped; a debit comes with a minus sign.
    """
    exact = Decimal(units) / UNITS_PER_TOKEN
    step = _SHOWN if decimals == 9 else Decimal(1).scaleb(-decimals)
    text = f"{exact.quantize(step, rounding=ROUND_HALF_EVEN):f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def of_gpu_seconds(gpu_seconds: int) -> Units:
    """Return the units that *gpu_seconds* cost at price 1."""
    return Units(gpu_seconds * UNITS_PER_GPU_SECOND)


def of_minutes(gpu_minutes: int) -> Units:
    """Return the units that *gpu_minutes* cost at price 1."""
    return of_gpu_seconds(60 * gpu_minutes)


def to_minutes(units: int) -> int:
    """Return the whole GPU-minutes at price 1 that *units* buy, rounded down (towards -∞)."""
    return units // of_minutes(1)


def say_tokens(units: int, decimals: int = 4) -> str:
    """Return *units* as words for a person: ``1 token``, ``2.5 tokens``."""
    text = format_tokens(units, decimals)
    return f"{text} token" if text == "1" else f"{text} tokens"
