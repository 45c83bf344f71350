"""Cutting time into local days and months, and an attempt's seconds along the cuts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yolo_slurm.errors import InputError
from yolo_slurm.report.buckets import Unit, cut, parts, used_until
from yolo_slurm.report.window import Window, local_zone, parse_window

BERLIN = ZoneInfo("Europe/Berlin")
ZONES = [
    UTC,
    BERLIN,
    ZoneInfo("America/Sao_Paulo"),  # clocks skipped midnight until 2018
    ZoneInfo("Pacific/Apia"),  # 2011-12-30 never was
    ZoneInfo("Australia/Lord_Howe"),  # half an hour of summer time
    timezone(timedelta(hours=14)),
]
HOUR = 3600
DAY = 24 * HOUR


def at(text: str, tz=BERLIN) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=tz).timestamp())


@pytest.mark.parametrize(
    ("day", "hours"), [("2026-03-29", 23), ("2026-10-25", 25), ("2026-11-01", 24)]
)
def test_a_day_is_as_long_as_its_clocks_make_it(day, hours):
    (only,) = cut(parse_window(day, day, now=at("2027-01-01"), tz=BERLIN), Unit.DAY, BERLIN)
    assert (only.label, only.hi - only.lo) == (day, hours * HOUR)


def test_a_running_day_of_25_hours_is_charged_25_hours():
    buckets = cut(Window(at("2026-10-24"), at("2026-10-27")), Unit.DAY, BERLIN)
    start, end = at("2026-10-24T12:00:00"), at("2026-10-26T12:00:00")
    assert parts(start, end, end - start, buckets) == [
        ("2026-10-24", 12 * HOUR),
        ("2026-10-25", 25 * HOUR),
        ("2026-10-26", 12 * HOUR),
    ]


def test_a_day_that_clocks_skip_is_left_out():
    apia = ZoneInfo("Pacific/Apia")
    window = Window(at("2011-12-29", apia), at("2012-01-01", apia))
    assert [each.label for each in cut(window, Unit.DAY, apia)] == ["2011-12-29", "2011-12-31"]


def test_suspended_time_is_spread_evenly_and_nothing_is_lost():
    buckets = cut(Window(at("2026-11-01"), at("2026-11-03")), Unit.DAY, BERLIN)
    start, end = at("2026-11-01T22:00:00"), at("2026-11-02T01:00:00")
    assert parts(start, end, 3601, buckets) == [("2026-11-01", 2400), ("2026-11-02", 1201)]


def test_an_attempt_of_no_length_is_where_it_started():
    buckets = cut(Window(at("2026-11-01"), at("2026-11-03")), Unit.DAY, BERLIN)
    midnight = at("2026-11-02")
    assert parts(midnight, midnight, 0, buckets) == [("2026-11-02", 0)]


def test_what_lies_outside_the_window_is_cut_off():
    window = Window(at("2026-11-01T12:00:00"), at("2026-11-01T13:00:00"))
    day = (at("2026-11-01"), at("2026-11-02"), DAY)
    assert parts(*day, cut(window, Unit.MONTH, BERLIN)) == [("2026-11", HOUR)]


instants = st.integers(1_200_000_000, 1_200_000_000 + 12 * 365 * DAY)


@settings(deadline=None)  # the host may be busy
@given(
    start=instants,
    length=st.integers(0, 90 * DAY),
    share=st.fractions(0, 1),
    unit=st.sampled_from(Unit),
    tz=st.sampled_from(ZONES),
)
def test_the_parts_add_up_to_elapsed(start, length, share, unit, tz):
    elapsed = int(length * share)
    window = Window(start - 3 * DAY, start + length + 3 * DAY)
    found = parts(start, start + length, elapsed, cut(window, unit, tz))
    assert sum(seconds for _, seconds in found) == elapsed
    assert all(seconds >= 0 for _, seconds in found)
    labels = [label for label, _ in found]
    assert labels == sorted(set(labels))


@settings(deadline=None)  # the host may be busy
@given(since=instants, length=st.integers(1, 400 * DAY), unit=st.sampled_from(Unit))
def test_buckets_fill_the_window_without_gaps(since, length, unit):
    window = Window(since, since + length)
    for tz in ZONES:
        buckets = cut(window, unit, tz)
        assert (buckets[0].lo, buckets[-1].hi) == (window.since, window.until)
        assert all(a.hi == b.lo for a, b in pairwise(buckets))
        if unit is not Unit.WHOLE:
            for bucket in buckets:
                local = datetime.fromtimestamp(bucket.lo, tz).date().isoformat()
                assert local.startswith(bucket.label)


@settings(deadline=None)  # the host may be busy
@given(start=instants, length=st.integers(1, DAY), cuts=st.lists(st.integers(0, DAY), max_size=8))
def test_without_suspension_a_part_is_the_overlap(start, length, cuts):
    end = start + length
    for instant in cuts:
        expected = min(instant, length)
        assert used_until(start + instant, start, end, length) == expected


NOW = at("2026-11-15T10:00:00")


@pytest.mark.parametrize(
    ("since", "until", "first", "last"),
    [
        (None, None, "2026-10-16", "2026-11-16"),
        ("7d", None, "2026-11-08", "2026-11-16"),
        ("0d", None, "2026-11-15", "2026-11-16"),
        ("1d", "1d", "2026-11-14", "2026-11-15"),
        ("2026-11-01", "2026-11-02", "2026-11-01", "2026-11-03"),
        ("2026-11-01T09:30", "2026-11-01T10:00:01", "2026-11-01T09:30", "2026-11-01T10:00:01"),
        ("2026-11-01", "2999-01-01", "2026-11-01", "2026-11-16"),
    ],
)
def test_a_window_is_of_whole_local_days(since, until, first, last):
    assert parse_window(since, until, now=NOW, tz=BERLIN) == Window(at(first), at(last))


@pytest.mark.parametrize(
    ("since", "until", "why"),
    [
        ("yesterday", None, "--since yesterday: expected a date"),
        ("2026-13-01", None, "--since 2026-13-01: expected a date"),
        ("99999999d", None, "expected a date"),
        ("99999d", "0001-01-01", "window is empty|expected a date"),
        ("1d", "٣d", "--until"),
        ("1d", "2d", "window is empty"),
    ],
)
def test_what_is_no_window_is_refused_by_name(since, until, why):
    with pytest.raises(InputError, match=why):
        parse_window(since, until, now=NOW, tz=BERLIN)


def test_the_time_zone_is_the_viewers(tmp_path):
    localtime = Path("/usr/share/zoneinfo/Asia/Tokyo")
    if not localtime.exists():
        pytest.skip("no zone files on this host")
    noon = datetime(2026, 11, 1, 12)  # noqa: DTZ001 - utcoffset is asked for
    assert local_zone({}, localtime)[0].utcoffset(noon) == timedelta(hours=9)
    assert local_zone({"TZ": "Europe/Berlin"}, localtime)[0].utcoffset(noon) == timedelta(hours=1)
    assert local_zone({"TZ": f":{localtime}"}, tmp_path)[0].utcoffset(noon) == timedelta(hours=9)
    assert local_zone({"TZ": ""}, localtime) == (UTC, None)
    zone, note = local_zone({"TZ": "Mars/Olympus"}, localtime)
    assert zone is UTC
    assert note is not None
    assert "TZ=Mars/Olympus" in note
    assert local_zone({}, tmp_path / "none") == (UTC, None)
