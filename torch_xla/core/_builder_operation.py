"""What adds an operation to a computation in the making: the base of `Op`'s families of methods."""

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ._builder_shape import Shape

if TYPE_CHECKING:
    from ._builder_op import Op

Computation = Any  # what `create_computation` gives, or a function of operations


class Operations:
    """A family of `Op`'s methods, which defines these."""

    def shape(self) -> Shape:
        """The value's shape."""
        raise NotImplementedError

    def _with(self, name: str, *others: "Op", **attributes: Any) -> "Op":
        """The operation `name` on this value and `others`."""
        raise NotImplementedError

    def _combiner(self, name: str, computation: Computation) -> Any:
        """A computation that combines two scalars of this value's type."""
        raise NotImplementedError


def operation(name: str) -> Callable[[Callable[..., Any]], Callable[..., "Op"]]:
    """Of a method that has no body: it adds the operation `name`.

    The parameters that are an `Op` are operands, the others are attributes of their names.
    """

    def method_of(declared: Callable[..., Any]) -> Callable[..., "Op"]:
        signature = inspect.signature(declared)
        parameters = signature.parameters.values()
        operand_names = [p.name for p in parameters if p.annotation == "Op"]

        @functools.wraps(declared)
        def method(self: "Op", *args: Any, **kwargs: Any) -> "Op":
            given = signature.bind(self, *args, **kwargs)
            given.apply_defaults()
            operands = [given.arguments.pop(operand) for operand in operand_names]
            del given.arguments["self"]
            return self._with(name, *operands, **given.arguments)

        return method

    return method_of
