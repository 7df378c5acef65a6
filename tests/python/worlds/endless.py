"""A launch whose processes work for ever; each says when it has begun."""

import os
import pathlib
import sys
import threading
import time

import torch

if sys.argv[1] == "torchrun, importing":
    # Until the agent has ended.
    pathlib.Path(sys.argv[2], f"{os.getpid()}.begun").touch()
    agent = os.getppid()
    while os.getppid() == agent:
        time.sleep(0.05)

if sys.argv[1] == "spawn, importing" and __name__ == "__mp_main__":
    pathlib.Path(sys.argv[2], f"{os.getpid()}.begun").touch()
    time.sleep(600)

import torch_xla
from torch_xla.core import xla_model as xm
from torch_xla.distributed import xla_multiprocessing as xmp


def work(index, folder):
    value = torch.ones(1000, device="xla")
    xm.all_reduce(xm.REDUCE_SUM, [value])
    torch_xla.sync(wait=True)
    pathlib.Path(folder, f"{os.getpid()}.begun").touch()
    while index == 0:
        value = value * 1.0
        torch_xla.sync()
    # It waits for rank 0, which never comes.
    xm.rendezvous("end")


def work_in_place(index):
    work(index, sys.argv[2])


def start(method):
    """As programs do that start the processes from a thread, which ends."""
    thread = threading.Thread(
        target=lambda: started.append(
            xmp.spawn(work, (sys.argv[2],), nprocs=2, join=False, start_method=method)
        )
    )
    started = []
    thread.start()
    thread.join()
    started[0].join()


if __name__ == "__main__":
    if sys.argv[1].startswith("torchrun"):
        torch_xla.launch(work_in_place)
    elif sys.argv[1].startswith("join=False"):
        start(sys.argv[1].removeprefix("join=False, "))
    else:
        method = sys.argv[1].removesuffix(", importing")
        torch_xla.launch(work, (sys.argv[2],), start_method=method)
