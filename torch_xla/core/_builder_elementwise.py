"""Operations of `Op` that are element by element."""

from typing import TYPE_CHECKING

from ._builder_operation import Operations

if TYPE_CHECKING:
    from ._builder_op import Op


class ElementwiseOperations(Operations):
    """Operators and functions, element by element."""

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
