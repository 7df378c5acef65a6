// Reductions of pairs at the end of an array.
// CASE: sums_of_two
// RUN-PASS: expand_short_reductions
// ONCE
// COUNT: stablehlo.reduce 0
// COUNT: stablehlo.slice 2
// TOLERANCE: 1e-6
// ON-ENGINE
func.func public @main(%x: tensor<400x5x2xf32>) -> (tensor<400x5xf32>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [2] : (tensor<400x5x2xf32>, tensor<f32>) -> tensor<400x5xf32>
  func.return %0 : tensor<400x5xf32>
}
// -----
// CASE: windows_of_two_by_one
// RUN-PASS: expand_short_reductions
// COUNT: stablehlo.reduce 0
// COUNT: stablehlo.slice 2
// TOLERANCE: 0
// ON-ENGINE
func.func public @main(%x: tensor<1070x2x1xf64>, %init: tensor<f64>) -> (tensor<1070xf64>) {
  %0 = stablehlo.reduce(%x init: %init) applies stablehlo.maximum across dimensions = [1, 2] : (tensor<1070x2x1xf64>, tensor<f64>) -> tensor<1070xf64>
  func.return %0 : tensor<1070xf64>
}
// -----
// CASE: numbers_of_16_bits_are_added_in_32
// RUN-PASS: expand_short_reductions
// COUNT: stablehlo.convert 3
// TOLERANCE: 0.01
// ON-ENGINE
func.func public @main(%x: tensor<1100x2xbf16>) -> (tensor<1100xbf16>) {
  %z = stablehlo.constant dense<0.0> : tensor<bf16>
  %0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1] : (tensor<1100x2xbf16>, tensor<bf16>) -> tensor<1100xbf16>
  func.return %0 : tensor<1100xbf16>
}
// -----
// CASE: with_what_they_read
// RUN-PASS: pipeline
// STEPS: cpu.loop
// TOLERANCE: 1e-5
// ON-ENGINE
func.func public @main(%x: tensor<1100xf32>) -> (tensor<1100xf32>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %i = stablehlo.iota dim = 1 : tensor<1100x2xf32>
  %b = stablehlo.broadcast_in_dim %x, dims = [0] : (tensor<1100xf32>) -> tensor<1100x2xf32>
  %s = stablehlo.add %b, %i : tensor<1100x2xf32>
  %e = stablehlo.logistic %s : tensor<1100x2xf32>
  %0 = stablehlo.reduce(%e init: %z) applies stablehlo.add across dimensions = [1] : (tensor<1100x2xf32>, tensor<f32>) -> tensor<1100xf32>
  func.return %0 : tensor<1100xf32>
}
// -----
// CASE: rows_of_eight_are_computed_before
// RUN-PASS: pipeline
// STEPS: cpu.loop cpu.reduce
// TOLERANCE: 1e-5
// ON-ENGINE
func.func public @main(%x: tensor<1100x8xf32>) -> (tensor<1100xf32>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %e = stablehlo.logistic %x : tensor<1100x8xf32>
  %0 = stablehlo.reduce(%e init: %z) applies stablehlo.add across dimensions = [1] : (tensor<1100x8xf32>, tensor<f32>) -> tensor<1100xf32>
  func.return %0 : tensor<1100xf32>
}
// -----
// CASE: others
// RUN-PASS: expand_short_reductions
// UNCHANGED
func.func public @main(%x: tensor<1100x3xf32>, %y: tensor<3x1100xf32>, %w: tensor<9x2xf32>) -> (tensor<1100xf32>, tensor<1100xf32>, tensor<9xf32>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1] : (tensor<1100x3xf32>, tensor<f32>) -> tensor<1100xf32>
  %1 = stablehlo.reduce(%y init: %z) applies stablehlo.add across dimensions = [0] : (tensor<3x1100xf32>, tensor<f32>) -> tensor<1100xf32>
  %2 = stablehlo.reduce(%w init: %z) applies stablehlo.add across dimensions = [1] : (tensor<9x2xf32>, tensor<f32>) -> tensor<9xf32>
  func.return %0, %1, %2 : tensor<1100xf32>, tensor<1100xf32>, tensor<9xf32>
}
// -----
// CASE: what_is_no_sum_stays
// RUN-PASS: expand_short_reductions
// UNCHANGED
// TOLERANCE: 0
// ON-ENGINE
func.func public @main(%x: tensor<1100x2xi1>) -> (tensor<1100xi1>) {
  %z = stablehlo.constant dense<false> : tensor<i1>
  %0 = stablehlo.reduce(%x init: %z) across dimensions = [1] : (tensor<1100x2xi1>, tensor<i1>) -> tensor<1100xi1>
   reducer(%a: tensor<i1>, %b: tensor<i1>) {
    %c = stablehlo.compare NE, %a, %b : (tensor<i1>, tensor<i1>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }
  func.return %0 : tensor<1100xi1>
}
