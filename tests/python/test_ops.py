"""Every lowered operator against eager: torch's own sample inputs (OpInfo), forward and backward, without a fallback.

The samples of one operator are recorded together and computed by one program. Operators are added to the lists of
lowered_operators.py; nothing is written here for one of them.
"""

import os

import pytest
import torch
from lowered_operators import FALLBACKS, LOWERED, RANDOM, TIES, TOLERANCES
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

import torch_xla
import torch_xla.debug.metrics as metrics

SAMPLES = int(os.environ.get("TORCH_XLA_TEST_SAMPLES", "6"))
DTYPES = [torch.float32, torch.int64]


def op_infos():
    """The OpInfos of the lowered operators; a name without one is an error in the list."""
    by_name = {}
    for info in op_db:
        by_name.setdefault(info.formatted_name, info)
    missing = sorted(set(LOWERED) - set(by_name))
    assert not missing, f"no OpInfo is named {missing}"
    return [by_name[name] for name in LOWERED]


def cases():
    for info in op_infos():
        for dtype in DTYPES:
            if dtype in info.supported_dtypes("cpu"):
                yield pytest.param(info, dtype, id=f"{info.formatted_name}-{str(dtype)[6:]}")


def spread(samples, count):
    """At most `count` of the samples without dropout, taken evenly over all of them."""
    samples = [sample for sample in samples if not sample.kwargs.get("dropout_p")]
    step = max(1, -(-len(samples) // count))
    return samples[::step]


def to_device(tree, device):
    """Tensors copied to a device as new leaves that require a gradient where they did."""

    def move(x):
        return (
            x.detach().clone().to(device).requires_grad_(x.requires_grad)
            if isinstance(x, torch.Tensor)
            else x
        )

    return pytree.tree_map(move, tree)


def tensors(tree):
    return [x for x in pytree.tree_leaves(tree) if isinstance(x, torch.Tensor)]


def run(info, sample, backward):
    """The operator's results and, if asked, the gradients of their sum with respect to the arguments."""
    result = info(sample.input, *sample.args, **sample.kwargs)
    if sample.output_process_fn_grad is not None:
        compared = sample.output_process_fn_grad(result)
    else:
        compared = result
    outputs = tensors(compared)
    inputs = [x for x in tensors((sample.input, sample.args, sample.kwargs)) if x.requires_grad]
    wanted = [x for x in outputs if x.requires_grad]
    if not (backward and inputs and wanted):
        return outputs
    # A weight that differs from element to element, so that a permuted gradient is seen.
    loss = sum(
        (x * (torch.arange(x.numel()).reshape(x.shape) % 7 + 1).to(x)).sum().abs() for x in wanted
    )
    gradients = torch.autograd.grad(loss, inputs, allow_unused=True)
    return outputs + [x for x in gradients if x is not None]


def fallbacks():
    return {name for name in metrics.counter_names() if name.startswith("aten::")}


def compute(info, samples, device, backward):
    moved = [sample.transform(lambda x: to_device(x, device)) for sample in samples]
    results = [[x.detach() for x in run(info, sample, backward)] for sample in moved]
    if device == "xla":
        torch_xla.sync()
    return [[x.cpu() for x in result] for result in results]


@pytest.mark.parametrize("info, dtype", list(cases()))
def test_like_eager(info, dtype):
    backward = dtype.is_floating_point and info.supports_autograd
    samples = spread(info.sample_inputs("cpu", dtype, requires_grad=backward), SAMPLES)
    expected = compute(info, samples, "cpu", backward)
    metrics.clear_counters()
    actual = compute(info, samples, "xla", backward)
    assert fallbacks() <= FALLBACKS.get(info.formatted_name, set())
    tolerance = TOLERANCES.get(info.formatted_name, {"rtol": 1e-4, "atol": 1e-5})
    for sample, mine, theirs in zip(samples, actual, expected, strict=True):
        assert len(mine) == len(theirs)
        if info.formatted_name in TIES and not dtype.is_floating_point:
            mine, theirs = mine[:1], theirs[:1]
        for x, y in zip(mine, theirs, strict=True):
            assert x.dtype == y.dtype, sample.summary()
            if info.formatted_name in RANDOM:
                assert x.shape == y.shape
            else:
                torch.testing.assert_close(
                    x,
                    y,
                    **tolerance,
                    equal_nan=True,
                    msg=lambda text, s=sample: f"{text}\n{s.input}, {s.args}, {s.kwargs}",
                )


# Where many numbers are equal, so that only so many results are decided.
BFLOAT16_TIES = {"sort": 1, "msort": 1, "argsort": 0}
# Statistics that stay in float32 here, as on other accelerators.
WIDE_STATISTICS = {"native_batch_norm", "native_layer_norm"}


def bfloat16_infos():
    return [
        pytest.param(info, id=info.formatted_name)
        for info in op_infos()
        if torch.bfloat16 in info.supported_dtypes("cpu")
    ]


@pytest.mark.parametrize("info", bfloat16_infos())
def test_bfloat16(info):
    """In bfloat16 as in eager, up to its precision: eager rounds between the parts of some operators."""
    backward = info.supports_autograd and torch.bfloat16 in info.supported_backward_dtypes("cpu")
    samples = spread(info.sample_inputs("cpu", torch.bfloat16, requires_grad=backward), 1)
    expected = compute(info, samples, "cpu", backward)
    metrics.clear_counters()
    actual = compute(info, samples, "xla", backward)
    assert fallbacks() <= FALLBACKS.get(info.formatted_name, set())
    for mine, theirs in zip(actual, expected, strict=True):
        compared = BFLOAT16_TIES.get(info.formatted_name, len(theirs))
        for x, y in zip(mine[:compared], theirs[:compared], strict=True):
            assert x.shape == y.shape
            assert x.dtype == y.dtype or info.formatted_name in WIDE_STATISTICS
            if info.formatted_name in RANDOM or not y.numel():
                continue
            scale = float(y.double().abs().nan_to_num(0, 0, 0).max())
            torch.testing.assert_close(
                x.double(), y.double(), rtol=0.05, atol=0.05 * max(scale, 1.0), equal_nan=True
            )
