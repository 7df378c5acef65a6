"""VHLO bytecode and StableHLO text against MLIR's own reader and writer."""

import bytecode_corpus as corpus
import numpy as np
import oracle
import pytest
from jax._src.interpreters import mlir
from jaxlib import _jax
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

# Their results are uninitialised, or their run needs something that is not there.
NOT_RUN = {"no_results"}
VERSIONS = ["0.9.0", "1.0.0", "1.4.0", "1.8.0", "1.10.0", stablehlo.get_current_version()]


def deserialize(artifact):
    with mlir.make_ir_context() as context:
        module = stablehlo.deserialize_portable_artifact(context, artifact)
        module.operation.verify()
        return str(module)


def check_forms(tool, folder, artifact):
    """Our bytecode and our text of a program; returns what MLIR reads of both."""
    given, rewritten, text, again = (folder / n for n in ("given", "rewritten", "text", "again"))
    given.write_bytes(artifact)
    tool("rewrite", given, rewritten)
    tool("text", given, text)
    with mlir.make_ir_context():
        module = ir.Module.parse(text.read_text())
        module.operation.verify()
        again.write_bytes(stablehlo.serialize_portable_artifact(module, oracle.STABLEHLO_VERSION))
    tool("same", rewritten, again)
    return deserialize(rewritten.read_bytes()), text.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", corpus.JAX_PROGRAMS)
def test_jax_program(tool, tmp_path, name):
    arguments = [np.asarray(a) for a in corpus.JAX_PROGRAMS[name][1]]
    rewritten, _ = check_forms(tool, tmp_path, corpus.artifact(name))
    if name in NOT_RUN:
        return
    expected = oracle.run_on_xla(corpus.jax_text(name), arguments)
    actual = oracle.run_on_xla(rewritten, arguments)
    for a, e in zip(actual, expected, strict=True):
        # The same program: only where XLA fuses otherwise may a bit differ.
        assert a.dtype == e.dtype
        if np.issubdtype(e.dtype, np.inexact):
            np.testing.assert_allclose(a, e, rtol=1e-5, atol=1e-6)
        else:
            np.testing.assert_array_equal(a, e)


@pytest.mark.parametrize("name", corpus.TEXT_PROGRAMS)
def test_text_program(tool, tmp_path, name):
    check_forms(tool, tmp_path, corpus.text_artifact(name))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["arithmetic", "gather", "dot", "reduce", "scan", "scatter"])
def test_version(tool, tmp_path, name, version):
    check_forms(tool, tmp_path, corpus.artifact(name, version))


def test_new_accuracy_attributes_are_ignored(tool, tmp_path):
    check_forms(tool, tmp_path, corpus.artifact("transcendental", stablehlo.get_current_version()))


def test_donation_and_names(tool, tmp_path):
    artifact = (
        "module @named attributes {mhlo.num_replicas = 2 : i32, mhlo.num_partitions = 1 : i32} {"
        "func.func @main(%a: tensor<2xf32> {tf.aliasing_output = 1 : i32}, %b: tensor<2xf32>"
        " {jax.buffer_donor = true}) -> (tensor<2xf32>, tensor<2xf32>) {"
        "func.return %b, %a : tensor<2xf32>, tensor<2xf32> } }"
    )
    with mlir.make_ir_context():
        module = ir.Module.parse(artifact)
        bytecode = stablehlo.serialize_portable_artifact(module, oracle.STABLEHLO_VERSION)
    rewritten, text = check_forms(tool, tmp_path, bytecode)
    for form in (rewritten, text):
        assert "module @named" in form
        assert "mhlo.num_replicas = 2" in form
        assert "%arg0: tensor<2xf32> {tf.aliasing_output = 1 : i32}" in form
        assert "%arg1: tensor<2xf32> {jax.buffer_donor = true}" in form


def test_locations_are_kept(tool, tmp_path):
    (tmp_path / "given").write_bytes(corpus.artifact("add"))
    tool("rewrite", tmp_path / "given", tmp_path / "out")
    with mlir.make_ir_context() as context:
        artifact = (tmp_path / "out").read_bytes()
        module = stablehlo.deserialize_portable_artifact(context, artifact)
        text = module.operation.get_asm(enable_debug_info=True)
    assert "bytecode_corpus.py" in text
    assert '"jit(<lambda>)/add"' in text


def test_sharding_is_dropped(tool, tmp_path):
    text = """
    module {
      sdy.mesh @mesh = <["x"=1]>
      func.func @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
          -> tensor<4xf32> {
        %0 = stablehlo.negate %a : tensor<4xf32>
        %1 = sdy.sharding_constraint %0 <@mesh, [{"x"}]> : tensor<4xf32>
        func.return %1 : tensor<4xf32>
      }
    }"""
    artifact = _jax.mlir.serialize_portable_artifact(text.encode(), oracle.STABLEHLO_VERSION, True)
    rewritten, ours = check_forms(tool, tmp_path, artifact)
    for form in (rewritten, ours):
        assert "sdy" not in form
        assert "cast" not in form
        assert "stablehlo.negate" in form
