"""Starting the processes of a world, their ranks, and their rendezvous on the host."""

import os
import pathlib
import re
import socket

import pytest

from torch_xla.distributed import xla_multiprocessing

WORLDS = pathlib.Path(__file__).parent / "worlds"
CASES = re.findall(r"^def (\w+)\(\):", (WORLDS / "spawning.py").read_text(), re.MULTILINE)


def test_spawn(program):
    result = program.run(str(WORLDS / "spawning.py"), *CASES, timeout=280)
    assert result.stdout.splitlines()[-1] == "[]", result.stderr


def test_processes_share_the_processors_that_the_launcher_may_use(monkeypatch):
    monkeypatch.delenv("TORCH_XLA_NUM_THREADS", raising=False)
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    launch = xla_multiprocessing._Launch(1, None)
    try:
        assert launch.environment(0)["TORCH_XLA_NUM_THREADS"] == "1"
    finally:
        os.sched_setaffinity(0, allowed)
        launch.folder.close()


@pytest.mark.parametrize("count", [1, 2])
def test_launch_tells_each_process_its_place(program, count):
    program.run(str(WORLDS / "ranks.py"), str(count), CPU_NUM_DEVICES=str(count), timeout=120)


def test_launch_of_simulated_tpus(program):
    program.run(
        str(WORLDS / "ranks.py"),
        "4",
        PJRT_DEVICE="TPU",
        TORCH_XLA_SIMULATE_TPU="4",
        # What the first TPU virtual machines needed has no effect.
        XRT_TPU_CONFIG="localservice;0;localhost:51011",
        timeout=120,
    )


def test_torchrun_tells_each_process_its_place(program):
    program.run(
        "-m",
        "torch.distributed.run",
        "--nproc_per_node=2",
        "--standalone",
        str(WORLDS / "ranks.py"),
        "2",
        timeout=120,
    )


def test_processes_that_cannot_find_each_other(program):
    result = program.run_code(
        "import torch_xla; torch_xla.device().index; torch_xla.device_count()",
        check=False,
        timeout=60,
        WORLD_SIZE="2",
        RANK="0",
    )
    assert result.returncode != 0
    assert "MASTER_ADDR is not set" in result.stderr


STARTED_BY_HAND = """
import os, time, torch, torch.distributed as dist, torch_xla, torch_xla.distributed.xla_backend
from torch_xla._internal import world
from torch_xla.core import xla_model as xm

dist.init_process_group("xla", init_method="env://")
value = torch.ones(3, device="xla")
dist.all_reduce(value)
assert value.tolist() == [2, 2, 2]
# More than the store takes at once; it is given back.
rank, size = xm.get_ordinal(), 20 << 20
assert xm.rendezvous("large", bytes([rank]) * size) == [bytes([each]) * size for each in range(2)]
piece = f"exchange/0,1/1/{rank}/4"
assert world.store().check([piece])
xm.rendezvous("then")
xm.rendezvous("end")
assert not world.store().check([piece])
if xm.get_ordinal() == 1:
    # The process of rank 0, which keeps the store, has no more to do.
    time.sleep(1.5)
    world.store().set("late", "still there")
print("passed")
"""


def test_processes_started_by_hand(program):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    where = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    processes = []
    for rank in range(2):  # each with an order of sets of its own, as on two machines
        own = {"RANK": str(rank), "PYTHONHASHSEED": str(rank)}
        processes.append(
            program.start("-c", STARTED_BY_HAND, pipes=("stdout", "stderr"), **where, **own)
        )
    try:
        results = [process.communicate(timeout=60) for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [output for output, _ in results] == ["passed\n", "passed\n"], results
