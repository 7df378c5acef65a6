"""Stands for torchvision where that is not installed: residual networks, for upstream's tests and examples that need any.

What asks for more is skipped.
"""

import unittest

from . import models as models


class _Absent:
    """A part that is not here, which is seen when it is called."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> "_Absent":
        return _Absent(f"{self._name}.{name}")

    def __call__(self, *_: object, **__: object) -> None:
        raise unittest.SkipTest(f"{self._name}: torchvision is not installed")


datasets, ops, transforms = (_Absent(name) for name in ("datasets", "ops", "transforms"))
