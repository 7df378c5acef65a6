"""Helpers of tests of exports."""

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree


def has_tf_package() -> bool:
    """Whether TensorFlow is installed."""
    return importlib.util.find_spec("tensorflow") is not None


def wrap_func_as_nn_module(f: Callable[..., Any]) -> torch.nn.Module:
    """A module that calls the function."""

    class Wrapper(torch.nn.Module):
        def forward(self, *args: Any) -> Any:
            return f(*args)

    return Wrapper().eval()


def load_save_model_and_inference(path: str, args: tuple[Any, ...]) -> Any:
    """What a saved model of TensorFlow, whose function is `f`, gives for these arguments. Needs TensorFlow."""
    import tensorflow  # type: ignore[import-not-found]

    inputs = pytree.tree_map_only(torch.Tensor, lambda x: tensorflow.constant(x.numpy()), args)
    model = tensorflow.saved_model.load(path)  # which holds the variables that the function uses
    return model.f(*inputs)


def compare_exported_program_and_saved_model_result(
    ep: torch.export.ExportedProgram,
    saved_model_path: str,
    args: tuple[Any, ...],
    atol: float = 1e-7,
) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
    """The program's results and those of the saved model, which are the same. Needs TensorFlow.

    Raises:
      AssertionError: for other results.
    """
    results = load_save_model_and_inference(saved_model_path, args)
    with torch.no_grad():
        expected = ep.module()(*args)
    ours = tuple(x.numpy() for x in (expected if isinstance(expected, tuple) else (expected,)))
    theirs = tuple(x.numpy() for x in results)
    assert [x.dtype for x in ours] == [x.dtype for x in theirs]
    for x, y in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(y, x, rtol=1e-5, atol=atol)
    return ours, theirs
