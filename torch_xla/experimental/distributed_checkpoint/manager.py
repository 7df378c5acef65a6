"""Keeps the checkpoints of a training."""

import collections
import contextlib
import json
import math
import operator
import os
import pickle
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import fsspec
import torch.distributed as dist
import torch.distributed.checkpoint as dist_cp
from fsspec.implementations.local import LocalFileSystem
from torch.distributed.checkpoint._fsspec_filesystem import FsspecReader, FsspecWriter

from torch_xla.experimental.distributed_checkpoint import _preemption
from torch_xla.experimental.distributed_checkpoint._helpers import _sharded_cpu_state_dict
from torch_xla.experimental.distributed_checkpoint.planners import SPMDLoadPlanner, SPMDSavePlanner

# Beside a checkpoint's files, once all of them are there.
_METADATA = ".manager_metadata"


class CheckpointManager:
    """Saves every so many steps, keeps the newest checkpoints, and loads one of them.

    The checkpoint of step n lies in the folder `path/n`; one that is not whole counts for nothing. All processes make the
    manager, and call its methods, at the same steps, which are integers.

    A folder `path/n` that holds something else than a checkpoint is never deleted: saving step n raises FileExistsError then.
    A step that is there is saved anew into `path/.n.new`, which takes the old one's place once it is written.

    Args:
      path: a folder that all processes reach, or an address that fsspec knows. Whoever can write there can run code in the
        program that loads a checkpoint, as torch's `.metadata` is a pickle.
      save_interval: steps that it divides are saved.
      max_to_keep: how many checkpoints stay; the oldest are deleted. With 0 all stay.
      max_pending_async: how many calls of `save_async` may be under way; the next one waits for the oldest.
      num_of_threads: how many threads of a process write.
      process_group: the processes that save; all of them by default. The manager makes a group of its own of them, over
        gloo, as it saves while the program goes on.
      chkpt_on_preemption: SIGTERM no longer ends the process: the first step after it, for all processes the same, is saved,
        and `reached_preemption` says that it is time to end. The processes meet at each step for that.

    Raises AssertionError if torch.distributed is not initialized, or the interval is not above zero; ValueError for an address
    that fsspec takes for a pattern (a local folder may have any name).
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
        if isinstance(self._files, LocalFileSystem):
            self.base_path = self._folder  # absolute, as the program may change its folder
        elif any(character in self._folder for character in "*?["):
            # `rm` would delete the folders that match it.
            raise ValueError(
                f"{self.base_path} is a pattern to fsspec: choose a path without *, ? and [."
            )
        self._lock = threading.Lock()
        self._steps: dict[int, float] = self._agreed(self._stored_steps)
        # One: what it saves is told in one order in all processes.
        self._saver = ThreadPoolExecutor(1, thread_name_prefix="checkpoint")
        self._max_pending = max_pending_async
        self._pending: collections.deque[Future[None]] = collections.deque()
        self._asked: int | None = None
        self._answer = False
        if chkpt_on_preemption:
            _preemption.watch()

    def all_steps(self) -> list[int]:
        """The steps of the checkpoints that are there, the oldest first."""
        with self._lock:
            return sorted(self._steps, key=self._steps.__getitem__)

    def should_save(self, step: int) -> bool:
        """Whether `save` would save this step."""
        return _index(step) % self.save_interval == 0 or self.reached_preemption(step)

    def reached_preemption(self, step: int) -> bool:
        """Whether one of the processes has been told to end. All of them ask at each step, and have one answer.

        It stays the same for as long as they ask of the same step: of a step that was not saved, it is not true later.
        """
        step = _index(step)
        if self._meeting is not None and step != self._asked:
            self._answer = _preemption.is_told(self._meeting)
            self._asked = step
        return self._answer

    def save(self, step: int, state_dict: dict[str, Any], force: bool = False) -> bool:
        """Saves the state if it is to be saved at this step, or by `force`; returns whether.

        Raises what an earlier `save_async` has failed of, and then saves nothing. Raises ValueError if the processes name
        different steps, and FileExistsError if something else than a checkpoint is in the step's place.
        """
        step = _index(step)
        if not (force or self.should_save(step)):
            return False
        self.join()
        self._save(step, state_dict)
        return True

    def save_async(self, step: int, state_dict: dict[str, Any], force: bool = False) -> bool:
        """The same, by a thread: the state is copied to the CPU, and may change when the call returns.

        With `max_pending_async` of them under way it waits for the oldest, and raises what that one has failed of, saving
        nothing. Which failure is raised by which call is so a matter of the calls, not of time, and all processes agree on it.
        """
        step = _index(step)
        if not (force or self.should_save(step)):
            return False
        if len(self._pending) >= self._max_pending:
            self._pending.popleft().result()
        copied = _sharded_cpu_state_dict(state_dict)
        self._pending.append(self._saver.submit(self._save, step, copied))
        return True

    def join(self) -> None:
        """Waits for all that `save_async` has begun. Raises what one has failed of; the next call waits for those after it."""
        while self._pending:
            self._pending.popleft().result()

    def restore(self, step: int, state_dict: dict[str, Any]) -> None:
        """Loads the checkpoint of a step into the state's tensors. Raises ValueError if it is not there.

        Raises what an earlier `save_async` has failed of, and then loads nothing.
        """
        step = _index(step)
        self.join()
        if step not in self.all_steps():
            raise ValueError(
                f"There is no checkpoint of step {step} in {self.base_path}: there are those of {self.all_steps()}."
            )
        dist_cp.load(
            state_dict,
            storage_reader=FsspecReader(self._path(str(step))),
            planner=SPMDLoadPlanner(),
            process_group=self._group,
        )

    def _path(self, folder: str) -> str:
        return f"{self.base_path.rstrip('/')}/{folder}"

    def _place(self, folder: str, name: str = "") -> str:
        """The same as the file system knows it."""
        return f"{self._folder.rstrip('/')}/{folder}" + (f"/{name}" if name else "")

    def _agreed(self, ask: Callable[[], Any]) -> Any:
        """What the first process answers, in all of them. What it raises is raised in all."""
        answer: list[Any] = [None, None]
        failure = None
        if self._is_first:
            try:
                answer[0] = ask()
            except Exception as error:
                failure = error
                answer[1] = _sendable(error)
        first = dist.get_process_group_ranks(self._group)[0]
        dist.broadcast_object_list(answer, src=first, group=self._group)
        if answer[1] is not None:
            raise failure or answer[1]
        return answer[0]

    def _check_step(self, step: int) -> None:
        """Raises ValueError in all processes if they are to save different steps, whose files would be mixed."""
        steps: list[Any] = [None] * dist.get_world_size(self._group)
        dist.all_gather_object(steps, step, group=self._group)
        if len(set(steps)) > 1:
            raise ValueError(f"The processes are to save one step together, but name {steps}.")

    def _stored_steps(self) -> dict[int, float]:
        steps: dict[int, float] = {}
        if not self._files.isdir(self._folder):
            return steps
        # glob would take a path's "[" for a pattern
        for entry in self._files.ls(self._folder, detail=False):
            # Not ours, if it cannot be read or reads otherwise than we write it.
            with contextlib.suppress(
                OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError
            ):
                name = _name(entry)
                metadata = json.loads(self._files.cat_file(self._place(name, _METADATA)))
                step, time_stamp = metadata["step"], metadata["ts"]
                is_whole = type(step) is int and type(time_stamp) in (int, float)
                if is_whole and str(step) == name and math.isfinite(time_stamp):
                    steps[step] = float(time_stamp)
        return steps

    def _save(self, step: int, state_dict: dict[str, Any]) -> None:
        self._check_step(step)
        # The old checkpoint of the step stays until the new one is written.
        folder = f".{step}.new" if step in self.all_steps() else str(step)
        self._agreed(lambda: self._delete(folder))
        dist_cp.save(
            state_dict,
            storage_writer=FsspecWriter(self._path(folder), thread_count=self.num_of_threads),
            planner=SPMDSavePlanner(),
            process_group=self._group,
        )
        with self._lock:
            self._steps.pop(step, None)
        time_stamp = self._agreed(lambda: self._finish(step, folder))
        with self._lock:
            self._steps[step] = time_stamp
        while self.max_to_keep and len(self.all_steps()) > self.max_to_keep:
            self._forget(self.all_steps()[0])

    def _finish(self, step: int, folder: str) -> float:
        """Puts the checkpoint in its place; says that it is whole, and when it became so."""
        if folder != str(step):
            self._delete(str(step))
            self._files.mv(self._place(folder), self._place(str(step)), recursive=True)
        with self._lock:
            newest = max(self._steps.values(), default=0.0)
        # The newest even if the clock has been put back: the oldest are deleted.
        time_stamp = max(time.time(), math.nextafter(newest, math.inf))
        text = json.dumps({"step": step, "ts": time_stamp})
        self._files.pipe_file(self._place(str(step), _METADATA), text.encode())
        return time_stamp

    def _forget(self, step: int) -> None:
        """Deletes a checkpoint."""
        with self._lock:
            self._steps.pop(step, None)
        self._agreed(lambda: self._delete(str(step)))

    def _delete(self, folder: str) -> None:
        """Deletes a checkpoint, or what is there of one. Raises FileExistsError if something else is there."""
        place = self._place(folder)
        if not self._files.exists(place):
            return
        names = [_name(entry) for entry in self._files.ls(place, detail=False)]
        if names and not any(n in (_METADATA, ".metadata") or n.endswith(".distcp") for n in names):
            raise FileExistsError(
                f"{place} is not a checkpoint, and so is not deleted: save elsewhere, or move it away."
            )
        if _METADATA in names:  # first of all it is no longer whole
            self._files.rm_file(f"{place}/{_METADATA}")
        with contextlib.suppress(FileNotFoundError):  # where folders are names only, it may be gone
            self._files.rm(place, recursive=True)


def _index(step: Any) -> int:
    """A step as it is written. Raises TypeError for what is not an integer, as 1.0 would be another folder than 1."""
    return int(operator.index(step))


def _name(entry: str) -> str:
    return entry.rstrip("/").rsplit("/", 1)[-1]


def _sendable(error: Exception) -> Exception:
    """The same, or what it says if it cannot be pickled and read again."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(repr(error))
    return error


def _new_group(ranks: list[int]) -> dist.ProcessGroup:
    return dist.new_group(ranks, backend="gloo", use_local_synchronization=True)
