// CASE: one_of_each_kind
// RUN-PASS: single_kernels
// STEPS: cpu.loop cpu.reduce cpu.scan cpu.sort cpu.scatter
// COUNT: stablehlo.composite 5
// ONCE
// ON-ENGINE
// INPUTS: integers
func.func public @main(%arg0: tensor<4x16xf32>, %arg1: tensor<2x1xi32>, %arg2: tensor<2x16xf32>) -> (tensor<16xf32>, tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>) {
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.add %arg0, %arg0 : tensor<4x16xf32>
  %2 = stablehlo.reduce(%1 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<4x16xf32>, tensor<f32>) -> tensor<16xf32>
  %3 = "stablehlo.reduce_window"(%1, %0) <{padding = dense<[[0, 0], [15, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 1, 16>}> ({
  ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
    %6 = stablehlo.add %arg3, %arg4 : tensor<f32>
    stablehlo.return %6 : tensor<f32>
  }) : (tensor<4x16xf32>, tensor<f32>) -> tensor<4x16xf32>
  %4 = "stablehlo.sort"(%1) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%arg5: tensor<f32>, %arg6: tensor<f32>):
    %7 = stablehlo.compare LT, %arg5, %arg6 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %7 : tensor<i1>
  }) : (tensor<4x16xf32>) -> tensor<4x16xf32>
  %5 = "stablehlo.scatter"(%1, %arg1, %arg2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%arg7: tensor<f32>, %arg8: tensor<f32>):
    %8 = stablehlo.add %arg7, %arg8 : tensor<f32>
    stablehlo.return %8 : tensor<f32>
  }) : (tensor<4x16xf32>, tensor<2x1xi32>, tensor<2x16xf32>) -> tensor<4x16xf32>
  func.return %2, %3, %4, %5 : tensor<16xf32>, tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>
}
// -----
// CASE: what_is_called_or_lies_there_is_none
// RUN-PASS: single_kernels
// STEPS: dot_general
// UNCHANGED
// INPUTS: integers
func.func public @main(%arg0: tensor<4x6xf32>) -> (tensor<4x5xf32>) {
  %0 = stablehlo.constant dense<1.0> : tensor<30xf32>
  %1 = stablehlo.reshape %0 : (tensor<30xf32>) -> tensor<6x5xf32>
  %2 = stablehlo.dot_general %arg0, %1, contracting_dims = [1] x [0] : (tensor<4x6xf32>, tensor<6x5xf32>) -> tensor<4x5xf32>
  func.return %2 : tensor<4x5xf32>
}
// -----
// CASE: within_a_loop
// RUN-PASS: single_kernels
// COUNT: stablehlo.composite 3
// ONCE
// ON-ENGINE
// INPUTS: integers
func.func public @main(%arg0: tensor<3xf32>, %arg1: tensor<i32>) -> (tensor<3xf32>) {
  %0:2 = stablehlo.while(%arg2 = %arg0, %arg3 = %arg1) : tensor<3xf32>, tensor<i32>
  cond {
    %1 = stablehlo.constant dense<2> : tensor<i32>
    %2 = stablehlo.compare LT, %arg3, %1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    %3 = stablehlo.constant dense<1> : tensor<i32>
    %4 = stablehlo.add %arg2, %arg2 : tensor<3xf32>
    %5 = stablehlo.add %arg3, %3 : tensor<i32>
    stablehlo.return %4, %5 : tensor<3xf32>, tensor<i32>
  }
  func.return %0#0 : tensor<3xf32>
}
