"""A plugin of pytest for upstream's tests: they import helpers from a part of the package that is with the tests, and run in
unittest's order, since some count what those before them have left."""

import os
from pathlib import Path

import pytest
from absl import flags

import torch_xla

torch_xla.__path__.append(str(Path(os.environ["UPSTREAM_CHECKOUT"]) / "torch_xla"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sorts the tests by their classes' names and their own."""
    items.sort(key=lambda item: item.nodeid)


def pytest_collection_finish() -> None:
    """absltest asks its flags for temporary folders. They are defined by now, and nobody else parses them."""
    flags.FLAGS(["pytest"])
