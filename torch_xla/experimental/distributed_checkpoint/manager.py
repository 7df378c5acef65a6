"""Keeps the checkpoints of a training."""

import collections
import contextlib
import json
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import fsspec
import torch.distributed as dist
import torch.distributed.checkpoint as dist_cp
from torch.distributed.checkpoint._fsspec_filesystem import FsspecReader, FsspecWriter

from torch_xla.experimental.distributed_checkpoint import _preemption
from torch_xla.experimental.distributed_checkpoint._helpers import _sharded_cpu_state_dict
from torch_xla.experimental.distributed_checkpoint.planners import SPMDLoadPlanner, SPMDSavePlanner

# Beside a checkpoint's files, once all of them are there.
_METADATA = ".manager_metadata"


class CheckpointManager:
    """Saves every so many steps, keeps the newest checkpoints, and loads one of them.

    The checkpoint of step n lies in the folder `path/n`; one that is not whole counts for nothing. All processes make the
    manager, and call its methods, at the same steps.

    Args:
      path: a folder that all processes reach, or an address that fsspec knows.
      save_interval: steps that it divides are saved.
      max_to_keep: how many checkpoints stay; the oldest are deleted. With 0 all stay.
      max_pending_async: how many calls of `save_async` may be under way; the next one waits.
      num_of_threads: how many threads of a process write.
      process_group: the processes that save; all of them by default. The manager makes a group of its own of them, over
        gloo, as it saves while the program goes on.
      chkpt_on_preemption: SIGTERM no longer ends the process: the first step after it, for all processes the same, is saved,
        and `reached_preemption` says that it is time to end. The processes meet at each step for that.

    Raises AssertionError if torch.distributed is not initialized, or the interval is not above zero.
    """

    def __init__(
        self,
        path: str | os.PathLike,
        save_interval: int,
        max_to_keep: int = 0,
        max_pending_async: int = 1,
        num_of_threads: int = 1,
        process_group: dist.ProcessGroup | None = None,
        chkpt_on_preemption: bool = True,
    ) -> None:
        assert dist.is_initialized(), (
            "A process group is required: call torch.distributed.init_process_group first."
        )
        assert save_interval > 0, f"save_interval={save_interval} must be positive"
        assert max_to_keep >= 0, f"max_to_keep={max_to_keep} must not be negative"
        assert max_pending_async > 0, f"max_pending_async={max_pending_async} must be positive"
        self.base_path = os.fspath(path)
        self.save_interval = save_interval
        self.max_to_keep = max_to_keep
        self.num_of_threads = num_of_threads
        self.chkpt_on_preemption = chkpt_on_preemption
        ranks = dist.get_process_group_ranks(process_group or dist.group.WORLD)
        self._group = _new_group(ranks)
        # Of the calling threads, while another one saves.
        self._meeting = _new_group(ranks) if chkpt_on_preemption else None
        self._is_first = dist.get_rank() == ranks[0]
        self._files, self._folder = fsspec.core.url_to_fs(self.base_path)
        self._lock = threading.Lock()
        self._steps: dict[int, float] = self._agreed(self._stored_steps)
        # One: what it saves is told in one order in all processes.
        self._saver = ThreadPoolExecutor(1, thread_name_prefix="checkpoint")
        self._rooms = threading.BoundedSemaphore(max_pending_async)
        self._pending: collections.deque[Future[None]] = collections.deque()
        if chkpt_on_preemption:
            _preemption.watch()

    def all_steps(self) -> list[int]:
        """The steps of the checkpoints that are there, the oldest first."""
        with self._lock:
            return sorted(self._steps, key=self._steps.__getitem__)

    def should_save(self, step: int) -> bool:
        """Whether `save` would save this step."""
        return step % self.save_interval == 0 or self.reached_preemption(step)

    def reached_preemption(self, step: int) -> bool:
        """Whether one of the processes has been told to end. All of them ask at each step, and have one answer."""
        return self._meeting is not None and _preemption.is_told(self._meeting)

    def save(self, step: int, state_dict: dict[str, Any], force: bool = False) -> bool:
        """Saves the state if it is to be saved at this step, or by `force`; returns whether."""
        if not (force or self.should_save(step)):
            return False
        self.join()
        self._save(step, state_dict)
        return True

    def save_async(self, step: int, state_dict: dict[str, Any], force: bool = False) -> bool:
        """The same, by a thread: the state is copied to the CPU, and may change when the call returns.

        Raises what an earlier one has failed of.
        """
        if not (force or self.should_save(step)):
            return False
        self._raise_failures()
        copied = _sharded_cpu_state_dict(state_dict)
        self._rooms.acquire()
        saved = self._saver.submit(self._save, step, copied)
        saved.add_done_callback(lambda _: self._rooms.release())
        self._pending.append(saved)
        return True

    def join(self) -> None:
        """Waits for all that `save_async` has begun. Raises what one has failed of."""
        while self._pending:
            self._pending.popleft().result()

    def restore(self, step: int, state_dict: dict[str, Any]) -> None:
        """Loads the checkpoint of a step into the state's tensors. Raises ValueError if it is not there."""
        self.join()
        if step not in self.all_steps():
            raise ValueError(
                f"There is no checkpoint of step {step} in {self.base_path}: there are those of {self.all_steps()}."
            )
        dist_cp.load(
            state_dict,
            storage_reader=FsspecReader(self._path(step)),
            planner=SPMDLoadPlanner(),
            process_group=self._group,
        )

    def _path(self, step: int) -> str:
        return f"{self.base_path.rstrip('/')}/{step}"

    def _place(self, step: int, name: str = "") -> str:
        """The same as the file system knows it."""
        return f"{self._folder.rstrip('/')}/{step}" + (f"/{name}" if name else "")

    def _agreed(self, ask: Callable[[], Any]) -> Any:
        """What the first process answers, in all of them. What it raises is raised in all."""
        answer: list[Any] = [None, None]
        if self._is_first:
            try:
                answer[0] = ask()
            except Exception as error:
                answer[1] = error
        first = dist.get_process_group_ranks(self._group)[0]
        dist.broadcast_object_list(answer, src=first, group=self._group)
        if answer[1] is not None:
            raise answer[1]
        return answer[0]

    def _stored_steps(self) -> dict[int, float]:
        steps: dict[int, float] = {}
        if not self._files.isdir(self._folder):
            return steps
        for entry in self._files.ls(
            self._folder, detail=False
        ):  # glob would take a path's "[" for a pattern
            with contextlib.suppress(ValueError, KeyError, FileNotFoundError, NotADirectoryError):
                metadata = json.loads(self._files.cat_file(f"{entry.rstrip('/')}/{_METADATA}"))
                steps[int(metadata["step"])] = float(metadata["ts"])
        return steps

    def _raise_failures(self) -> None:
        while self._pending and self._pending[0].done():
            self._pending.popleft().result()

    def _save(self, step: int, state_dict: dict[str, Any]) -> None:
        self._forget(step)
        dist_cp.save(
            state_dict,
            storage_writer=FsspecWriter(self._path(step), thread_count=self.num_of_threads),
            planner=SPMDSavePlanner(),
            process_group=self._group,
        )
        time_stamp = self._agreed(lambda: self._finish(step))
        with self._lock:
            self._steps[step] = time_stamp
        while self.max_to_keep and len(self.all_steps()) > self.max_to_keep:
            self._forget(self.all_steps()[0])

    def _finish(self, step: int) -> float:
        """Says that the checkpoint is whole, and when it became so."""
        time_stamp = time.time()
        text = json.dumps({"step": step, "ts": time_stamp})
        self._files.pipe_file(self._place(step, _METADATA), text.encode())
        return time_stamp

    def _forget(self, step: int) -> None:
        """Deletes a checkpoint, or what is there of one."""
        with self._lock:
            self._steps.pop(step, None)
        self._agreed(lambda: self._delete(step))

    def _delete(self, step: int) -> None:
        if not self._files.exists(self._place(step)):
            return
        with contextlib.suppress(FileNotFoundError):  # first of all it is no longer whole
            self._files.rm_file(self._place(step, _METADATA))
        self._files.rm(self._place(step), recursive=True)


def _new_group(ranks: list[int]) -> dist.ProcessGroup:
    return dist.new_group(ranks, backend="gloo", use_local_synchronization=True)
