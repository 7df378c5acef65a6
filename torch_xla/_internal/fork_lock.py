"""Locks that forked children find free: the thread that held one does not come along."""

import os
import threading


def free_in_children() -> threading.Lock:
    """A lock of what lives as long as the process, and may be found half changed."""
    lock = threading.Lock()
    os.register_at_fork(after_in_child=lock._at_fork_reinit)  # type: ignore[attr-defined]
    return lock
