"""A tiny detection data set, generated: for a first run and for tests.

Coloured squares and discs on noise. The images are written as PNG with zlib alone, so
that a login node without torch or OpenCV can make one.
"""

from __future__ import annotations

import json
import random
import shutil
import struct
import zlib
from pathlib import Path
from typing import Final

from yolo_slurm.train.errors import InputError, TrainError

CLASSES: Final = ("square", "disc")
# Says that the folder is ours to write over.
MARKER: Final = ".yolo-train-sample"
_COLOURS: Final = ((220, 40, 40), (40, 180, 60))


def write(directory: Path, images: int, size: int, seed: int) -> Path:
    """Write *images* training images and a quarter as many for validation; return data.yaml.

    size: pixels of a side. The same seed gives the same bytes. Raises InputError when
    *directory* holds something that is not a sample of ours.
    """
    directory = directory.absolute()
    _claim(directory)
    # Not for secrets: the point of it is that it repeats.
    generator = random.Random(seed)  # noqa: S311
    try:
        for part, count in (("train", images), ("val", max(1, images // 4))):
            image_folder = directory / "images" / part
            label_folder = directory / "labels" / part
            image_folder.mkdir(parents=True)
            label_folder.mkdir(parents=True)
            for index in range(count):
                pixels, labels = draw(size, generator)
                (image_folder / f"{index:05d}.png").write_bytes(png(pixels, size))
                (label_folder / f"{index:05d}.txt").write_text("".join(labels))
        data = directory / "data.yaml"
        data.write_text(data_yaml(directory), encoding="utf-8")
    except OSError as error:
        raise TrainError(f"cannot write to {directory}: {error.strerror}") from error
    return data


def data_yaml(directory: Path) -> str:
    """Return data.yaml; the path is quoted as JSON, which is YAML too."""
    names = "".join(f"  {index}: {name}\n" for index, name in enumerate(CLASSES))
    path = json.dumps(str(directory), ensure_ascii=False)
    return f"path: {path}\ntrain: images/train\nval: images/val\nnames:\n{names}"


def draw(size: int, generator: random.Random) -> tuple[bytearray, list[str]]:
    """Return RGB pixels, row by row, and YOLO labels: class, centre x, y, width, height in 0–1."""
    pixels = bytearray(90 + value // 8 for value in generator.randbytes(size * size * 3))
    labels = []
    for _ in range(generator.randint(1, 3)):
        kind = generator.randrange(len(CLASSES))
        side = generator.randint(max(4, size // 5), max(5, size // 3))
        left = generator.randint(0, size - side)
        top = generator.randint(0, size - side)
        _paint(pixels, size, kind, left, top, side)
        x, y, width = ((left + side / 2) / size, (top + side / 2) / size, side / size)
        labels.append(f"{kind} {x:.6f} {y:.6f} {width:.6f} {width:.6f}\n")
    return pixels, labels


def png(pixels: bytes | bytearray, size: int) -> bytes:
    """Encode size × size RGB pixels as a PNG file (8 bits per channel, no filter)."""
    rows = b"".join(
        b"\0" + bytes(pixels[row * size * 3 : (row + 1) * size * 3]) for row in range(size)
    )
    header = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    return b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            _chunk(b"IHDR", header),
            _chunk(b"IDAT", zlib.compress(rows)),
            _chunk(b"IEND", b""),
        )
    )


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _paint(pixels: bytearray, size: int, kind: int, left: int, top: int, side: int) -> None:
    radius = side / 2
    for y in range(side):
        if kind == 0:
            start, end = 0, side
        else:  # a disc: the chord at this row's middle
            half = (radius**2 - (y + 0.5 - radius) ** 2) ** 0.5
            start, end = round(radius - half), round(radius + half)
        at = ((top + y) * size + left + start) * 3
        pixels[at : at + (end - start) * 3] = bytes(_COLOURS[kind]) * (end - start)


def _claim(directory: Path) -> None:
    """Make *directory* ours and empty, or raise InputError."""
    marker = directory / MARKER
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if not marker.is_file() and any(directory.iterdir()):
            raise InputError(
                f"{directory} is not empty and not a sample of ours: name a new folder"
            )
        marker.write_text("Written by yolo-train sample-data, which may write it again.\n")
        for name in ("images", "labels"):
            if (directory / name).exists():
                shutil.rmtree(directory / name)
    except OSError as error:
        raise InputError(f"{directory}: {error.strerror or error}") from error
