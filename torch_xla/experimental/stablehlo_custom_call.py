"""Custom calls, which only some compilers know, in recorded programs."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from torch_xla import _XLAC
from torch_xla.experimental.custom_kernel import XLA_LIB


def stablehlo_custom_call(
    args: Sequence[torch.Tensor],
    call_target: str,
    output_shapes: Sequence[Sequence[int]],
    output_dtypes: Sequence[torch.dtype],
    has_side_effect: bool = False,
    backend_config: str | Mapping[str, Any] = "",
    api_version: int = 0,
    frontend_attributes: dict[str, str] | None = None,
) -> torch.Tensor | list[torch.Tensor]:
    """Records `stablehlo.custom_call @call_target`. An engine that does not know the target refuses the program.

    A function of one's own in C++ is made known by `_XLAC._xla_register_custom_call_target(name, capsule, "cpu")`, and
    called by api_version 4 (XLA's `xla/ffi/api/ffi.h`).

    Args:
      args: the operands, on xla.
      call_target: its name.
      output_shapes, output_dtypes: of each result.
      has_side_effect: whether it has an effect beside its results.
      backend_config: text for who knows the target; with api_version 4 its attributes: strings, bools, integers (of 64
        bits), floats (of 32) and lists of numbers.
      api_version: StableHLO's, 1 to 4; 0 is 1.
      frontend_attributes: more for who knows the target; not with api_version 4.

    Returns:
      The result, or a list of several.

    Raises:
      ValueError: for no result, as many types as shapes are not given, or a configuration of another api_version's kind.
    """
    is_typed = api_version == 4
    is_configured_otherwise = bool(backend_config) and isinstance(backend_config, str) == is_typed
    if is_configured_otherwise or (is_typed and frontend_attributes):
        raise ValueError(
            f"stablehlo_custom_call: {call_target} is configured by a dictionary, backend_config, with api_version 4, and "
            "by a text and frontend_attributes with others."
        )
    attributes = backend_config if is_typed else frontend_attributes
    results = _XLAC._xla_custom_call(
        list(args),
        call_target,
        [list(shape) for shape in output_shapes],
        list(output_dtypes),
        has_side_effect,
        "" if is_typed else backend_config,
        api_version,
        dict(attributes or {}),
    )
    return results[0] if len(results) == 1 else results


def place_to_host(t: torch.Tensor) -> torch.Tensor:
    """The tensor in the host's memory, where the device has another (our engine's has not); its gradient comes as it is."""
    return torch.ops.xla.place_to_host(t)


def place_to_device(t: torch.Tensor) -> torch.Tensor:
    """The tensor in the device's memory, where the host's is another; its gradient comes as it is."""
    return torch.ops.xla.place_to_device(t)


def _define_placement(name: str, placement: str) -> None:
    XLA_LIB.define(f"{name}(Tensor a) -> Tensor")

    def on_device(a: torch.Tensor) -> torch.Tensor:
        placed = stablehlo_custom_call(
            [a],
            "annotate_device_placement",
            [a.shape],
            [a.dtype],
            has_side_effect=True,
            frontend_attributes={"_xla_buffer_placement": placement},
        )
        assert isinstance(placed, torch.Tensor)
        return placed

    XLA_LIB.impl(name, on_device, "XLA")
    XLA_LIB.impl(name, torch.clone, "CompositeExplicitAutograd")
    XLA_LIB.impl(name, torch.empty_like, "Meta")
    torch.library.register_autograd(f"xla::{name}", lambda _, gradient: gradient, lib=XLA_LIB)


_define_placement("place_to_host", "pinned_host")
_define_placement("place_to_device", "device")
