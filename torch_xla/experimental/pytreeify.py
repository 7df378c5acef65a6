"""Functions with a derivative of their own (`torch.autograd.Function`) that take and give nested structures of tensors."""

from typing import Any, NamedTuple, TypeVar

import torch
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

Function = TypeVar("Function", bound=type[torch.autograd.Function])


def _leaves_of_gradient(gradient: Any, spec: TreeSpec) -> list[Any]:
    """One for each leaf of the argument; None stands for none in all of them."""
    return [None] * spec.num_leaves if gradient is None else spec.flatten_up_to(gradient)


class _Call(NamedTuple):
    """What a call is of, and the structures of its arguments and, once it has run, of its result: only tensors leave `apply`."""

    function: type[torch.autograd.Function]
    arguments: list[TreeSpec]
    results: list[TreeSpec]


class _Flat(torch.autograd.Function):
    """A function of structures as one of their leaves."""

    @staticmethod
    def forward(ctx: Any, call: _Call, *leaves: Any) -> Any:
        given, needs = iter(leaves), iter(ctx.needs_input_grad[1:])
        ctx.needs_input_grad = tuple(
            any([next(needs) for _ in range(spec.num_leaves)]) for spec in call.arguments
        )
        arguments = [
            tree_unflatten([next(given) for _ in range(spec.num_leaves)], spec)
            for spec in call.arguments
        ]
        results, spec = tree_flatten(call.function.forward(ctx, *arguments))
        call.results.append(spec)
        ctx.call_of_pytreeify = call
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        call = ctx.call_of_pytreeify
        tree = tree_unflatten(gradients, call.results[0])
        found = call.function.backward(ctx, *(tree if isinstance(tree, tuple) else (tree,)))
        # A list is several arguments' gradients, as for torch, or the gradient of one that is a list.
        several = isinstance(found, list) and len(call.arguments) > 1
        found = found if several or isinstance(found, tuple) else (found,)
        pairs = zip(found, call.arguments, strict=True)
        return None, *(leaf for pair in pairs for leaf in _leaves_of_gradient(*pair))


def pytreeify(cls: Function) -> Function:
    """The class, whose `apply` takes and gives tensors in any structure.

    Its `forward` gets the arguments as they were given. Its `backward` gets gradients in the structure of the result, those of
    a tuple one by one, and gives for each argument its gradient, in the argument's structure, or None; several are a tuple or list.
    `ctx.needs_input_grad` says of each argument whether any of its tensors needs a gradient.
    """

    def apply(function: type[torch.autograd.Function], *arguments: Any) -> Any:
        flat = [tree_flatten(argument) for argument in arguments]
        call = _Call(function, [spec for _, spec in flat], [])
        results = _Flat.apply(call, *(leaf for part, _ in flat for leaf in part))
        return tree_unflatten(results, call.results[0])

    cls.apply = classmethod(apply)  # type: ignore[assignment]
    return cls
