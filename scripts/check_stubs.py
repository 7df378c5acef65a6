"""Compares the type stubs of the extension, `torch_xla/_XLAC.pyi`, with what the built extension offers."""

import ast
import pathlib
import sys

import torch_xla

STUBS = pathlib.Path(__file__).parents[1] / "torch_xla" / "_XLAC.pyi"


def declared() -> set[str]:
    """The names of the stubs' functions, classes and modules."""
    names = set()
    for node in ast.parse(STUBS.read_text()).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            names.add(node.target.id)
    return names


def offered() -> set[str]:
    """The names of the extension's functions, classes and modules."""
    return {name for name in vars(torch_xla._XLAC) if not name.startswith("__")}


def main() -> int:
    missing, unknown = sorted(offered() - declared()), sorted(declared() - offered())
    if missing:
        print(f"Not in the stubs: {', '.join(missing)}")
    if unknown:
        print(f"Not in the extension: {', '.join(unknown)}")
    return 1 if missing or unknown else 0


if __name__ == "__main__":
    sys.exit(main())
