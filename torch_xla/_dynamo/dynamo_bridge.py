"""See `torch_xla.core.dynamo_bridge`."""

from typing import Any

from torch_xla.core.dynamo_bridge import extract_compiled_graph as extract_compiled_graph
from torch_xla.utils.buffer_donor_context import (
    alias_with_buffer_donor_config as alias_with_buffer_donor_config,
)


class NoneRemover:
    """Takes each `None` out of a list or tuple, and puts it back where it was."""

    def __init__(self) -> None:
        self.none_poslist: list[int] = []

    def remove_nones(self, value_list: Any) -> Any:
        """The values that are not None: a list in place, a tuple as a new one. Where the others were is remembered."""
        self.none_poslist = [i for i, value in enumerate(value_list) if value is None]
        rest = [value for value in value_list if value is not None]
        return _in_place_of(value_list, rest)

    def add_nones(self, value_list: Any) -> Any:
        """The values with the Nones that were removed last: a list in place, a tuple as a new one."""
        all_values = list(value_list)
        for place in self.none_poslist:
            all_values.insert(place, None)
        return _in_place_of(value_list, all_values)


def _in_place_of(old: Any, values: list[Any]) -> Any:
    if not isinstance(old, list):
        return tuple(values)
    old[:] = values
    return old
