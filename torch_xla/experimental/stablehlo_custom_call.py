"""Custom calls, which only some compilers know, in recorded programs."""

from collections.abc import Sequence

import torch

from torch_xla import _XLAC
from torch_xla.experimental.custom_kernel import XLA_LIB


def stablehlo_custom_call(
    args: Sequence[torch.Tensor],
    call_target: str,
    output_shapes: Sequence[Sequence[int]],
    output_dtypes: Sequence[torch.dtype],
    has_side_effect: bool = False,
    backend_config: str = "",
    api_version: int = 0,
    frontend_attributes: dict[str, str] | None = None,
) -> torch.Tensor | list[torch.Tensor]:
    """Records `stablehlo.custom_call @call_target`. An engine that does not know the target refuses the program.

    Args:
      args: the operands, on xla.
      call_target: its name.
      output_shapes, output_dtypes: of each result.
      has_side_effect: whether it has an effect beside its results.
      backend_config: text for who knows the target.
      api_version: StableHLO's, 1 to 3; 0 is 1.
      frontend_attributes: more for who knows the target.

    Returns:
      The result, or a list of several.

    Raises:
      ValueError: for no result, or as many types as shapes are not given.
      NotImplementedError: for api_version 4.
    """
    results = _XLAC._xla_custom_call(
        list(args),
        call_target,
        [list(shape) for shape in output_shapes],
        list(output_dtypes),
        has_side_effect,
        backend_config,
        api_version,
        frontend_attributes or {},
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
