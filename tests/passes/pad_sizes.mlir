// CASE: elementwise_is_left_alone
// RUN-PASS: pad_sizes 0.0 1.0
// COUNT: stablehlo.select 0
func.func public @main(%arg0: tensor<5x3xf32>, %arg1: tensor<5x3xf32>) -> (tensor<5x3xf32>) {
  %0 = stablehlo.add %arg0, %arg1 : tensor<5x3xf32>
  func.return %0 : tensor<5x3xf32>
}
// -----
// CASE: sum_masks
// RUN-PASS: pad_sizes 0.1
// COUNT: stablehlo.select 1
// INPUTS: integers
func.func public @main(%arg0: tensor<3x5xf32>) -> (tensor<3xf32>) {
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%arg0 init: %0) applies stablehlo.add across dimensions = [1] : (tensor<3x5xf32>, tensor<f32>) -> tensor<3xf32>
  func.return %1 : tensor<3xf32>
}
// -----
// CASE: maximum_of_infinities
// RUN-PASS: pad_sizes 0.1
func.func public @main(%arg0: tensor<3x5xf32>) -> (tensor<3xf32>) {
  %0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %1 = stablehlo.reduce(%arg0 init: %0) applies stablehlo.maximum across dimensions = [1] : (tensor<3x5xf32>, tensor<f32>) -> tensor<3xf32>
  func.return %1 : tensor<3xf32>
}
// -----
// CASE: kept_dimension_of_a_sum_is_left_alone
// RUN-PASS: pad_sizes 0.0
// COUNT: stablehlo.select 0
// INPUTS: integers
func.func public @main(%arg0: tensor<3x5xf32>) -> (tensor<3xf32>) {
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%arg0 init: %0) applies stablehlo.add across dimensions = [1] : (tensor<3x5xf32>, tensor<f32>) -> tensor<3xf32>
  func.return %1 : tensor<3xf32>
}
// -----
// CASE: initial_value_counts_once
// RUN-PASS: pad_sizes 0.0
// INPUTS: integers
func.func public @main(%arg0: tensor<5xf32>) -> (tensor<f32>) {
  %0 = stablehlo.constant dense<3.0> : tensor<f32>
  %1 = stablehlo.reduce(%arg0 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<5xf32>, tensor<f32>) -> tensor<f32>
  func.return %1 : tensor<f32>
}
// -----
// CASE: product_masks_both
// RUN-PASS: pad_sizes 0.1 1.0
// COUNT: stablehlo.select 2
// INPUTS: integers
func.func public @main(%arg0: tensor<3x5xf32>, %arg1: tensor<5x4xf32>) -> (tensor<3x4xf32>) {
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<3x5xf32>, tensor<5x4xf32>) -> tensor<3x4xf32>
  func.return %0 : tensor<3x4xf32>
}
// -----
// CASE: rows_of_a_product_are_left_alone
// RUN-PASS: pad_sizes 0.0
// COUNT: stablehlo.select 0
// INPUTS: integers
func.func public @main(%arg0: tensor<3x5xf32>, %arg1: tensor<5x4xf32>) -> (tensor<3x4xf32>) {
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<3x5xf32>, tensor<5x4xf32>) -> tensor<3x4xf32>
  func.return %0 : tensor<3x4xf32>
}
// -----
// CASE: joined_dimensions_are_masked_by_their_parts
// RUN-PASS: pad_sizes 0.1
// INPUTS: integers
func.func public @main(%arg0: tensor<2x5x3xf32>) -> (tensor<3xf32>, tensor<10x3xf32>) {
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reshape %arg0 : (tensor<2x5x3xf32>) -> tensor<10x3xf32>
  %2 = stablehlo.reduce(%1 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<10x3xf32>, tensor<f32>) -> tensor<3xf32>
  func.return %2, %1 : tensor<3xf32>, tensor<10x3xf32>
}
// -----
// CASE: joined_arguments_are_split
// RUN-PASS: pad_sizes 0.1 1.0
// INPUTS: integers
func.func public @main(%arg0: tensor<2x5x3xf32>, %arg1: tensor<10x3xf32>) -> (tensor<2x5x3xf32>) {
  %0 = stablehlo.reshape %arg0 : (tensor<2x5x3xf32>) -> tensor<10x3xf32>
  %1 = stablehlo.add %0, %arg1 : tensor<10x3xf32>
  %2 = stablehlo.reshape %1 : (tensor<10x3xf32>) -> tensor<2x5x3xf32>
  func.return %2 : tensor<2x5x3xf32>
}
// -----
// CASE: other_factors_are_refused
// RUN-PASS: pad_sizes 0.1
// REFUSED: joined and split at once
func.func public @main(%arg0: tensor<2x5xf32>) -> (tensor<5x2xf32>) {
  %0 = stablehlo.reshape %arg0 : (tensor<2x5xf32>) -> tensor<5x2xf32>
  func.return %0 : tensor<5x2xf32>
}
// -----
// CASE: gather_keeps_within_the_true_size
// RUN-PASS: pad_sizes 0.0
// INPUTS: integers
func.func public @main(%arg0: tensor<5x3xf32>) -> (tensor<4x3xf32>) {
  %0 = stablehlo.constant dense<[[1], [-4], [4], [6]]> : tensor<4x1xi64>
  %1 = "stablehlo.gather"(%arg0, %0) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>}> : (tensor<5x3xf32>, tensor<4x1xi64>) -> tensor<4x3xf32>
  func.return %1 : tensor<4x3xf32>
}
// -----
// CASE: gather_of_many_rows
// RUN-PASS: pad_sizes 1.0
// INPUTS: integers
func.func public @main(%arg0: tensor<5x3xf32>, %arg1: tensor<6x1xi64>) -> (tensor<6x3xf32>) {
  %1 = "stablehlo.gather"(%arg0, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>}> : (tensor<5x3xf32>, tensor<6x1xi64>) -> tensor<6x3xf32>
  func.return %1 : tensor<6x3xf32>
}
// -----
// CASE: padded_updates_go_nowhere
// RUN-PASS: pad_sizes 1.0 2.0
// INPUTS: integers
func.func public @main(%arg0: tensor<4x3xf32>, %arg1: tensor<6x1xi64>, %arg2: tensor<6x3xf32>) -> (tensor<4x3xf32>) {
  %0 = "stablehlo.scatter"(%arg0, %arg1, %arg2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<4x3xf32>, tensor<6x1xi64>, tensor<6x3xf32>) -> tensor<4x3xf32>
  func.return %0 : tensor<4x3xf32>
}
// -----
// CASE: slices_of_what_varies
// RUN-PASS: pad_sizes 0.0
func.func public @main(%arg0: tensor<9xf32>) -> (tensor<8xf32>, tensor<1xf32>, tensor<4xf32>, tensor<3xf32>) {
  %0 = stablehlo.slice %arg0 [1:9] : (tensor<9xf32>) -> tensor<8xf32>
  %1 = stablehlo.slice %arg0 [8:9] : (tensor<9xf32>) -> tensor<1xf32>
  %2 = stablehlo.slice %arg0 [1:9:2] : (tensor<9xf32>) -> tensor<4xf32>
  %3 = stablehlo.slice %arg0 [0:3] : (tensor<9xf32>) -> tensor<3xf32>
  func.return %0, %1, %2, %3 : tensor<8xf32>, tensor<1xf32>, tensor<4xf32>, tensor<3xf32>
}
// -----
// CASE: table_that_is_cut_to_what_varies
// RUN-PASS: pad_sizes 1.0
func.func public @main(%arg0: tensor<13x2xf32>, %arg1: tensor<11x2xf32>) -> (tensor<11x2xf32>) {
  %0 = stablehlo.slice %arg0 [0:11, 0:2] : (tensor<13x2xf32>) -> tensor<11x2xf32>
  %1 = stablehlo.add %0, %arg1 : tensor<11x2xf32>
  func.return %1 : tensor<11x2xf32>
}
// -----
// CASE: padding_on_both_sides
// RUN-PASS: pad_sizes 0.0
func.func public @main(%arg0: tensor<5xf32>, %arg1: tensor<f32>) -> (tensor<9xf32>, tensor<4xf32>, tensor<11xf32>) {
  %0 = stablehlo.pad %arg0, %arg1, low = [3], high = [1], interior = [0] : (tensor<5xf32>, tensor<f32>) -> tensor<9xf32>
  %1 = stablehlo.pad %arg0, %arg1, low = [-2], high = [1], interior = [0] : (tensor<5xf32>, tensor<f32>) -> tensor<4xf32>
  %2 = stablehlo.pad %arg0, %arg1, low = [0], high = [2], interior = [1] : (tensor<5xf32>, tensor<f32>) -> tensor<11xf32>
  func.return %0, %1, %2 : tensor<9xf32>, tensor<4xf32>, tensor<11xf32>
}
// -----
// CASE: concatenation_closes_the_gap
// RUN-PASS: pad_sizes 0.0 1.0
func.func public @main(%arg0: tensor<5x2xf32>, %arg1: tensor<60x2xf32>, %arg2: tensor<1x2xf32>) -> (tensor<66x2xf32>) {
  %0 = stablehlo.concatenate %arg0, %arg1, %arg2, dim = 0 : (tensor<5x2xf32>, tensor<60x2xf32>, tensor<1x2xf32>) -> tensor<66x2xf32>
  func.return %0 : tensor<66x2xf32>
}
// -----
// CASE: reverse_starts_at_the_true_end
// RUN-PASS: pad_sizes 0.0
func.func public @main(%arg0: tensor<5x2xf32>) -> (tensor<5x2xf32>) {
  %0 = stablehlo.reverse %arg0, dims = [0] : tensor<5x2xf32>
  func.return %0 : tensor<5x2xf32>
}
// -----
// CASE: dynamic_slices_stop_at_the_true_end
// RUN-PASS: pad_sizes 0.0
// INPUTS: integers
func.func public @main(%arg0: tensor<5xf32>, %arg1: tensor<2xf32>) -> (tensor<2xf32>, tensor<5xf32>) {
  %0 = stablehlo.constant dense<4> : tensor<i64>
  %1 = stablehlo.dynamic_slice %arg0, %0, sizes = [2] : (tensor<5xf32>, tensor<i64>) -> tensor<2xf32>
  %2 = stablehlo.dynamic_update_slice %arg0, %arg1, %0 : (tensor<5xf32>, tensor<2xf32>, tensor<i64>) -> tensor<5xf32>
  func.return %1, %2 : tensor<2xf32>, tensor<5xf32>
}
// -----
// CASE: updates_that_vary
// RUN-PASS: pad_sizes 1.0
// INPUTS: integers
func.func public @main(%arg0: tensor<20xf32>, %arg1: tensor<5xf32>) -> (tensor<20xf32>) {
  %0 = stablehlo.constant dense<14> : tensor<i64>
  %2 = stablehlo.dynamic_update_slice %arg0, %arg1, %0 : (tensor<20xf32>, tensor<5xf32>, tensor<i64>) -> tensor<20xf32>
  func.return %2 : tensor<20xf32>
}
// -----
// CASE: sorting_what_varies_is_refused
// RUN-PASS: pad_sizes 0.0
// REFUSED: sort is not padded
func.func public @main(%arg0: tensor<5xf32>) -> (tensor<5xf32>) {
  %0 = "stablehlo.sort"(%arg0) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<5xf32>) -> tensor<5xf32>
  func.return %0 : tensor<5xf32>
}
// -----
// CASE: one_is_no_size_that_varies
// RUN-PASS: pad_sizes 0.0
// REFUSED: less than 2
func.func public @main(%arg0: tensor<1xf32>) -> (tensor<1xf32>) {
  %0 = stablehlo.negate %arg0 : tensor<1xf32>
  func.return %0 : tensor<1xf32>
}
