"""Checkpoints of processes that are killed, and runs that go on from them."""

import os
import pathlib
import random
import re
import signal
import stat
import subprocess
import sys
import time

import pytest
import torch
from conftest import ROOT

import torch_xla.core.xla_model as xm
import torch_xla.utils.serialization as xser

SAVES_FOR_EVER = """
import sys, torch, torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.utils.serialization as xser
how, path = sys.argv[1:]

def save_for_ever():
    data = [torch.zeros(200_000, device="xla") for _ in range(6)]
    version = 0
    while True:
        version += 1
        data = [tensor + 1 for tensor in data]
        {"xm": xm, "xser": xser}[how].save({"version": version, "tensors": data}, path)
        print(version, flush=True)
"""
# Starts a process that saves, for each line that it reads, and says which. Each has loaded torch.
STARTS_SAVERS = (
    SAVES_FOR_EVER
    + """
import os
for _ in sys.stdin:
    saver = os.fork()
    if saver == 0:
        print(os.getpid(), flush=True)
        save_for_ever()
    os.waitpid(saver, 0)
    print("over", flush=True)
"""
)


def kill_a_saver(starter: subprocess.Popen[str], after: float) -> int:
    """Starts one and kills it, some seconds after its first save; the last save that had returned."""
    assert starter.stdin is not None and starter.stdout is not None
    print(file=starter.stdin, flush=True)
    saver = int(starter.stdout.readline())
    assert starter.stdout.readline() == "1\n"
    time.sleep(after)
    os.kill(saver, signal.SIGKILL)
    last = "1"
    while (line := starter.stdout.readline()) != "over\n":
        assert line, "the starter ended"
        last = line
    return int(last)


@pytest.mark.parametrize("how", ["xm", "xser"])
def test_kill_at_any_moment_leaves_a_whole_checkpoint(program, tmp_path, how):
    path = tmp_path / "checkpoint"
    generator = random.Random(how)
    with program.start("-c", STARTS_SAVERS, how, str(path), pipes=("stdin", "stdout")) as starter:
        try:
            for _ in range(5):
                last = kill_a_saver(starter, after=generator.uniform(0, 0.3))
                loaded = torch.load(path, weights_only=True) if how == "xm" else xser.load(path)
                # The last save that had returned is there, or the one after it.
                assert loaded["version"] in (last, last + 1)
                for tensor in loaded["tensors"]:
                    assert torch.equal(tensor, torch.full((200_000,), float(loaded["version"])))
        finally:
            starter.kill()


def test_what_killed_saves_leave_is_removed(tmp_path):
    path = tmp_path / "checkpoint"
    left = tmp_path / ".checkpoint.0123.partial"
    recent = tmp_path / ".checkpoint.4567.partial"
    other = tmp_path / ".other.0123.partial"
    for file in (left, recent, other):
        file.write_bytes(b"half")
    for file in (left, other):
        os.utime(file, (0, 0))
    folder = tmp_path / "checkpoint.tensors" / "0123"
    folder.mkdir(parents=True)
    xser.save({"a": torch.ones(2, device="xla")}, path)
    assert not left.exists() and not folder.exists()
    # Of other checkpoints, and perhaps in the making.
    assert recent.exists() and other.exists()


class Unpicklable:
    def __reduce__(self):
        raise TypeError("cannot be saved")


def test_failed_save_leaves_the_file_before_it(tmp_path):
    path = tmp_path / "checkpoint"
    xm.save({"a": torch.zeros(2, device="xla")}, path)
    with pytest.raises(TypeError, match="cannot be saved"):
        xm.save({"a": torch.ones(2, device="xla"), "b": Unpicklable()}, path)
    assert torch.load(path)["a"].tolist() == [0.0, 0.0]
    assert os.listdir(tmp_path) == ["checkpoint"]


def test_keeps_links_and_permissions(tmp_path):
    target = tmp_path / "target"
    target.write_bytes(b"old")
    target.chmod(0o640)
    (tmp_path / "link").symlink_to(target)
    xm.save({"a": 1}, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert torch.load(target) == {"a": 1}
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_new_file_has_a_new_files_permissions(tmp_path):
    old = os.umask(0o027)
    try:
        xm.save({"a": 1}, tmp_path / "checkpoint")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "checkpoint").stat().st_mode) == 0o640


def test_writes_to_what_is_no_regular_file(tmp_path):
    xm.save({"a": 1}, "/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    with open(tmp_path / "open", "wb") as file:
        xm.save({"a": 1}, file)
    assert torch.load(tmp_path / "open") == {"a": 1}


def test_a_failure_elsewhere_is_raised_here(tmp_path, monkeypatch):
    """What another process answers, as `rendezvous` hands it on."""
    monkeypatch.setattr(xm, "rendezvous", lambda tag, payload=b"": [payload, b"OSError: disk full"])
    for save in (xm.save, xser.save):
        with pytest.raises(
            RuntimeError, match=r"rank 1 could not save .*checkpoint: OSError: disk"
        ):
            save({"a": torch.ones(2, device="xla")}, tmp_path / "checkpoint")


def test_a_reader_meets_whole_checkpoints_while_they_are_replaced(program, tmp_path):
    path = tmp_path / "checkpoint"
    process = program.start("-c", SAVES_FOR_EVER + "save_for_ever()", "xser", str(path))
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "1\n"
        versions = []
        while len(versions) < 20 or len(set(versions)) < 3:
            assert process.poll() is None
            loaded = xser.load(path)
            versions.append(loaded["version"])
            assert {float(t[-1]) for t in loaded["tensors"]} == {float(loaded["version"])}
    finally:
        process.kill()
        process.wait()
    assert versions == sorted(versions)


def resumable(folder: pathlib.Path, *arguments: str, processes: int = 1) -> str:
    """Runs the example under torchrun; what it has printed."""
    result = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
            *(f"--nproc-per-node={processes}", "--max-restarts=3", "--monitor-interval=0.1"),
            *(str(ROOT / "examples" / "resume.py"), "--folder", str(folder), *arguments),
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=pytest.mark.exhaustive)])
def test_killed_and_restarted_run_ends_with_the_same_weights(program, tmp_path, processes):
    steps = ["--steps=30", "--save-every=7"]
    if processes == 1:
        script = str(ROOT / "examples" / "resume.py")
        program.run(script, "--folder", str(tmp_path / "whole"), *steps, OMP_NUM_THREADS="1")
    else:
        resumable(tmp_path / "whole", *steps, processes=processes)
    kills = sorted(random.Random().sample(range(1, 30), 2))
    output = resumable(
        tmp_path / "killed", *steps, "--kill-at", *map(str, kills), processes=processes
    )
    # A process may be ended with the one that dies before it has said so.
    assert set(re.findall(r"attempt (\d) starts", output)) == {"0", "1", "2"}, output
    whole, killed = (
        torch.load(tmp_path / name / "final.pt", weights_only=True) for name in ("whole", "killed")
    )
    assert whole.keys() == killed.keys()
    for name, tensor in whole.items():
        assert torch.equal(tensor, killed[name]), f"{name} differs; killed at {kills}"


@pytest.mark.slow
def test_sigkill_is_what_the_example_dies_of(program, tmp_path):
    """Without a restart the run fails by the signal, so that the test above has something to restart."""
    script = str(ROOT / "examples" / "resume.py")
    arguments = ("--folder", str(tmp_path), "--steps=5", "--kill-at", "2")
    result = program.run(script, *arguments, check=False, timeout=120)
    assert result.returncode == -signal.SIGKILL
