"""Whole checkpoints from those of the processes."""

import glob
from collections import OrderedDict
from typing import Any

import torch

from torch_xla.core import xla_model as xm


def consolidate_sharded_state_dicts(state_dicts_with_metadata: list[dict[str, Any]]) -> OrderedDict:
    """The state dictionary of the model without wrappers.

    Args:
      state_dicts_with_metadata: of each process `{"model": model.state_dict(), "shard_metadata":
        model.get_shard_metadata()}`, in any order.
    """
    by_rank = sorted(state_dicts_with_metadata, key=lambda given: given["shard_metadata"]["rank"])
    ranks = [given["shard_metadata"]["rank"] for given in by_rank]
    metadata = by_rank[0]["shard_metadata"]
    if ranks != list(range(metadata["world_size"])):
        raise ValueError(
            f"Checkpoints of the ranks {ranks} are given; {metadata['world_size']} are needed, of each rank one."
        )
    whole: OrderedDict[str, torch.Tensor] = OrderedDict()
    for key, value in by_rank[0]["model"].items():
        if key not in metadata["shard_info"]:
            whole[metadata["names"].get(key, key)] = value
            continue
        shard = metadata["shard_info"][key]
        shape = torch.Size(shard["shape"])
        flat = torch.cat([given["model"][key].cpu() for given in by_rank])
        for name in shard["names"]:
            whole[name] = flat[: shape.numel()].view(shape).clone()
    return whole


def consolidate_sharded_model_checkpoints(
    ckpt_prefix: str,
    ckpt_suffix: str = "*.pth",
    save_path: str = "",
    save_model: bool = True,
    weights_only: bool = True,
) -> tuple[OrderedDict, list[dict[str, Any]]]:
    """The state dictionary of the model, from the processes' files.

    Args:
      ckpt_prefix, ckpt_suffix: the files, a pattern of `glob` together.
      save_path: where the result is saved, as `{"model": …}`; `ckpt_prefix` + "_consolidated.pth" by default.
      save_model: whether it is.
      weights_only: as in `torch.load`; False also loads objects of any class, which can run code.

    Returns:
      the state dictionary, and what the files hold.

    Raises:
      pickle.UnpicklingError: with `weights_only`, a file holds an object of another class.
    """
    paths = sorted(
        path
        for path in glob.glob(ckpt_prefix + ckpt_suffix)
        if not path.endswith("_consolidated.pth")
    )
    if not paths:
        raise FileNotFoundError(f"There is no file {ckpt_prefix + ckpt_suffix}.")
    checkpoints = [
        torch.load(path, map_location="cpu", weights_only=weights_only) for path in paths
    ]
    whole = consolidate_sharded_state_dicts(checkpoints)
    if save_model:
        xm.save(
            {"model": whole},
            save_path or ckpt_prefix + "_consolidated.pth",
            master_only=False,
            sync=False,
        )
    return whole, checkpoints
