"""Runs JAX programs on the plugin: reads names of jax_programs from standard input, answers a line of JSON for each."""

import json
import os
import sys
import traceback
import warnings

# Answers go to the real standard output; whatever else is printed must not get between them.
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
warnings.filterwarnings("ignore")

import jax  # noqa: E402
import jax_callbacks  # noqa: E402, F401 - more checks
import jax_programs  # noqa: E402
import numpy as np  # noqa: E402

from torch_xla.experimental import jax_plugin  # noqa: E402

jax_plugin.share_foreign_functions(os.environ["PLUGIN"])


def compare(name):
    function, arguments, tolerance = jax_programs.PROGRAMS[name]
    with jax.default_device(jax.devices("cpu")[0]):
        expected = jax.tree.map(np.asarray, jax.jit(function)(*arguments))
    arguments = jax.tree.map(np.asarray, arguments)
    with jax.default_device(jax.devices()[0]):
        actual = jax.jit(function)(*arguments)
    for array in jax.tree.leaves(actual):
        assert array.devices() == {jax.devices()[0]}
    actual = jax.tree.map(np.asarray, actual)
    for index, (want, got) in enumerate(
        zip(jax.tree.leaves(expected), jax.tree.leaves(actual), strict=True)
    ):
        assert want.dtype == got.dtype and want.shape == got.shape
        message = f"result {index} of {name}"
        if tolerance == 0:
            np.testing.assert_array_equal(got, want, err_msg=message)
        else:
            if want.dtype.kind == "V" or (want.dtype.itemsize == 2 and want.dtype.kind not in "iu"):
                got, want = got.astype(np.float32), want.astype(np.float32)
            np.testing.assert_allclose(
                got, want, rtol=tolerance, atol=tolerance, err_msg=message, equal_nan=True
            )


for line in sys.stdin:
    name = line.strip()
    try:
        if name in jax_programs.CHECKS:
            jax_programs.CHECKS[name](jax.devices())
        else:
            compare(name)
        answer = {"name": name, "error": None}
    except BaseException:
        answer = {"name": name, "error": traceback.format_exc(limit=-3)[-3000:]}
    print(json.dumps(answer), file=answers, flush=True)
