"""The order of buckets on which the processes of a `DistributedDataParallel` agree, in a step that is compiled as one graph.

In its second step the module's reducer sends round the order in which gradients became ready in the first, and reads it.
That is no value that the step computes from its own, and it happens once: it may run in a function that is compiled with
`full_graph=True`, too.
"""

import functools
from typing import Any

from torch._C._distributed_c10d import Reducer

from torch_xla import _XLAC


def agree_in_full_graphs() -> None:
    """From now on reducers may read the order of their buckets wherever they are called."""
    rebuild = Reducer._rebuild_buckets

    @functools.wraps(rebuild)
    def rebuild_buckets(reducer: Reducer) -> Any:
        allowed = _XLAC._get_allow_execution()
        _XLAC._set_allow_execution(True)
        try:
            return rebuild(reducer)
        finally:
            _XLAC._set_allow_execution(allowed)

    Reducer._rebuild_buckets = rebuild_buckets
