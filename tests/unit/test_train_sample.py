"""The generated data set, and the command line around it."""

import json
import random
import struct
import zlib
from pathlib import Path

import pytest
from click.testing import CliRunner

from yolo_slurm.train import sample
from yolo_slurm.train.cli import group
from yolo_slurm.train.errors import InputError


def pixels_of(data: bytes) -> tuple[int, int, bytes]:
    """Decode what png() writes, checking every checksum."""
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    at, chunks = 8, {}
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        (crc,) = struct.unpack(">I", data[at + 8 + length : at + 12 + length])
        assert crc == zlib.crc32(kind + body)
        chunks[kind] = body
        at += 12 + length
    width, height = struct.unpack(">II", chunks[b"IHDR"][:8])
    raw = zlib.decompress(chunks[b"IDAT"])
    row = width * 3 + 1
    return width, height, b"".join(raw[y * row + 1 : (y + 1) * row] for y in range(height))


def test_png_round_trip() -> None:
    pixels = bytes(range(240)) * 20
    assert pixels_of(sample.png(pixels, 40)) == (40, 40, pixels)


def test_labels_are_where_the_shapes_are() -> None:
    for seed in range(20):
        pixels, labels = sample.draw(64, random.Random(seed))  # noqa: S311
        kind, *box = labels[-1].split()  # nothing is painted over the last one
        x, y, width, height = (float(value) for value in box)
        assert 0 <= x - width / 2 <= x + width / 2 <= 1
        assert 0 <= y - height / 2 <= y + height / 2 <= 1
        at = (int(y * 64) * 64 + int(x * 64)) * 3
        assert tuple(pixels[at : at + 3]) == ((220, 40, 40), (40, 180, 60))[int(kind)]


def test_the_layout_repeats_and_may_be_written_again(tmp_path: Path) -> None:
    folder = tmp_path / 'a "b" é'
    data = sample.write(folder, images=8, size=32, seed=3)
    first = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert len(list(folder.glob("images/train/*.png"))) == 8
    assert len(list(folder.glob("labels/val/*.txt"))) == 2
    assert (
        data.read_text().splitlines()[0] == f"path: {json.dumps(str(folder), ensure_ascii=False)}"
    )
    (folder / "labels" / "train.cache").write_text("left by a training")
    sample.write(folder, images=8, size=32, seed=3)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == first


def test_what_is_not_ours_is_not_touched(tmp_path: Path) -> None:
    mine = tmp_path / "images"
    mine.mkdir()
    with pytest.raises(InputError, match="not a sample of ours"):
        sample.write(tmp_path, images=1, size=32, seed=0)
    assert list(tmp_path.iterdir()) == [mine]


def test_command(tmp_path: Path) -> None:
    result = CliRunner().invoke(group, ["sample-data", str(tmp_path / "d"), "--images", "2"])
    assert result.exit_code == 0
    assert result.output == f"{tmp_path}/d/data.yaml\n"


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["train", "--help"]])
def test_help_teaches(arguments: list[str]) -> None:
    result = CliRunner().invoke(group, arguments)
    assert result.exit_code == 0
    for option in ("--settings", "--summary", "--explain", "--traceback"):
        assert option in result.output
    if arguments != ["train", "--help"]:
        assert "sample-data" in result.output
        assert "data=shapes/data.yaml model=yolov8n.yaml epochs=2" in result.output
