"""The public names of the package, from the package itself: what the reference shows, and what must be documented.

A module is public if no part of its name begins with an underscore. Its public names are those of its `__all__`, or
else the functions and classes that it defines, or takes from a private module, without such a name.
"""

import importlib
import inspect
import pkgutil
from types import ModuleType
from typing import Any

PACKAGE = "torch_xla"


def is_public(name: str) -> bool:
    """Whether no part of a dotted name begins with an underscore."""
    return not any(part.startswith("_") for part in name.split("."))


def modules() -> dict[str, ModuleType]:
    """The public modules by name, the package first."""
    package = importlib.import_module(PACKAGE)
    found = pkgutil.walk_packages(package.__path__, f"{PACKAGE}.")
    return {PACKAGE: package} | {
        module.name: importlib.import_module(module.name)
        for module in found
        if is_public(module.name)
    }


def names(module: ModuleType) -> dict[str, Any]:
    """The public functions and classes of a module, by name."""
    declared = getattr(module, "__all__", None)
    if declared is not None:
        found = {name: getattr(module, name) for name in declared}
        return {name: value for name, value in found.items() if is_documented_kind(value)}
    return {
        name: value
        for name, value in vars(module).items()
        if is_public(name) and is_documented_kind(value) and _belongs(value, module)
    }


def methods(value: Any) -> dict[str, Any]:
    """The public methods and properties of a class, as seen on it; none of a function.

    They are those that the class defines, and those of the package's private classes that it is made of.
    """
    if not inspect.isclass(value):
        return {}
    within = [c for c in value.__mro__ if c is value or _is_private(c)]
    defined = {name: member for c in reversed(within) for name, member in vars(c).items()}
    return {
        name: getattr(value, name)
        for name, member in defined.items()
        if is_public(name)
        and (inspect.isroutine(member) or isinstance(member, property | classmethod | staticmethod))
    }


def pages() -> dict[str, dict[str, Any]]:
    """The modules that have a page, and their names: all but those of which a package shows everything."""
    found = {name: names(module) for name, module in modules().items()}
    return {
        name: own
        for name, own in found.items()
        if own and not own.items() <= found.get(name.rpartition(".")[0], {}).items()
    }


def is_documented_kind(value: Any) -> bool:
    """Whether a value is what has a docstring of its own."""
    return inspect.isroutine(value) or inspect.isclass(value)


def _is_private(kind: type) -> bool:
    """Whether a class is the package's, and its name or its module's is not public."""
    name = f"{kind.__module__}.{kind.__name__}"
    return name.startswith(f"{PACKAGE}.") and not is_public(name)


def _belongs(value: Any, module: ModuleType) -> bool:
    """Whether a module defines a value, or takes it from a private module, or, as a package, from one of its own."""
    home = getattr(value, "__module__", None) or ""
    own = home == module.__name__ or (
        hasattr(module, "__path__") and home.startswith(f"{module.__name__}.")
    )
    return own or (home.startswith(f"{PACKAGE}.") and not is_public(home))
