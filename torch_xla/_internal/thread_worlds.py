"""Process groups of torch.distributed by thread, for threads of one process that each have a device of their own.

torch keeps a process's groups in one object, and refuses a second default group. Two threads that make theirs at the same
moment slip through; one that comes later is refused.
"""

import contextlib
import itertools
import threading
from collections.abc import Iterator
from typing import Any

from torch._C._distributed_c10d import _unregister_all_process_groups, _unregister_process_group
from torch.distributed import distributed_c10d as c10d

from torch_xla._internal import fork_lock

# Of groups of threads: beyond those that a process gives to its own.
_FIRST_NUMBER = 1 << 30

_installing = fork_lock.Lock()


class _Names(dict[Any, str]):
    """Names by their groups. Each is also in torch's list of the whole process, until it is taken out of that by `unregister`."""

    def __init__(self, names: dict[Any, str] | None = None) -> None:
        super().__init__(names or {})
        self._registered = set(self.values())

    def __setitem__(self, group: Any, name: str) -> None:
        super().__setitem__(group, name)
        self._registered.add(name)

    def unregister(self) -> None:
        """torch forgets the groups first, and their registered names then."""
        while self._registered:
            _unregister_process_group(self._registered.pop())


class _Groups:
    """Of one thread: those of torch's names that hold them."""

    def __init__(self) -> None:
        self.default_pg: Any = None
        self.pg_map: dict[Any, Any] = {}
        self.pg_names = _Names()
        self.pg_group_ranks: dict[Any, Any] = {}
        self.pg_backend_config: dict[Any, Any] = {}
        self.tags_to_pg: dict[Any, Any] = {}
        self.pg_to_tag: dict[Any, Any] = {}
        self.pg_coalesce_state: dict[Any, Any] = {}
        self.comms: list[Any] = []


def _by_thread(name: str) -> property:
    """torch's attribute of that name: the thread's where it has groups of its own, else the process's."""

    def get(self: "_Worlds") -> Any:
        return getattr(self.of_this_thread(), name)

    def put(self: "_Worlds", value: Any) -> None:
        setattr(self.of_this_thread(), name, value)

    return property(get, put)


class _Worlds(c10d._World):
    """Stands for torch's object that holds the groups of the process."""

    def __init__(self, of_process: Any) -> None:
        self._of_process = of_process
        self._of_threads = threading.local()
        self._numbers = itertools.count(_FIRST_NUMBER)
        self._living: set[_Groups] = set()

    def _are_own(self) -> bool:
        return self.of_this_thread() is not self._of_process

    def of_this_thread(self) -> Any:
        return getattr(self._of_threads, "groups", self._of_process)

    @contextlib.contextmanager
    def own(self) -> Iterator[None]:
        """This thread has groups of its own, none yet."""
        before = getattr(self._of_threads, "groups", self._of_process)
        own = self._of_threads.groups = _Groups()
        self._living.add(own)
        try:
            yield
        finally:
            self._of_threads.groups = before
            own.pg_names.unregister()
            self._living.discard(own)

    def unregister_all(self) -> None:
        """What torch does at the end of `destroy_process_group()`: of this thread's groups, while others have theirs."""
        self.of_this_thread().pg_names.unregister()
        if not self._living:
            _unregister_all_process_groups()

    @property
    def group_count(self) -> int:
        """The number of the next group. A thread with groups of its own gets one that nobody has had: torch takes a number
        and adds to it, without a lock, and names are the whole process's."""
        return next(self._numbers) if self._are_own() else self._of_process.group_count

    @group_count.setter
    def group_count(self, value: int) -> None:
        if not self._are_own():
            self._of_process.group_count = value

    default_pg = _by_thread("default_pg")
    pg_map = _by_thread("pg_map")
    pg_names = _by_thread("pg_names")
    pg_group_ranks = _by_thread("pg_group_ranks")
    pg_backend_config = _by_thread("pg_backend_config")
    tags_to_pg = _by_thread("tags_to_pg")
    pg_to_tag = _by_thread("pg_to_tag")
    pg_coalesce_state = _by_thread("pg_coalesce_state")
    comms = _by_thread("comms")


def own_groups() -> contextlib.AbstractContextManager[None]:
    """Within it this thread has process groups of its own; those that it makes are gone afterwards, and others know none of them.

    Other threads go on with the groups of the process.
    """
    with _installing:
        if not isinstance(c10d._world, _Worlds):
            c10d._pg_names = _Names(c10d._pg_names)
            c10d._world = _Worlds(c10d._world)
            c10d._unregister_all_process_groups = c10d._world.unregister_all
        return c10d._world.own()
