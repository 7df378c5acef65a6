"""Runs a StableHLO program on XLA:CPU and on the reference evaluator, and compares them."""

import dataclasses
import os
import pathlib
import subprocess
import tempfile

import jax
import numpy as np
from jax._src import compiler, xla_bridge
from jax._src.interpreters import mlir
from jaxlib import _jax
from jaxlib.mlir import ir, passmanager
from jaxlib.mlir.dialects import stablehlo

stablehlo.register_stablehlo_passes()
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")

STABLEHLO_VERSION = "1.8.0"


class RefusedError(Exception):
    """The evaluator answered with an error."""


def find_program(name):
    """A program of the build: in $TORCH_XLA_BUILD, or the newest below build*/."""
    root = pathlib.Path(__file__).resolve().parents[2]
    builds = [pathlib.Path(p) for p in [os.environ.get("TORCH_XLA_BUILD")] if p]
    builds = builds or sorted(root.glob("build*"), key=lambda p: -p.stat().st_mtime)
    for build in builds:
        for path in (build / "tests" / "hlo" / name, build / "cpp" / "tests" / "hlo" / name):
            if path.exists():
                return path
    return None


class Evaluator:
    """One running hlo_evaluate."""

    def __init__(self, path):
        self.path = path
        self.folder = tempfile.TemporaryDirectory()
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [self.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.folder.cleanup()

    def run(self, bytecode, arguments, results):
        """Evaluates; `results` are arrays of the wanted shapes and dtypes."""
        program, given, out = (pathlib.Path(self.folder.name) / n for n in ("p", "in", "out"))
        program.write_bytes(bytecode)
        given.write_bytes(b"".join(np.ascontiguousarray(a).tobytes() for a in arguments))
        print(program, given, out, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline().strip()
        if not answer:
            status = self.process.wait()
            self.start()
            raise RefusedError(f"the evaluator crashed with status {status}")
        if answer != "ok":
            raise RefusedError(answer)
        data, values = out.read_bytes(), []
        for result in results:
            size = result.size * result.dtype.itemsize
            values.append(np.frombuffer(data[:size], result.dtype).reshape(result.shape))
            data = data[size:]
        assert not data, "the evaluator returned more than the program's results"
        return values


def run_on_xla(text, arguments):
    backend = xla_bridge.get_backend("cpu")
    devices = _jax.DeviceList(tuple(backend.local_devices()[:1]))
    with mlir.make_ir_context():
        module = ir.Module.parse(text)
        executable = backend.compile_and_load(
            module, devices, compiler.get_compile_options(1, 1), []
        )
    out = executable.execute_sharded([jax.device_put(a) for a in arguments])
    return [np.asarray(a[0]) for a in out.disassemble_into_single_device_arrays()]


def serialize(text):
    with mlir.make_ir_context():
        module = ir.Module.parse(text)
        # No portable artifact holds CHLO's operations.
        expand = "builtin.module(func.func(chlo-legalize-to-stablehlo))"
        passmanager.PassManager.parse(expand).run(module.operation)
        return stablehlo.serialize_portable_artifact_str(str(module), STABLEHLO_VERSION)


def text_of(function, arguments):
    return jax.jit(function).lower(*arguments).as_text()


@dataclasses.dataclass
class Tolerance:
    relative: float = 0
    absolute: float = 0


# Per dtype: results that both sides round from different intermediate values.
TOLERANCES = {
    "bfloat16": Tolerance(2e-2, 1e-2),
    "float16": Tolerance(2e-3, 1e-3),
    "float32": Tolerance(2e-5, 1e-5),
    "float64": Tolerance(1e-11, 1e-11),
    "complex64": Tolerance(2e-5, 1e-5),
    "complex128": Tolerance(1e-11, 1e-11),
}


def flush_subnormals(array):
    """XLA:CPU computes with subnormal numbers as zeros."""
    if str(array.dtype) not in ("bfloat16", "float32", "float64"):
        return array
    tiny = jax.numpy.finfo(array.dtype).tiny
    with np.errstate(invalid="ignore"):  # at NaN
        return np.where(np.abs(array) < tiny, np.copysign(np.zeros_like(array), array), array)


def assert_close(actual, expected, exact=False, tolerance=None):
    assert actual.dtype == expected.dtype
    name = str(expected.dtype)
    actual, expected = flush_subnormals(actual), flush_subnormals(expected)
    if exact or name not in TOLERANCES:
        if name in TOLERANCES:  # bits, but any NaN for any NaN
            wide = np.complex128 if "complex" in name else np.float64
            actual, expected = actual.astype(wide), expected.astype(wide)
            signed = ~np.isnan(expected.real)
            np.testing.assert_array_equal(
                np.signbit(actual.real)[signed], np.signbit(expected.real)[signed]
            )
        np.testing.assert_array_equal(actual, expected)
        return
    allowed = tolerance or TOLERANCES[name]
    wide = np.complex128 if "complex" in name else np.float64
    np.testing.assert_allclose(
        actual.astype(wide), expected.astype(wide), rtol=allowed.relative, atol=allowed.absolute
    )


def compare(evaluator, text, arguments, exact=False, tolerance=None):
    arguments = [np.asarray(a) for a in arguments]
    expected = run_on_xla(text, arguments)
    actual = evaluator.run(serialize(text), arguments, expected)
    for a, e in zip(actual, expected, strict=True):
        assert_close(a, e, exact, tolerance)
