// The remainder of floats by one division.
// CASE: of_any_numbers
// RUN-PASS: expand_remainder
// COUNT: stablehlo.remainder 1
// COUNT: stablehlo.divide 1
// TOLERANCE: 0
// ON-ENGINE
func.func public @main(%x: tensor<7x301xf32>, %y: tensor<7x301xf32>) -> (tensor<7x301xf32>) {
  %0 = stablehlo.remainder %x, %y : tensor<7x301xf32>
  func.return %0 : tensor<7x301xf32>
}
// -----
// CASE: quotients_of_every_size
// RUN-PASS: expand_remainder
// TOLERANCE: 0
// ON-ENGINE
func.func public @main() -> (tensor<1280xf32>) {
  %0 = stablehlo.iota dim = 0 : tensor<1280xi32>
  %a = stablehlo.constant dense<1103515245> : tensor<1280xi32>
  %b = stablehlo.constant dense<7919> : tensor<1280xi32>
  %m = stablehlo.constant dense<2139095039> : tensor<1280xi32>
  %1 = stablehlo.multiply %0, %a : tensor<1280xi32>
  %2 = stablehlo.and %1, %m : tensor<1280xi32>
  %3 = stablehlo.add %1, %b : tensor<1280xi32>
  %4 = stablehlo.multiply %3, %a : tensor<1280xi32>
  %x = stablehlo.bitcast_convert %2 : (tensor<1280xi32>) -> tensor<1280xf32>
  %y = stablehlo.bitcast_convert %4 : (tensor<1280xi32>) -> tensor<1280xf32>
  %z = stablehlo.negate %x : tensor<1280xf32>
  %r = stablehlo.remainder %z, %y : tensor<1280xf32>
  func.return %r : tensor<1280xf32>
}
// -----
// CASE: whole_numbers
// RUN-PASS: pipeline
// STEPS: cpu.loop
// INPUTS: integers
// TOLERANCE: 0
// ON-ENGINE
func.func public @main(%x: tensor<100xf32>, %y: tensor<100xf32>) -> (tensor<100xf32>) {
  %0 = stablehlo.remainder %x, %y : tensor<100xf32>
  func.return %0 : tensor<100xf32>
}
// -----
// CASE: doubles_and_integers
// RUN-PASS: expand_remainder
// UNCHANGED
func.func public @main(%x: tensor<10xf64>, %y: tensor<10xi32>) -> (tensor<10xf64>, tensor<10xi32>) {
  %0 = stablehlo.remainder %x, %x : tensor<10xf64>
  %1 = stablehlo.remainder %y, %y : tensor<10xi32>
  func.return %0, %1 : tensor<10xf64>, tensor<10xi32>
}
