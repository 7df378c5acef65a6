"""Runs a module that prints figures as JSON in a process of its own, with nothing compiled before."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

# What would bring programs that earlier processes have compiled.
_CACHES = ("XLA_PERSISTENT_CACHE_PATH", "JAX_COMPILATION_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
_MOST_SECONDS = 900


def figures_of(
    module: str,
    arguments: Sequence[str],
    tree: pathlib.Path | None = None,
    most_seconds: float = _MOST_SECONDS,
) -> dict[str, Any] | None:
    """What the last line says; None, and what it printed on stderr, when it fails.

    The module and the package are those of `tree`, a built checkout; without it, those of the working directory. It fails,
    too, if it takes more than `most_seconds`.
    """
    name = f"{module} {' '.join(arguments)}" + (f" in {tree}" if tree else "")
    environment = {key: value for key, value in os.environ.items() if key not in _CACHES}
    if tree:
        environment["PYTHONPATH"] = str(tree)
    with tempfile.TemporaryDirectory() as cold_cache:
        environment["TORCHINDUCTOR_CACHE_DIR"] = cold_cache
        try:
            result = subprocess.run(
                [sys.executable, "-m", module, *arguments],
                capture_output=True,
                text=True,
                timeout=most_seconds,
                env=environment,
                cwd=tree,
            )
        except subprocess.TimeoutExpired:
            print(f"{name}: no result after {most_seconds:.0f} s", file=sys.stderr)
            return None
    if result.returncode != 0:
        print(f"{name} failed:\n{result.stderr[-2000:]}", file=sys.stderr)
        return None
    return json.loads(result.stdout.splitlines()[-1])
