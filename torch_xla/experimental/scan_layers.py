"""`scan_layers`: layers of one structure, applied one after the other, as one loop of the program."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from functorch.compile import default_partition
from torch import nn
from torch.func import functional_call

from .scan import scan

# The functions of layers that are pure: {(id of the partition function, id of the first layer): (layer, function)}.
_ONE_LAYER_CACHE: dict[tuple[int, int], tuple[nn.Module, Callable[..., Any]]] = {}


def scan_layers(
    layers: Iterable[nn.Module],
    input_data: Any,
    partition_fn: Callable[..., Any] = default_partition,
    is_layer_pure: bool = False,
) -> Any:
    """What the layers make of `input_data`, each taking what the one before gave.

    It means the same as

        for layer in layers:
            input_data = layer(*input_data)  # or layer(input_data), where that is one tensor

    but the program has one layer, however many there are. The first layer's code is run for all, with the parameters and
    buffers of each; a step stacks them, so they take their memory twice while it runs.

    Args:
      layers: modules with parameters and buffers of the same names, shapes and dtypes, and the same code; it may not write
        into buffers.
      input_data: a tensor or a tuple of tensors, as each layer takes and gives it.
      partition_fn, is_layer_pure: see `torch_xla.experimental.scan.scan`, for the first layer.

    Raises:
      ValueError: for layers that differ in parameters or buffers; see `scan` for the others.
    """
    layers = list(layers)
    if not layers:
        return input_data
    states = [_state_of(layer) for layer in layers]
    _check_alike(states)
    stacked = {key: torch.stack([state[key] for state in states]) for key in states[0]}
    carry, _ = scan(
        _function_of(layers[0], partition_fn, is_layer_pure),
        input_data,
        (stacked, _sequence_numbers(stacked, len(layers), input_data)),
        partition_fn,
        is_layer_pure,
    )
    return carry


def _state_of(layer: nn.Module) -> dict[str, torch.Tensor]:
    return {**dict(layer.named_parameters()), **dict(layer.named_buffers())}


def _check_alike(states: list[Mapping[str, torch.Tensor]]) -> None:
    first = states[0]
    for index, state in enumerate(states[1:], 1):
        if state.keys() != first.keys():
            raise ValueError(
                f"scan_layers: layer {index} has mismatched keys: "
                f"{sorted(state.keys() ^ first.keys())} are not in both it and layer 0"
            )
        for key, tensor in state.items():
            if tensor.shape != first[key].shape:
                raise ValueError(
                    f"Shape mismatch for '{key}' in layer {index}: {tuple(tensor.shape)}, and layer 0 has "
                    f"{tuple(first[key].shape)}"
                )
            if tensor.dtype != first[key].dtype:
                raise ValueError(
                    f"scan_layers: '{key}' is {tensor.dtype} in layer {index} and {first[key].dtype} in layer 0"
                )


def _sequence_numbers(stacked: Mapping[str, torch.Tensor], count: int, input_data: Any) -> Any:
    """What is scanned over where layers have neither parameters nor buffers."""
    if stacked:
        return None
    tensor = input_data if isinstance(input_data, torch.Tensor) else input_data[0]
    return torch.arange(count, device=tensor.device)


def _function_of(
    layer: nn.Module, partition_fn: Callable[..., Any], is_layer_pure: bool
) -> Callable[..., Any]:
    """A layer as a function of its input and (its state, a number); the same one each time where it is pure."""
    key = (id(partition_fn), id(layer))
    if is_layer_pure and key in _ONE_LAYER_CACHE:
        return _ONE_LAYER_CACHE[key][1]

    def one_layer(carry: Any, x: Any) -> tuple[Any, None]:
        state, _ = x
        arguments = carry if isinstance(carry, tuple) else (carry,)
        return functional_call(layer, state, arguments), None

    if is_layer_pure:
        _ONE_LAYER_CACHE[key] = (layer, one_layer)
    return one_layer
