// CASE: dimension_size
// RUN-PASS: dimension_sizes,dead_code
// COUNT: stablehlo.get_dimension_size 0
// INPUTS: integers
// TOLERANCE: 1e-5
func.func public @main(%arg0: tensor<6x7xf32>) -> (tensor<i32>) {
  %0 = "stablehlo.get_dimension_size"(%arg0) <{dimension = 1 : i64}> : (tensor<6x7xf32>) -> tensor<i32>
  func.return %0 : tensor<i32>
}
