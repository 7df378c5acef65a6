"""Exported programs with their weights: what they are made of, and the folder that holds them.

    data/<name>                  a parameter or buffer, as numpy's .npy without that suffix
    constants/<i>                the same of other tensors that the program takes
    functions/<name>.meta        JSON: StableHLOFunctionMeta
    functions/<name>.bytecode    the program, a portable artifact of StableHLO
    functions/<name>.mlir        the same as text, for people

numpy has no bfloat16 and no 8-bit floats: their bits are kept, as integers of the same width.
"""

import dataclasses
import enum
import json
import pathlib
import typing
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

_FUNCTIONS = "functions"
_DATA = "data"
_CONSTANTS = "constants"


class VariableType(enum.Enum):
    """What a parameter of a program is."""

    INPUT_ARG = "input_arg"
    PARAMETER = "parameter"
    CONSTANT = "constant"


@dataclasses.dataclass
class VariableSignature:
    """A tensor's shape and type.

    Attributes:
      shape: its sizes; those of dynamic dimensions are the example's.
      dtype: torch's name for it, without "torch."; Python's for a number.
      dynamic_dims: the dimensions that may have any size.
    """

    shape: list[int]
    dtype: str
    dynamic_dims: list[int] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class InputLocation:
    """Where a parameter of a program comes from.

    Attributes:
      type_: which kind it is.
      position: of an argument, among the flattened ones; of a constant, among the bundle's.
      name: of a parameter or buffer, in the bundle's `state_dict`.
    """

    type_: VariableType
    position: int = -1
    name: str = ""

    @classmethod
    def parameter(cls, name: str) -> "InputLocation":
        """A parameter or buffer of the model."""
        return cls(VariableType.PARAMETER, name=name)

    @classmethod
    def input_arg(cls, position: int) -> "InputLocation":
        """An argument of the call."""
        return cls(VariableType.INPUT_ARG, position=position)

    @classmethod
    def constant(cls, position: int) -> "InputLocation":
        """A tensor that the model made."""
        return cls(VariableType.CONSTANT, position=position)


@dataclasses.dataclass
class StableHLOFunctionMeta:
    """A program's name and signature.

    Attributes:
      name: of the function; "forward".
      stablehlo_version: always "0.0.0": the artifact itself says which it is of.
      input_signature: of the program's parameters, in their order.
      output_signature: of its results.
      input_locations: where each parameter comes from.
      unused_inputs: what the program does not take, with signatures; numbers among the arguments, too.
      input_pytree_spec: how the arguments, (args, kwargs), are flattened; as JSON of torch's pytree.
      output_pytree_spec: how the results are nested.
      none_results: where among the flattened results None stands, which no program gives.
    """

    name: str
    stablehlo_version: str
    input_signature: list[VariableSignature]
    output_signature: list[VariableSignature]
    input_locations: list[InputLocation]
    unused_inputs: list[tuple[InputLocation, VariableSignature]]
    input_pytree_spec: str | None = None
    output_pytree_spec: str | None = None
    none_results: list[int] | None = None


@dataclasses.dataclass
class StableHLOFunc:
    """A program.

    Attributes:
      meta: its name and signature.
      bytecode: a portable artifact of StableHLO.
      text: the same, readable; None where it was not wanted.
    """

    meta: StableHLOFunctionMeta
    bytecode: bytes
    text: str | None


@dataclasses.dataclass
class StableHLOModelBundle:
    """Programs with their weights.

    Attributes:
      state_dict: the model's parameters, buffers and constant tensors, by name.
      additional_constants: what else the programs take.
      stablehlo_funcs: the programs.
    """

    state_dict: dict[str, np.ndarray]
    additional_constants: list[np.ndarray]
    stablehlo_funcs: list[StableHLOFunc]


def signature_of(tensor: torch.Tensor) -> VariableSignature:
    """A tensor's signature; symbolic sizes are dynamic dimensions."""
    dynamic = [i for i, size in enumerate(tensor.shape) if isinstance(size, torch.SymInt)]
    sizes = [
        size.node.hint if isinstance(size, torch.SymInt) else int(size) for size in tensor.shape
    ]
    return VariableSignature(sizes, str(tensor.dtype).removeprefix("torch."), dynamic)


def with_plain_tuples(spec: pytree.TreeSpec) -> pytree.TreeSpec:
    """The nesting with tuples for the named ones that torch's operators give, which have no name in a file."""
    children = [with_plain_tuples(child) for child in spec.children()]
    if isinstance(spec.type, type) and spec.type.__module__ == "torch.return_types":
        return pytree.TreeSpec(tuple, None, children)
    return spec if not children else pytree.TreeSpec(spec.type, spec.context, children)


def to_numpy(tensor: torch.Tensor) -> np.ndarray:
    """A tensor as an array: of its bits, where numpy lacks the type."""
    tensor = tensor.detach().cpu().contiguous().resolve_conj().resolve_neg()
    try:
        return tensor.numpy()
    except TypeError:
        return tensor.view(_bits_of(tensor.dtype)).numpy()


def from_numpy(array: np.ndarray, dtype: str) -> torch.Tensor:
    """What `to_numpy` was given, of the type with that name."""
    wanted = getattr(torch, dtype)
    tensor = torch.from_numpy(np.ascontiguousarray(array).reshape(array.shape))
    if tensor.dtype == wanted:
        return tensor
    return tensor.view(wanted) if tensor.dtype == _bits_of(wanted) else tensor.to(wanted)


def _bits_of(dtype: torch.dtype) -> torch.dtype:
    return torch.int16 if dtype.itemsize == 2 else torch.uint8


def save(bundle: StableHLOModelBundle, folder: str, saves_weights: bool, saves_text: bool) -> None:
    """Writes the bundle into a folder, which is made."""
    root = pathlib.Path(folder)
    if saves_weights:
        _save_arrays(root / _DATA, bundle.state_dict)
    _save_arrays(
        root / _CONSTANTS, {str(i): array for i, array in enumerate(bundle.additional_constants)}
    )
    functions = root / _FUNCTIONS
    functions.mkdir(parents=True, exist_ok=True)
    for function in bundle.stablehlo_funcs:
        name = function.meta.name
        (functions / f"{name}.meta").write_text(json.dumps(_to_json(function.meta)))
        (functions / f"{name}.bytecode").write_bytes(function.bytecode)
        if saves_text and function.text is not None:
            (functions / f"{name}.mlir").write_text(function.text)


def load(folder: str) -> StableHLOModelBundle:
    """Reads what `save` wrote. Without weights, the state is empty."""
    root = pathlib.Path(folder)
    functions = []
    for meta in sorted((root / _FUNCTIONS).glob("*.meta")):
        text = meta.with_suffix(".mlir")
        functions.append(
            StableHLOFunc(
                _from_json(StableHLOFunctionMeta, json.loads(meta.read_text())),
                meta.with_suffix(".bytecode").read_bytes(),
                text.read_text() if text.exists() else None,
            )
        )
    if not functions:
        raise FileNotFoundError(f"{root / _FUNCTIONS} holds no exported function (*.meta).")
    constants = _load_arrays(root / _CONSTANTS)
    return StableHLOModelBundle(
        _load_arrays(root / _DATA), [constants[str(i)] for i in range(len(constants))], functions
    )


def _save_arrays(folder: pathlib.Path, arrays: dict[str, np.ndarray]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in arrays.items():
        with open(folder / name, "wb") as file:  # np.save would add a suffix to a name
            np.save(file, array, allow_pickle=False)


def _load_arrays(folder: pathlib.Path) -> dict[str, np.ndarray]:
    if not folder.is_dir():
        return {}
    arrays = {}
    for path in folder.iterdir():
        with open(path, "rb") as file:
            arrays[path.name] = np.load(file, allow_pickle=False)
    return arrays


def _to_json(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return value.value
    if dataclasses.is_dataclass(value):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {name: _to_json(item) for name, item in fields.items() if item is not None}
    if isinstance(value, list | tuple):
        return [_to_json(item) for item in value]
    return value


def _from_json(wanted: Any, value: Any) -> Any:
    """`value`, of JSON, as a value of the type that the dataclasses' annotations name."""
    origin, arguments = typing.get_origin(wanted), typing.get_args(wanted)
    if origin is list:
        return [_from_json(arguments[0], item) for item in value]
    if origin is tuple:
        return tuple(map(_from_json, arguments, value))
    if dataclasses.is_dataclass(wanted):
        types = typing.get_type_hints(wanted)
        return wanted(**{name: _from_json(types[name], item) for name, item in value.items()})
    if isinstance(wanted, type) and issubclass(wanted, enum.Enum):
        return wanted(value)
    return value
