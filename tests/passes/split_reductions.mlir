// A large sum to few results becomes a sum of sums.
// CASE: a_large_sum
// RUN-PASS: split_reductions
// COUNT: stablehlo.reduce 2
// INPUTS: integers
func.func public @main(%arg0: tensor<512x1024xf32>) -> (tensor<f32>) {
  %0 = stablehlo.constant dense<0.000000000e+00> : tensor<f32>
  %1 = stablehlo.reduce(%arg0 init: %0) applies stablehlo.add across dimensions = [0, 1] : (tensor<512x1024xf32>, tensor<f32>) -> tensor<f32>
  func.return %1 : tensor<f32>
}
// -----
// CASE: a_sum_of_few
// RUN-PASS: split_reductions
// UNCHANGED
func.func public @main(%arg0: tensor<4x8xf32>) -> (tensor<f32>) {
  %0 = stablehlo.constant dense<0.000000000e+00> : tensor<f32>
  %1 = stablehlo.reduce(%arg0 init: %0) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<f32>
  func.return %1 : tensor<f32>
}
