"""Folders that hold exported models, as others take them: XLA:CPU, through its plugin, and JAX, as a function of its own."""

import io
import json
import pathlib

import numpy as np
import pytest
import torch
from conftest import engine_environment
from torch import nn

from torch_xla.stablehlo import exported_program_to_stablehlo

pytestmark = pytest.mark.slow


class Attention(nn.Module):
    """With a buffer that is written, masked scores, integers that come as an argument."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(11, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, tokens, *, scale):
        self.calls += 1
        x = self.embedding(tokens) * scale
        mask = torch.ones(x.shape[1], x.shape[1]).triu(1).bool()
        return {"hidden": self.layer(x, src_mask=mask), "calls": self.calls * 2}


class Branches(nn.Module):
    """Of which the bodies have weights, and results that are none."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x):
        return torch.cond(x.sum() > 0, self.first, self.second, (x,)), None


MODELS = {
    "convolutions": lambda: (
        nn.Sequential(
            nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.GELU(), nn.MaxPool2d(2), nn.Flatten()
        ),
        (torch.randn(2, 3, 8, 8),),
        {},
    ),
    "attention": lambda: (
        Attention(),
        (torch.randint(11, (2, 5)),),
        {"scale": torch.tensor(0.5)},
    ),
    "branches": lambda: (Branches(), (torch.randn(2, 3),), {}),
    "bfloat16": lambda: (nn.Linear(5, 3).bfloat16(), (torch.randn(2, 5).bfloat16(),), {}),
}


def leaves_of(tree):
    return [leaf for leaf in torch.utils._pytree.tree_leaves(tree) if leaf is not None]


@pytest.fixture(scope="module", params=MODELS)
def bundle(request, tmp_path_factory):
    """The folder, what it is called with, and torch's results."""
    torch.manual_seed(0)
    model, args, kwargs = MODELS[request.param]()
    model.eval()
    folder = tmp_path_factory.mktemp(request.param)
    exported_program_to_stablehlo(torch.export.export(model, args, kwargs)).save(str(folder))
    with torch.no_grad():
        return folder, args, kwargs, leaves_of(model(*args, **kwargs))


def check(results, expected):
    assert len(results) == len(expected)
    for got, want in zip(results, expected, strict=True):
        torch.testing.assert_close(got, want)


ON_THE_PLUGIN = """
import sys, torch, torch_xla
from torch_xla.stablehlo import StableHLOGraphModule
args, kwargs = torch.load("arguments")
results = StableHLOGraphModule.load(sys.argv[1])(*args, **kwargs)
leaves = [leaf for leaf in torch.utils._pytree.tree_leaves(results) if leaf is not None]
torch.save([leaf.cpu() for leaf in leaves], "results")
"""


def test_xla_runs_it_as_a_plugin(bundle, program):
    folder, args, kwargs, expected = bundle
    torch.save((args, kwargs), program.folder / "arguments")
    program.run("-c", ON_THE_PLUGIN, str(folder), **engine_environment("xla_cpu"))
    check(torch.load(program.folder / "results"), expected)


def array_of(value):
    """A tensor as JAX takes it."""
    if value.dtype != torch.bfloat16:
        return value.numpy()
    import ml_dtypes

    return value.view(torch.int16).numpy().view(ml_dtypes.bfloat16)


def inputs_of(meta, folder: pathlib.Path, leaves):
    """The program's, from what is in the folder and the arguments of the call."""
    for location, signature in zip(meta["input_locations"], meta["input_signature"], strict=True):
        if location["type_"] == "input_arg":
            yield array_of(leaves[location["position"]])
            continue
        part = f"data/{location['name']}"
        if location["type_"] == "constant":
            part = f"constants/{location['position']}"
        value = np.load(io.BytesIO((folder / part).read_bytes()))
        yield value.view(jax_type(signature["dtype"]))  # bfloat16's bits are saved as integers


def jax_type(name):
    import jax.numpy as jnp

    return jnp.dtype(name)


def function_of_jax(meta, bytecode):
    """The program as what `jax.export` makes of a function."""
    import jax
    from jax import export

    def arrays(signatures):
        return tuple(
            jax.core.ShapedArray(tuple(s["shape"]), jax_type(s["dtype"])) for s in signatures
        )

    parameters, results = arrays(meta["input_signature"]), arrays(meta["output_signature"])
    return export.Exported(
        fun_name=meta["name"],
        in_tree=jax.tree.structure((parameters, {})),
        in_avals=parameters,
        out_tree=jax.tree.structure(results),
        out_avals=results,
        _has_named_shardings=False,
        _in_named_shardings=(None,) * len(parameters),
        _out_named_shardings=(None,) * len(results),
        in_shardings_hlo=(None,) * len(parameters),
        out_shardings_hlo=(None,) * len(results),
        nr_devices=1,
        platforms=("cpu",),
        ordered_effects=(),
        unordered_effects=(),
        disabled_safety_checks=(),
        mlir_module_serialized=bytecode,
        calling_convention_version=export.maximum_supported_calling_convention_version,
        module_kept_var_idx=tuple(range(len(parameters))),
        uses_global_constants=False,
        _get_vjp=None,
    )


def test_jax_calls_it_as_a_function(bundle):
    import jax

    folder, args, kwargs, expected = bundle
    meta = json.loads((folder / "functions" / "forward.meta").read_text())
    exported = function_of_jax(meta, (folder / "functions" / "forward.bytecode").read_bytes())
    with jax.default_device(jax.devices("cpu")[0]), jax.enable_x64(True):
        inputs = tuple(inputs_of(meta, folder, leaves_of((args, kwargs))))
        # Part of a program of JAX's.
        results = jax.jit(lambda values: [y * 1 for y in exported.call(*values)])(inputs)
    check([torch.from_dlpack(result) for result in results], expected)
