// CASE: spatial_reverses
// RUN-PASS: fold_reverse_into_convolution
// COUNT: stablehlo.reverse 0
// CHECK: reverse = [1, 1]
// INPUTS: integers
func.func public @main(%arg0: tensor<2x3x6x6xf32>, %arg1: tensor<4x3x3x3xf32>) -> (tensor<2x4x6x6xf32>) {
  %0 = stablehlo.reverse %arg1, dims = [2, 3] : tensor<4x3x3x3xf32>
  %1 = stablehlo.convolution(%arg0, %0) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [0, 0]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x3x6x6xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x6x6xf32>
  func.return %1 : tensor<2x4x6x6xf32>
}
// -----
// CASE: reverses_of_features_stay
// RUN-PASS: fold_reverse_into_convolution
// UNCHANGED
// INPUTS: integers
func.func public @main(%arg0: tensor<2x3x6x6xf32>, %arg1: tensor<4x3x3x3xf32>) -> (tensor<2x4x6x6xf32>) {
  %0 = stablehlo.reverse %arg1, dims = [1, 2, 3] : tensor<4x3x3x3xf32>
  %1 = stablehlo.convolution(%arg0, %0) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [0, 0]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x3x6x6xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x6x6xf32>
  func.return %1 : tensor<2x4x6x6xf32>
}
