"""Computations in the making: shapes, values with their operations, and what starts and ends one.

The door to it is `xla_builder`.
"""

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch

from torch_xla import _XLAC


class Type:
    """Names of element types, as shapes have them."""

    F32 = "f32"
    F64 = "f64"
    BF16 = "bf16"
    F16 = "f16"
    U8 = "u8"
    S8 = "s8"
    U16 = "u16"
    S16 = "s16"
    U32 = "u32"
    S32 = "s32"
    U64 = "u64"
    S64 = "s64"
    C64 = "c64"
    C128 = "c128"
    PRED = "pred"


_XLA_PT_TYPE_MAP = {
    Type.F32: torch.float32,
    Type.F64: torch.float64,
    Type.BF16: torch.bfloat16,
    Type.F16: torch.float16,
    Type.U8: torch.uint8,
    Type.S8: torch.int8,
    Type.U16: torch.uint16,
    Type.S16: torch.int16,
    Type.U32: torch.uint32,
    Type.S32: torch.int32,
    Type.U64: torch.uint64,
    Type.S64: torch.int64,
    Type.C64: torch.complex64,
    Type.C128: torch.complex128,
    Type.PRED: torch.bool,
}
_PT_XLA_TYPE_MAP = {dtype: name for name, dtype in _XLA_PT_TYPE_MAP.items()}


class Shape:
    """An element type and sizes, or a tuple of shapes.

    Args:
      shape: `{"type": "f32", "sizes": (2, 3)}`, or a sequence of such for a tuple.
    """

    def __init__(self, shape: Any) -> None:
        self._shape = shape

    @classmethod
    def create(
        cls, dtype: str, sizes: Sequence[int], dynamic_dimensions: Sequence[bool] | None = None
    ) -> "Shape":
        """The shape of an array. Sizes that only the running program knows cannot be built (NotImplementedError)."""
        shape: dict[str, Any] = {"type": str(dtype), "sizes": tuple(sizes)}
        if dynamic_dimensions is not None:
            shape["dynamic_dimensions"] = tuple(dynamic_dimensions)
        return cls(shape)

    @property
    def shape(self) -> Any:
        """What the constructor took."""
        return self._shape

    def is_tuple(self) -> bool:
        """Whether it is a tuple's."""
        return isinstance(self._shape, list | tuple)

    def tuple_size(self) -> int:
        """How many elements the tuple has."""
        assert self.is_tuple()
        return len(self._shape)

    def tuple_shape(self, index: int) -> Any:
        """An element's shape, as the constructor takes it."""
        assert self.is_tuple()
        return self._shape[index]

    def is_dynamic(self) -> bool:
        """Whether it says which sizes only the running program knows."""
        return "dynamic_dimensions" in self._array

    def as_scalar(self) -> "Shape":
        """The shape of one element."""
        return Shape.create(self.dtype, ())

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.sizes)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The dimensions' sizes."""
        return self._array["sizes"]

    @property
    def dynamic_dimensions(self) -> tuple[bool, ...] | None:
        """Which sizes only the running program knows; None: it does not say."""
        return self._array.get("dynamic_dimensions")

    @property
    def dtype(self) -> str:
        """The element type, one of `Type`'s."""
        return self._array["type"]

    @property
    def _array(self) -> dict[str, Any]:
        assert not self.is_tuple()
        return self._shape


def _operation(name: str) -> Callable[[Callable[..., Any]], Callable[..., "Op"]]:
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


Computation = Any  # what `create_computation` gives, or a function of operations


class Op:
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

    __hash__ = object.__hash__

    def __add__(self, rhs: "Op") -> "Op":
        return self._with("Add", rhs)

    def __sub__(self, rhs: "Op") -> "Op":
        return self._with("Sub", rhs)

    def __mul__(self, rhs: "Op") -> "Op":
        return self._with("Mul", rhs)

    def __matmul__(self, rhs: "Op") -> "Op":
        return self._with("Dot", rhs)

    def __truediv__(self, rhs: "Op") -> "Op":
        return self._with("Div", rhs)

    def __pow__(self, rhs: "Op") -> "Op":
        return self._with("Pow", rhs)

    def __mod__(self, rhs: "Op") -> "Op":
        return self._with("Rem", rhs)

    def __neg__(self) -> "Op":
        return self._with("Neg")

    def __not__(self) -> "Op":
        return self._with("Not")

    def __invert__(self) -> "Op":
        return self._with("Not")

    def __and__(self, rhs: "Op") -> "Op":
        return self._with("And", rhs)

    def __or__(self, rhs: "Op") -> "Op":
        return self._with("Or", rhs)

    def __xor__(self, rhs: "Op") -> "Op":
        return self._with("Xor", rhs)

    def __eq__(self, rhs: "Op") -> "Op":  # type: ignore[override]
        return self._with("Eq", rhs)

    def __ne__(self, rhs: "Op") -> "Op":  # type: ignore[override]
        return self._with("Ne", rhs)

    def __le__(self, rhs: "Op") -> "Op":
        return self._with("Le", rhs)

    def __lt__(self, rhs: "Op") -> "Op":
        return self._with("Lt", rhs)

    def __ge__(self, rhs: "Op") -> "Op":
        return self._with("Ge", rhs)

    def __gt__(self, rhs: "Op") -> "Op":
        return self._with("Gt", rhs)

    def __lshift__(self, rhs: "Op") -> "Op":
        return self._with("ShiftLeft", rhs)

    def __rshift__(self, rhs: "Op") -> "Op":
        return self._with("ShiftRight", rhs)

    # Shapes.

    @_operation("Reshape")
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

    @_operation("BroadcastInDim")
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

    @_operation("SliceInDim")
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

    @_operation("Gather")
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

    # Convolutions. Padding is "valid", "same", or (before, behind) of each spatial dimension.

    @_operation("Conv")
    def conv(
        self,
        kernel: "Op",
        window_strides: Sequence[int],
        feature_group_count: int = 1,
        batch_group_count: int = 1,
        padding: str = "valid",
        precision_config: Sequence[str] | None = None,
    ) -> "Op":
        """A convolution of (batch, feature, spatial...) with a kernel (output, input, spatial...)."""

    @_operation("ConvWithGeneralPadding")
    def conv_with_general_padding(
        self,
        kernel: "Op",
        window_strides: Sequence[int],
        padding: Sequence[tuple[int, int]],
        feature_group_count: int = 1,
        batch_group_count: int = 1,
        precision_config: Sequence[str] | None = None,
    ) -> "Op":
        """`conv` with (before, behind) of each spatial dimension as padding."""

    @_operation("ConvWithGeneralDimensions")
    def conv_with_general_dimensions(
        self,
        kernel: "Op",
        window_strides: Sequence[int],
        input_batch_dimension: int,
        input_feature_dimension: int,
        kernel_input_feature_dimension: int,
        kernel_output_feature_dimension: int,
        output_batch_dimension: int,
        output_feature_dimension: int,
        input_spatial_dimensions: Sequence[int],
        kernel_spatial_dimensions: Sequence[int],
        output_spatial_dimensions: Sequence[int],
        padding: str = "valid",
        feature_group_count: int = 1,
        batch_group_count: int = 1,
        precision_config: Sequence[str] | None = None,
    ) -> "Op":
        """`conv` with the dimensions in any order."""

    @_operation("ConvGeneral")
    def conv_general(
        self,
        kernel: "Op",
        window_strides: Sequence[int],
        padding: Sequence[tuple[int, int]],
        input_batch_dimension: int,
        input_feature_dimension: int,
        kernel_input_feature_dimension: int,
        kernel_output_feature_dimension: int,
        output_batch_dimension: int,
        output_feature_dimension: int,
        input_spatial_dimensions: Sequence[int],
        kernel_spatial_dimensions: Sequence[int],
        output_spatial_dimensions: Sequence[int],
        feature_group_count: int = 1,
        batch_group_count: int = 1,
        precision_config: Sequence[str] | None = None,
    ) -> "Op":
        """`conv` with the dimensions in any order, and (before, behind) of each spatial one as padding."""

    @_operation("ConvGeneralDilated")
    def conv_general_dilated(
        self,
        kernel: "Op",
        window_strides: Sequence[int],
        padding: Sequence[tuple[int, int]],
        lhs_dilation: Sequence[int] | None,
        rhs_dilation: Sequence[int] | None,
        input_batch_dimension: int,
        input_feature_dimension: int,
        kernel_input_feature_dimension: int,
        kernel_output_feature_dimension: int,
        output_batch_dimension: int,
        output_feature_dimension: int,
        input_spatial_dimensions: Sequence[int],
        kernel_spatial_dimensions: Sequence[int],
        output_spatial_dimensions: Sequence[int],
        feature_group_count: int = 1,
        batch_group_count: int = 1,
        precision_config: Sequence[str] | None = None,
    ) -> "Op":
        """`conv_general` with space between the elements of the input (lhs) and of the kernel (rhs)."""

    # Windows and reductions. Computations combine two scalars.

    def _combiner(self, name: str, computation: Computation) -> Any:
        scalar = self.shape().as_scalar()
        return Op.make_computation(name, computation, (scalar, scalar))

    def select_and_scatter(
        self,
        source: "Op",
        init_value: "Op",
        window_dimensions: Sequence[int],
        window_strides: Sequence[int],
        select_computation: Computation,
        scatter_computation: Computation,
        padding: str | Sequence[tuple[int, int]] = "valid",
    ) -> "Op":
        """Each element of `source`, put where the selection chose in its window, and combined there."""
        return self._with(
            "SelectAndScatter",
            source,
            init_value,
            window_dimensions=window_dimensions,
            window_strides=window_strides,
            select_computation=self._combiner("Select", select_computation),
            scatter_computation=self._combiner("Scatter", scatter_computation),
            padding=padding,
        )

    def select_and_scatter_with_general_padding(
        self,
        source: "Op",
        init_value: "Op",
        window_dimensions: Sequence[int],
        window_strides: Sequence[int],
        select_computation: Computation,
        scatter_computation: Computation,
        padding: Sequence[tuple[int, int]],
    ) -> "Op":
        """`select_and_scatter` with (before, behind) of each dimension as padding."""
        return self.select_and_scatter(
            source,
            init_value,
            window_dimensions,
            window_strides,
            select_computation,
            scatter_computation,
            padding,
        )

    @_operation("MaxPool")
    def max_pool(
        self,
        kernel_size: Sequence[int],
        stride: Sequence[int],
        batch_dimension: int,
        feature_dimension: int,
        spatial_dimensions: Sequence[int],
        padding: str = "valid",
    ) -> "Op":
        """The greatest element of each window; sizes and strides are of all dimensions."""

    def reduce(self, init_value: "Op", computation: Computation, dimensions: Sequence[int]) -> "Op":
        """Combined along `dimensions`."""
        return self._with(
            "Reduce",
            init_value,
            computation=self._combiner("Reduce", computation),
            dimensions=dimensions,
        )

    def reduce_all(self, init_value: "Op", computation: Computation) -> "Op":
        """Combined along all dimensions."""
        return self._with(
            "ReduceAll", init_value, computation=self._combiner("ReduceAll", computation)
        )

    def reduce_window(
        self,
        init_value: "Op",
        computation: Computation,
        window_dimensions: Sequence[int],
        window_strides: Sequence[int],
        padding: str | Sequence[tuple[int, int]] = "valid",
    ) -> "Op":
        """Combined in each window."""
        return self._with(
            "ReduceWindow",
            init_value,
            computation=self._combiner("ReduceWindow", computation),
            window_dimensions=window_dimensions,
            window_strides=window_strides,
            padding=padding,
        )

    # Choices, and control.

    def select(self, true_value: "Op", false_value: "Op") -> "Op":
        """Elements of the one where this predicate holds, and of the other elsewhere."""
        return self._with("Select", true_value, false_value)

    def clamp(self, min_value: "Op", max_value: "Op") -> "Op":
        """Kept between two values."""
        return self._with("Clamp", min_value, max_value)

    @_operation("TriangularSolve")
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

    # Element by element.

    def acos(self) -> "Op":
        """The arc cosine."""
        return self._with("Acos")

    def asin(self) -> "Op":
        """The arc sine."""
        return self._with("Asin")

    def atan(self) -> "Op":
        """The arc tangent."""
        return self._with("Atan")

    def ceil(self) -> "Op":
        """Rounded up."""
        return self._with("Ceil")

    def cos(self) -> "Op":
        """The cosine."""
        return self._with("Cos")

    def cosh(self) -> "Op":
        """The hyperbolic cosine."""
        return self._with("Cosh")

    def erf(self) -> "Op":
        """The error function."""
        return self._with("Erf")

    def erfc(self) -> "Op":
        """1 less the error function."""
        return self._with("Erfc")

    def erfinf(self) -> "Op":
        """The inverse of the error function."""
        return self._with("ErfInv")

    def exp(self) -> "Op":
        """The exponential."""
        return self._with("Exp")

    def expm1(self) -> "Op":
        """The exponential less 1."""
        return self._with("Expm1")

    def floor(self) -> "Op":
        """Rounded down."""
        return self._with("Floor")

    def log(self) -> "Op":
        """The natural logarithm."""
        return self._with("Log")

    def log1p(self) -> "Op":
        """The natural logarithm of 1 more."""
        return self._with("Log1p")

    def sqrt(self) -> "Op":
        """The square root."""
        return self._with("Sqrt")

    def real(self) -> "Op":
        """The real part."""
        return self._with("Real")

    def imag(self) -> "Op":
        """The imaginary part."""
        return self._with("Imag")

    def clz(self) -> "Op":
        """How many leading bits are zero."""
        return self._with("Clz")

    def conj(self) -> "Op":
        """The complex conjugate."""
        return self._with("Conj")

    def rsqrt(self) -> "Op":
        """The reciprocal of the square root."""
        return self._with("Rsqrt")

    def sin(self) -> "Op":
        """The sine."""
        return self._with("Sin")

    def sinh(self) -> "Op":
        """The hyperbolic sine."""
        return self._with("Sinh")

    def tan(self) -> "Op":
        """The tangent."""
        return self._with("Tan")

    def tanh(self) -> "Op":
        """The hyperbolic tangent."""
        return self._with("Tanh")

    def atan2(self, other: "Op") -> "Op":
        """The angle of (other, self) in the plane."""
        return self._with("Atan2", other)

    def max(self, other: "Op") -> "Op":
        """The greater of both."""
        return self._with("Max", other)

    def min(self, other: "Op") -> "Op":
        """The lesser of both."""
        return self._with("Min", other)

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
