"""torch's whole database of operators (OpInfo) on the device: each entry, type and sample against eager.

The class is named as torch's own, so that the tolerances that an entry wants hold here; what torch excuses does not.
"""

import functools

import pytest
import torch
from comparison import (
    Differences,
    Refusal,
    attempt,
    compare,
    draws,
    fallbacks,
    gradients,
    tensors,
    to_device,
    to_host,
    widened,
)
from differences import (
    ARGUMENTS_ON_CPU,
    COMPARED_BY_ERROR,
    INTERPRETER_REFUSES,
    ONLY_VALUES,
    OTHER_WORDS,
    RUNS_ON_CPU,
    TIES,
    UNDEFINED_CONTENTS,
    WRONG_IN_EAGER,
    WRONG_INTO_STRIDED,
    why_impossible,
)
from resized import keeps_its_elements, resized, sizes_for, varying_size
from torch.testing._internal.common_device_type import (
    OpDTypes,
    instantiate_device_type_tests,
    ops,
    precisionOverride,
    toleranceOverride,
)
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_utils import TestCase

import torch_xla
import torch_xla.debug.metrics as metrics

DTYPES = (
    torch.float32,
    torch.int64,
    torch.bool,
    torch.bfloat16,
    torch.float16,
    torch.float64,
    torch.complex64,
)
# How many of an entry's samples, evenly, come with one size after another.
SAMPLES_OF_SIZES = 4
# Where neither the entry nor the type's own tolerance says more: sums in another order.
TOLERANCES = {
    torch.float32: {"rtol": 1e-4, "atol": 1e-4},
    torch.complex64: {"rtol": 1e-4, "atol": 1e-4},
    torch.float16: {"rtol": 1e-2, "atol": 1e-2},
    torch.bfloat16: {"rtol": 3e-2, "atol": 3e-2},
    torch.float64: {"rtol": 1e-7, "atol": 1e-7},
}


def elements_named(op, sample, outputs):
    """The results, indices replaced by the elements that they name where equal ones may stand for each other."""
    x = sample.input
    if op.name not in TIES or sample.kwargs.get("stable") or x.dim() == 0:
        return outputs
    place, args = TIES[op.name], sample.args
    dim = sample.kwargs.get("dim", args[place] if len(args) > place else -1)

    def named(index):
        return torch.take_along_dim(
            x, index if index.dim() == x.dim() else index.unsqueeze(dim), dim
        )

    # Sorted integers are not an index, which comes last of two results.
    indices = 0 if op.name == "msort" else 1
    values = len(outputs) - indices
    return outputs[:values] + [named(index) for index in outputs[values:]]


def run(op, sample, variant=None, backward=False, **kwargs):
    """The operator's results and, if asked, their gradients."""
    result = (variant or op)(sample.input, *sample.args, **sample.kwargs, **kwargs)
    outputs = elements_named(op, sample, tensors(sample.output_process_fn_grad(result)))
    if not backward:
        return outputs
    inputs = tensors((sample.input, sample.args, sample.kwargs))
    return outputs + gradients(outputs, inputs, by_value=op.name in TIES)


def moved(op, sample, device):
    """A copy of the sample on a device."""
    copy = sample.transform(lambda x: to_device(x, device))
    if op.name in ARGUMENTS_ON_CPU:
        copy.args = sample.args
    return copy


def exactly(function, sample):
    """The function's results in the next wider type."""
    return to_host(attempt(function, sample.transform(lambda x: widened(to_device(x, "cpu")))))


def run_into(op, sample, make_out):
    """The targets of `out=`, which `make_out` makes from the results without them."""
    expected = op(sample.input, *sample.args, **sample.kwargs)
    is_one = isinstance(expected, torch.Tensor)
    targets = [make_out(x) for x in tensors(expected)]
    if op.name in WRONG_INTO_STRIDED and sample.input.device.type == "cpu":
        targets = [x.contiguous() for x in targets]
    out = (
        targets[0]
        if is_one
        else type(expected)(targets)
        if isinstance(expected, list)
        else tuple(targets)
    )
    op(sample.input, *sample.args, **sample.kwargs, out=out)
    return tensors(sample.output_process_fn_grad(out))


def wide(x):
    """A type that results of x's type can be cast to."""
    return x.dtype.to_complex() if x.dtype.is_floating_point else torch.complex64


def narrow(x):
    """A type that they cannot."""
    return torch.int32 if x.dtype.is_floating_point or x.dtype.is_complex else torch.bool


OUTS = {
    "empty": lambda x: x.new_empty(0),
    "filled": lambda x: torch.ones_like(x),
    "strided": lambda x: x.new_ones((*x.shape, 2))[..., 1],
    "wide": lambda x: torch.ones_like(x, dtype=wide(x)),
    "narrow": lambda x: torch.ones_like(x, dtype=narrow(x)),
}


def is_tolerance(decorator):
    parts = getattr(decorator, "decorators", [decorator])  # DecorateInfo's, or itself
    return all(isinstance(x, (precisionOverride, toleranceOverride)) for x in parts)


# What torch skips on other devices, or as too much for its own tests, runs here: an entry's tolerances alone hold.
for entry in op_db:
    entry.decorators = tuple(filter(is_tolerance, entry.decorators))


class TestCommon(TestCase):
    exact_dtype = True
    by_exact_results = 0  # samples that eager's own results did not decide

    def tolerance(self, dtypes):
        """The widest of the types': a result is as exact as the least exact of what it is made from."""
        known = [TOLERANCES[dtype] for dtype in dtypes if dtype in TOLERANCES]
        if not known:
            return {}
        return {
            "rtol": max(self.rel_tol, *(x["rtol"] for x in known)),
            "atol": max(self.precision, *(x["atol"] for x in known)),
        }

    def like_eager(self, op, dtype, samples, functions):
        """Each function of each sample: all are recorded, then computed by one program, then compared."""
        test = self._testMethodName.partition(f"_{op.formatted_name}")[0]
        if reason := why_impossible(test, op.full_name, str(dtype).removeprefix("torch.")):
            pytest.skip(reason)
        compared = []
        metrics.clear_counters()
        for sample in samples:
            for name, function in functions.items():
                expected = attempt(function, moved(op, sample, "cpu"))
                if dtype in WRONG_IN_EAGER.get(op.name, ()):
                    expected = [x.to(dtype) for x in exactly(function, sample)]
                random = op.name in UNDEFINED_CONTENTS or draws(function, moved(op, sample, "cpu"))
                actual = attempt(function, moved(op, sample, "xla"))
                compared.append((name, function, sample, actual, expected, random))
        torch_xla.sync()
        differences = Differences()
        for name, function, sample, actual, expected, random in compared:
            with differences.of(f"{name}{sample.summary()}"):
                actual, expected = to_host(actual), to_host(expected)
                refused = isinstance(actual, Refusal) or isinstance(expected, Refusal)
                if op.name in ONLY_VALUES and not refused:
                    actual, expected = actual[:1], expected[:1]
                self.compare_sample(op, function, sample, actual, expected, random)
        differences.fail_if_any()
        if dtype in (torch.float32, torch.int64):
            self.assertLessEqual(set(fallbacks()), RUNS_ON_CPU.get(op.name, set()))
        if op.name not in INTERPRETER_REFUSES:
            self.assertFalse(metrics.counter_value("InterpretedGraphFailed"))

    def compare_sample(self, op, function, sample, actual, expected, random):
        inputs = {x.dtype for x in tensors((sample.input, sample.args, sample.kwargs))}
        self.by_exact_results += compare(
            self,
            actual,
            expected,
            random,
            lambda dtype: self.tolerance({dtype, *inputs}),
            functools.partial(exactly, function, sample),
            COMPARED_BY_ERROR.get(op.name),
        )

    @ops(op_db, allowed_dtypes=DTYPES)
    def test_like_eager(self, device, dtype, op):
        backward = dtype in op.supported_backward_dtypes("cpu")
        samples = op.sample_inputs("cpu", dtype, requires_grad=backward)
        self.like_eager(op, dtype, samples, {"": lambda s: run(op, s, backward=backward)})

    @ops(op_db, allowed_dtypes=(torch.float32, torch.int64, torch.complex64))
    def test_noncontiguous_inputs(self, device, dtype, op):
        backward = dtype in op.supported_backward_dtypes("cpu")
        samples = op.sample_inputs("cpu", dtype, requires_grad=backward)
        # A copy to the device is contiguous, so the strides are made there.
        functions = {"": lambda s: run(op, s.noncontiguous(), backward=backward)}
        self.like_eager(op, dtype, samples, functions)

    @ops([op for op in op_db if op.inplace_variant], allowed_dtypes=DTYPES)
    def test_in_place(self, device, dtype, op):
        samples = (s for s in op.sample_inputs("cpu", dtype) if not s.broadcasts_input)
        self.like_eager(op, dtype, samples, {"": lambda s: run(op, s, op.inplace_variant)})

    @ops([op for op in op_db if op.supports_out], dtypes=OpDTypes.any_common_cpu_cuda_one)
    def test_given_out(self, device, dtype, op):
        functions = {
            f"out {name}: ": lambda s, make_out=make_out: run_into(op, s, make_out)
            for name, make_out in OUTS.items()
        }
        self.like_eager(op, dtype, op.sample_inputs("cpu", dtype), functions)

    @ops(op_db, allowed_dtypes=(torch.float32,))
    def test_varying_sizes(self, device, dtype, op):
        """One structure with one size after another, which its loops come to read from slots."""
        if keeps_its_elements(op.name):
            pytest.skip("its elements are no sample in another order")
        backward = dtype in op.supported_backward_dtypes("cpu")
        samples = list(op.sample_inputs("cpu", dtype, requires_grad=backward))
        functions = {"": lambda s: run(op, s, backward=backward)}
        for sample in samples[:: max(1, len(samples) // SAMPLES_OF_SIZES)]:
            size = varying_size(sample)
            if size is None:
                continue
            for changed in (
                sample,
                *(resized(sample, size, new) for new in sizes_for(op.name)),
                sample,
            ):
                if not isinstance(attempt(functions[""], moved(op, changed, "cpu")), Refusal):
                    self.like_eager(op, dtype, [changed], functions)

    @ops([op for op in op_db if op.error_inputs_func], dtypes=OpDTypes.none)
    def test_errors(self, device, op):
        if reason := why_impossible("test_errors", op.full_name, ""):
            pytest.skip(reason)
        differences = Differences()
        for error in op.error_inputs(device):
            sample = error.sample_input
            if not tensors((sample.input, sample.args, sample.kwargs)):
                continue  # an error of Python's, on no device
            words = "" if op.full_name in OTHER_WORDS else error.error_regex
            with (
                differences.of(sample.summary()),
                self.assertRaisesRegex(error.error_type, words),
            ):
                to_host(tensors(op(sample.input, *sample.args, **sample.kwargs)))
        differences.fail_if_any()


instantiate_device_type_tests(TestCommon, globals(), only_for="xla")
