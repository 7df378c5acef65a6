"""The editable installation that scripts/build leaves in .venv: each tree imports its own files, from any folder."""

import importlib.metadata
import os
import pathlib
import subprocess
import sys

from conftest import ROOT

import torch_xla

WHERE = "import importlib.util; print(importlib.util.find_spec('torch_xla').origin)"


def origin(python: pathlib.Path, folder: pathlib.Path, **variables: str) -> pathlib.Path:
    """The file that this interpreter imports in a folder, without the PYTHONPATH of the tests."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    result = subprocess.run(
        [python, "-c", WHERE],
        cwd=folder,
        env={**environment, **variables},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return pathlib.Path(result.stdout.strip())


def another_tree(folder: pathlib.Path) -> pathlib.Path:
    """A package of the same name, as in another worktree; its file."""
    file = folder / "torch_xla" / "__init__.py"
    file.parent.mkdir(parents=True)
    file.touch()
    return file


def test_any_folder_imports_the_tree(tmp_path):
    assert origin(pathlib.Path(sys.executable), tmp_path) == ROOT / "torch_xla" / "__init__.py"


def test_version_is_known():
    assert importlib.metadata.version("torch_xla") == torch_xla.__version__


def test_the_search_path_comes_first(tmp_path):
    file = another_tree(tmp_path / "other")
    python = pathlib.Path(sys.executable)
    assert origin(python, tmp_path, PYTHONPATH=str(tmp_path / "other")) == file


def test_another_tree_with_a_link_to_the_environment_imports_its_own(tmp_path):
    file = another_tree(tmp_path)
    (tmp_path / ".venv").symlink_to(sys.prefix)
    assert origin(tmp_path / ".venv" / "bin" / "python", pathlib.Path("/")) == file
