"""A rank of two that add until they are told to end: link.py FOLDER.

FOLDER/RANK.ready says that this rank has begun; with FOLDER/end all end after the same step. What it is told otherwise
goes to FOLDER/RANK.json: the error and when it came.
"""

import json
import os
import pathlib
import sys
import time

import torch

import torch_xla
from torch_xla import runtime as xr
from torch_xla.core import xla_model as xm


def train(folder: pathlib.Path, rank: int) -> None:
    ends = 0.0
    while ends == 0.0:
        value = torch.ones(500_000, device="xla")
        flag = torch.tensor([float((folder / "end").exists())], device="xla")
        xm.all_reduce(xm.REDUCE_SUM, [value, flag])
        torch_xla.sync()
        ends = flag.item()
        assert value[-1].item() == xr.world_size()
        (folder / f"{rank}.ready").touch()


def main() -> None:
    folder, rank = pathlib.Path(sys.argv[1]), xr.global_ordinal()
    try:
        train(folder, rank)
    except RuntimeError as error:
        report = {"error": str(error), "time": time.time()}
        (folder / f"{rank}.json").write_text(json.dumps(report))
        # The store of the world cannot be reached either.
        sys.stderr.flush()
        os._exit(0)


if __name__ == "__main__":
    main()
