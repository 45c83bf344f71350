"""Amounts are exact."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yolo_slurm.errors import InputError
from yolo_slurm.tokens import (
    MAX_UNITS,
    UNITS_PER_TOKEN,
    format_tokens,
    of_gpu_seconds,
    parse_tokens,
    say_tokens,
    to_minutes,
)


@pytest.mark.parametrize(
    "text",
    ["", "0", "-1", "1e3", "1.123456789", "nan", "inf", "٤", "1,5", " 1", "1000000001", "0x1", "."],
)
def test_what_is_no_amount_is_refused(text):
    with pytest.raises(InputError):
        parse_tokens(text)


@given(st.decimals(min_value="0.00000001", max_value=10**9, places=8))
def test_an_amount_reads_back_as_it_was_written(amount):
    units = parse_tokens(f"{amount:f}")
    assert Fraction(units, UNITS_PER_TOKEN) == Fraction(amount)
    assert Fraction(format_tokens(units)) == Fraction(amount)


@given(st.integers(-MAX_UNITS, MAX_UNITS))
def test_a_shown_amount_is_within_half_a_last_place(units):
    shown = Fraction(format_tokens(units))
    assert abs(shown - Fraction(units, UNITS_PER_TOKEN)) <= Fraction(1, 2 * 10**9)


@given(st.lists(st.integers(0, 10**6), max_size=50))
def test_gpu_seconds_add_up_without_a_remainder(parts):
    assert sum(of_gpu_seconds(part) for part in parts) == of_gpu_seconds(sum(parts))


def test_an_hour_of_a_gpu_is_a_token():
    assert of_gpu_seconds(3600) == parse_tokens("1")


def test_minutes_are_rounded_towards_less():
    assert to_minutes(of_gpu_seconds(119)) == 1
    assert to_minutes(of_gpu_seconds(-1)) == -1


def test_words():
    assert say_tokens(parse_tokens("1")) == "1 token"
    assert say_tokens(parse_tokens("2.5")) == "2.5 tokens"
