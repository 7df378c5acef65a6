"""Checkpoints by the number of the step: when one is due, how many are kept, and what is written meanwhile."""

import collections
import json
import posixpath
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import fsspec  # type: ignore[import-untyped]
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint

from torch_xla import runtime as xr
from torch_xla.experimental.distributed_checkpoint import _helpers, _preemption
from torch_xla.experimental.distributed_checkpoint.planners import SPMDLoadPlanner, SPMDSavePlanner

# Of a checkpoint that is whole.
_METADATA = ".manager_metadata"


class CheckpointManager:
    """Saves and restores checkpoints of a training, each in the folder `path`/STEP.

    All processes of the training make one, and call it alike. A checkpoint appears when it is whole, and the oldest are
    deleted after that.

    Args:
      path: a folder, or its address for `fsspec`, such as "gs://bucket/folder".
      save_interval: steps that it divides are saved.
      max_to_keep: so many checkpoints at most stay; 0: all.
      max_pending_async: so many may be waiting to be written; the next `save_async` waits for the first of them.
      num_of_threads: that write, in each process.
      process_group: over which the processes agree on what each writes; by default a group of gloo's of its own. Without
        `torch.distributed` the process must be alone.
      chkpt_on_preemption: SIGTERM, which tells of the machine's end, does not end the process; the next step is saved, and
        `reached_preemption` says so. The manager is made in the main thread then.

    Raises:
      AssertionError: for numbers that are out of range, and in a world of several processes without a process group.
      RuntimeError: when SIGTERM cannot be waited for.
    """

    def __init__(
        self,
        path: str,
        save_interval: int,
        max_to_keep: int | None = 0,
        max_pending_async: int | None = 1,
        num_of_threads: int | None = 1,
        process_group: dist.ProcessGroup | None = None,
        chkpt_on_preemption: bool = True,
    ) -> None:
        self._kept, self._most_pending = max_to_keep or 0, max_pending_async or 1
        self._threads = num_of_threads or 1
        for name, value, least in (
            ("save_interval", save_interval, 1),
            ("max_to_keep", self._kept, 0),
            ("max_pending_async", self._most_pending, 1),
            ("num_of_threads", self._threads, 1),
        ):
            if value < least:
                raise AssertionError(f"CheckpointManager: {name}={value}, but at least {least}.")
        if not dist.is_initialized() and xr.world_size() > 1:
            raise AssertionError(
                "CheckpointManager: the processes need a process group (torch.distributed.init_process_group)."
            )
        self._files, self._path = fsspec.core.url_to_fs(str(path))
        self._interval = save_interval
        self._group = process_group
        if process_group is None and dist.is_initialized():
            self._group = dist.new_group(backend="gloo")
        self._saves_at_the_end = chkpt_on_preemption
        if chkpt_on_preemption:
            _preemption.activate()
        # One at a time, in the order of the calls.
        self._writer = ThreadPoolExecutor(max_workers=1)
        self._pending: collections.deque[Future[None]] = collections.deque()

    def should_save(self, step: int) -> bool:
        """Whether this step is to be saved: by its number, or because the process is to end."""
        return step % self._interval == 0 or (
            self._saves_at_the_end and self.reached_preemption(step)
        )

    def save(self, step: int, state_dict: dict[str, Any], force: bool = False) -> bool:
        """Saves a step if it is due, or with `force`; True if it did.

        What is waiting to be written is written first. Raises what went wrong there, too.
        """
        if not self.should_save(step) and not force:
            return False
        self.join()
        self._save(step, state_dict)
        return True

    def save_async(self, step: int, state_dict: dict[str, Any], force: bool = False) -> bool:
        """Copies the state to the CPU and has a thread write it, if the step is due, or with `force`; True if it is.

        An error of the thread is raised by the next call.
        """
        if not self.should_save(step) and not force:
            return False
        while len(self._pending) >= self._most_pending or (
            self._pending and self._pending[0].done()
        ):
            self._pending.popleft().result()
        copies = _helpers._sharded_cpu_state_dict(state_dict)
        self._pending.append(self._writer.submit(self._save, step, copies))
        return True

    def join(self) -> None:
        """Waits until everything is written. Raises the first error of it."""
        while self._pending:
            self._pending.popleft().result()

    def restore(self, step: int, state_dict: dict[str, Any]) -> None:
        """Reads a checkpoint into the tensors of a state dictionary, and the dictionary; `all_steps` says which there are.

        Raises ValueError for a step that is not there.
        """
        self.join()
        if step not in self.all_steps():
            raise ValueError(
                f"There is no checkpoint of step {step} in {self._path}, only of {self.all_steps()}."
            )
        address = self._address(str(step))
        reader = (
            checkpoint.FileSystemReader(address)
            if self._is_local()
            else _fsspec_filesystem().FsspecReader(address)
        )
        checkpoint.load(
            state_dict,
            storage_reader=reader,
            planner=SPMDLoadPlanner(),
            process_group=self._group,
            no_dist=self._group is None,
        )

    def all_steps(self) -> list[int]:
        """The steps of which there are checkpoints, the oldest checkpoint first."""
        return [step for _, step in sorted(self._times())]

    def reached_preemption(self, step: int) -> bool:
        """Whether the processes are to end after this step, which `save` saves; all of them say so at the same step.

        Raises RuntimeError with `chkpt_on_preemption=False`.
        """
        if not self._saves_at_the_end:
            raise RuntimeError("reached_preemption: the manager has chkpt_on_preemption=False.")
        return _preemption.reached(step)

    def _save(self, step: int, state_dict: dict[str, Any]) -> None:
        # A checkpoint of this step may be there, and stays until the new one is whole.
        unfinished = f".{step}.unfinished"
        if self._is_first():
            self._remove(unfinished)
        self._wait_for_others()
        address = self._address(unfinished)
        writer = (
            checkpoint.FileSystemWriter(address, thread_count=self._threads)
            if self._is_local()
            else _fsspec_filesystem().FsspecWriter(address, thread_count=self._threads)
        )
        checkpoint.save(
            state_dict,
            storage_writer=writer,
            planner=SPMDSavePlanner(),
            process_group=self._group,
            no_dist=self._group is None,
        )
        if self._is_first():
            self._finish(step, unfinished)
        self._wait_for_others()

    def _finish(self, step: int, unfinished: str) -> None:
        with self._files.open(self._place(unfinished, _METADATA), "w") as file:
            json.dump({"step": step, "ts": time.time()}, file)
        self._remove(str(step))
        self._files.mv(self._place(unfinished), self._place(str(step)), recursive=True)
        steps = self.all_steps()
        for old in steps[: max(len(steps) - self._kept, 0)] if self._kept else ():
            self._remove(str(old))

    def _times(self) -> list[tuple[float, int]]:
        """When each checkpoint was made, and of which step it is."""
        if not self._files.exists(self._path):
            return []
        found = []
        for folder in self._files.ls(self._path, detail=False, refresh=True):
            name = posixpath.basename(folder.rstrip("/"))
            metadata = self._place(name, _METADATA)
            if name.isdecimal() and self._files.exists(metadata):
                with self._files.open(metadata) as file:
                    found.append((float(json.load(file)["ts"]), int(name)))
        return found

    def _is_first(self) -> bool:
        return self._group is None or dist.get_rank(self._group) == 0

    def _wait_for_others(self) -> None:
        if self._group is not None:
            dist.barrier(self._group)

    def _remove(self, name: str) -> None:
        if self._files.exists(self._place(name)):
            self._files.rm(self._place(name), recursive=True)

    def _place(self, *names: str) -> str:
        return posixpath.join(self._path, *names)

    def _is_local(self) -> bool:
        return "file" in self._files.protocol

    def _address(self, name: str) -> str:
        place = self._place(name)
        return place if self._is_local() else self._files.unstrip_protocol(place)


def _fsspec_filesystem() -> Any:
    from torch.distributed.checkpoint import _fsspec_filesystem

    return _fsspec_filesystem
