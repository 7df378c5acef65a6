// CASE: integers_of_four_bits
// RUN-PASS: widen_types
// ONCE
// CHECK-NOT: i4>
// TOLERANCE: 0
// ON-ENGINE
func.func public @main(%arg0: tensor<9xi8>, %arg1: tensor<9xi8>) -> (tensor<9xi8>, tensor<9xi8>, tensor<9xi8>, tensor<9xi8>, tensor<9xi8>, tensor<9xi8>, tensor<9xi8>) {
  %c = stablehlo.constant dense<3> : tensor<9xi8>
  %a = stablehlo.multiply %arg0, %c : tensor<9xi8>
  %x = stablehlo.convert %a : (tensor<9xi8>) -> tensor<9xi4>
  %y = stablehlo.convert %arg1 : (tensor<9xi8>) -> tensor<9xi4>
  %0 = stablehlo.add %x, %y : tensor<9xi4>
  %1 = stablehlo.multiply %x, %y : tensor<9xi4>
  %2 = stablehlo.shift_right_logical %x, %y : tensor<9xi4>
  %3 = stablehlo.shift_left %x, %y : tensor<9xi4>
  %4 = stablehlo.count_leading_zeros %x : tensor<9xi4>
  %5 = stablehlo.popcnt %x : tensor<9xi4>
  %6 = stablehlo.divide %x, %y : tensor<9xi4>
  %7 = stablehlo.convert %0 : (tensor<9xi4>) -> tensor<9xi8>
  %8 = stablehlo.convert %1 : (tensor<9xi4>) -> tensor<9xi8>
  %9 = stablehlo.convert %2 : (tensor<9xi4>) -> tensor<9xi8>
  %10 = stablehlo.convert %3 : (tensor<9xi4>) -> tensor<9xi8>
  %11 = stablehlo.convert %4 : (tensor<9xi4>) -> tensor<9xi8>
  %12 = stablehlo.convert %5 : (tensor<9xi4>) -> tensor<9xi8>
  %13 = stablehlo.convert %6 : (tensor<9xi4>) -> tensor<9xi8>
  func.return %7, %8, %9, %10, %11, %12, %13 : tensor<9xi8>, tensor<9xi8>, tensor<9xi8>, tensor<9xi8>, tensor<9xi8>, tensor<9xi8>, tensor<9xi8>
}
// -----
// CASE: integers_without_a_sign
// RUN-PASS: widen_types
// TOLERANCE: 0
// ON-ENGINE
func.func public @main(%arg0: tensor<9xi8>, %arg1: tensor<9xi8>) -> (tensor<9xui8>, tensor<9xui8>, tensor<9xui8>, tensor<9xui8>) {
  %x = stablehlo.convert %arg0 : (tensor<9xi8>) -> tensor<9xui2>
  %y = stablehlo.convert %arg1 : (tensor<9xi8>) -> tensor<9xui2>
  %0 = stablehlo.subtract %x, %y : tensor<9xui2>
  %1 = stablehlo.shift_right_arithmetic %x, %y : tensor<9xui2>
  %2 = stablehlo.maximum %x, %y : tensor<9xui2>
  %3 = stablehlo.not %x : tensor<9xui2>
  %4 = stablehlo.convert %0 : (tensor<9xui2>) -> tensor<9xui8>
  %5 = stablehlo.convert %1 : (tensor<9xui2>) -> tensor<9xui8>
  %6 = stablehlo.convert %2 : (tensor<9xui2>) -> tensor<9xui8>
  %7 = stablehlo.convert %3 : (tensor<9xui2>) -> tensor<9xui8>
  func.return %4, %5, %6, %7 : tensor<9xui8>, tensor<9xui8>, tensor<9xui8>, tensor<9xui8>
}
// -----
// CASE: what_becomes_an_integer_of_four_bits
// RUN-PASS: widen_types
// TOLERANCE: 0
// ON-ENGINE
func.func public @main(%arg0: tensor<9xf32>, %arg1: tensor<9xi32>) -> (tensor<9xi32>, tensor<9xi32>, tensor<9xf32>) {
  %c = stablehlo.constant dense<3.0> : tensor<9xf32>
  %k = stablehlo.constant dense<[-8, 7, 3, -1, 0, 1, 2, 5, -3]> : tensor<9xi4>
  %x = stablehlo.multiply %arg0, %c : tensor<9xf32>
  %0 = stablehlo.convert %x : (tensor<9xf32>) -> tensor<9xi4>
  %1 = stablehlo.convert %x : (tensor<9xf32>) -> tensor<9xui4>
  %2 = stablehlo.bitcast_convert %1 : (tensor<9xui4>) -> tensor<9xi4>
  %3 = stablehlo.convert %arg1 : (tensor<9xi32>) -> tensor<9xi4>
  %4 = stablehlo.add %3, %k : tensor<9xi4>
  %5 = stablehlo.convert %0 : (tensor<9xi4>) -> tensor<9xi32>
  %6 = stablehlo.convert %2 : (tensor<9xi4>) -> tensor<9xi32>
  %7 = stablehlo.convert %4 : (tensor<9xi4>) -> tensor<9xf32>
  func.return %5, %6, %7 : tensor<9xi32>, tensor<9xi32>, tensor<9xf32>
}
// -----
// CASE: results_of_one_integer_of_four_bits
// RUN-PASS: pipeline
// STEPS: cpu.loop
func.func public @main() -> (tensor<3x5xi4>) {
  %0 = stablehlo.constant dense<3> : tensor<i4>
  %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<i4>) -> tensor<3x5xi4>
  func.return %1 : tensor<3x5xi4>
}
// -----
// CASE: products_of_integers_of_four_bits
// RUN-PASS: widen_types
// TOLERANCE: 0
// ON-ENGINE
func.func public @main(%arg0: tensor<3x4xi8>, %arg1: tensor<4x2xi8>) -> (tensor<3x2xi32>, tensor<3x2xi8>) {
  %x = stablehlo.convert %arg0 : (tensor<3x4xi8>) -> tensor<3x4xi4>
  %y = stablehlo.convert %arg1 : (tensor<4x2xi8>) -> tensor<4x2xi4>
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<3x4xi4>, tensor<4x2xi4>) -> tensor<3x2xi32>
  %1 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<3x4xi4>, tensor<4x2xi4>) -> tensor<3x2xi4>
  %2 = stablehlo.convert %1 : (tensor<3x2xi4>) -> tensor<3x2xi8>
  func.return %0, %2 : tensor<3x2xi32>, tensor<3x2xi8>
}
// -----
// CASE: loops_and_sums_of_integers_of_four_bits
// RUN-PASS: widen_types
// TOLERANCE: 0
// ON-ENGINE
func.func public @main(%arg0: tensor<3x4xi8>) -> (tensor<3xi8>, tensor<3x4xi8>, tensor<3x4xi8>) {
  %zero = stablehlo.constant dense<0> : tensor<i4>
  %i = stablehlo.constant dense<0> : tensor<i32>
  %x = stablehlo.convert %arg0 : (tensor<3x4xi8>) -> tensor<3x4xi4>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<3x4xi4>, tensor<i4>) -> tensor<3xi4>
  %1 = "stablehlo.sort"(%x) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<i4>, %b: tensor<i4>):
    %c = stablehlo.compare LT, %a, %b : (tensor<i4>, tensor<i4>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }) : (tensor<3x4xi4>) -> tensor<3x4xi4>
  %2:2 = stablehlo.while(%n = %i, %v = %x) : tensor<i32>, tensor<3x4xi4>
  cond {
    %five = stablehlo.constant dense<5> : tensor<i32>
    %c = stablehlo.compare LT, %n, %five : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %three = stablehlo.constant dense<3> : tensor<3x4xi4>
    %m = stablehlo.add %n, %one : tensor<i32>
    %w = stablehlo.multiply %v, %three : tensor<3x4xi4>
    stablehlo.return %m, %w : tensor<i32>, tensor<3x4xi4>
  }
  %3 = stablehlo.convert %0 : (tensor<3xi4>) -> tensor<3xi8>
  %4 = stablehlo.convert %1 : (tensor<3x4xi4>) -> tensor<3x4xi8>
  %5 = stablehlo.convert %2#1 : (tensor<3x4xi4>) -> tensor<3x4xi8>
  func.return %3, %4, %5 : tensor<3xi8>, tensor<3x4xi8>, tensor<3x4xi8>
}
// -----
// CASE: rounding_to_a_byte
// RUN-PASS: widen_types
// ONCE
// CHECK-NOT: f8
// TOLERANCE: 0
// ON-ENGINE
func.func public @main(%arg0: tensor<40xf32>, %arg1: tensor<40xf32>) -> (tensor<40xf32>, tensor<40xf32>, tensor<40xf32>, tensor<40xf32>, tensor<40xf32>) {
  %a = stablehlo.exponential %arg0 : tensor<40xf32>
  %b = stablehlo.multiply %a, %arg1 : tensor<40xf32>
  %0 = stablehlo.convert %b : (tensor<40xf32>) -> tensor<40xf8E4M3FN>
  %1 = stablehlo.convert %b : (tensor<40xf32>) -> tensor<40xf8E5M2>
  %2 = stablehlo.convert %b : (tensor<40xf32>) -> tensor<40xf8E4M3FNUZ>
  %3 = stablehlo.convert %b : (tensor<40xf32>) -> tensor<40xf8E3M4>
  %4 = stablehlo.multiply %0, %0 : tensor<40xf8E4M3FN>
  %5 = stablehlo.multiply %1, %1 : tensor<40xf8E5M2>
  %6 = stablehlo.add %2, %2 : tensor<40xf8E4M3FNUZ>
  %7 = stablehlo.tanh %3 : tensor<40xf8E3M4>
  %8 = stablehlo.convert %4 : (tensor<40xf8E4M3FN>) -> tensor<40xf32>
  %9 = stablehlo.convert %5 : (tensor<40xf8E5M2>) -> tensor<40xf32>
  %10 = stablehlo.convert %6 : (tensor<40xf8E4M3FNUZ>) -> tensor<40xf32>
  %11 = stablehlo.convert %7 : (tensor<40xf8E3M4>) -> tensor<40xf32>
  %12 = stablehlo.convert %arg0 : (tensor<40xf32>) -> tensor<40xf8E4M3B11FNUZ>
  %13 = stablehlo.convert %12 : (tensor<40xf8E4M3B11FNUZ>) -> tensor<40xf32>
  func.return %8, %9, %10, %11, %13 : tensor<40xf32>, tensor<40xf32>, tensor<40xf32>, tensor<40xf32>, tensor<40xf32>
}
// -----
// CASE: bits_of_a_byte
// RUN-PASS: widen_types
// INPUTS: integers
// TOLERANCE: 0
// ON-ENGINE
func.func public @main(%arg0: tensor<256xi8>) -> (tensor<256xf32>, tensor<256xui8>, tensor<256xui8>) {
  %0 = stablehlo.iota dim = 0 : tensor<256xui8>
  %1 = stablehlo.bitcast_convert %arg0 : (tensor<256xi8>) -> tensor<256xui8>
  %2 = stablehlo.xor %0, %1 : tensor<256xui8>
  %3 = stablehlo.bitcast_convert %2 : (tensor<256xui8>) -> tensor<256xf8E5M2>
  %4 = stablehlo.bitcast_convert %2 : (tensor<256xui8>) -> tensor<256xf8E4M3FN>
  %5 = stablehlo.bitcast_convert %2 : (tensor<256xui8>) -> tensor<256xf8E5M2FNUZ>
  %6 = stablehlo.convert %3 : (tensor<256xf8E5M2>) -> tensor<256xf32>
  %7 = stablehlo.bitcast_convert %4 : (tensor<256xf8E4M3FN>) -> tensor<256xui8>
  %8 = stablehlo.bitcast_convert %5 : (tensor<256xf8E5M2FNUZ>) -> tensor<256xui8>
  func.return %6, %7, %8 : tensor<256xf32>, tensor<256xui8>, tensor<256xui8>
}
// -----
// CASE: products_of_bytes
// RUN-PASS: widen_types
// INPUTS: integers
// TOLERANCE: 0
// ON-ENGINE
func.func public @main(%arg0: tensor<3x4xf32>, %arg1: tensor<4x2xf32>) -> (tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x2xbf16>) {
  %x = stablehlo.convert %arg0 : (tensor<3x4xf32>) -> tensor<3x4xf8E4M3FN>
  %y = stablehlo.convert %arg1 : (tensor<4x2xf32>) -> tensor<4x2xf8E5M2>
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<3x4xf8E4M3FN>, tensor<4x2xf8E5M2>) -> tensor<3x2xf32>
  %1 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<3x4xf8E4M3FN>, tensor<4x2xf8E5M2>) -> tensor<3x2xf8E4M3FN>
  %2 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<3x4xf8E4M3FN>, tensor<4x2xf8E5M2>) -> tensor<3x2xbf16>
  %3 = stablehlo.convert %1 : (tensor<3x2xf8E4M3FN>) -> tensor<3x2xf32>
  func.return %0, %3, %2 : tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x2xbf16>
}
// -----
// CASE: triangular_systems_of_16_bits
// RUN-PASS: widen_types
// INPUTS: positive
// TOLERANCE: 0.02
// ON-ENGINE
func.func public @main(%arg0: tensor<3x3xf16>, %arg1: tensor<3x2xf16>, %arg2: tensor<3x3xbf16>, %arg3: tensor<3x2xbf16>) -> (tensor<3x2xf16>, tensor<3x2xbf16>) {
  %0 = "stablehlo.triangular_solve"(%arg0, %arg1) <{left_side = true, lower = true, unit_diagonal = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>}> : (tensor<3x3xf16>, tensor<3x2xf16>) -> tensor<3x2xf16>
  %1 = "stablehlo.triangular_solve"(%arg2, %arg3) <{left_side = true, lower = true, unit_diagonal = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>}> : (tensor<3x3xbf16>, tensor<3x2xbf16>) -> tensor<3x2xbf16>
  func.return %0, %1 : tensor<3x2xf16>, tensor<3x2xbf16>
}
// -----
// CASE: nothing_to_widen
// RUN-PASS: widen_types
// UNCHANGED
func.func public @main(%arg0: tensor<3xbf16>) -> (tensor<3xbf16>) {
  %0 = stablehlo.add %arg0, %arg0 : tensor<3xbf16>
  func.return %0 : tensor<3xbf16>
}
// -----
// CASE: bits_of_another_width
// RUN-PASS: widen_types
// REFUSED: bitcast_convert
func.func public @main(%arg0: tensor<3xi8>) -> (tensor<3x2xi4>) {
  %0 = stablehlo.bitcast_convert %arg0 : (tensor<3xi8>) -> tensor<3x2xi4>
  func.return %0 : tensor<3x2xi4>
}
