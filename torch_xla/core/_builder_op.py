"""Values of computations in the making, and what starts and ends one.

The door to it is `xla_builder`. Methods that are element by element, and those of windows, are in files of their own.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from torch_xla import _XLAC

from ._builder_elementwise import ElementwiseOperations
from ._builder_operation import Computation, operation
from ._builder_shape import _PT_XLA_TYPE_MAP, _XLA_PT_TYPE_MAP, Shape
from ._builder_windows import WindowOperations


class Op(ElementwiseOperations, WindowOperations):
    """A value of a computation that is being built; its methods and operators add operations to the computation.

    Args:
      op: the binding's value.
    """

    def __init__(self, op: Any) -> None:
        self.op = op

    def shape(self) -> Shape:
        """The value's shape."""
        return Shape(_XLAC._xla_op_shape(self.op))

    def builder(self) -> Any:
        """The builder of the computation."""
        return _XLAC._xla_op_builder(self.op)

    def build(self, name: str) -> Any:
        """The computation that gives this value."""
        return _XLAC._xla_op_build(name, self.op)

    def _with(self, name: str, *others: "Op", **attributes: Any) -> "Op":
        return mkop(name, (self.op, *(other.op for other in others)), **attributes)

    def _combiner(self, name: str, computation: Computation) -> Any:
        scalar = self.shape().as_scalar()
        return Op.make_computation(name, computation, (scalar, scalar))

    # Shapes.

    @operation("Reshape")
    def reshape(
        self,
        sizes: Sequence[int],
        dimensions: Sequence[int] | None = None,
        inferred_dimension: int | None = None,
    ) -> "Op":
        """The elements in other sizes, after a transposition by `dimensions`."""

    def dynamic_reshape(self, sizes: Any) -> "Op":
        """Not built: sizes that only the running program knows (NotImplementedError)."""
        return self._with("DynamicReshape", sizes=sizes)

    def broadcast(self, sizes: Sequence[int]) -> "Op":
        """Repeated along new dimensions in front."""
        return self._with("Broadcast", sizes=sizes)

    @operation("BroadcastInDim")
    def broadcast_in_dim(self, sizes: Sequence[int], dimensions: Sequence[int]) -> "Op":
        """Stretched to `sizes`, where dimension i becomes `dimensions[i]`."""

    def slice(
        self,
        start_indices: Sequence[int],
        limit_indices: Sequence[int],
        strides: Sequence[int] | None = None,
    ) -> "Op":
        """A part, by its start, limit and stride in every dimension."""
        return self._with(
            "Slice",
            start_indices=start_indices,
            limit_indices=limit_indices,
            strides=strides if strides is not None else [1] * len(start_indices),
        )

    @operation("SliceInDim")
    def slice_in_dim(self, start_index: int, limit_index: int, dimno: int, stride: int = 1) -> "Op":
        """A part, by its start, limit and stride in one dimension."""

    def dynamic_slice(self, start_indices: Sequence["Op"], slice_sizes: Sequence[int]) -> "Op":
        """A part whose starts are computed: one scalar for each dimension, moved to fit."""
        return self._with(
            "DynamicSlice",
            start_indices=Op._extract_xla_ops(start_indices),
            slice_sizes=slice_sizes,
        )

    def dynamic_update_slice(self, update: "Op", start_indices: Sequence["Op"]) -> "Op":
        """`update` in place of a part whose starts are computed."""
        return self._with(
            "DynamicUpdateSlice", update, start_indices=Op._extract_xla_ops(start_indices)
        )

    @operation("Gather")
    def gather(
        self,
        start_indices: "Op",
        offset_dims: Sequence[int],
        collapsed_slice_dims: Sequence[int],
        start_index_map: Sequence[int],
        index_vector_dim: int,
        indices_are_sorted: bool | None = None,
        slice_sizes: Sequence[int] | None = None,
    ) -> "Op":
        """StableHLO's gather. Without `slice_sizes`, slices are whole in all dimensions but the collapsed ones."""

    def scatter(
        self,
        scatter_indices: "Op",
        updates: "Op",
        computation: Computation,
        update_window_dims: Sequence[int],
        inserted_window_dims: Sequence[int],
        scatter_dims_to_operand_dims: Sequence[int],
        index_vector_dim: int,
        indices_are_sorted: bool | None = None,
        unique_indices: bool | None = None,
    ) -> "Op":
        """StableHLO's scatter; `computation` combines the old scalar and the update's."""
        return self._with(
            "Scatter",
            scatter_indices,
            updates,
            computation=self._combiner("Scatter", computation),
            update_window_dims=update_window_dims,
            inserted_window_dims=inserted_window_dims,
            scatter_dims_to_operand_dims=scatter_dims_to_operand_dims,
            index_vector_dim=index_vector_dim,
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
        )

    def pad(self, value: "Op", config: Sequence[tuple[int, int, int]]) -> "Op":
        """Padded with a scalar: (before, behind, between elements) of each dimension."""
        return self._with("Pad", value, config=config)

    def transpose(self, permutation: Sequence[int]) -> "Op":
        """With dimension `permutation[i]` as dimension i."""
        return self._with("Transpose", permutation=permutation)

    def rev(self, dimensions: Sequence[int]) -> "Op":
        """In reverse order along `dimensions`."""
        return self._with("Rev", dimensions=dimensions)

    def get_dimension_size(self, dimension: int) -> "Op":
        """The size of a dimension as a scalar."""
        return self._with("GetDimensionSize", dimension=dimension)

    def set_dimension_size(self, size: "Op", dimension: int) -> "Op":
        """Not built: sizes that only the running program knows (NotImplementedError)."""
        return self._with("SetDimensionSize", size, dimension=dimension)

    def cast(self, to_type: str) -> "Op":
        """Converted to another element type."""
        return self._with("Convert", to_type=to_type)

    def bitcast(self, to_type: str) -> "Op":
        """The same bits as another element type."""
        return self._with("BitcastConvert", to_type=to_type)

    # Choices, and control.

    def select(self, true_value: "Op", false_value: "Op") -> "Op":
        """Elements of the one where this predicate holds, and of the other elsewhere."""
        return self._with("Select", true_value, false_value)

    def clamp(self, min_value: "Op", max_value: "Op") -> "Op":
        """Kept between two values."""
        return self._with("Clamp", min_value, max_value)

    @operation("TriangularSolve")
    def triangualr_solve(
        self,
        b: "Op",
        left_side: bool | None = None,
        lower: bool | None = None,
        unit_diagonal: bool | None = None,
        transpose_a: bool | None = None,
    ) -> "Op":
        """The solution x of a x = b, or of x a = b unless `left_side`, for this triangular matrix a."""

    triangular_solve = triangualr_solve

    def get_tuple_element(self, index: int) -> "Op":
        """An element of this tuple."""
        return self._with("GetTupleElement", index=index)

    def conditional(
        self,
        true_operand: "Op",
        false_operand: "Op",
        true_computation: Computation,
        false_computation: Computation,
    ) -> "Op":
        """What the one computation gives of its operand if this scalar predicate holds, else the other."""
        return self._with(
            "Conditional",
            true_operand,
            false_operand,
            true_computation=Op.make_computation("CondTrue", true_computation, (true_operand,)),
            false_computation=Op.make_computation("CondFalse", false_computation, (false_operand,)),
        )

    def mkconditional(
        self,
        ops: Sequence["Op"],
        true_fn: Callable[..., Any],
        false_fn: Callable[..., Any],
        **kwargs: Any,
    ) -> "Op":
        """`conditional` of two functions of the same operands."""
        operand = Op.tuple(ops)
        return self.conditional(operand, operand, true_fn, false_fn)

    def while_loop(self, condition_computation: Computation, body_computation: Computation) -> "Op":
        """This value after the body has been applied as long as the condition, a scalar predicate, holds."""
        return self._with(
            "While",
            condition_computation=Op.make_computation("Condition", condition_computation, (self,)),
            body_computation=Op.make_computation("Body", body_computation, (self,)),
        )

    @classmethod
    def mkwhile(
        cls,
        ops: Sequence["Op"],
        condition_fn: Callable[..., "Op"],
        body_fn: Callable[..., Any],
        **kwargs: Any,
    ) -> "Op":
        """`while_loop` of the tuple of `ops`, for functions of its elements."""
        return Op.tuple(ops).while_loop(condition_fn, body_fn)

    @classmethod
    def wrap_function(cls, fn: Callable[..., Any]) -> Callable[..., "Op"]:
        """The function, with a tuple's elements as its arguments, and its results as a tuple."""

        def wrapper(*args: Op, **kwargs: Any) -> Op:
            if len(args) == 1 and args[0].shape().is_tuple():
                [operand] = args
                size = operand.shape().tuple_size()
                args = tuple(operand.get_tuple_element(i) for i in range(size))
            result = fn(*args, **kwargs)
            return Op.tuple(result) if isinstance(result, tuple | list) else result

        return wrapper

    @classmethod
    def make_computation(
        cls,
        name: str,
        computation: Computation,
        args_or_shapes: Sequence[Any],
        **kwargs: Any,
    ) -> Any:
        """A function as a computation of operands like these; a computation itself."""
        if not callable(computation):
            return computation
        shapes = [arg if isinstance(arg, Shape) else arg.shape() for arg in args_or_shapes]
        return create_computation(name, cls.wrap_function(computation), shapes, **kwargs)

    # Values of their own.

    def scalar_like(self, value: Any) -> "Op":
        """A number in every element of this shape."""
        shape = self.shape()
        return Op.scalar(self.builder(), value, dtype=shape.dtype).broadcast(shape.sizes)

    def zeros_like(self) -> "Op":
        """Zeros of this shape."""
        return self.scalar_like(0)

    def ones_like(self) -> "Op":
        """Ones of this shape."""
        return self.scalar_like(1)

    @classmethod
    def _extract_xla_ops(cls, ops: Sequence["Op"]) -> list[Any]:
        return [x.op for x in ops]

    @classmethod
    def tuple(cls, ops: Sequence["Op"], builder: Any = None) -> "Op":
        """The values as one."""
        return mkop("Tuple", cls._extract_xla_ops(ops), builder=builder)

    @classmethod
    def concat_in_dim(cls, ops: Sequence["Op"], dimension: int, builder: Any = None) -> "Op":
        """The values one after the other along a dimension."""
        operands = cls._extract_xla_ops(ops)
        return mkop("ConcatInDim", operands, builder=builder, dimension=dimension)

    @classmethod
    def call(cls, computation: Computation, ops: Sequence["Op"], builder: Any = None) -> "Op":
        """What a computation gives of these operands."""
        computation = cls.make_computation("Call", computation, ops)
        operands = cls._extract_xla_ops(ops)
        return mkop("Call", operands, computation=computation, builder=builder)

    @classmethod
    def constant(cls, builder: Any, value: torch.Tensor) -> "Op":
        """A tensor's values."""
        return mkleaf("Constant", builder, value=value)

    @classmethod
    def scalar(cls, builder: Any, value: Any, dtype: str | None = None) -> "Op":
        """A number; F32 unless `dtype` says otherwise."""
        return cls.constant(builder, torch.tensor(value, dtype=cls.to_torch_type(dtype)))

    @classmethod
    def zero(cls, builder: Any, dtype: str | None = None) -> "Op":
        """0."""
        return cls.scalar(builder, 0, dtype=dtype)

    @classmethod
    def one(cls, builder: Any, dtype: str | None = None) -> "Op":
        """1."""
        return cls.scalar(builder, 1, dtype=dtype)

    @classmethod
    def iota(cls, builder: Any, shape: Shape, iota_dimension: int) -> "Op":
        """The index along a dimension in every element."""
        return mkleaf("Iota", builder, shape=shape.shape, iota_dimension=iota_dimension)

    @classmethod
    def sort(
        cls,
        ops: Sequence["Op"],
        comparator: Computation,
        dimension: int | None = None,
        is_stable: bool | None = None,
    ) -> "Op":
        """All values in the order that `comparator`, of one pair of scalars for each, gives along a dimension (the last)."""
        scalars = [op.shape().as_scalar() for op in ops for _ in range(2)]
        return mkop(
            "Sort",
            cls._extract_xla_ops(ops),
            comparator=cls.make_computation("Comparator", comparator, scalars),
            dimension=dimension,
            is_stable=is_stable,
        )

    @classmethod
    def map(
        cls,
        ops: Sequence["Op"],
        computation: Computation,
        dimensions: Sequence[int],
        static_operands: Sequence["Op"] = (),
        builder: Any = None,
    ) -> "Op":
        """What a computation of scalars gives of each element; `dimensions` are all of them, in order."""
        scalars = [op.shape().as_scalar() for op in ops]
        return mkop(
            "Map",
            cls._extract_xla_ops(ops),
            builder=builder,
            computation=cls.make_computation("Map", computation, scalars),
            dimensions=dimensions,
            static_operands=cls._extract_xla_ops(static_operands),
        )

    @classmethod
    def to_torch_type(cls, dtype: str | None) -> torch.dtype:
        """torch's dtype for one of `Type`'s names; float32 for None."""
        return _XLA_PT_TYPE_MAP[dtype] if dtype else torch.float32

    @classmethod
    def from_torch_type(cls, dtype: torch.dtype) -> str:
        """The name among `Type`'s of torch's dtype."""
        return _PT_XLA_TYPE_MAP[dtype]


def create_builder(name: str) -> Any:
    """An empty computation, to which `mkparam`, `mkleaf` and `mkop` add."""
    return _XLAC._xla_op_create_builder(name)


def mkshape(
    dtype: str, sizes: Sequence[int], dynamic_dimensions: Sequence[bool] | None = None
) -> Shape:
    """See `Shape.create`."""
    return Shape.create(dtype, sizes, dynamic_dimensions=dynamic_dimensions)


def mkop(name: str, ops: Sequence[Any], **kwargs: Any) -> Op:
    """Adds the operation `name` on the binding's values `ops`; its attributes are keywords.

    Raises:
      NotImplementedError: for an operation that there is not.
      ValueError, RuntimeError: where operands or attributes do not fit.
    """
    builder = kwargs.pop("builder", None)
    if builder is None:
        assert ops, "an operation without operands is given its builder"
        builder = _XLAC._xla_op_builder(ops[0])
    return Op(_XLAC._xla_op_create(builder, name, ops, kwargs))


def mkleaf(name: str, builder: Any, **kwargs: Any) -> Op:
    """Adds an operation without operands: "Constant" or "Iota"."""
    return mkop(name, (), builder=builder, **kwargs)


def mkparam(builder: Any, param_no: int, shape: Shape) -> Op:
    """Adds a parameter; they are made in the order of their numbers."""
    return Op(_XLAC._xla_op_param(builder, param_no, shape.shape))


def tensor_shape(tensor: Any, device: str = "") -> Any:
    """The shape of a tensor; a list of them for a list or tuple of tensors."""
    if isinstance(tensor, list | tuple):
        return [tensor_shape(t, device) for t in tensor]
    return Shape(_XLAC._xla_op_tensor_shape(tensor, device))


def create_computation(
    name: str, fn: Callable[..., Op], shapes: Sequence[Shape], **kwargs: Any
) -> Any:
    """What `fn` does with one operation for each shape, as a computation; its result is an `Op` (`Op.tuple` of several)."""
    builder = create_builder(name)
    parameters = [mkparam(builder, number, shape) for number, shape in enumerate(shapes)]
    return fn(*parameters, **kwargs).build(name)
