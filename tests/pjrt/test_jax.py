"""JAX as a foreign client of the plugin, against its own CPU backend.

TORCH_XLA_TEST_PLUGIN names the plugin's library; otherwise the package's own is taken. JAX runs in a process
of its own, since it reads its environment when it is imported, and so that a crash is one failed test.
"""

import ast
import json
import os
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("jax")

HERE = pathlib.Path(__file__).parent


BUILT = HERE.parents[1] / "torch_xla/lib/libpjrt_cpu.so"
PLUGIN = os.environ.get("TORCH_XLA_TEST_PLUGIN") or str(BUILT)


def names():
    """The programs' names, asked of a process that imports JAX."""
    script = "import jax_callbacks, jax_programs as p; print([*p.PROGRAMS, *p.CHECKS])"
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    result = subprocess.run(
        [sys.executable, "-c", script], cwd=HERE, env=environment, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    return ast.literal_eval(result.stdout)


class Worker:
    def __init__(self, folder):
        options = folder / "plugin.json"
        options.write_text(
            json.dumps({"library_path": PLUGIN, "create_options": {"cpu_device_count": 2}})
        )
        self.environment = {
            **os.environ,
            "PJRT_NAMES_AND_LIBRARY_PATHS": f"torch_xla_cpu:{options}",
            "JAX_PLATFORMS": "torch_xla_cpu,cpu",
            "PLUGIN": PLUGIN,
        }
        self.log = folder / "worker.log"
        self.process = None

    def run(self, name):
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen(
                [sys.executable, "-X", "faulthandler", "jax_worker.py"],
                cwd=HERE,
                env=self.environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.log.open("w"),
                text=True,
            )
        self.process.stdin.write(name + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            return (
                f"the process died with {self.process.returncode}:\n" + self.log.read_text()[-3000:]
            )
        return json.loads(line)["error"]


@pytest.fixture(scope="module")
def worker(tmp_path_factory):
    worker = Worker(tmp_path_factory.mktemp("jax"))
    yield worker
    if worker.process is not None:
        worker.process.stdin.close()
        assert worker.process.wait(timeout=60) == 0, worker.log.read_text()[-3000:]


@pytest.mark.parametrize("name", names() if PLUGIN else [])
def test_program(worker, name):
    error = worker.run(name)
    assert error is None, error
