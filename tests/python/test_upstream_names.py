"""The public names of PyTorch/XLA 2.9 (upstream_names.json, which scripts/upstream_names writes) are here, with the parameters
that they have there, or docs/compatibility.md says what is not, and nothing else."""

import importlib
import inspect
import json
import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
UPSTREAM = json.loads((HERE / "upstream_names.json").read_text())
PAGE = (HERE.parents[1] / "docs" / "compatibility.md").read_text()
# | `module` | all, or `name`, `function(parameter)` | … |
ROWS = {
    f"torch_xla.{module}": None if cell == "all" else set(re.findall(r"`([^`]+)`", cell))
    for module, cell in re.findall(r"^\| `([\w.]+)` \| ([^|]+) \|", PAGE, re.MULTILINE)
    if cell == "all" or "`" in cell
}


def found(module, name):
    value = module
    for part in name.split("."):
        value = getattr(value, part)
    return value


def lacking_parameters(value, wanted):
    """Those that a function, or a class, does not take by name here."""
    ours = inspect.signature(value).parameters
    if any(parameter.kind == parameter.VAR_KEYWORD for parameter in ours.values()):
        return []
    names = [name.strip().rstrip("=") for name in wanted.split(",")]
    return [n for n in names if n and n[0] != "*" and n not in {"self", "cls", *ours}]


def lacking(module, names):
    missing = set()
    for name, wanted in names.items():
        try:
            value = found(module, name)
        except AttributeError:
            if name.rpartition(".")[0] not in missing:  # or its class is missing
                missing.add(name)
            continue
        wanted = wanted.removeprefix("class").strip("()")
        if wanted and callable(value):
            missing |= {f"{name}({parameter})" for parameter in lacking_parameters(value, wanted)}
    return missing


@pytest.mark.parametrize("name", UPSTREAM)
def test_names(name):
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError:
        assert ROWS.get(name, ()) is None, f"{name} is neither here nor in docs/compatibility.md"
        return
    assert lacking(module, UPSTREAM[name]) == ROWS.get(name, set())


def test_rows_are_of_modules():
    assert ROWS.keys() <= UPSTREAM.keys()
