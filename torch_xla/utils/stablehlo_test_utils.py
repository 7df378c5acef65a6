"""Helpers of tests of exports."""

import importlib.util
from collections.abc import Callable
from typing import Any

import torch


def has_tf_package() -> bool:
    """Whether TensorFlow is installed."""
    return importlib.util.find_spec("tensorflow") is not None


def wrap_func_as_nn_module(f: Callable[..., Any]) -> torch.nn.Module:
    """A module that calls the function."""

    class Wrapper(torch.nn.Module):
        def forward(self, *args: Any) -> Any:
            return f(*args)

    return Wrapper().eval()
