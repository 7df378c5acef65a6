"""Ranks of which the last one goes wrong: failures.py MODE RANKS FOLDER.

The others write what they are told into FOLDER/RANK.json: the error and the seconds that it took. The ranks are forked
by this process, which ends all of them, and prints how each has ended.
"""

import json
import os
import pathlib
import signal
import socket
import sys
import threading
import time

import torch

import torch_xla
from torch_xla import runtime as xr
from torch_xla.core import xla_model as xm


def is_last() -> bool:
    return xr.global_ordinal() == xr.world_size() - 1


def begin() -> None:
    """All ranks are there."""
    first = torch.ones(3, device="xla")
    xm.all_reduce(xm.REDUCE_SUM, [first])  # line: begin
    assert first.tolist() == [xr.world_size()] * 3


def killed() -> None:
    if is_last():
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGKILL)).start()
    large = torch.zeros(4_000_000, device="xla")
    while True:
        xm.all_reduce(xm.REDUCE_SUM, [large])  # line: killed
        torch_xla.sync(wait=True)


def killed_outside() -> None:
    if is_last():
        os.kill(os.getpid(), signal.SIGKILL)
    small = torch.zeros(5, device="xla")
    xm.all_reduce(xm.REDUCE_SUM, [small])  # line: killed_outside
    small.tolist()


def other_shape() -> None:
    if is_last():
        xm.all_gather(torch.zeros(7, device="xla")).tolist()  # line: other_shape, last
    xm.all_gather(torch.zeros(5, device="xla")).tolist()  # line: other_shape


def other_graph() -> None:
    value = torch.zeros(8, 8, device="xla")
    if is_last():
        xm.all_gather(value + 1).tolist()  # line: other_graph, last
    (xm.all_reduce(xm.REDUCE_MAX, value @ value) + 1).tolist()  # line: other_graph


def hung() -> None:
    if is_last():
        time.sleep(60)
    torch_xla.sync()
    xm.all_reduce(xm.REDUCE_SUM, torch.zeros(5, device="xla")).tolist()  # line: hung


def stopped() -> None:
    if is_last():
        os.kill(os.getpid(), signal.SIGSTOP)
    xm.all_reduce(xm.REDUCE_SUM, torch.zeros(5, device="xla")).tolist()  # line: stopped


def endless() -> None:
    """For a test that kills all of them."""
    pathlib.Path(sys.argv[3], f"{xr.global_ordinal()}.ready").touch()
    killed_by_nobody = torch.zeros(1_000_000, device="xla")
    while True:
        xm.all_reduce(xm.REDUCE_SUM, [killed_by_nobody])
        torch_xla.sync(wait=True)


def run(mode: str, folder: pathlib.Path) -> None:
    begin()
    start = time.monotonic()
    try:
        globals()[mode]()
    except Exception as error:
        report = {"error": str(error), "seconds": time.monotonic() - start}
        (folder / f"{xr.global_ordinal()}.json").write_text(json.dumps(report))


def fork(rank: int, size: int, port: int, mode: str, folder: pathlib.Path) -> int:
    child = os.fork()
    if child:
        return child
    os.environ.update(
        {
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(size),
            "LOCAL_WORLD_SIZE": str(size),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
        }
    )
    signal.alarm(100)
    torch.set_num_threads(1)
    status = 0
    try:
        run(mode, folder)
    except BaseException:
        status = 1
        raise
    finally:
        sys.stderr.flush()
        os._exit(status)


def main() -> None:
    mode, size, folder = sys.argv[1], int(sys.argv[2]), pathlib.Path(sys.argv[3])
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    children = [fork(rank, size, port, mode, folder) for rank in range(size)]
    (folder / "children.json").write_text(json.dumps(children))
    statuses = [os.waitpid(child, 0)[1] for child in children[:-1]]
    os.kill(children[-1], signal.SIGKILL)
    statuses.append(os.waitpid(children[-1], 0)[1])
    print(json.dumps(statuses))


if __name__ == "__main__":
    main()
