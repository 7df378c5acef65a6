// CASE: pooling_without_overlap
// RUN-PASS: expand_select_and_scatter,dead_code
// COUNT: stablehlo.select_and_scatter 0
// INPUTS: integers
// TOLERANCE: 1e-5
func.func public @main(%arg0: tensor<2x6x8xf32>, %arg1: tensor<2x3x4xf32>) -> (tensor<2x6x8xf32>) {
  %0 = stablehlo.constant dense<5.000000000e-01> : tensor<f32>
  %1 = "stablehlo.select_and_scatter"(%arg0, %arg1, %0) <{window_dimensions = array<i64: 1, 2, 2>, window_strides = array<i64: 1, 2, 2>, padding = dense<[[0, 0], [0, 0], [0, 0]]> : tensor<3x2xi64>}> ({
  ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
    %2 = stablehlo.compare GE, %arg2, %arg3 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  }, {
  ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
    %3 = stablehlo.add %arg4, %arg5 : tensor<f32>
    stablehlo.return %3 : tensor<f32>
  }) : (tensor<2x6x8xf32>, tensor<2x3x4xf32>, tensor<f32>) -> tensor<2x6x8xf32>
  func.return %1 : tensor<2x6x8xf32>
}
// -----
// CASE: pooling_with_overlap_and_padding
// RUN-PASS: expand_select_and_scatter,dead_code
// COUNT: stablehlo.select_and_scatter 0
// INPUTS: integers
// TOLERANCE: 1e-5
func.func public @main(%arg0: tensor<5x7xf32>, %arg1: tensor<3x7xf32>) -> (tensor<5x7xf32>) {
  %0 = stablehlo.constant dense<5.000000000e-01> : tensor<f32>
  %1 = "stablehlo.select_and_scatter"(%arg0, %arg1, %0) <{window_dimensions = array<i64: 3, 3>, window_strides = array<i64: 2, 1>, padding = dense<[[1, 1], [1, 1]]> : tensor<2x2xi64>}> ({
  ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
    %2 = stablehlo.compare GE, %arg2, %arg3 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  }, {
  ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
    %3 = stablehlo.add %arg4, %arg5 : tensor<f32>
    stablehlo.return %3 : tensor<f32>
  }) : (tensor<5x7xf32>, tensor<3x7xf32>, tensor<f32>) -> tensor<5x7xf32>
  func.return %1 : tensor<5x7xf32>
}
// -----
// CASE: rows_left_over
// RUN-PASS: expand_select_and_scatter,dead_code
// COUNT: stablehlo.select_and_scatter 0
// INPUTS: integers
// TOLERANCE: 1e-5
func.func public @main(%arg0: tensor<9xf32>, %arg1: tensor<3xf32>) -> (tensor<9xf32>) {
  %0 = stablehlo.constant dense<5.000000000e-01> : tensor<f32>
  %1 = "stablehlo.select_and_scatter"(%arg0, %arg1, %0) <{window_dimensions = array<i64: 2>, window_strides = array<i64: 3>, padding = dense<[[0, 0]]> : tensor<1x2xi64>}> ({
  ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
    %2 = stablehlo.compare GE, %arg2, %arg3 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  }, {
  ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
    %3 = stablehlo.add %arg4, %arg5 : tensor<f32>
    stablehlo.return %3 : tensor<f32>
  }) : (tensor<9xf32>, tensor<3xf32>, tensor<f32>) -> tensor<9xf32>
  func.return %1 : tensor<9xf32>
}
// -----
// CASE: padding_without_overlap
// RUN-PASS: expand_select_and_scatter,dead_code
// COUNT: stablehlo.select_and_scatter 0
// COUNT: stablehlo.map 1
// INPUTS: integers
// TOLERANCE: 1e-5
// ON-ENGINE
func.func public @main(%arg0: tensor<2x13x11xf32>, %arg1: tensor<2x3x4xf32>) -> (tensor<2x13x11xf32>) {
  %0 = stablehlo.constant dense<5.000000000e-01> : tensor<f32>
  %1 = "stablehlo.select_and_scatter"(%arg0, %arg1, %0) <{window_dimensions = array<i64: 1, 5, 2>, window_strides = array<i64: 1, 5, 3>, padding = dense<[[0, 0], [2, 0], [1, 0]]> : tensor<3x2xi64>}> ({
  ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
    %2 = stablehlo.compare GE, %arg2, %arg3 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  }, {
  ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
    %3 = stablehlo.add %arg4, %arg5 : tensor<f32>
    stablehlo.return %3 : tensor<f32>
  }) : (tensor<2x13x11xf32>, tensor<2x3x4xf32>, tensor<f32>) -> tensor<2x13x11xf32>
  func.return %1 : tensor<2x13x11xf32>
}
// -----
// CASE: large_windows_that_overlap
// RUN-PASS: expand_select_and_scatter,dead_code
// COUNT: stablehlo.select_and_scatter 0
// COUNT: stablehlo.scatter 1
// INPUTS: integers
// TOLERANCE: 1e-5
// ON-ENGINE
func.func public @main(%arg0: tensor<2x9x8xf32>, %arg1: tensor<2x9x4xf32>) -> (tensor<2x9x8xf32>) {
  %0 = stablehlo.constant dense<5.000000000e-01> : tensor<f32>
  %1 = "stablehlo.select_and_scatter"(%arg0, %arg1, %0) <{window_dimensions = array<i64: 1, 7, 7>, window_strides = array<i64: 1, 1, 2>, padding = dense<[[0, 0], [3, 3], [3, 3]]> : tensor<3x2xi64>}> ({
  ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
    %2 = stablehlo.compare GE, %arg2, %arg3 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  }, {
  ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
    %3 = stablehlo.add %arg4, %arg5 : tensor<f32>
    stablehlo.return %3 : tensor<f32>
  }) : (tensor<2x9x8xf32>, tensor<2x9x4xf32>, tensor<f32>) -> tensor<2x9x8xf32>
  func.return %1 : tensor<2x9x8xf32>
}
// -----
// CASE: windows_that_move_on_tell_their_winners
// RUN-PASS: expand_select_and_scatter,dead_code
// COUNT: stablehlo.select_and_scatter 0
// COUNT: stablehlo.scatter 1
// INPUTS: integers
// TOLERANCE: 1e-5
// ON-ENGINE
func.func public @main(%arg0: tensor<2x9x8xf32>, %arg1: tensor<2x5x4xf32>) -> (tensor<2x9x8xf32>) {
  %0 = stablehlo.constant dense<5.000000000e-01> : tensor<f32>
  %1 = "stablehlo.select_and_scatter"(%arg0, %arg1, %0) <{window_dimensions = array<i64: 1, 3, 3>, window_strides = array<i64: 1, 2, 2>, padding = dense<[[0, 0], [1, 1], [1, 1]]> : tensor<3x2xi64>}> ({
  ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
    %2 = stablehlo.compare GE, %arg2, %arg3 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  }, {
  ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
    %3 = stablehlo.add %arg4, %arg5 : tensor<f32>
    stablehlo.return %3 : tensor<f32>
  }) : (tensor<2x9x8xf32>, tensor<2x5x4xf32>, tensor<f32>) -> tensor<2x9x8xf32>
  func.return %1 : tensor<2x9x8xf32>
}
// -----
// CASE: many_positions_tell_their_winners
// RUN-PASS: expand_select_and_scatter,dead_code
// COUNT: stablehlo.select_and_scatter 0
// COUNT: stablehlo.scatter 1
// INPUTS: integers
// TOLERANCE: 1e-5
// ON-ENGINE
func.func public @main(%arg0: tensor<6x9x8xf32>, %arg1: tensor<6x9x8xf32>) -> (tensor<6x9x8xf32>) {
  %0 = stablehlo.constant dense<0.000000000e+00> : tensor<f32>
  %1 = "stablehlo.select_and_scatter"(%arg0, %arg1, %0) <{window_dimensions = array<i64: 3, 3, 3>, window_strides = array<i64: 1, 1, 1>, padding = dense<[[1, 1], [1, 1], [1, 1]]> : tensor<3x2xi64>}> ({
  ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
    %2 = stablehlo.compare GE, %arg2, %arg3 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  }, {
  ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
    %3 = stablehlo.add %arg4, %arg5 : tensor<f32>
    stablehlo.return %3 : tensor<f32>
  }) : (tensor<6x9x8xf32>, tensor<6x9x8xf32>, tensor<f32>) -> tensor<6x9x8xf32>
  func.return %1 : tensor<6x9x8xf32>
}
