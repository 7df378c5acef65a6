// Loops over arrays of which each element goes its own way.
// CASE: each_element_counts_for_itself
// RUN-PASS: element_loops
// ONCE
// STEPS: compare map
// COUNT: stablehlo.while 1
// COUNT: stablehlo.reduce 0
// TOLERANCE: 0
// ON-ENGINE
func.func public @main(%x: tensor<37x5xf32>, %n: tensor<37x5xf32>) -> (tensor<37x5xf32>) {
  %one = stablehlo.constant dense<1.0> : tensor<37x5xf32>
  %m = stablehlo.compare GT, %n, %one : (tensor<37x5xf32>, tensor<37x5xf32>) -> tensor<37x5xi1>
  %0:4 = stablehlo.while(%w = %m, %k = %one, %v = %x, %e = %n) : tensor<37x5xi1>, tensor<37x5xf32>, tensor<37x5xf32>, tensor<37x5xf32>
  cond {
    %false = stablehlo.constant dense<false> : tensor<i1>
    %any = stablehlo.reduce(%w init: %false) applies stablehlo.or across dimensions = [0, 1] : (tensor<37x5xi1>, tensor<i1>) -> tensor<i1>
    stablehlo.return %any : tensor<i1>
  } do {
    %c = stablehlo.constant dense<1.0> : tensor<37x5xf32>
    %half = stablehlo.constant dense<0.5> : tensor<37x5xf32>
    %k1 = stablehlo.add %k, %c : tensor<37x5xf32>
    %s = stablehlo.multiply %v, %half : tensor<37x5xf32>
    %v1 = stablehlo.add %s, %k : tensor<37x5xf32>
    %more = stablehlo.compare LT, %k1, %e : (tensor<37x5xf32>, tensor<37x5xf32>) -> tensor<37x5xi1>
    %ten = stablehlo.constant dense<10.0> : tensor<37x5xf32>
    %few = stablehlo.compare LT, %k1, %ten : (tensor<37x5xf32>, tensor<37x5xf32>) -> tensor<37x5xi1>
    %left = stablehlo.and %more, %few : tensor<37x5xi1>
    %w1 = stablehlo.and %w, %left : tensor<37x5xi1>
    %k2 = stablehlo.select %w, %k1, %k : tensor<37x5xi1>, tensor<37x5xf32>
    %v2 = stablehlo.select %w, %v1, %v : tensor<37x5xi1>, tensor<37x5xf32>
    stablehlo.return %w1, %k2, %v2, %e : tensor<37x5xi1>, tensor<37x5xf32>, tensor<37x5xf32>, tensor<37x5xf32>
  }
  func.return %0#2 : tensor<37x5xf32>
}
// -----
// CASE: the_mask_of_the_next_turn_selects
// RUN-PASS: element_loops
// ONCE
// STEPS: compare map
// COUNT: stablehlo.reduce 0
// TOLERANCE: 0
// ON-ENGINE
func.func public @main(%x: tensor<37x5xf32>, %n: tensor<37x5xf32>) -> (tensor<37x5xf32>) {
  %one = stablehlo.constant dense<1.0> : tensor<37x5xf32>
  %m = stablehlo.compare GT, %n, %one : (tensor<37x5xf32>, tensor<37x5xf32>) -> tensor<37x5xi1>
  %0:4 = stablehlo.while(%w = %m, %k = %one, %v = %x, %e = %n) : tensor<37x5xi1>, tensor<37x5xf32>, tensor<37x5xf32>, tensor<37x5xf32>
  cond {
    %false = stablehlo.constant dense<false> : tensor<i1>
    %any = stablehlo.reduce(%w init: %false) applies stablehlo.or across dimensions = [0, 1] : (tensor<37x5xi1>, tensor<i1>) -> tensor<i1>
    stablehlo.return %any : tensor<i1>
  } do {
    %c = stablehlo.constant dense<1.0> : tensor<37x5xf32>
    %half = stablehlo.constant dense<0.5> : tensor<37x5xf32>
    %k1 = stablehlo.add %k, %c : tensor<37x5xf32>
    %s = stablehlo.multiply %v, %half : tensor<37x5xf32>
    %v1 = stablehlo.add %s, %k : tensor<37x5xf32>
    %more = stablehlo.compare LT, %k1, %e : (tensor<37x5xf32>, tensor<37x5xf32>) -> tensor<37x5xi1>
    %ten = stablehlo.constant dense<10.0> : tensor<37x5xf32>
    %few = stablehlo.compare LT, %k1, %ten : (tensor<37x5xf32>, tensor<37x5xf32>) -> tensor<37x5xi1>
    %left = stablehlo.and %more, %few : tensor<37x5xi1>
    %w1 = stablehlo.and %left, %w : tensor<37x5xi1>
    %k2 = stablehlo.select %w1, %k1, %k : tensor<37x5xi1>, tensor<37x5xf32>
    %v2 = stablehlo.select %w1, %v1, %v : tensor<37x5xi1>, tensor<37x5xf32>
    stablehlo.return %w1, %k2, %v2, %e : tensor<37x5xi1>, tensor<37x5xf32>, tensor<37x5xf32>, tensor<37x5xf32>
  }
  func.return %0#2 : tensor<37x5xf32>
}
// -----
// CASE: elements_that_are_done_go_on
// RUN-PASS: element_loops
// UNCHANGED
func.func public @main(%x: tensor<37x5xf32>, %n: tensor<37x5xf32>) -> (tensor<37x5xf32>) {
  %one = stablehlo.constant dense<1.0> : tensor<37x5xf32>
  %m = stablehlo.compare GT, %n, %one : (tensor<37x5xf32>, tensor<37x5xf32>) -> tensor<37x5xi1>
  %0:4 = stablehlo.while(%w = %m, %k = %one, %v = %x, %e = %n) : tensor<37x5xi1>, tensor<37x5xf32>, tensor<37x5xf32>, tensor<37x5xf32>
  cond {
    %false = stablehlo.constant dense<false> : tensor<i1>
    %any = stablehlo.reduce(%w init: %false) applies stablehlo.or across dimensions = [0, 1] : (tensor<37x5xi1>, tensor<i1>) -> tensor<i1>
    stablehlo.return %any : tensor<i1>
  } do {
    %c = stablehlo.constant dense<1.0> : tensor<37x5xf32>
    %half = stablehlo.constant dense<0.5> : tensor<37x5xf32>
    %k1 = stablehlo.add %k, %c : tensor<37x5xf32>
    %s = stablehlo.multiply %v, %half : tensor<37x5xf32>
    %v1 = stablehlo.add %s, %k : tensor<37x5xf32>
    %more = stablehlo.compare LT, %k1, %e : (tensor<37x5xf32>, tensor<37x5xf32>) -> tensor<37x5xi1>
    %ten = stablehlo.constant dense<10.0> : tensor<37x5xf32>
    %few = stablehlo.compare LT, %k1, %ten : (tensor<37x5xf32>, tensor<37x5xf32>) -> tensor<37x5xi1>
    %left = stablehlo.and %more, %few : tensor<37x5xi1>
    %w1 = stablehlo.and %w, %left : tensor<37x5xi1>
    %k2 = stablehlo.select %w, %k1, %k : tensor<37x5xi1>, tensor<37x5xf32>
    stablehlo.return %w1, %k2, %v1, %e : tensor<37x5xi1>, tensor<37x5xf32>, tensor<37x5xf32>, tensor<37x5xf32>
  }
  func.return %0#2 : tensor<37x5xf32>
}
// -----
// CASE: elements_that_are_done_may_begin_again
// RUN-PASS: element_loops
// UNCHANGED
func.func public @main(%x: tensor<37x5xf32>, %n: tensor<37x5xf32>) -> (tensor<37x5xf32>) {
  %one = stablehlo.constant dense<1.0> : tensor<37x5xf32>
  %m = stablehlo.compare GT, %n, %one : (tensor<37x5xf32>, tensor<37x5xf32>) -> tensor<37x5xi1>
  %0:4 = stablehlo.while(%w = %m, %k = %one, %v = %x, %e = %n) : tensor<37x5xi1>, tensor<37x5xf32>, tensor<37x5xf32>, tensor<37x5xf32>
  cond {
    %false = stablehlo.constant dense<false> : tensor<i1>
    %any = stablehlo.reduce(%w init: %false) applies stablehlo.or across dimensions = [0, 1] : (tensor<37x5xi1>, tensor<i1>) -> tensor<i1>
    stablehlo.return %any : tensor<i1>
  } do {
    %c = stablehlo.constant dense<1.0> : tensor<37x5xf32>
    %half = stablehlo.constant dense<0.5> : tensor<37x5xf32>
    %k1 = stablehlo.add %k, %c : tensor<37x5xf32>
    %s = stablehlo.multiply %v, %half : tensor<37x5xf32>
    %v1 = stablehlo.add %s, %k : tensor<37x5xf32>
    %more = stablehlo.compare LT, %k1, %e : (tensor<37x5xf32>, tensor<37x5xf32>) -> tensor<37x5xi1>
    %ten = stablehlo.constant dense<10.0> : tensor<37x5xf32>
    %few = stablehlo.compare LT, %k1, %ten : (tensor<37x5xf32>, tensor<37x5xf32>) -> tensor<37x5xi1>
    %left = stablehlo.and %more, %few : tensor<37x5xi1>
    %k2 = stablehlo.select %w, %k1, %k : tensor<37x5xi1>, tensor<37x5xf32>
    %v2 = stablehlo.select %w, %v1, %v : tensor<37x5xi1>, tensor<37x5xf32>
    stablehlo.return %left, %k2, %v2, %e : tensor<37x5xi1>, tensor<37x5xf32>, tensor<37x5xf32>, tensor<37x5xf32>
  }
  func.return %0#2 : tensor<37x5xf32>
}
// -----
// CASE: elements_that_read_others
// RUN-PASS: element_loops
// UNCHANGED
func.func public @main(%x: tensor<37x5xf32>, %n: tensor<37x5xf32>) -> (tensor<37x5xf32>) {
  %one = stablehlo.constant dense<1.0> : tensor<37x5xf32>
  %m = stablehlo.compare GT, %n, %one : (tensor<37x5xf32>, tensor<37x5xf32>) -> tensor<37x5xi1>
  %0:4 = stablehlo.while(%w = %m, %k = %one, %v = %x, %e = %n) : tensor<37x5xi1>, tensor<37x5xf32>, tensor<37x5xf32>, tensor<37x5xf32>
  cond {
    %false = stablehlo.constant dense<false> : tensor<i1>
    %any = stablehlo.reduce(%w init: %false) applies stablehlo.or across dimensions = [0, 1] : (tensor<37x5xi1>, tensor<i1>) -> tensor<i1>
    stablehlo.return %any : tensor<i1>
  } do {
    %c = stablehlo.constant dense<1.0> : tensor<37x5xf32>
    %half = stablehlo.constant dense<0.5> : tensor<37x5xf32>
    %k1 = stablehlo.add %k, %c : tensor<37x5xf32>
    %s = stablehlo.multiply %v, %half : tensor<37x5xf32>
    %v1 = stablehlo.reverse %s, dims = [0] : tensor<37x5xf32>
    %more = stablehlo.compare LT, %k1, %e : (tensor<37x5xf32>, tensor<37x5xf32>) -> tensor<37x5xi1>
    %ten = stablehlo.constant dense<10.0> : tensor<37x5xf32>
    %few = stablehlo.compare LT, %k1, %ten : (tensor<37x5xf32>, tensor<37x5xf32>) -> tensor<37x5xi1>
    %left = stablehlo.and %more, %few : tensor<37x5xi1>
    %w1 = stablehlo.and %w, %left : tensor<37x5xi1>
    %k2 = stablehlo.select %w, %k1, %k : tensor<37x5xi1>, tensor<37x5xf32>
    %v2 = stablehlo.select %w, %v1, %v : tensor<37x5xi1>, tensor<37x5xf32>
    stablehlo.return %w1, %k2, %v2, %e : tensor<37x5xi1>, tensor<37x5xf32>, tensor<37x5xf32>, tensor<37x5xf32>
  }
  func.return %0#2 : tensor<37x5xf32>
}
// -----
// CASE: two_results
// RUN-PASS: element_loops
// UNCHANGED
func.func public @main(%x: tensor<37x5xf32>, %n: tensor<37x5xf32>) -> (tensor<37x5xf32>, tensor<37x5xf32>) {
  %one = stablehlo.constant dense<1.0> : tensor<37x5xf32>
  %m = stablehlo.compare GT, %n, %one : (tensor<37x5xf32>, tensor<37x5xf32>) -> tensor<37x5xi1>
  %0:4 = stablehlo.while(%w = %m, %k = %one, %v = %x, %e = %n) : tensor<37x5xi1>, tensor<37x5xf32>, tensor<37x5xf32>, tensor<37x5xf32>
  cond {
    %false = stablehlo.constant dense<false> : tensor<i1>
    %any = stablehlo.reduce(%w init: %false) applies stablehlo.or across dimensions = [0, 1] : (tensor<37x5xi1>, tensor<i1>) -> tensor<i1>
    stablehlo.return %any : tensor<i1>
  } do {
    %c = stablehlo.constant dense<1.0> : tensor<37x5xf32>
    %half = stablehlo.constant dense<0.5> : tensor<37x5xf32>
    %k1 = stablehlo.add %k, %c : tensor<37x5xf32>
    %s = stablehlo.multiply %v, %half : tensor<37x5xf32>
    %v1 = stablehlo.add %s, %k : tensor<37x5xf32>
    %more = stablehlo.compare LT, %k1, %e : (tensor<37x5xf32>, tensor<37x5xf32>) -> tensor<37x5xi1>
    %ten = stablehlo.constant dense<10.0> : tensor<37x5xf32>
    %few = stablehlo.compare LT, %k1, %ten : (tensor<37x5xf32>, tensor<37x5xf32>) -> tensor<37x5xi1>
    %left = stablehlo.and %more, %few : tensor<37x5xi1>
    %w1 = stablehlo.and %w, %left : tensor<37x5xi1>
    %k2 = stablehlo.select %w, %k1, %k : tensor<37x5xi1>, tensor<37x5xf32>
    %v2 = stablehlo.select %w, %v1, %v : tensor<37x5xi1>, tensor<37x5xf32>
    stablehlo.return %w1, %k2, %v2, %e : tensor<37x5xi1>, tensor<37x5xf32>, tensor<37x5xf32>, tensor<37x5xf32>
  }
  func.return %0#1, %0#2 : tensor<37x5xf32>, tensor<37x5xf32>
}
// -----
// CASE: a_scalar_for_all
// RUN-PASS: element_loops
// STEPS: compare broadcast_in_dim map
// TOLERANCE: 0
// ON-ENGINE
func.func public @main(%x: tensor<37x5xf32>, %n: tensor<37x5xf32>, %y: tensor<f32>) -> (tensor<37x5xf32>) {
  %one = stablehlo.constant dense<1.0> : tensor<37x5xf32>
  %m = stablehlo.compare GT, %n, %one : (tensor<37x5xf32>, tensor<37x5xf32>) -> tensor<37x5xi1>
  %0:5 = stablehlo.while(%w = %m, %k = %one, %v = %x, %e = %n, %f = %y) : tensor<37x5xi1>, tensor<37x5xf32>, tensor<37x5xf32>, tensor<37x5xf32>, tensor<f32>
  cond {
    %false = stablehlo.constant dense<false> : tensor<i1>
    %any = stablehlo.reduce(%w init: %false) applies stablehlo.or across dimensions = [0, 1] : (tensor<37x5xi1>, tensor<i1>) -> tensor<i1>
    stablehlo.return %any : tensor<i1>
  } do {
    %c = stablehlo.constant dense<1.0> : tensor<37x5xf32>
    %half = stablehlo.constant dense<0.5> : tensor<37x5xf32>
    %k1 = stablehlo.add %k, %c : tensor<37x5xf32>
    %s = stablehlo.multiply %v, %half : tensor<37x5xf32>
    %kf = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<37x5xf32>
    %v1 = stablehlo.add %s, %kf : tensor<37x5xf32>
    %more = stablehlo.compare LT, %k1, %e : (tensor<37x5xf32>, tensor<37x5xf32>) -> tensor<37x5xi1>
    %ten = stablehlo.constant dense<10.0> : tensor<37x5xf32>
    %few = stablehlo.compare LT, %k1, %ten : (tensor<37x5xf32>, tensor<37x5xf32>) -> tensor<37x5xi1>
    %left = stablehlo.and %more, %few : tensor<37x5xi1>
    %w1 = stablehlo.and %w, %left : tensor<37x5xi1>
    %k2 = stablehlo.select %w, %k1, %k : tensor<37x5xi1>, tensor<37x5xf32>
    %v2 = stablehlo.select %w, %v1, %v : tensor<37x5xi1>, tensor<37x5xf32>
    stablehlo.return %w1, %k2, %v2, %e, %f : tensor<37x5xi1>, tensor<37x5xf32>, tensor<37x5xf32>, tensor<37x5xf32>, tensor<f32>
  }
  func.return %0#2 : tensor<37x5xf32>
}
// -----
// CASE: in_one_kernel_with_what_is_around_it
// RUN-PASS: pipeline
// STEPS: cpu.loop
// TOLERANCE: 0
// ON-ENGINE
func.func public @main(%x: tensor<37x5xf32>, %n: tensor<37x5xf32>) -> (tensor<37x5xf32>) {
  %one = stablehlo.constant dense<1.0> : tensor<37x5xf32>
  %m = stablehlo.compare GT, %n, %one : (tensor<37x5xf32>, tensor<37x5xf32>) -> tensor<37x5xi1>
  %0:4 = stablehlo.while(%w = %m, %k = %one, %v = %x, %e = %n) : tensor<37x5xi1>, tensor<37x5xf32>, tensor<37x5xf32>, tensor<37x5xf32>
  cond {
    %false = stablehlo.constant dense<false> : tensor<i1>
    %any = stablehlo.reduce(%w init: %false) applies stablehlo.or across dimensions = [0, 1] : (tensor<37x5xi1>, tensor<i1>) -> tensor<i1>
    stablehlo.return %any : tensor<i1>
  } do {
    %c = stablehlo.constant dense<1.0> : tensor<37x5xf32>
    %half = stablehlo.constant dense<0.5> : tensor<37x5xf32>
    %k1 = stablehlo.add %k, %c : tensor<37x5xf32>
    %s = stablehlo.multiply %v, %half : tensor<37x5xf32>
    %v1 = stablehlo.add %s, %k : tensor<37x5xf32>
    %more = stablehlo.compare LT, %k1, %e : (tensor<37x5xf32>, tensor<37x5xf32>) -> tensor<37x5xi1>
    %ten = stablehlo.constant dense<10.0> : tensor<37x5xf32>
    %few = stablehlo.compare LT, %k1, %ten : (tensor<37x5xf32>, tensor<37x5xf32>) -> tensor<37x5xi1>
    %left = stablehlo.and %more, %few : tensor<37x5xi1>
    %w1 = stablehlo.and %w, %left : tensor<37x5xi1>
    %k2 = stablehlo.select %w, %k1, %k : tensor<37x5xi1>, tensor<37x5xf32>
    %v2 = stablehlo.select %w, %v1, %v : tensor<37x5xi1>, tensor<37x5xf32>
    stablehlo.return %w1, %k2, %v2, %e : tensor<37x5xi1>, tensor<37x5xf32>, tensor<37x5xf32>, tensor<37x5xf32>
  }
  %z = stablehlo.negate %0#2 : tensor<37x5xf32>
  func.return %z : tensor<37x5xf32>
}
// -----
// CASE: for_a_row_it_is_run_once
// RUN-PASS: pipeline
// STEPS: cpu.loop cpu.loop
// TOLERANCE: 0
// ON-ENGINE
func.func public @main(%x: tensor<512xf32>, %n: tensor<512xf32>) -> (tensor<512x64xf32>) {
  %one = stablehlo.constant dense<1.0> : tensor<512xf32>
  %m = stablehlo.compare GT, %n, %one : (tensor<512xf32>, tensor<512xf32>) -> tensor<512xi1>
  %0:4 = stablehlo.while(%w = %m, %k = %one, %v = %x, %e = %n) : tensor<512xi1>, tensor<512xf32>, tensor<512xf32>, tensor<512xf32>
  cond {
    %false = stablehlo.constant dense<false> : tensor<i1>
    %any = stablehlo.reduce(%w init: %false) applies stablehlo.or across dimensions = [0] : (tensor<512xi1>, tensor<i1>) -> tensor<i1>
    stablehlo.return %any : tensor<i1>
  } do {
    %c = stablehlo.constant dense<1.0> : tensor<512xf32>
    %half = stablehlo.constant dense<0.5> : tensor<512xf32>
    %k1 = stablehlo.add %k, %c : tensor<512xf32>
    %s = stablehlo.multiply %v, %half : tensor<512xf32>
    %v1 = stablehlo.add %s, %k : tensor<512xf32>
    %more = stablehlo.compare LT, %k1, %e : (tensor<512xf32>, tensor<512xf32>) -> tensor<512xi1>
    %ten = stablehlo.constant dense<10.0> : tensor<512xf32>
    %few = stablehlo.compare LT, %k1, %ten : (tensor<512xf32>, tensor<512xf32>) -> tensor<512xi1>
    %left = stablehlo.and %more, %few : tensor<512xi1>
    %w1 = stablehlo.and %w, %left : tensor<512xi1>
    %k2 = stablehlo.select %w, %k1, %k : tensor<512xi1>, tensor<512xf32>
    %v2 = stablehlo.select %w, %v1, %v : tensor<512xi1>, tensor<512xf32>
    stablehlo.return %w1, %k2, %v2, %e : tensor<512xi1>, tensor<512xf32>, tensor<512xf32>, tensor<512xf32>
  }
  %b = stablehlo.broadcast_in_dim %0#2, dims = [0] : (tensor<512xf32>) -> tensor<512x64xf32>
  %i = stablehlo.iota dim = 1 : tensor<512x64xf32>
  %r = stablehlo.multiply %b, %i : tensor<512x64xf32>
  func.return %r : tensor<512x64xf32>
}
// -----
// CASE: a_condition_that_computes_more
// RUN-PASS: element_loops
// UNCHANGED
func.func public @main(%x: tensor<37x5xf32>, %n: tensor<37x5xf32>) -> (tensor<37x5xf32>) {
  %one = stablehlo.constant dense<1.0> : tensor<37x5xf32>
  %m = stablehlo.compare GT, %n, %one : (tensor<37x5xf32>, tensor<37x5xf32>) -> tensor<37x5xi1>
  %0:4 = stablehlo.while(%w = %m, %k = %one, %v = %x, %e = %n) : tensor<37x5xi1>, tensor<37x5xf32>, tensor<37x5xf32>, tensor<37x5xf32>
  cond {
    %unused = stablehlo.iota dim = 1 : tensor<37x5xi32>
    %false = stablehlo.constant dense<false> : tensor<i1>
    %any = stablehlo.reduce(%w init: %false) applies stablehlo.or across dimensions = [0, 1] : (tensor<37x5xi1>, tensor<i1>) -> tensor<i1>
    stablehlo.return %any : tensor<i1>
  } do {
    %c = stablehlo.constant dense<1.0> : tensor<37x5xf32>
    %half = stablehlo.constant dense<0.5> : tensor<37x5xf32>
    %k1 = stablehlo.add %k, %c : tensor<37x5xf32>
    %s = stablehlo.multiply %v, %half : tensor<37x5xf32>
    %v1 = stablehlo.add %s, %k : tensor<37x5xf32>
    %more = stablehlo.compare LT, %k1, %e : (tensor<37x5xf32>, tensor<37x5xf32>) -> tensor<37x5xi1>
    %ten = stablehlo.constant dense<10.0> : tensor<37x5xf32>
    %few = stablehlo.compare LT, %k1, %ten : (tensor<37x5xf32>, tensor<37x5xf32>) -> tensor<37x5xi1>
    %left = stablehlo.and %more, %few : tensor<37x5xi1>
    %w1 = stablehlo.and %w, %left : tensor<37x5xi1>
    %k2 = stablehlo.select %w, %k1, %k : tensor<37x5xi1>, tensor<37x5xf32>
    %v2 = stablehlo.select %w, %v1, %v : tensor<37x5xi1>, tensor<37x5xf32>
    stablehlo.return %w1, %k2, %v2, %e : tensor<37x5xi1>, tensor<37x5xf32>, tensor<37x5xf32>, tensor<37x5xf32>
  }
  func.return %0#2 : tensor<37x5xf32>
}
