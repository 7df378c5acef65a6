"""Pure functions that are traced once."""

import gc

import pytest
import torch

import torch_xla.experimental.assume_pure as pure


def test_calls_run_no_python():
    traces = []

    def inner(tensors, scale=2):
        traces.append(scale)
        return {"sine": torch.sin(tensors["a"] @ tensors["b"]) * scale, "kind": "sine"}

    traced = pure.assume_pure_torch(inner, use_cache=True)

    def one_more(tensors):
        return traced(tensors)["sine"] + 1

    outer = pure.assume_pure_torch(one_more, use_cache=True)
    for value in (0.5, 0.25):
        a = torch.full((3, 3), value, device="xla")
        expected = torch.sin(a.cpu() @ a.cpu()) * 2
        result = traced({"a": a, "b": a})
        assert result["kind"] == "sine"
        torch.testing.assert_close(result["sine"].cpu(), expected)
        torch.testing.assert_close(outer({"a": a, "b": a}).cpu(), expected + 1)
    assert traces == [2]
    traced({"a": a, "b": a}, scale=2.0)  # another argument: a number, but not that one
    traced({"a": a[:2], "b": a})
    assert len(traces) == 3


def test_functions_are_forgotten_with_what_was_traced():
    pure.assume_pure_torch(lambda x: x + 1, use_cache=True)(torch.ones(2, device="xla"))
    gc.collect()
    assert not pure._XLA_COMPUTATION_CACHE


def test_without_the_cache_each_call_is_traced():
    traces = []
    traced = pure.assume_pure_torch(lambda x: traces.append(1) or x + 1)
    assert traced(torch.ones(2, device="xla")).tolist() == [2, 2]
    assert traced(torch.ones(2)).tolist() == [2, 2]
    assert len(traces) == 2


def test_gradients_are_refused():
    x = torch.ones(2, device="xla", requires_grad=True)
    with pytest.raises(NotImplementedError, match="no gradients"):
        pure.assume_pure_torch(torch.sin)(x)
    with torch.no_grad():
        assert not pure.assume_pure_torch(torch.sin)(x).requires_grad
