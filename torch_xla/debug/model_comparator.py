"""Tensors of two runs of a program, saved under names and compared.

    import torch_xla.debug.model_comparator as mc

    mc.configure("/tmp/run1")             # or the environment's MODELCMP_SAVEDIR; without a folder nothing is saved
    x = mc.save("layer1", layer1(x))

and then `mc.compare("/tmp/run1", "/tmp/run2")`, or `python -m torch_xla.debug.model_comparator /tmp/run1 /tmp/run2`.
"""

import argparse
import collections
import os
import re
import sys
import traceback
from pathlib import Path

import torch

from torch_xla.core import xla_model as xm

_folder: str | None = None
_counts: collections.Counter[tuple[str, int | None]] = collections.Counter()


def configure(save_dir: str | None) -> None:
    """Where `save` saves from now on, numbering from 0; None: where MODELCMP_SAVEDIR says, or nowhere."""
    global _folder
    _folder = save_dir
    _counts.clear()


def _caller() -> str:
    """A name for a tensor without one: the line that saves it."""
    frame = next(f for f in reversed(traceback.extract_stack()) if f.filename != __file__)
    return f"{Path(frame.filename).name}.l{frame.lineno}"


def save(name: str | None, tensor: torch.Tensor, step: int | None = None) -> torch.Tensor:
    """Saves a tensor on the first process, as `NAME.N` for the N-th of that name in the step, and returns it.

    Args:
      name: None for one made of the caller's file and line.
      tensor: on any device.
      step: saves into a folder of its own, `step-STEP`.
    """
    folder = _folder or os.environ.get("MODELCMP_SAVEDIR")
    if folder is None:
        return tensor
    value = tensor.cpu()  # on every process, so that all run the same
    if xm.is_master_ordinal():
        name = name or _caller()
        place = Path(folder) if step is None else Path(folder) / f"step-{step}"
        place.mkdir(parents=True, exist_ok=True)
        torch.save(value, place / f"{name}.{_counts[name, step]}")
        _counts[name, step] += 1
    return tensor


def compare_tensors(
    tensor1: torch.Tensor,
    tensor2: torch.Tensor,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    max_diffs: int = 25,
) -> str:
    """The greatest differences beyond `atol` and `rtol` times the greater value, one a line; empty if there are none."""
    if tensor1.shape != tensor2.shape:
        return f"Tensors have different shape: {list(tensor1.shape)} vs. {list(tensor2.shape)}\n"
    wide = torch.complex128 if tensor1.is_complex() else torch.float64
    a, b = tensor1.detach().to(wide), tensor2.detach().to(wide)
    error = (a - b).abs()
    allowed = torch.maximum(a.abs(), b.abs()).mul(rtol).clamp(min=atol)
    places = (~(error <= allowed) & ~(a == b)).nonzero().tolist()  # a NaN differs from all
    places.sort(key=lambda place: error[tuple(place)].item(), reverse=True)
    lines = [
        f"{place}: {tensor1[tuple(place)].item()} vs. {tensor2[tuple(place)].item()}\t"
        f"error={error[tuple(place)].item()}\n"
        for place in places[:max_diffs]
    ]
    if len(places) > max_diffs:
        lines.append(f"... aborting after {max_diffs} differences\n")
    return "".join(lines)


def tensor_file_compare(
    path1: str, path2: str, rtol: float = 1e-05, atol: float = 1e-08, max_diffs: int = 25
) -> str:
    """`compare_tensors` of two saved tensors, under a line that names them."""
    report = compare_tensors(
        torch.load(path1), torch.load(path2), rtol=rtol, atol=atol, max_diffs=max_diffs
    )
    if not report:
        return ""
    name, _, number = Path(path1).name.rpartition(".")
    step = re.fullmatch(r"step-(\d+)", Path(path1).parent.name)
    at = f" at step={step[1]}" if step else ""
    lines = "".join(f"  {line}\n" for line in report.splitlines())
    return f'Changes in saved tensor "{name}" with id={number}{at}\n{lines}'


def compare(
    save_dir1: str,
    save_dir2: str,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    max_diffs: int = 25,
) -> str:
    """How the tensors saved in two folders differ, and which are in one only; empty if they are alike."""
    first, second = _saved(save_dir1), _saved(save_dir2)
    report = [f"Mismatch: {name} not in {save_dir2}\n" for name in sorted(first - second)]
    for name in sorted(first & second):
        paths = os.path.join(save_dir1, name), os.path.join(save_dir2, name)
        report.append(tensor_file_compare(*paths, rtol=rtol, atol=atol, max_diffs=max_diffs))
    report += [f"Mismatch: {name} not in {save_dir1}\n" for name in sorted(second - first)]
    return "".join(report)


def _saved(folder: str) -> set[str]:
    """What `save` has saved, relative to the folder. Raises FileNotFoundError where there is none."""
    if not Path(folder).is_dir():
        raise FileNotFoundError(f"There is no folder {folder} of saved tensors.")
    return {
        str(path.relative_to(folder))
        for path in Path(folder).rglob("*")
        if path.is_file() and path.suffix[1:].isdigit()
    }


def _main() -> int:
    parser = argparse.ArgumentParser(description="Compares the tensors that two runs have saved.")
    parser.add_argument("savedir1")
    parser.add_argument("savedir2")
    parser.add_argument("--rtol", type=float, default=1e-05)
    parser.add_argument("--atol", type=float, default=1e-08)
    parser.add_argument("--max_diffs", type=int, default=25)
    options = parser.parse_args()
    report = compare(
        options.savedir1,
        options.savedir2,
        rtol=options.rtol,
        atol=options.atol,
        max_diffs=options.max_diffs,
    )
    print(report, end="", file=sys.stderr)
    return 1 if report else 0


if __name__ == "__main__":
    sys.exit(_main())
