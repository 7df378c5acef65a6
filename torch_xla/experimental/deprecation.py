"""Old names of functions, which warn and go on to the new ones."""

import functools
import importlib
import logging
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def deprecated(
    module: ModuleType, new: F, old_name: str | None = None, extra_msg: str | None = None
) -> F:
    """The function `new`, with a warning (logging's root logger) at the first call.

    Args:
      module: where the old name is.
      new: what is called.
      old_name: the old name, unless it is the new one.
      extra_msg: what else to say, for example when the old name goes.
    """
    old_name = old_name or new.__name__
    warned = False

    @functools.wraps(new)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        nonlocal warned
        if not warned:
            warned = True
            text = f"{module.__name__}.{old_name} is deprecated. Use {new.__module__}.{new.__name__} instead."
            logging.warning(f"{text} {extra_msg}" if extra_msg else text)
        return new(*args, **kwargs)

    return wrapped  # type: ignore[return-value]


def mark_deprecated(new: F, extra_msg: str | None = None) -> Callable[[Callable[..., Any]], F]:
    """Decorates a function of an old name: calls of it warn, and go to `new`."""

    def decorator(func: Callable[..., Any]) -> F:
        return deprecated(importlib.import_module(func.__module__), new, func.__name__, extra_msg)

    return decorator


def register_deprecated(module: ModuleType, new: Callable[..., Any]) -> None:
    """Puts `new` into the module that had it before, where it warns."""
    setattr(module, new.__name__, deprecated(module, new))
