"""Changes modules of upstream's tests, or of the package, when they are imported."""

import importlib.abc
import importlib.util
import sys
import types
from collections.abc import Callable
from typing import Any


class AfterImport(importlib.abc.MetaPathFinder):
    """Calls `action(module)` when the module of that name has been imported."""

    def __init__(self, name: str, action: Callable[[Any], None]) -> None:
        self._name, self._action, self._is_busy = name, action, False

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname != self._name or self._is_busy:
            return None
        self._is_busy = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._is_busy = False
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def execute_and_act(module: types.ModuleType) -> None:
            execute(module)
            self._action(module)

        spec.loader.exec_module = execute_and_act  # type: ignore[method-assign]
        return spec


def after_import(name: str, action: Callable[[Any], None]) -> None:
    """From now on `action(module)` is called when the module of that name has been imported."""
    sys.meta_path.insert(0, AfterImport(name, action))
