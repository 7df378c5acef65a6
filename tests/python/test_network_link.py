"""The network between two machines, which are network namespaces, goes away; worlds/link.py is what they run."""

import contextlib
import json
import os
import pathlib
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

# How long the network is away where that must do no harm.
SECONDS = float(os.environ.get("TORCH_XLA_TEST_LINK_SECONDS", "4"))
SCRIPT = pathlib.Path(__file__).parent / "worlds" / "link.py"


@contextlib.contextmanager
def ranks(network, program, folder: pathlib.Path, **variables: str) -> Iterator[list]:
    """The two processes, which have begun to train."""
    shared = {
        "WORLD_SIZE": "2",
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "1",
        "MASTER_ADDR": network.hosts[0].address,
        "MASTER_PORT": "29711",
        "TORCH_XLA_JOB_SECRET": secrets.token_hex(32),
        **variables,
    }
    processes = [
        subprocess.Popen(
            host.command(sys.executable, str(SCRIPT), str(folder)),
            env=program.environment(RANK=str(rank), GROUP_RANK=str(rank), **shared),
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank, host in enumerate(network.hosts)
    ]
    try:
        end = time.monotonic() + 100
        while len(list(folder.glob("*.ready"))) < 2:
            assert all(process.poll() is None for process in processes)
            assert time.monotonic() < end
            time.sleep(0.05)
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


@pytest.mark.parametrize("has_secret", [True, False])
def test_a_link_that_comes_back_does_no_harm(network, program, tmp_path, has_secret):
    variables = {"TORCH_XLA_HEARTBEAT_TIMEOUT": str(SECONDS + 11)}
    if not has_secret:
        variables["TORCH_XLA_JOB_SECRET"] = ""
    with ranks(network, program, tmp_path, **variables) as processes:
        with network.hosts[1].unplugged():
            time.sleep(SECONDS)
        time.sleep(1)
        (tmp_path / "end").touch()
        errors = [process.communicate(timeout=60)[1] for process in processes]
        assert [process.returncode for process in processes] == [0, 0], errors
        assert not list(tmp_path.glob("*.json")), errors
        # Said once, by one of them.
        warnings = "".join(errors).count("the job has no secret")
        assert warnings == (0 if has_secret else 1), errors


@pytest.mark.parametrize("encrypts", ["1", "0"])
def test_a_link_that_stays_away_is_named_on_both_sides(network, program, tmp_path, encrypts):
    timeout = 3.0
    variables = {"TORCH_XLA_HEARTBEAT_TIMEOUT": str(timeout), "TORCH_XLA_TLS": encrypts}
    with ranks(network, program, tmp_path, **variables) as processes:
        with network.hosts[1].unplugged():
            start = time.time()
            for process in processes:
                process.communicate(timeout=60)
        for rank in range(2):
            report = json.loads((tmp_path / f"{rank}.json").read_text())
            assert f"rank {1 - rank} has given no sign of life for 3" in report["error"]
            assert "TORCH_XLA_HEARTBEAT_TIMEOUT" in report["error"]
            assert report["time"] - start < timeout + 1
