"""`_XLAC.lowering.LoweringContext`: the program that computes tensors, to be looked at, and what it takes."""

import json
import re
import types
from typing import Any

import torch

from torch_xla import _XLAC


class LoweringContext:
    """The program that computes tensors, which is built and not run.

    Its parameters are the data that the tensors' recorded work takes, and then the numbers in it, packed into one vector
    for each type.
    """

    def __init__(self, name: str = "FnComputation") -> None:
        self._name = name
        self._bytecode: bytes | None = None
        self._json = ""
        self._ids: list[int] = []
        self._leaves: list[torch.Tensor] = []
        self._numbers: list[torch.Tensor] = []

    def set_name_string(self, name: str) -> None:
        """What the program is called from the next `build` on."""
        self._name = name

    def get_name_string(self) -> str:
        """What the program is called."""
        return self._name

    def build(self, tensors: list[torch.Tensor]) -> None:
        """Lowers what is recorded of the tensors, which are its results."""
        lowered = _XLAC._lowered_tensors(tensors, self._name)
        self._bytecode, self._json, self._ids, self._leaves, self._numbers = lowered

    def _checked(self) -> None:
        if self._bytecode is None:
            raise RuntimeError(
                "LoweringContext: nothing is lowered yet; call build(tensors) first."
            )

    def hlo(self) -> bytes:
        """The program as `core.xla_builder.computation_from_module_proto` takes it: StableHLO bytecode."""
        self._checked()
        return self._bytecode

    def hlo_json(self) -> str:
        """HLO as JSON, with the fields of XLA's HloModuleProto."""
        self._checked()
        return self._json

    def hlo_text(self) -> str:
        """The same as a proto's text: `opcode: "add"`."""
        self._checked()
        return "".join(_text_lines(json.loads(self._json), ""))

    def device_parameter_id_tensor_mapping(self) -> dict[int, torch.Tensor]:
        """The parameters by their numbers; nothing is copied from the device."""
        self._checked()
        return dict(enumerate([*self._leaves, *self._numbers]))

    def parameter_id_tensor_mapping(self) -> dict[int, torch.Tensor]:
        """The same on the CPU."""
        self._checked()
        return dict(enumerate([*_XLAC._xla_get_cpu_tensors(self._leaves), *self._numbers]))

    def tensor_parameter_id(self, tensor: torch.Tensor) -> int:
        """The number of the parameter that is the tensor's data; -1 if none is."""
        if _XLAC._check_tensor_need_materialization([tensor])[0]:
            return -1
        handle = _XLAC._get_tensors_handle([tensor])[0]
        return self._ids.index(handle) if handle in self._ids else -1


def _text_lines(message: dict[str, Any], indent: str) -> list[str]:
    lines = []
    for key, value in message.items():
        field = re.sub("[A-Z]", lambda letter: "_" + letter.group().lower(), key)
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, dict):
                inner = _text_lines(item, indent + "  ")
                lines += [f"{indent}{field} {{\n", *inner, f"{indent}}}\n"]
            else:
                lines.append(f"{indent}{field}: {_scalar_text(field, item)}\n")
    return lines


def _scalar_text(field: str, value: str | int) -> str:
    # Types are an enumeration's names, and JSON has numbers of 64 bits as strings.
    is_bare = isinstance(value, int) or field == "element_type" or value.lstrip("-").isdigit()
    return str(value) if is_bare else json.dumps(value)


def register() -> None:
    """Puts it into the binding, where PyTorch/XLA has it."""
    _XLAC.lowering = types.ModuleType(f"{_XLAC.__name__}.lowering", "Programs to be looked at.")
    _XLAC.lowering.LoweringContext = LoweringContext
