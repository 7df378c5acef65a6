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
// CASE: doubles
// RUN-PASS: expand_remainder
// COUNT: stablehlo.remainder 1
// COUNT: stablehlo.divide 1
// TOLERANCE: 0
// ON-ENGINE
func.func public @main(%x: tensor<7x301xf64>, %y: tensor<7x301xf64>) -> (tensor<7x301xf64>) {
  %0 = stablehlo.remainder %x, %y : tensor<7x301xf64>
  func.return %0 : tensor<7x301xf64>
}
// -----
// CASE: doubles_of_every_size
// RUN-PASS: expand_remainder
// TOLERANCE: 0
// ON-ENGINE
func.func public @main() -> (tensor<4096xf64>) {
  %0 = stablehlo.iota dim = 0 : tensor<4096xi64>
  %a = stablehlo.constant dense<6364136223846793005> : tensor<4096xi64>
  %b = stablehlo.constant dense<7919> : tensor<4096xi64>
  %m = stablehlo.constant dense<9218868437227405311> : tensor<4096xi64>
  %1 = stablehlo.multiply %0, %a : tensor<4096xi64>
  %2 = stablehlo.and %1, %m : tensor<4096xi64>
  %3 = stablehlo.add %1, %b : tensor<4096xi64>
  %4 = stablehlo.multiply %3, %a : tensor<4096xi64>
  %x = stablehlo.bitcast_convert %2 : (tensor<4096xi64>) -> tensor<4096xf64>
  %y = stablehlo.bitcast_convert %4 : (tensor<4096xi64>) -> tensor<4096xf64>
  %z = stablehlo.negate %x : tensor<4096xf64>
  %r = stablehlo.remainder %z, %y : tensor<4096xf64>
  func.return %r : tensor<4096xf64>
}
// -----
// CASE: doubles_whose_quotient_is_next_to_a_whole_number
// RUN-PASS: expand_remainder
// TOLERANCE: 0
// ON-ENGINE
func.func public @main() -> (tensor<4096xf64>) {
  %0 = stablehlo.iota dim = 0 : tensor<4096xi64>
  %a = stablehlo.constant dense<6364136223846793005> : tensor<4096xi64>
  %m = stablehlo.constant dense<4503599627370495> : tensor<4096xi64>
  %e = stablehlo.constant dense<4607182418800017408> : tensor<4096xi64>
  %n = stablehlo.constant dense<67108863> : tensor<4096xi64>
  %three = stablehlo.constant dense<3> : tensor<4096xi64>
  %one = stablehlo.constant dense<1> : tensor<4096xi64>
  %1 = stablehlo.multiply %0, %a : tensor<4096xi64>
  %2 = stablehlo.and %1, %m : tensor<4096xi64>
  %3 = stablehlo.or %2, %e : tensor<4096xi64>
  %y = stablehlo.bitcast_convert %3 : (tensor<4096xi64>) -> tensor<4096xf64>
  %4 = stablehlo.multiply %2, %a : tensor<4096xi64>
  %5 = stablehlo.and %4, %n : tensor<4096xi64>
  %q = stablehlo.convert %5 : (tensor<4096xi64>) -> tensor<4096xf64>
  %p = stablehlo.multiply %q, %y : tensor<4096xf64>
  %6 = stablehlo.bitcast_convert %p : (tensor<4096xf64>) -> tensor<4096xi64>
  %7 = stablehlo.and %0, %three : tensor<4096xi64>
  %8 = stablehlo.subtract %7, %one : tensor<4096xi64>
  %9 = stablehlo.add %6, %8 : tensor<4096xi64>
  %x = stablehlo.bitcast_convert %9 : (tensor<4096xi64>) -> tensor<4096xf64>
  %r = stablehlo.remainder %x, %y : tensor<4096xf64>
  func.return %r : tensor<4096xf64>
}
// -----
// CASE: integers
// RUN-PASS: expand_remainder
// UNCHANGED
func.func public @main(%y: tensor<10xi32>) -> (tensor<10xi32>) {
  %1 = stablehlo.remainder %y, %y : tensor<10xi32>
  func.return %1 : tensor<10xi32>
}
