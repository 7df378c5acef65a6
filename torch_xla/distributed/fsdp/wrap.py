"""Which submodules of a model are sharded by themselves: policies, and wrapping by one.

A policy is a function `(module, recurse, unwrapped_params) -> bool`. With `recurse` it says whether to look inside the
module; without, whether to wrap it, `unwrapped_params` of its parameters not being wrapped yet.
"""

from collections.abc import Callable
from typing import Any

import torch.nn as nn

Policy = Callable[..., bool]


def always_wrap_policy(*args: Any, **kwargs: Any) -> bool:
    """Wraps every module."""
    return True


def lambda_auto_wrap_policy(
    module: nn.Module, recurse: bool, unwrapped_params: int, lambda_fn: Callable[[nn.Module], bool]
) -> bool:
    """Wraps the modules that `lambda_fn` picks."""
    return recurse or lambda_fn(module)


def transformer_auto_wrap_policy(
    module: nn.Module,
    recurse: bool,
    unwrapped_params: int,
    transformer_layer_cls: set[type[nn.Module]],
) -> bool:
    """Wraps the modules of some classes, such as a transformer's layer."""
    return recurse or isinstance(module, tuple(transformer_layer_cls))


def size_based_auto_wrap_policy(
    module: nn.Module,
    recurse: bool,
    unwrapped_params: int,
    min_num_params: int = int(1e8),
    force_leaf_modules: set[type[nn.Module]] | None = None,
    exclude_wrap_modules: set[type[nn.Module]] | None = None,
) -> bool:
    """Wraps modules with at least so many parameters that are not wrapped yet.

    Args:
      force_leaf_modules: classes that are not looked into; attention's by default.
      exclude_wrap_modules: classes that are not wrapped themselves; lists and dictionaries of modules by default.
    """
    if force_leaf_modules is None:
        force_leaf_modules = size_based_auto_wrap_policy.FORCE_LEAF_MODULES
    if exclude_wrap_modules is None:
        exclude_wrap_modules = size_based_auto_wrap_policy.EXCLUDE_WRAP_MODULES
    left_out = force_leaf_modules if recurse else exclude_wrap_modules
    return unwrapped_params >= min_num_params and not isinstance(module, tuple(left_out))


size_based_auto_wrap_policy.EXCLUDE_WRAP_MODULES = {nn.ModuleList, nn.ModuleDict}
size_based_auto_wrap_policy.FORCE_LEAF_MODULES = {nn.MultiheadAttention}


def recursive_wrap(
    module: nn.Module,
    auto_wrap_policy: Policy,
    wrapper_cls: Callable[..., nn.Module],
    only_wrap_children: bool = False,
    **kwargs: Any,
) -> tuple[nn.Module, int]:
    """Wraps the submodules that the policy picks, inner ones first.

    Returns:
      the module, wrapped itself unless `only_wrap_children`, and how many of its parameters have been wrapped.
    """
    count = sum(parameter.numel() for parameter in module.parameters())
    if not auto_wrap_policy(module=module, recurse=True, unwrapped_params=count):
        return module, 0
    wrapped = 0
    for name, child in list(module.named_children()):
        if getattr(child, "_is_fsdp", False):
            continue
        replaced, inside = recursive_wrap(child, auto_wrap_policy, wrapper_cls, **kwargs)
        setattr(module, name, replaced)
        wrapped += inside
    rest = count - wrapped
    if only_wrap_children or not auto_wrap_policy(
        module=module, recurse=False, unwrapped_params=rest
    ):
        return module, wrapped
    return wrapper_cls(module, **kwargs), count
