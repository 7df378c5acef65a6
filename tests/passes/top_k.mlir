// Of sorts of which but the first elements are read, or a few neighbours, these are selected.
// CASE: the_largest_and_where_they_were
// RUN-PASS: top_k
// ONCE
// STEPS: cpu.top_k
// TOLERANCE: 0
// ON-ENGINE
func.func public @main(%x: tensor<3x40x5xf32>) -> (tensor<3x7x5xf32>, tensor<3x7x5xi64>) {
  %0 = stablehlo.iota dim = 1 : tensor<3x40x5xi64>
  %1:2 = "stablehlo.sort"(%x, %0) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i64>, %j: tensor<i64>):
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %nan = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %a0 = stablehlo.compare EQ, %a, %z : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %a1 = stablehlo.select %a0, %z, %a : tensor<i1>, tensor<f32>
    %a2 = stablehlo.compare NE, %a, %a : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %a3 = stablehlo.select %a2, %nan, %a1 : tensor<i1>, tensor<f32>
    %b0 = stablehlo.compare EQ, %b, %z : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %b1 = stablehlo.select %b0, %z, %b : tensor<i1>, tensor<f32>
    %b2 = stablehlo.compare NE, %b, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %b3 = stablehlo.select %b2, %nan, %b1 : tensor<i1>, tensor<f32>
    %c = stablehlo.compare LT, %b3, %a3, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }) : (tensor<3x40x5xf32>, tensor<3x40x5xi64>) -> (tensor<3x40x5xf32>, tensor<3x40x5xi64>)
  %2 = stablehlo.slice %1#0 [0:3, 0:7, 0:5] : (tensor<3x40x5xf32>) -> tensor<3x7x5xf32>
  %3 = stablehlo.slice %1#1 [0:3, 0:7, 0:5] : (tensor<3x40x5xi64>) -> tensor<3x7x5xi64>
  func.return %2, %3 : tensor<3x7x5xf32>, tensor<3x7x5xi64>
}
// -----
// CASE: what_is_sorted_with_it_and_different_parts
// RUN-PASS: top_k
// STEPS: cpu.top_k
// TOLERANCE: 0
// ON-ENGINE
func.func public @main(%x: tensor<6x100xi32>, %y: tensor<6x100xf64>) -> (tensor<6x1xi32>, tensor<6x9xf64>, tensor<6x25xi32>) {
  %1:2 = "stablehlo.sort"(%y, %x) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f64>, %b: tensor<f64>, %i: tensor<i32>, %j: tensor<i32>):
    %c = stablehlo.compare LT, %i, %j : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }) : (tensor<6x100xf64>, tensor<6x100xi32>) -> (tensor<6x100xf64>, tensor<6x100xi32>)
  %2 = stablehlo.slice %1#1 [0:6, 4:5] : (tensor<6x100xi32>) -> tensor<6x1xi32>
  %3 = stablehlo.slice %1#0 [0:6, 1:10] : (tensor<6x100xf64>) -> tensor<6x9xf64>
  %4 = stablehlo.slice %1#1 [0:6, 0:25] : (tensor<6x100xi32>) -> tensor<6x25xi32>
  func.return %2, %3, %4 : tensor<6x1xi32>, tensor<6x9xf64>, tensor<6x25xi32>
}
// -----
// CASE: one_operand
// RUN-PASS: pipeline
// STEPS: cpu.top_k
// TOLERANCE: 0
// ON-ENGINE
func.func public @main(%x: tensor<500xi8>) -> (tensor<20xi8>) {
  %1 = "stablehlo.sort"(%x) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<i8>, %b: tensor<i8>):
    %c = stablehlo.compare GT, %a, %b : (tensor<i8>, tensor<i8>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }) : (tensor<500xi8>) -> tensor<500xi8>
  %2 = stablehlo.slice %1 [0:20] : (tensor<500xi8>) -> tensor<20xi8>
  func.return %2 : tensor<20xi8>
}
// -----
// CASE: the_middle_of_short_lines
// RUN-PASS: top_k
// ONCE
// STEPS: cpu.top_k
// TOLERANCE: 0
// ON-ENGINE
func.func public @main(%x: tensor<3x9x70xi32>) -> (tensor<3x2x70xi32>, tensor<3x6x70xi64>) {
  %0 = stablehlo.iota dim = 1 : tensor<3x9x70xi64>
  %1:2 = "stablehlo.sort"(%x, %0) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>, %i: tensor<i64>, %j: tensor<i64>):
    %c = stablehlo.compare GT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }) : (tensor<3x9x70xi32>, tensor<3x9x70xi64>) -> (tensor<3x9x70xi32>, tensor<3x9x70xi64>)
  %2 = stablehlo.slice %1#0 [0:3, 4:6, 0:70] : (tensor<3x9x70xi32>) -> tensor<3x2x70xi32>
  %3 = stablehlo.slice %1#1 [0:3, 3:9, 0:70] : (tensor<3x9x70xi64>) -> tensor<3x6x70xi64>
  func.return %2, %3 : tensor<3x2x70xi32>, tensor<3x6x70xi64>
}
// -----
// CASE: more_than_a_quarter
// RUN-PASS: top_k
// UNCHANGED
func.func public @main(%x: tensor<8x40xi32>) -> (tensor<8x11xi32>) {
  %1 = "stablehlo.sort"(%x) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %c = stablehlo.compare LT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }) : (tensor<8x40xi32>) -> tensor<8x40xi32>
  %2 = stablehlo.slice %1 [0:8, 0:11] : (tensor<8x40xi32>) -> tensor<8x11xi32>
  func.return %2 : tensor<8x11xi32>
}
// -----
// CASE: a_part_of_the_lines
// RUN-PASS: top_k
// UNCHANGED
func.func public @main(%x: tensor<8x40xi32>) -> (tensor<4x4xi32>) {
  %1 = "stablehlo.sort"(%x) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %c = stablehlo.compare LT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }) : (tensor<8x40xi32>) -> tensor<8x40xi32>
  %2 = stablehlo.slice %1 [0:4, 0:4] : (tensor<8x40xi32>) -> tensor<4x4xi32>
  func.return %2 : tensor<4x4xi32>
}
// -----
// CASE: read_as_a_whole_too
// RUN-PASS: top_k
// UNCHANGED
func.func public @main(%x: tensor<8x40xi32>) -> (tensor<8x4xi32>, tensor<8x40xi32>) {
  %1 = "stablehlo.sort"(%x) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %c = stablehlo.compare LT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }) : (tensor<8x40xi32>) -> tensor<8x40xi32>
  %2 = stablehlo.slice %1 [0:8, 0:4] : (tensor<8x40xi32>) -> tensor<8x4xi32>
  func.return %2, %1 : tensor<8x4xi32>, tensor<8x40xi32>
}
// -----
// CASE: an_order_of_its_own
// RUN-PASS: top_k
// UNCHANGED
func.func public @main(%x: tensor<8x40xi32>) -> (tensor<8x4xi32>) {
  %1 = "stablehlo.sort"(%x) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %n = stablehlo.negate %a : tensor<i32>
    %m = stablehlo.negate %b : tensor<i32>
    %c = stablehlo.compare LT, %n, %m : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }) : (tensor<8x40xi32>) -> tensor<8x40xi32>
  %2 = stablehlo.slice %1 [0:8, 0:4] : (tensor<8x40xi32>) -> tensor<8x4xi32>
  func.return %2 : tensor<8x4xi32>
}
// -----
// CASE: neighbours_in_the_middle
// RUN-PASS: top_k
// ONCE
// STEPS: cpu.top_k
// TOLERANCE: 0
// ON-ENGINE
// INPUTS: integers
func.func public @main(%x: tensor<3x400x2xf32>) -> (tensor<3x1x2xf32>, tensor<3x4x2xi64>) {
  %0 = stablehlo.iota dim = 1 : tensor<3x400x2xi64>
  %1:2 = "stablehlo.sort"(%x, %0) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i64>, %j: tensor<i64>):
    %c = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }) : (tensor<3x400x2xf32>, tensor<3x400x2xi64>) -> (tensor<3x400x2xf32>, tensor<3x400x2xi64>)
  %2 = stablehlo.slice %1#0 [0:3, 199:200, 0:2] : (tensor<3x400x2xf32>) -> tensor<3x1x2xf32>
  %3 = stablehlo.slice %1#1 [0:3, 197:201, 0:2] : (tensor<3x400x2xi64>) -> tensor<3x4x2xi64>
  func.return %2, %3 : tensor<3x1x2xf32>, tensor<3x4x2xi64>
}
// -----
// CASE: the_largest_of_a_rising_order
// RUN-PASS: top_k
// STEPS: cpu.top_k
// TOLERANCE: 0
// ON-ENGINE
func.func public @main(%x: tensor<2x9000xi32>) -> (tensor<2x3xi32>) {
  %1 = "stablehlo.sort"(%x) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %c = stablehlo.compare LT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }) : (tensor<2x9000xi32>) -> tensor<2x9000xi32>
  %2 = stablehlo.slice %1 [0:2, 8997:9000] : (tensor<2x9000xi32>) -> tensor<2x3xi32>
  func.return %2 : tensor<2x3xi32>
}
// -----
// CASE: both_ends
// RUN-PASS: top_k
// UNCHANGED
func.func public @main(%x: tensor<2x400xi32>) -> (tensor<2x1xi32>, tensor<2x1xi32>) {
  %1 = "stablehlo.sort"(%x) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %c = stablehlo.compare LT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }) : (tensor<2x400xi32>) -> tensor<2x400xi32>
  %2 = stablehlo.slice %1 [0:2, 0:1] : (tensor<2x400xi32>) -> tensor<2x1xi32>
  %3 = stablehlo.slice %1 [0:2, 399:400] : (tensor<2x400xi32>) -> tensor<2x1xi32>
  func.return %2, %3 : tensor<2x1xi32>, tensor<2x1xi32>
}
