"""Shapes of computations in the making, and the names of their element types."""

from collections.abc import Sequence
from typing import Any

import torch


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
