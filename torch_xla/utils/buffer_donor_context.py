"""Whether a sync of single tensors gives up the memory that the user wishes to donate."""

import contextlib
from collections.abc import Iterator

from torch_xla import _XLAC


@contextlib.contextmanager
def alias_with_buffer_donor_config(should_alias: bool = True) -> Iterator[bool]:
    """For a block of code; gives the value from before, which comes back after it."""
    before = _XLAC._xla_get_enable_alias_with_buffer_donor_config()
    _XLAC._xla_set_enable_alias_with_buffer_donor_config(should_alias)
    try:
        yield before
    finally:
        _XLAC._xla_set_enable_alias_with_buffer_donor_config(before)
