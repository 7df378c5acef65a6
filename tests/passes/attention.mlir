// CASE: becomes_one_call_that_reads_and_writes_through_transpositions
// RUN-PASS: pipeline
// INPUTS: integers
// TOLERANCE: 1e-5
// ON-ENGINE
// STEPS: cpu.attention
func.func private @attention(%arg0: tensor<2x3x5x8xf32>, %arg1: tensor<2x3x7x8xf32>, %arg2: tensor<2x3x7x8xf32>) -> (tensor<2x3x5x8xf32>, tensor<2x3x5xf32>) {
  %0 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : (tensor<2x3x5x8xf32>, tensor<2x3x7x8xf32>) -> tensor<2x3x5x7xf32>
  %1 = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %2 = stablehlo.reduce(%0 init: %1) applies stablehlo.maximum across dimensions = [3] : (tensor<2x3x5x7xf32>, tensor<f32>) -> tensor<2x3x5xf32>
  %3 = stablehlo.broadcast_in_dim %2, dims = [0, 1, 2] : (tensor<2x3x5xf32>) -> tensor<2x3x5x7xf32>
  %4 = stablehlo.subtract %0, %3 : tensor<2x3x5x7xf32>
  %5 = stablehlo.exponential %4 : tensor<2x3x5x7xf32>
  %6 = stablehlo.constant dense<0.0> : tensor<f32>
  %7 = stablehlo.reduce(%5 init: %6) applies stablehlo.add across dimensions = [3] : (tensor<2x3x5x7xf32>, tensor<f32>) -> tensor<2x3x5xf32>
  %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1, 2] : (tensor<2x3x5xf32>) -> tensor<2x3x5x7xf32>
  %9 = stablehlo.divide %5, %8 : tensor<2x3x5x7xf32>
  %10 = stablehlo.dot_general %9, %arg2, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (tensor<2x3x5x7xf32>, tensor<2x3x7x8xf32>) -> tensor<2x3x5x8xf32>
  %11 = stablehlo.log %7 : tensor<2x3x5xf32>
  %12 = stablehlo.add %2, %11 : tensor<2x3x5xf32>
  func.return %10, %12 : tensor<2x3x5x8xf32>, tensor<2x3x5xf32>
}
func.func public @main(%arg0: tensor<2x5x3x8xf32>, %arg1: tensor<2x7x3x8xf32>, %arg2: tensor<2x3x7x8xf32>) -> (tensor<2x5x3x8xf32>, tensor<2x5x3xf32>) {
  %0 = stablehlo.transpose %arg0, dims = [0, 2, 1, 3] : (tensor<2x5x3x8xf32>) -> tensor<2x3x5x8xf32>
  %1 = stablehlo.transpose %arg1, dims = [0, 2, 1, 3] : (tensor<2x7x3x8xf32>) -> tensor<2x3x7x8xf32>
  %2:2 = stablehlo.composite "torch_xla.attention" %0, %1, %arg2 {composite_attributes = {is_causal = false, scale = 1.0 : f64}, decomposition = @attention} : (tensor<2x3x5x8xf32>, tensor<2x3x7x8xf32>, tensor<2x3x7x8xf32>) -> (tensor<2x3x5x8xf32>, tensor<2x3x5xf32>)
  %3 = stablehlo.transpose %2#0, dims = [0, 2, 1, 3] : (tensor<2x3x5x8xf32>) -> tensor<2x5x3x8xf32>
  %4 = stablehlo.transpose %2#1, dims = [0, 2, 1] : (tensor<2x3x5xf32>) -> tensor<2x5x3xf32>
  func.return %3, %4 : tensor<2x5x3x8xf32>, tensor<2x5x3xf32>
}
// -----
// CASE: a_result_that_is_read_twice_and_columns_across_stay
// RUN-PASS: attention
// INPUTS: integers
// TOLERANCE: 1e-5
// STEPS: transpose cpu.attention transpose
func.func private @attention(%arg0: tensor<1x2x5x8xf32>, %arg1: tensor<1x2x5x8xf32>, %arg2: tensor<1x2x5x8xf32>) -> (tensor<1x2x5x8xf32>, tensor<1x2x5xf32>) {
  %0 = stablehlo.add %arg0, %arg1 : tensor<1x2x5x8xf32>
  %1 = stablehlo.multiply %0, %arg2 : tensor<1x2x5x8xf32>
  %2 = stablehlo.constant dense<0.0> : tensor<f32>
  %3 = stablehlo.reduce(%1 init: %2) applies stablehlo.add across dimensions = [3] : (tensor<1x2x5x8xf32>, tensor<f32>) -> tensor<1x2x5xf32>
  func.return %1, %3 : tensor<1x2x5x8xf32>, tensor<1x2x5xf32>
}
func.func public @main(%arg0: tensor<1x2x8x5xf32>, %arg1: tensor<1x2x5x8xf32>) -> (tensor<1x2x5x8xf32>, tensor<1x5x2x8xf32>, tensor<1x2x5xf32>) {
  %0 = stablehlo.transpose %arg0, dims = [0, 1, 3, 2] : (tensor<1x2x8x5xf32>) -> tensor<1x2x5x8xf32>
  %1:2 = stablehlo.composite "torch_xla.attention" %0, %arg1, %arg1 {composite_attributes = {is_causal = false, scale = 1.0 : f64}, decomposition = @attention} : (tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>) -> (tensor<1x2x5x8xf32>, tensor<1x2x5xf32>)
  %2 = stablehlo.transpose %1#0, dims = [0, 2, 1, 3] : (tensor<1x2x5x8xf32>) -> tensor<1x5x2x8xf32>
  func.return %1#0, %2, %1#1 : tensor<1x2x5x8xf32>, tensor<1x5x2x8xf32>, tensor<1x2x5xf32>
}
// -----
// CASE: types_without_a_kernel_are_decomposed
// RUN-PASS: expand_composites
// INPUTS: integers
// COUNT: stablehlo.composite 0
func.func private @attention(%arg0: tensor<1x2x5x8xf64>, %arg1: tensor<1x2x5x8xf64>, %arg2: tensor<1x2x5x8xf64>) -> (tensor<1x2x5x8xf64>, tensor<1x2x5x8xf64>) {
  %0 = stablehlo.add %arg0, %arg1 : tensor<1x2x5x8xf64>
  %1 = stablehlo.multiply %0, %arg2 : tensor<1x2x5x8xf64>
  func.return %1, %0 : tensor<1x2x5x8xf64>, tensor<1x2x5x8xf64>
}
func.func public @main(%arg0: tensor<1x2x5x8xf64>) -> (tensor<1x2x5x8xf64>) {
  %0:2 = stablehlo.composite "torch_xla.attention" %arg0, %arg0, %arg0 {composite_attributes = {is_causal = false, scale = 1.0 : f64}, decomposition = @attention} : (tensor<1x2x5x8xf64>, tensor<1x2x5x8xf64>, tensor<1x2x5x8xf64>) -> (tensor<1x2x5x8xf64>, tensor<1x2x5x8xf64>)
  func.return %0#0 : tensor<1x2x5x8xf64>
}
