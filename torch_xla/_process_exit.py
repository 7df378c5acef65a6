"""What has to end before the interpreter does."""

import pathlib
import time

from torch_xla import _XLAC

_MOST_SECONDS = 2.0
_INTERVAL_SECONDS = 0.002


def prepare() -> None:
    """Waits for the work on the devices, and for autograd's threads to have let go of a backward pass.

    A thread of autograd still frees the pass that it has computed when `backward()` has returned, and takes the
    interpreter's lock for it. The interpreter ends such a thread in the middle, which aborts the process.
    """
    _XLAC._prepare_to_exit()
    deadline = time.monotonic() + _MOST_SECONDS
    before = _autograd_threads()
    while before and time.monotonic() < deadline:
        time.sleep(_INTERVAL_SECONDS)
        now = _autograd_threads()
        if now == before and all(state == "S" for state, _ in now.values()):
            return
        before = now


def _autograd_threads() -> dict[str, tuple[str, str]]:
    """By their numbers: the state of each, and how often it has been given the processor."""
    threads: dict[str, tuple[str, str]] = {}
    tasks = pathlib.Path("/proc/self/task")
    for task in tasks.iterdir() if tasks.exists() else ():
        try:
            if not (task / "comm").read_text().startswith("pt_autograd"):
                continue
            status = (task / "status").read_text()
        except OSError:  # it has ended
            continue
        fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        switches = fields.get("voluntary_ctxt_switches", "") + fields.get(
            "nonvoluntary_ctxt_switches", ""
        )
        threads[task.name] = (fields.get("State", "S")[:1], switches)
    return threads
