"""Exported models as saved models of TensorFlow, for its servers and converters.

    save_torch_module_as_tf_saved_model(model, (x,), "folder")
    y, = tensorflow.saved_model.load("folder").f(x.numpy())

A program goes into a saved model as it is, as an operation of TensorFlow's (`XlaCallModule`), which compiles it with
TensorFlow's own XLA. The weights are variables beside it. Everything here but importing it needs TensorFlow.

    python -m torch_xla.tf_saved_model_integration EXPORTED SAVED

makes one of the folder that `StableHLOGraphModule.save` wrote.
"""

import argparse
import os
import re
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import torch

from . import stablehlo
from .stablehlo import (
    InputLocation,
    StableHLOFunctionMeta,
    StableHLOGraphModule,
    StableHLOModelBundle,
    VariableSignature,
    VariableType,
)

__all__ = [
    "main",
    "make_tf_function",
    "save_stablehlo_graph_as_tf",
    "save_torch_module_as_tf_saved_model",
]

# TensorFlow's name for what a server calls where nothing else is asked for.
_SERVING_KEY = "serving_default"
# Of the operation: from this one on it takes portable artifacts and gives dynamic dimensions the sizes of the call.
_CALL_VERSION = 5
# What TensorFlow calls Python's numbers; other names are torch's, which are TensorFlow's too.
_NUMBERS = {"int": "int32", "float": "float32", "bool": "bool"}


def make_tf_function(
    stablehlo_program: StableHLOGraphModule, bundle: StableHLOModelBundle | None = None
) -> Callable[..., Any]:
    """The first of a model's programs as a function on TensorFlow's tensors, for `tf.function`.

    It takes the model's arguments, flattened: tensors of the types that the model was exported with, and for each number
    any, since numbers are constants of the program; arguments that are neither are left out. It gives a list of tensors.

    Args:
      stablehlo_program: the model.
      bundle: where the weights are; None: the model's own. They may be arrays, which become constants, or variables of
        TensorFlow's.

    Raises:
      ImportError: without TensorFlow.
    """
    tensorflow, xla = _import_tensorflow()
    program = stablehlo_program._bundle.stablehlo_funcs[0]
    meta = program.meta
    weights = bundle or stablehlo_program._bundle
    positions = {position: i for i, (position, _) in enumerate(_parameters(meta))}

    def value(location: InputLocation, signature: VariableSignature, args: tuple[Any, ...]) -> Any:
        dtype = _dtype(tensorflow, signature)
        if location.type_ == VariableType.INPUT_ARG:
            return tensorflow.convert_to_tensor(args[positions[location.position]], dtype)
        found = _weight(weights, location)
        return _as_type(found, dtype) if isinstance(found, np.ndarray) else found

    def call(*args: Any) -> Any:
        operands = [
            value(location, signature, args)
            for location, signature in zip(meta.input_locations, meta.input_signature, strict=True)
        ]
        return xla.call_module(
            operands,
            version=_CALL_VERSION,
            module=program.bytecode,
            Tout=[_dtype(tensorflow, signature) for signature in meta.output_signature],
            Sout=[_shape(signature) for signature in meta.output_signature],
        )

    return call


def save_stablehlo_graph_as_tf(
    stablehlo_program: StableHLOGraphModule,
    path: str | os.PathLike[str],
    serving_key: str = _SERVING_KEY,
    function_alias: str = "",
) -> None:
    """Writes an exported model into a folder, as a saved model of TensorFlow.

    The loaded model has `f`, the function that `make_tf_function` describes, whose parameters are `args_0`, `args_1`, …:
    by their positions among the model's flattened arguments. Dynamic dimensions take any size.

    Args:
      stablehlo_program: the model, with its weights.
      path: the folder, which is made.
      serving_key: the name of the signature that servers call.
      function_alias: a name of the function for converters; "" gives it none.

    Raises:
      ImportError: without TensorFlow.
      RuntimeError: for a model that was exported or saved without its weights.
      TypeError: for types that TensorFlow lacks.
    """
    tensorflow, _ = _import_tensorflow()
    meta = stablehlo_program._bundle.stablehlo_funcs[0].meta
    bundle = _with_variables(tensorflow, stablehlo_program._bundle)
    specs = [
        tensorflow.TensorSpec(_shape(signature), _dtype(tensorflow, signature), f"args_{position}")
        for position, signature in _parameters(meta)
    ]
    module = tensorflow.Module()
    module.f = tensorflow.function(
        make_tf_function(stablehlo_program, bundle), input_signature=specs
    )
    # Only what the module holds is saved.
    module.weights = [*bundle.state_dict.values(), *bundle.additional_constants]
    aliases = {function_alias: module.f} if function_alias else {}
    tensorflow.saved_model.save(
        module,
        os.fspath(path),
        signatures={serving_key: module.f.get_concrete_function()},
        options=tensorflow.saved_model.SaveOptions(function_aliases=aliases),
    )


def save_torch_module_as_tf_saved_model(
    torch_model: torch.nn.Module,
    args: tuple[Any, ...],
    saved_model_dir: str | os.PathLike[str],
    dynamic_shapes: Any = None,
    serving_key: str = _SERVING_KEY,
    function_alias: str = "",
) -> None:
    """Exports a module and writes it into a folder, as a saved model of TensorFlow.

    Args:
      torch_model: the module.
      args: arguments that it can be called with.
      saved_model_dir: the folder, which is made.
      dynamic_shapes: which sizes may vary, as `torch.export.export` takes it.
      serving_key: see `save_stablehlo_graph_as_tf`, whose errors this raises too.
      function_alias: as there.

    Raises:
      RuntimeError: for a model that `exported_program_to_stablehlo` refuses.
    """
    _import_tensorflow()  # or an export, which may take long, would be for nothing
    exported = torch.export.export(torch_model, args, dynamic_shapes=dynamic_shapes)
    program = stablehlo.exported_program_to_stablehlo(exported)
    save_stablehlo_graph_as_tf(program, saved_model_dir, serving_key, function_alias)


def main() -> int:
    """Makes a saved model of an exported one, as the command's arguments say. Gives the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m torch_xla.tf_saved_model_integration",
        description="Makes a saved model of TensorFlow of an exported one.",
    )
    parser.add_argument("input_dir", help="the folder that StableHLOGraphModule.save wrote")
    parser.add_argument("output_dir", help="the folder of the saved model, which is made")
    parser.add_argument(
        "-a", "--function_alias", default="", help="a name of the function for converters"
    )
    parser.add_argument(
        "-k",
        "--serving_key",
        default=_SERVING_KEY,
        help="the name of the signature that servers call (%(default)s)",
    )
    options = parser.parse_args()
    save_stablehlo_graph_as_tf(
        StableHLOGraphModule.load(options.input_dir),
        options.output_dir,
        options.serving_key,
        options.function_alias,
    )
    return 0


def _import_tensorflow() -> tuple[ModuleType, ModuleType]:
    """TensorFlow, and its operations of XLA."""
    try:
        import tensorflow  # type: ignore[import-not-found]
        from tensorflow.compiler.tf2xla.python import xla  # type: ignore[import-not-found]
    except ImportError as error:
        raise ImportError(
            "saved models are written by TensorFlow, which cannot be imported: "
            "pip install tensorflow-cpu, or tensorflow"
        ) from error
    return tensorflow, xla


def _with_variables(tensorflow: ModuleType, bundle: StableHLOModelBundle) -> StableHLOModelBundle:
    """The bundle with variables for the weights that its first program takes, and none of the others."""
    meta = bundle.stablehlo_funcs[0].meta
    state: dict[str, Any] = {}
    constants: list[Any] = [None] * len(bundle.additional_constants)
    for location, signature in zip(meta.input_locations, meta.input_signature, strict=True):
        if location.type_ == VariableType.INPUT_ARG:
            continue
        array = _as_type(_weight(bundle, location), _dtype(tensorflow, signature))
        name = _variable_name(location)
        variable = tensorflow.Variable(array, trainable=False, name=name)
        if location.type_ == VariableType.PARAMETER:
            state[location.name] = variable
        else:
            constants[location.position] = variable
    return StableHLOModelBundle(state, constants, bundle.stablehlo_funcs)


def _variable_name(location: InputLocation) -> str:
    """A name that TensorFlow allows: of letters, digits and a few signs, the first of which is a letter or a digit."""
    if location.type_ == VariableType.CONSTANT:
        return f"constant_{location.position}"
    name = re.sub(r"[^A-Za-z0-9_.\-/]", "_", location.name)
    return name if name[:1].isalnum() else f"k{name}"


def _weight(bundle: StableHLOModelBundle, location: InputLocation) -> Any:
    """The array or variable of a weight or a constant."""
    if location.type_ == VariableType.CONSTANT:
        return bundle.additional_constants[location.position]
    if location.name not in bundle.state_dict:
        raise RuntimeError(
            f"the exported model has no weight {location.name}: it was saved or exported without its weights"
        )
    return bundle.state_dict[location.name]


def _as_type(array: np.ndarray, dtype: Any) -> np.ndarray:
    """The array, whose elements may be the bits of others: numpy by itself has no bfloat16."""
    wanted = np.dtype(dtype.as_numpy_dtype)
    return array if array.dtype == wanted else array.view(wanted)


def _parameters(meta: StableHLOFunctionMeta) -> list[tuple[int, VariableSignature]]:
    """The positions and types of the arguments that a saved model takes, also of those that the program does not use."""
    inputs = [*zip(meta.input_locations, meta.input_signature, strict=True), *meta.unused_inputs]
    found = {
        location.position: signature
        for location, signature in inputs
        if location.type_ == VariableType.INPUT_ARG
    }
    return sorted(found.items())


def _shape(signature: VariableSignature) -> list[int | None]:
    """The sizes, with None for those of dynamic dimensions."""
    dynamic = signature.dynamic_dims
    return [None if i in dynamic else size for i, size in enumerate(signature.shape)]


def _dtype(tensorflow: ModuleType, signature: VariableSignature) -> Any:
    return tensorflow.as_dtype(_NUMBERS.get(signature.dtype, signature.dtype))


if __name__ == "__main__":
    sys.exit(main())
