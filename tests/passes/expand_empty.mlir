// CASE: gradient_of_nothing
// RUN-PASS: expand_empty,dead_code
// COUNT: stablehlo.select_and_scatter 0
// INPUTS: integers
// TOLERANCE: 1e-5
func.func public @main(%arg0: tensor<3xf32>, %arg1: tensor<0xf32>) -> (tensor<3xf32>) {
  %0 = stablehlo.constant dense<5.000000000e-01> : tensor<f32>
  %1 = "stablehlo.select_and_scatter"(%arg0, %arg1, %0) <{window_dimensions = array<i64: 5>, window_strides = array<i64: 1>, padding = dense<[[0, 0]]> : tensor<1x2xi64>}> ({
  ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
    %2 = stablehlo.compare GE, %arg2, %arg3 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  }, {
  ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
    %3 = stablehlo.add %arg4, %arg5 : tensor<f32>
    stablehlo.return %3 : tensor<f32>
  }) : (tensor<3xf32>, tensor<0xf32>, tensor<f32>) -> tensor<3xf32>
  func.return %1 : tensor<3xf32>
}
// -----
// CASE: sum_of_nothing
// RUN-PASS: expand_empty,dead_code
// COUNT: stablehlo.reduce 1
// INPUTS: integers
// TOLERANCE: 1e-5
func.func public @main(%arg0: tensor<4x0xf32>, %arg1: tensor<4xf32>) -> (tensor<4xf32>, tensor<f32>) {
  %0 = stablehlo.constant dense<0.000000000e+00> : tensor<f32>
  %1 = stablehlo.reduce(%arg0 init: %0) applies stablehlo.add across dimensions = [1] : (tensor<4x0xf32>, tensor<f32>) -> tensor<4xf32>
  %2 = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %3 = stablehlo.reduce(%arg1 init: %2) applies stablehlo.maximum across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  func.return %1, %3 : tensor<4xf32>, tensor<f32>
}
// -----
// CASE: padding_around_nothing
// RUN-PASS: expand_empty,dead_code
// COUNT: stablehlo.pad 0
// INPUTS: integers
// TOLERANCE: 1e-5
func.func public @main(%arg0: tensor<0x2xf32>) -> (tensor<3x3xf32>) {
  %0 = stablehlo.constant dense<3.000000000e+00> : tensor<f32>
  %1 = stablehlo.pad %arg0, %0, low = [1, 0], high = [2, 1], interior = [0, 0] : (tensor<0x2xf32>, tensor<f32>) -> tensor<3x3xf32>
  func.return %1 : tensor<3x3xf32>
}
// -----
// CASE: windows_over_nothing
// RUN-PASS: expand_empty,dead_code
// COUNT: stablehlo.reduce_window 0
// INPUTS: integers
// TOLERANCE: 1e-5
func.func public @main(%arg0: tensor<0x3xf32>) -> (tensor<2x3xf32>) {
  %0 = stablehlo.constant dense<0.000000000e+00> : tensor<f32>
  %1 = "stablehlo.reduce_window"(%arg0, %0) <{window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 1, 1>, base_dilations = array<i64: 1, 1>, window_dilations = array<i64: 1, 1>, padding = dense<[[2, 1], [0, 0]]> : tensor<2x2xi64>}> ({
  ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
    %2 = stablehlo.add %arg1, %arg2 : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<0x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  func.return %1 : tensor<2x3xf32>
}
// -----
// CASE: gather_at_no_position
// RUN-PASS: expand_empty,dead_code
// COUNT: stablehlo.gather 0
// INPUTS: integers
// TOLERANCE: 1e-5
func.func public @main(%arg0: tensor<4x5x6xf32>, %arg1: tensor<3x0xi32>) -> (tensor<2x3x5xf32>) {
  %0 = "stablehlo.gather"(%arg0, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 2], collapsed_slice_dims = [1], index_vector_dim = 1>, slice_sizes = array<i64: 2, 1, 5>, indices_are_sorted = false}> : (tensor<4x5x6xf32>, tensor<3x0xi32>) -> tensor<2x3x5xf32>
  func.return %0 : tensor<2x3x5xf32>
}
// -----
// CASE: spectrum_of_nothing
// RUN-PASS: expand_empty,dead_code
// COUNT: stablehlo.fft 0
// INPUTS: integers
// TOLERANCE: 1e-5
func.func public @main(%arg0: tensor<3x0xf32>) -> (tensor<3x1xcomplex<f32>>) {
  %0 = "stablehlo.fft"(%arg0) <{fft_type = #stablehlo<fft_type RFFT>, fft_length = array<i64: 0>}> : (tensor<3x0xf32>) -> tensor<3x1xcomplex<f32>>
  func.return %0 : tensor<3x1xcomplex<f32>>
}
