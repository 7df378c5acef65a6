// CASE: equal_work_is_shared
// RUN-PASS: common_subexpressions
// COUNT: stablehlo.add 1
// COUNT: stablehlo.subtract 2
// COUNT: stablehlo.exponential 3
func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.add %arg0, %arg1 : tensor<4xf32>
  %1 = stablehlo.exponential %0 : tensor<4xf32>
  %2 = stablehlo.add %arg1, %arg0 : tensor<4xf32>
  %3 = stablehlo.exponential %2 : tensor<4xf32>
  %4 = stablehlo.subtract %arg0, %arg1 : tensor<4xf32>
  %5 = stablehlo.exponential %4 : tensor<4xf32>
  %6 = stablehlo.subtract %arg1, %arg0 : tensor<4xf32>
  %7 = stablehlo.exponential %6 : tensor<4xf32>
  func.return %1, %3, %5, %7 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
// -----
// CASE: equal_bodies_are_shared
// RUN-PASS: common_subexpressions
// COUNT: stablehlo.reduce 2
// COMPUTATIONS: 2
func.func public @main(%arg0: tensor<4x3xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %0 = stablehlo.constant dense<0.000000000e+00> : tensor<f32>
  %1 = stablehlo.reduce(%arg0 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<4x3xf32>, tensor<f32>) -> tensor<3xf32>
  %2 = stablehlo.constant dense<0.000000000e+00> : tensor<f32>
  %3 = stablehlo.reduce(%arg0 init: %2) applies stablehlo.add across dimensions = [0] : (tensor<4x3xf32>, tensor<f32>) -> tensor<3xf32>
  %4 = stablehlo.negate %arg0 : tensor<4x3xf32>
  %5 = stablehlo.constant dense<0.000000000e+00> : tensor<f32>
  %6 = stablehlo.reduce(%4 init: %5) applies stablehlo.add across dimensions = [0] : (tensor<4x3xf32>, tensor<f32>) -> tensor<3xf32>
  func.return %1, %3, %6 : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
}
// -----
// CASE: signs_of_zero_are_kept_apart
// RUN-PASS: common_subexpressions
// UNCHANGED
func.func public @main(%arg0: tensor<4xf32>) -> (tensor<f32>, tensor<f32>) {
  %0 = stablehlo.constant dense<0.000000000e+00> : tensor<f32>
  %1 = stablehlo.constant dense<-0.000000000e+00> : tensor<f32>
  func.return %0, %1 : tensor<f32>, tensor<f32>
}
