"""Training words: read as ultralytics reads them, and strings stay data."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yolo_slurm.train.errors import InputError
from yolo_slurm.train.words import (
    TEXT_KEYS,
    Value,
    check_keys,
    parse,
    parse_value,
    top_level_keys,
)

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False).filter(lambda number: abs(number) != float("inf"))
)
values = scalars | st.lists(scalars, max_size=4) | st.tuples(scalars, scalars)


@given(values)
def test_values_come_back(value: Value) -> None:
    assert parse([f"key={value!r}"]) == {"key": value}
    assert type(parse([f"key={value!r}"])["key"]) is type(value)


@given(st.sampled_from(sorted(TEXT_KEYS)), st.text(min_size=1))
def test_names_and_paths_come_through_as_they_are(key: str, text: str) -> None:
    expected = None if text.lower() == "none" else text
    assert parse([f"{key}={text}"]) == {key: expected}


@given(st.text())
def test_no_text_is_more_than_data(text: str) -> None:
    value = parse_value("optimizer", text)
    assert value is None or isinstance(value, bool | int | float | str | list | tuple)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("True", True),
        ("false", False),
        ("None", None),
        ("16", 16),
        ("0.01", 0.01),
        ("1e-3", 0.001),
        ("[640, 480]", [640, 480]),
        ("'SGD'", "SGD"),
        ("SGD", "SGD"),
        ("__import__('os').getcwd()", "__import__('os').getcwd()"),
        ("$(reboot)", "$(reboot)"),
        ("{1: 2}", "{1: 2}"),
        ("(" * 500, "(" * 500),
        ("a=b", "a=b"),
    ],
)
def test_values(text: str, value: Value) -> None:
    assert parse_value("key", text) == value


@pytest.mark.parametrize("text", ["my job", "$(x)", "007", "1e3", "[a]", "'quoted'", "True"])
def test_a_name_is_a_name(text: str) -> None:
    assert parse([f"name={text}", f"project={text}"]) == {"name": text, "project": text}


@pytest.mark.parametrize("word", ["epochs", "=3", "--epochs=3", "a b=3", "1x=3", "", "ep-ochs=3"])
def test_what_is_no_word_is_refused(word: str) -> None:
    with pytest.raises(InputError, match="expected key=value"):
        parse([word])


def test_twice_and_empty_are_refused() -> None:
    with pytest.raises(InputError, match="epochs is given twice"):
        parse(["epochs=3", "epochs=3"])
    with pytest.raises(InputError, match="name= has no value"):
        parse(["name="])


def test_an_unknown_key_gets_a_hint() -> None:
    known = frozenset({"epochs", "batch"})
    check_keys(["epochs", "save_dir", "hide_labels"], known)
    with pytest.raises(InputError, match=r"epoch is not .* did you mean epochs\?"):
        check_keys(["epoch"], known)
    with pytest.raises(InputError, match=r"ultralytics$"):
        check_keys(["zzz"], known)


def test_top_level_keys_are_no_comments_and_nothing_nested() -> None:
    text = "# head: x\ntask: detect # a: b\nmodel:\nnames:\n  nested: 1\nlr0 : 0.1\n"
    assert top_level_keys(text) == {"task", "model", "names", "lr0"}
