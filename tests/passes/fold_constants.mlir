// CASE: small_arithmetic
// RUN-PASS: fold_constants
// COUNT: stablehlo.exponential 0
// COUNT: stablehlo.reduce 0
// ONCE
func.func public @main(%arg0: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2xf32>) {
  %0 = stablehlo.constant dense<[[1.000000000e+00, 2.000000000e+00], [3.000000000e+00, 4.000000000e+00]]> : tensor<2x2xf32>
  %1 = stablehlo.reshape %0 : (tensor<2x2xf32>) -> tensor<4xf32>
  %2 = stablehlo.reshape %1 : (tensor<4xf32>) -> tensor<2x2xf32>
  %3 = stablehlo.exponential %2 : tensor<2x2xf32>
  %4 = stablehlo.transpose %3, dims = [1, 0] : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %5 = stablehlo.add %arg0, %4 : tensor<2x2xf32>
  %6 = stablehlo.constant dense<0.000000000e+00> : tensor<f32>
  %7 = stablehlo.reduce(%0 init: %6) applies stablehlo.add across dimensions = [0] : (tensor<2x2xf32>, tensor<f32>) -> tensor<2xf32>
  func.return %5, %7 : tensor<2x2xf32>, tensor<2xf32>
}
// -----
// CASE: fills_stay_symbolic
// RUN-PASS: fold_constants
// COUNT: stablehlo.multiply 0
// COUNT: stablehlo.broadcast_in_dim 1
// COUNT: stablehlo.constant 1
// CHECK: dense<6.000000e+00> : tensor<f32>
func.func public @main(%arg0: tensor<100x100xf32>) -> (tensor<100x100xf32>) {
  %0 = stablehlo.constant dense<2.000000000e+00> : tensor<f32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<100x100xf32>
  %2 = stablehlo.constant dense<3.000000000e+00> : tensor<f32>
  %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<f32>) -> tensor<100x100xf32>
  %4 = stablehlo.multiply %1, %3 : tensor<100x100xf32>
  %5 = stablehlo.add %arg0, %4 : tensor<100x100xf32>
  func.return %5 : tensor<100x100xf32>
}
// -----
// CASE: large_results_and_iota_stay
// RUN-PASS: fold_constants
// UNCHANGED
func.func public @main() -> (tensor<2x4096xf32>, tensor<4xi32>) {
  %0 = stablehlo.constant dense<[1.000000000e+00, 2.000000000e+00]> : tensor<2xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<2xf32>) -> tensor<2x4096xf32>
  %2 = stablehlo.iota dim = 0 : tensor<4xi32>
  func.return %1, %2 : tensor<2x4096xf32>, tensor<4xi32>
}
