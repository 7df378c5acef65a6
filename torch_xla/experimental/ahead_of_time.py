"""Compiling the recorded step for a device that is not here: to see that it compiles, and how large the code is."""

import os
import pathlib
from dataclasses import dataclass

import torch

from torch_xla import _XLAC
from torch_xla.core import xla_model as xm


@dataclass(frozen=True)
class CompiledStep:
    """What a plugin made of a program.

    Attributes:
      platform: the platform's name, as the plugin gives it ("tpu", "cuda").
      device_kinds: the kind of each device of the topology.
      outputs: the results' types and shapes, such as "f32[64,10]".
      serialized: the plugin's own form of the compiled program.
    """

    platform: str
    device_kinds: list[str]
    outputs: list[str]
    serialized: bytes


def compile_for(
    library_path: str | os.PathLike[str],
    topology: str = "",
    options: dict[str, str | int | bool | float | list[int]] | None = None,
    tensors: list[torch.Tensor] | None = None,
    program: str | os.PathLike[str] | None = None,
) -> CompiledStep:
    """Compiles what is recorded, or a file, with another plugin, without its hardware. What is recorded stays so.

    Args:
      library_path: the plugin, such as `libtpu.so`.
      topology: the hardware's name, as the plugin knows it: "v5e:2x2" for libtpu.
      options: of the topology; XLA's CUDA plugin takes "target_config", the text of a GPU's description, and "topology",
        "1x1x1".
      tensors: those whose computation is compiled; all that is recorded by default.
      program: a file of StableHLO that is compiled instead, text (`.mlir`) or bytecode: what `get_stablehlo` gave, a
        dump, or what JAX printed.

    Raises:
      OSError: the file of the program cannot be read.
      RuntimeError: the plugin cannot be loaded, does not know the topology, or refuses the program; the message says
        which, in the plugin's words.
    """
    code = (
        xm.get_stablehlo_bytecode(tensors)
        if program is None
        else pathlib.Path(program).read_bytes()
    )
    return CompiledStep(
        **_XLAC._xla_compile_for(os.fspath(library_path), topology, options or {}, code)
    )
