"""Operations of `Op` that combine elements: convolutions, windows and reductions."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ._builder_operation import Computation, Operations, operation

if TYPE_CHECKING:
    from ._builder_op import Op


class WindowOperations(Operations):
    """Convolutions, windows and reductions."""

    # Convolutions. Padding is "valid", "same", or (before, behind) of each spatial dimension.

    @operation("Conv")
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

    @operation("ConvWithGeneralPadding")
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

    @operation("ConvWithGeneralDimensions")
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

    @operation("ConvGeneral")
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

    @operation("ConvGeneralDilated")
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

    @operation("MaxPool")
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
