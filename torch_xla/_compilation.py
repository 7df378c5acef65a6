"""`torch.compile` without a backend's name: functions on xla tensors are compiled by our backend, others by inductor as ever."""

import functools
from collections.abc import Sequence
from typing import Any

import torch
from torch import fx


def _is_on_device(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.device.type == "xla"


def _computes_on_device(module: fx.GraphModule, inputs: Sequence[Any]) -> bool:
    """Whether a tensor that the graph takes, holds or makes is on the device."""
    if any(map(_is_on_device, inputs)):
        return True
    if any(map(_is_on_device, [*module.parameters(), *module.buffers()])):
        return True
    return any(_is_on_device(node.meta.get("example_value")) for node in module.graph.nodes)


def register() -> None:
    """Makes torch's default backend, inductor, leave to ours what is on xla, which it has no code for."""
    wrapper = torch._TorchCompileInductorWrapper
    compile_by_inductor = wrapper.__call__

    @functools.wraps(compile_by_inductor)
    def compile_graph(
        self: Any, module: fx.GraphModule, inputs: Sequence[Any], **options: Any
    ) -> Any:
        if not _computes_on_device(module, inputs):
            return compile_by_inductor(self, module, inputs, **options)
        from torch._dynamo.backends.torchxla import openxla

        return openxla(module, inputs)

    wrapper.__call__ = compile_graph
