"""Inputs that every suite may read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis
import pytest

# No test asserts a time: the machine may be busy.
hypothesis.settings.register_profile("any-machine", deadline=None)
hypothesis.settings.load_profile("any-machine")

CASES = Path(__file__).parent / "cases"


def load_cases(name: str) -> Any:
    """Return the cases in tests/cases/NAME.json."""
    return json.loads((CASES / f"{name}.json").read_text())


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Fill an argument ``NAME_case`` with the cases of NAME.json."""
    for argument in metafunc.fixturenames:
        name = argument.removesuffix("_case")
        if argument.endswith("_case") and (CASES / f"{name}.json").exists():
            loaded = load_cases(name)
            cases = loaded["cases"] if isinstance(loaded, dict) and "cases" in loaded else loaded
            names = [case.get("text", case.get("stdout", case.get("why"))) for case in cases]
            ids = [repr(text)[:60] for text in names]
            metafunc.parametrize(argument, cases, ids=ids)


@pytest.fixture(scope="session")
def cases() -> Callable[[str], Any]:
    """Return the loader of cases."""
    return load_cases
