"""Finds and loads the extension module `torch_xla._XLAC`.

The extension is built once per minor version of PyTorch and stands at `lib/torch<minor>/` in the package. The newest one that is
not newer than the installed PyTorch is taken.
"""

import importlib.machinery
import importlib.util
import os
import pathlib
import re
import sys
import types

import torch

OLDEST_TORCH = (2, 11)
NEWEST_TORCH = (2, 15)

_PACKAGE = pathlib.Path(__file__).parent


def library_directory() -> pathlib.Path:
    """The folder of the package's shared libraries; TORCH_XLA_LIBRARY_DIR names another build's."""
    chosen = os.environ.get("TORCH_XLA_LIBRARY_DIR")
    return pathlib.Path(chosen) if chosen else _PACKAGE / "lib"


def torch_minor(version: str) -> tuple[int, int]:
    """The (major, minor) of a PyTorch version such as `2.13.0+cpu`."""
    match = re.match(r"(\d+)\.(\d+)", version)
    if not match:
        raise ImportError(f"torch_xla cannot read the version of the installed torch: {version!r}.")
    return int(match[1]), int(match[2])


def check_torch(version: str) -> tuple[int, int]:
    """Returns the minor version of torch, or raises ImportError when the package does not support it."""
    minor = torch_minor(version)
    if not OLDEST_TORCH <= minor <= NEWEST_TORCH:
        raise ImportError(
            f"torch_xla supports torch {_dotted(OLDEST_TORCH)} to {_dotted(NEWEST_TORCH)}, and torch {version} is "
            "installed. Install one of that range, for example with `pip install torch==2.13.0`."
        )
    return minor


def find_extension(directory: pathlib.Path, minor: tuple[int, int]) -> pathlib.Path:
    """The extension for this minor version of torch; ImportError says what is missing."""
    built = {}
    for folder in directory.glob("torch*.*"):
        match = re.fullmatch(r"torch(\d+)\.(\d+)", folder.name)
        for suffix in importlib.machinery.EXTENSION_SUFFIXES:
            file = folder / f"_XLAC{suffix}"
            if match and file.exists():
                built.setdefault((int(match[1]), int(match[2])), file)
    usable = [version for version in built if version <= minor]
    if usable:
        return built[max(usable)]
    if built:
        versions = ", ".join(_dotted(version) for version in sorted(built))
        raise ImportError(
            f"This installation of torch_xla was built for torch {versions}, and torch {_dotted(minor)} is "
            "installed, which is older. Install a newer torch, or build torch_xla with this one."
        )
    raise ImportError(
        f"torch_xla is not built: there is no extension for Python {sys.version_info.major}."
        f"{sys.version_info.minor} in {directory}. In a source tree, run `make build` first."
    )


def load() -> types.ModuleType:
    """Loads the extension and makes it importable as `torch_xla._XLAC`."""
    name = "torch_xla._XLAC"
    if name in sys.modules:
        return sys.modules[name]
    file = find_extension(library_directory(), check_torch(torch.__version__))
    specification = importlib.util.spec_from_file_location(name, file)
    assert specification is not None and specification.loader is not None
    try:
        module = importlib.util.module_from_spec(specification)
        sys.modules[name] = module
        specification.loader.exec_module(module)
    except ImportError as error:
        sys.modules.pop(name, None)
        raise ImportError(
            f"The extension of torch_xla at {file} does not load with torch {torch.__version__}: {error}. It was "
            "built for another torch; install that one, or build torch_xla with this one."
        ) from error
    return module


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
