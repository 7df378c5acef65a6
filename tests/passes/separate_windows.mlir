// Windows over several dimensions, one dimension after the other.
// CASE: sums_of_overlapping_windows
// RUN-PASS: separate_windows
// ONCE
// COUNT: stablehlo.reduce_window 2
// INPUTS: integers
// TOLERANCE: 0
// ON-ENGINE
func.func public @main(%x: tensor<3x20x37xf32>) -> (tensor<3x20x37xf32>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 1, 7, 7>, padding = dense<[[0, 0], [3, 3], [3, 3]]> : tensor<3x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<3x20x37xf32>, tensor<f32>) -> tensor<3x20x37xf32>
  func.return %0 : tensor<3x20x37xf32>
}
// -----
// CASE: maxima_by_steps_and_with_gaps
// RUN-PASS: separate_windows
// COUNT: stablehlo.reduce_window 2
// TOLERANCE: 0
// ON-ENGINE
func.func public @main(%x: tensor<30x41xf32>) -> (tensor<4x11xf32>) {
  %z = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 8, 5>, window_strides = array<i64: 8, 3>, window_dilations = array<i64: 1, 2>, padding = dense<[[3, 1], [0, 0]]> : tensor<2x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<30x41xf32>, tensor<f32>) -> tensor<4x11xf32>
  func.return %0 : tensor<4x11xf32>
}
// -----
// CASE: what_lies_apart_is_spread
// RUN-PASS: separate_windows
// COUNT: stablehlo.reduce_window 3
// INPUTS: integers
// TOLERANCE: 0
// ON-ENGINE
func.func public @main(%x: tensor<4x5x6xf64>) -> (tensor<10x13x20xf64>) {
  %z = stablehlo.constant dense<0.0> : tensor<f64>
  %0 = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 3, 3, 5>, base_dilations = array<i64: 3, 2, 3>, padding = dense<[[1, 1], [3, 3], [4, 4]]> : tensor<3x2xi64>}> ({
  ^bb0(%a: tensor<f64>, %b: tensor<f64>):
    %1 = stablehlo.add %a, %b : tensor<f64>
    stablehlo.return %1 : tensor<f64>
  }) : (tensor<4x5x6xf64>, tensor<f64>) -> tensor<10x13x20xf64>
  func.return %0 : tensor<10x13x20xf64>
}
// -----
// CASE: what_a_window_starts_from_counts_once
// RUN-PASS: separate_windows
// UNCHANGED
func.func public @main(%x: tensor<20x20xf32>) -> (tensor<14x14xf32>) {
  %z = stablehlo.constant dense<1.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 7, 7>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<20x20xf32>, tensor<f32>) -> tensor<14x14xf32>
  func.return %0 : tensor<14x14xf32>
}
// -----
// CASE: small_windows_and_lines_stay
// RUN-PASS: separate_windows
// UNCHANGED
func.func public @main(%x: tensor<20x40xf32>) -> (tensor<15x35xf32>, tensor<20x20xf32>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 6, 6>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %2 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<20x40xf32>, tensor<f32>) -> tensor<15x35xf32>
  %1 = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 1, 21>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %2 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<20x40xf32>, tensor<f32>) -> tensor<20x20xf32>
  func.return %0, %1 : tensor<15x35xf32>, tensor<20x20xf32>
}
