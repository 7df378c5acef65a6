"""StableHLO text as JAX and MLIR print it, read by us."""

import bytecode_corpus as corpus
import numpy as np
import oracle
import pytest
from test_bytecode import deserialize


def check_same(tool, folder, artifact):
    """Text in each of its forms is the program that its bytecode is."""
    bytecode, text = folder / "program.mlirbc", folder / "program.mlir"
    bytecode.write_bytes(artifact)
    for form in corpus.forms(artifact).values():
        text.write_text(form)
        tool("same", text, bytecode)


@pytest.mark.parametrize("name", corpus.JAX_PROGRAMS)
def test_jax_program(tool, tmp_path, name):
    check_same(tool, tmp_path, corpus.artifact(name))


# XLA compiles each twice: some of every kind.
RUN = [
    "arithmetic", "constants", "gather", "scatter_add", "convolution", "reduce", "argsort", "fft", "cholesky",
    "random", "scan", "switch",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", RUN)
def test_text_of_jax_computes_what_jax_does(tool, tmp_path, name):
    short, with_locations = corpus.jax_forms(name)
    given, debug, rewritten = (tmp_path / n for n in ("given", "debug", "rewritten"))
    given.write_text(short)
    debug.write_text(with_locations)
    tool("same", given, debug)
    tool("rewrite", given, rewritten)
    arguments = [np.asarray(a) for a in corpus.JAX_PROGRAMS[name][1]]
    expected = oracle.run_on_xla(corpus.jax_text(name), arguments)
    actual = oracle.run_on_xla(deserialize(rewritten.read_bytes()), arguments)
    for a, e in zip(actual, expected, strict=True):
        assert a.dtype == e.dtype
        if np.issubdtype(e.dtype, np.inexact):
            np.testing.assert_allclose(a, e, rtol=1e-5, atol=1e-6)
        else:
            np.testing.assert_array_equal(a, e)


@pytest.mark.parametrize("name", corpus.TEXT_PROGRAMS)
def test_text_program(tool, tmp_path, name):
    artifact = corpus.text_artifact(name)
    check_same(tool, tmp_path, artifact)
    (tmp_path / "written").write_text(corpus.text_program(name))
    (tmp_path / "bytecode").write_bytes(artifact)
    tool("rewrite", tmp_path / "written", tmp_path / "again")
