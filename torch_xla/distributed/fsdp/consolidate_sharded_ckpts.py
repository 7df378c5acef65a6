"""One checkpoint of the whole model from those of the processes.

A program:

    python -m torch_xla.distributed.fsdp.consolidate_sharded_ckpts --ckpt_prefix run/final --ckpt_suffix "_rank-*.pth"
"""

import argparse

from torch_xla.distributed.fsdp.state_dict_utils import consolidate_sharded_model_checkpoints


def main(args: list[str] | None = None) -> None:
    """The program."""
    parser = argparse.ArgumentParser(description="Makes one checkpoint of those of the processes.")
    parser.add_argument("--ckpt_prefix", required=True, help="the begin of the files' paths")
    parser.add_argument(
        "--ckpt_suffix", default="_rank-*-of-*.pth", help="the rest of them, a pattern"
    )
    parser.add_argument(
        "--save_path", default="", help="by default the prefix and _consolidated.pth"
    )
    parser.add_argument(
        "--load_objects",
        action="store_true",
        help="also load objects of any class from the files; whoever has written them can run code then",
    )
    given = parser.parse_args(args)
    consolidate_sharded_model_checkpoints(
        given.ckpt_prefix,
        given.ckpt_suffix,
        given.save_path,
        weights_only=not given.load_objects,
    )


if __name__ == "__main__":
    main()
