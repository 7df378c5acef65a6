"""`examples/mnist.py`, which `make demo` runs."""

import json
import struct

import conftest
import pytest

MNIST = str(conftest.ROOT / "examples" / "mnist.py")


def train(program, *arguments: str, **environment: str) -> dict:
    result = program.run(MNIST, "--output", str(program.folder), *arguments, **environment)
    device = "cpu" if "cpu" in arguments else "xla"
    assert (program.folder / f"mnist-{device}.png").read_bytes().startswith(b"\x89PNG")
    assert "test accuracy" in result.stdout and "epoch 1/" in result.stderr
    return json.loads((program.folder / f"mnist-{device}.json").read_text())


def test_agrees_with_plain_pytorch(program, engine):
    # Rounding grows by a factor of two or three a step, in eager too, and faster with larger steps.
    options = ("--epochs", "2", "--learning-rate", "0.02")
    plain = train(program, "--device", "cpu", *options)
    ours = train(program, *options, **engine)
    assert ours["step_losses"][:10] == pytest.approx(plain["step_losses"][:10], rel=1e-3)
    assert ours["losses"] == pytest.approx(plain["losses"], rel=0.02)
    assert ours["accuracies"][-1] > 0.9
    assert ours["graphs"]["training"] <= 2
    assert ours["graphs"]["evaluation"] <= 1
    assert ours["fallbacks"] == 0


def _write_idx(file, shape: tuple[int, ...], numbers: bytes) -> None:
    file.write_bytes(
        bytes([0, 0, 8, len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + numbers
    )


def test_reads_mnists_own_files(program):
    for part, count in (("train", 128), ("t10k", 48)):
        images, labels = bytes(range(256)) * (count * 49 // 16), bytes(i % 10 for i in range(count))
        _write_idx(program.folder / f"{part}-images-idx3-ubyte", (count, 28, 28), images)
        _write_idx(program.folder / f"{part}-labels-idx1-ubyte", (count,), labels)
    history = train(program, "--device", "cpu", "--epochs", "1", "--data", str(program.folder))
    assert len(history["step_losses"]) == 2


def test_says_what_is_wrong_with_the_files(program):
    result = program.run(MNIST, "--data", "nowhere", "--device", "cpu", check=False)
    assert result.returncode == 1 and "holds none of train-images" in result.stderr
