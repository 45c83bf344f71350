"""The settings file: defaults, ranges, and errors that name key, value, expectation."""

import json
from pathlib import Path

import pytest

from yolo_slurm.train.errors import InputError
from yolo_slurm.train.settings import Settings, decode, load

# As the submit side writes it.
WRITTEN = (
    '{"version":1,"memory_fraction":0.85,"max_split_size_mb":128,"cudnn_benchmark":true,'
    '"offline":true,"font":null,"gpus":1}'
)


def test_the_submit_sides_file_is_understood(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(WRITTEN)
    settings, keys = load(path)
    assert settings == Settings(gpus=1)
    assert keys == set(json.loads(WRITTEN))


def test_without_a_file_there_are_defaults() -> None:
    assert load(None) == (Settings(), frozenset())


@pytest.mark.parametrize(
    ("text", "key", "value", "expected"),
    [
        ('{"memory_fraction": 0}', "memory_fraction", "0", "> 0"),
        ('{"memory_fraction": 1.01}', "memory_fraction", "1.01", "<= 1"),
        ('{"memory_fraction": "0.5"}', "memory_fraction", '"0.5"', "float"),
        ('{"max_split_size_mb": 20}', "max_split_size_mb", "20", ">= 21"),
        ('{"cudnn_benchmark": 1}', "cudnn_benchmark", "1", "bool"),
        ('{"version": 2}', "version", "2", "<= 1"),
        ('{"gpus": 0}', "gpus", "0", ">= 1"),
        ('{"memory_fractoin": 0.5}', "memory_fractoin", "0.5", "memory_fraction"),
    ],
)
def test_an_error_names_key_value_and_what_was_expected(
    text: str, key: str, value: str, expected: str
) -> None:
    with pytest.raises(InputError) as caught:
        decode(text.encode(), "settings file s.json")
    message = str(caught.value)
    assert message.startswith("settings file s.json: ")
    assert f"{key} = {value}" in message
    assert expected in message.split(value, 1)[1]
    assert "\n" not in message
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("data", [b"", b"[1", b"[]", b"3", b"\xff\xfe", b'{"font": NaN}'])
def test_what_is_no_object_is_refused(data: bytes) -> None:
    with pytest.raises(InputError, match=r"^s: "):
        decode(data, "s")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no-such\.json: No such file"):
        load(tmp_path / "no-such.json")
