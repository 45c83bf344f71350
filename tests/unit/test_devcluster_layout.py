"""What the user asked for, read strictly."""

from __future__ import annotations

from pathlib import Path

import pytest

from yolo_slurm.devcluster.layout import (
    NodeGroup,
    Spec,
    parse_directory,
    parse_names,
    parse_nodes,
)
from yolo_slurm.errors import InputError


def test_nodes() -> None:
    assert parse_nodes("a100:4x2, t4:1x3") == (NodeGroup("a100", 4, 2), NodeGroup("t4", 1, 3))


def test_a_mig_slice_is_a_type() -> None:
    assert parse_nodes("a100_3g.20gb:2x1")[0].gpu_type == "a100_3g.20gb"


@pytest.mark.parametrize(
    "text",
    [
        *("", ",", "a100", "a100:4", "a100:x2", "a100:4x", "a100:4x2,", ":4x2", "A100:4x2"),
        *("a100:-1x2", "a100:4x2x2", "a100:0x2", "a100:4x0", "a100:65x1", "a100:4x65"),
        *("a b:4x2", "a100:4 x2", "a100:4x2;t4:1x1", "a100:4x33,t4:4x32", "a100:٤x2"),
    ],
)
def test_other_nodes_are_refused_by_name(text: str) -> None:
    with pytest.raises(InputError, match="--nodes"):
        parse_nodes(text)


def test_a_type_named_twice_is_one_type() -> None:
    spec = Spec(parse_nodes("t4:1x1,a100:4x1,t4:8x1"), ("demo",), ("root",))
    assert spec.gpu_types == ("t4", "a100")
    assert spec.node_names == ("g1", "g2", "g3")


def test_names() -> None:
    assert parse_names("demo, defect,demo", "--projects") == ("demo", "defect")


@pytest.mark.parametrize("text", ["", "demo,", "De", "a b", "a;b", "-x", "a=b", "ä"])
def test_other_names_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="--projects"):
        parse_names(text, "--projects")


def test_a_directory_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/tmp")
    assert parse_directory(Path("x")).root == Path("/tmp/x")


@pytest.mark.parametrize("path", ["/tmp/a b", "/tmp/a#b", "/tmp/a%n", "/tmp/" + "x" * 60, "/"])
def test_a_directory_that_cannot_stand_in_slurm_conf(path: str) -> None:
    with pytest.raises(InputError, match="--dir"):
        parse_directory(Path(path))
