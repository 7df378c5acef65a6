"""Functions with a derivative of their own (`torch.autograd.Function`) that take and give nested structures of tensors."""

from typing import Any, TypeVar

import torch
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

Function = TypeVar("Function", bound=type[torch.autograd.Function])


def _leaves_of_gradient(gradient: Any, spec: TreeSpec) -> list[Any]:
    """One for each leaf of the argument; None stands for none in all of them."""
    return [None] * spec.num_leaves if gradient is None else spec.flatten_up_to(gradient)


def pytreeify(cls: Function) -> Function:
    """The class, whose `apply` takes and gives tensors in any structure.

    Its `forward` gets the arguments as they were given. Its `backward` gets gradients in the structure of the result, those of
    a tuple one by one, and gives for each argument its gradient, in the argument's structure, or None.
    """

    class Flat(torch.autograd.Function):
        """The same of leaves. The structure of the result goes into `specs`, as only tensors leave `apply`."""

        @staticmethod
        def forward(
            ctx: Any, argument_specs: list[TreeSpec], specs: list[TreeSpec], *leaves: Any
        ) -> Any:
            given = iter(leaves)
            arguments = [
                tree_unflatten([next(given) for _ in range(spec.num_leaves)], spec)
                for spec in argument_specs
            ]
            results, spec = tree_flatten(cls.forward(ctx, *arguments))
            specs.append(spec)
            ctx.specs_of_pytreeify = argument_specs, spec
            return tuple(results)

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            argument_specs, spec = ctx.specs_of_pytreeify
            tree = tree_unflatten(gradients, spec)
            found = cls.backward(ctx, *(tree if isinstance(tree, tuple) else (tree,)))
            found = found if isinstance(found, tuple) else (found,)
            pairs = zip(found, argument_specs, strict=True)
            return None, None, *(leaf for pair in pairs for leaf in _leaves_of_gradient(*pair))

    def apply(*arguments: Any) -> Any:
        flat = [tree_flatten(argument) for argument in arguments]
        specs: list[TreeSpec] = []
        leaves = [leaf for part, _ in flat for leaf in part]
        results = Flat.apply([spec for _, spec in flat], specs, *leaves)
        return tree_unflatten(results, specs[0])

    cls.apply = staticmethod(apply)  # type: ignore[assignment]
    return cls
