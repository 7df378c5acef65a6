// A residual block with bias, relu, normalisation over the batch, max-pooling, and its gradients.
// CASE: a_training_step_keeps_transposes_at_its_edges
// RUN-PASS: convolution_layout,common_subexpressions
// COUNT: stablehlo.transpose 1
// CHECK: stablehlo.transpose %arg0
// CHECK-NOT: dim_numbers = [b, f,
// CHECK-NOT: dim_numbers = [f, b,
// INPUTS: integers
// TOLERANCE: 1e-4
// ONCE
func.func public @main(%arg0: tensor<2x3x8x8xf32>, %arg1: tensor<4x3x3x3xf32>, %arg2: tensor<4xf32>, %arg3: tensor<4x4x3x3xf32>) -> (tensor<2x4xf32>, tensor<4x4x3x3xf32>, tensor<4x3x3x3xf32>, tensor<4xf32>) {
  %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [0, 0]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x8x8xf32>
  %1 = stablehlo.broadcast_in_dim %arg2, dims = [1] : (tensor<4xf32>) -> tensor<2x4x8x8xf32>
  %2 = stablehlo.add %0, %1 : tensor<2x4x8x8xf32>
  %3 = stablehlo.constant dense<0.000000000e+00> : tensor<f32>
  %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<2x4x8x8xf32>
  %5 = stablehlo.maximum %2, %4 : tensor<2x4x8x8xf32>
  %6 = stablehlo.constant dense<1.280000000e+02> : tensor<f32>
  %7 = stablehlo.broadcast_in_dim %6, dims = [] : (tensor<f32>) -> tensor<4xf32>
  %8 = stablehlo.constant dense<0.000000000e+00> : tensor<f32>
  %9 = stablehlo.reduce(%5 init: %8) applies stablehlo.add across dimensions = [0, 2, 3] : (tensor<2x4x8x8xf32>, tensor<f32>) -> tensor<4xf32>
  %10 = stablehlo.divide %9, %7 : tensor<4xf32>
  %11 = stablehlo.broadcast_in_dim %10, dims = [1] : (tensor<4xf32>) -> tensor<2x4x8x8xf32>
  %12 = stablehlo.subtract %5, %11 : tensor<2x4x8x8xf32>
  %13 = stablehlo.convolution(%12, %arg3) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [0, 0]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x4x8x8xf32>, tensor<4x4x3x3xf32>) -> tensor<2x4x8x8xf32>
  %14 = stablehlo.add %13, %5 : tensor<2x4x8x8xf32>
  %15 = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %16 = "stablehlo.reduce_window"(%14, %15) <{window_dimensions = array<i64: 1, 1, 2, 2>, window_strides = array<i64: 1, 1, 2, 2>, base_dilations = array<i64: 1, 1, 1, 1>, window_dilations = array<i64: 1, 1, 1, 1>, padding = dense<[[0, 0], [0, 0], [0, 0], [0, 0]]> : tensor<4x2xi64>}> ({
  ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
    %17 = stablehlo.maximum %arg4, %arg5 : tensor<f32>
    stablehlo.return %17 : tensor<f32>
  }) : (tensor<2x4x8x8xf32>, tensor<f32>) -> tensor<2x4x4x4xf32>
  %18 = stablehlo.constant dense<0.000000000e+00> : tensor<f32>
  %19 = stablehlo.reduce(%16 init: %18) applies stablehlo.add across dimensions = [2, 3] : (tensor<2x4x4x4xf32>, tensor<f32>) -> tensor<2x4xf32>
  %20 = stablehlo.broadcast_in_dim %19, dims = [0, 1] : (tensor<2x4xf32>) -> tensor<2x4x4x4xf32>
  %21 = stablehlo.constant dense<0.000000000e+00> : tensor<f32>
  %22 = "stablehlo.select_and_scatter"(%14, %20, %21) <{window_dimensions = array<i64: 1, 1, 2, 2>, window_strides = array<i64: 1, 1, 2, 2>, padding = dense<[[0, 0], [0, 0], [0, 0], [0, 0]]> : tensor<4x2xi64>}> ({
  ^bb0(%arg6: tensor<f32>, %arg7: tensor<f32>):
    %23 = stablehlo.compare GE, %arg6, %arg7 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %23 : tensor<i1>
  }, {
  ^bb0(%arg8: tensor<f32>, %arg9: tensor<f32>):
    %24 = stablehlo.add %arg8, %arg9 : tensor<f32>
    stablehlo.return %24 : tensor<f32>
  }) : (tensor<2x4x8x8xf32>, tensor<2x4x4x4xf32>, tensor<f32>) -> tensor<2x4x8x8xf32>
  %25 = stablehlo.convolution(%12, %22) dim_numbers = [f, b, 0, 1]x[i, o, 0, 1]->[f, b, 0, 1], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [0, 0]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>) -> tensor<4x4x3x3xf32>
  %26 = stablehlo.reverse %arg3, dims = [2, 3] : tensor<4x4x3x3xf32>
  %27 = stablehlo.convolution(%22, %26) dim_numbers = [b, f, 0, 1]x[i, o, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [0, 0]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x4x8x8xf32>, tensor<4x4x3x3xf32>) -> tensor<2x4x8x8xf32>
  %28 = stablehlo.constant dense<0.000000000e+00> : tensor<f32>
  %29 = stablehlo.broadcast_in_dim %28, dims = [] : (tensor<f32>) -> tensor<2x4x8x8xf32>
  %30 = stablehlo.add %27, %22 : tensor<2x4x8x8xf32>
  %31 = stablehlo.constant dense<0.000000000e+00> : tensor<f32>
  %32 = stablehlo.broadcast_in_dim %31, dims = [] : (tensor<f32>) -> tensor<2x4x8x8xf32>
  %33 = stablehlo.compare GT, %5, %32 : (tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xi1>
  %34 = stablehlo.select %33, %30, %29 : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %35 = stablehlo.convolution(%arg0, %34) dim_numbers = [f, b, 0, 1]x[i, o, 0, 1]->[f, b, 0, 1], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [0, 0]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x3x8x8xf32>, tensor<2x4x8x8xf32>) -> tensor<4x3x3x3xf32>
  %36 = stablehlo.constant dense<0.000000000e+00> : tensor<f32>
  %37 = stablehlo.reduce(%34 init: %36) applies stablehlo.add across dimensions = [0, 2, 3] : (tensor<2x4x8x8xf32>, tensor<f32>) -> tensor<4xf32>
  func.return %19, %25, %35, %37 : tensor<2x4xf32>, tensor<4x4x3x3xf32>, tensor<4x3x3x3xf32>, tensor<4xf32>
}
// -----
// CASE: strided_gradients
// RUN-PASS: convolution_layout,common_subexpressions
// CHECK-NOT: dim_numbers = [b, f,
// CHECK-NOT: dim_numbers = [f, b,
// INPUTS: integers
// TOLERANCE: 1e-4
// ONCE
func.func public @main(%arg0: tensor<2x3x9x9xf32>, %arg1: tensor<4x3x3x3xf32>, %arg2: tensor<2x4x5x5xf32>) -> (tensor<2x3x9x9xf32>, tensor<4x3x3x3xf32>) {
  %0 = stablehlo.reverse %arg1, dims = [2, 3] : tensor<4x3x3x3xf32>
  %1 = stablehlo.convolution(%arg2, %0) dim_numbers = [b, f, 0, 1]x[i, o, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [2, 2], rhs_dilate = [1, 1], reverse = [0, 0]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x4x5x5xf32>, tensor<4x3x3x3xf32>) -> tensor<2x3x9x9xf32>
  %2 = stablehlo.convolution(%arg0, %arg2) dim_numbers = [f, b, 0, 1]x[i, o, 0, 1]->[f, b, 0, 1], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [2, 2], reverse = [0, 0]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x3x9x9xf32>, tensor<2x4x5x5xf32>) -> tensor<4x3x3x3xf32>
  func.return %1, %2 : tensor<2x3x9x9xf32>, tensor<4x3x3x3xf32>
}
// -----
// CASE: rearrangements_follow
// RUN-PASS: convolution_layout,common_subexpressions
// CHECK-NOT: ->[b, f,
// INPUTS: integers
// TOLERANCE: 1e-4
// ONCE
func.func public @main(%arg0: tensor<2x3x6x6xf32>, %arg1: tensor<4x3x3x3xf32>, %arg2: tensor<2x2x6x6xf32>, %arg3: tensor<2x4x1x6xf32>) -> (tensor<2x3x5x3xf32>, tensor<2x3x3x5xf32>, tensor<2x144xf32>, tensor<4x6x6xf32>, tensor<2x4x6x6xf32>) {
  %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [0, 0]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x3x6x6xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x6x6xf32>
  %1 = stablehlo.concatenate %0, %arg2, dim = 1 : (tensor<2x4x6x6xf32>, tensor<2x2x6x6xf32>) -> tensor<2x6x6x6xf32>
  %2 = stablehlo.constant dense<0.000000000e+00> : tensor<f32>
  %3 = stablehlo.pad %1, %2, low = [0, 1, 2, -1], high = [0, 0, 1, 3], interior = [0, 0, 1, 0] : (tensor<2x6x6x6xf32>, tensor<f32>) -> tensor<2x7x14x8xf32>
  %4 = stablehlo.slice %3 [0:2, 1:6:2, 2:9:3, 3:8] : (tensor<2x7x14x8xf32>) -> tensor<2x3x3x5xf32>
  %5 = stablehlo.reverse %4, dims = [1, 3] : tensor<2x3x3x5xf32>
  %6 = stablehlo.transpose %5, dims = [0, 2, 3, 1] : (tensor<2x3x3x5xf32>) -> tensor<2x3x5x3xf32>
  %7 = stablehlo.broadcast_in_dim %arg3, dims = [0, 1, 2, 3] : (tensor<2x4x1x6xf32>) -> tensor<2x4x6x6xf32>
  %8 = stablehlo.add %0, %7 : tensor<2x4x6x6xf32>
  %9 = stablehlo.reshape %0 : (tensor<2x4x6x6xf32>) -> tensor<2x144xf32>
  %10 = stablehlo.constant dense<0.000000000e+00> : tensor<f32>
  %11 = stablehlo.reduce(%0 init: %10) applies stablehlo.add across dimensions = [0] : (tensor<2x4x6x6xf32>, tensor<f32>) -> tensor<4x6x6xf32>
  func.return %6, %4, %9, %11, %8 : tensor<2x3x5x3xf32>, tensor<2x3x3x5xf32>, tensor<2x144xf32>, tensor<4x6x6xf32>, tensor<2x4x6x6xf32>
}
// -----
// CASE: grouped_forms
// RUN-PASS: convolution_layout,common_subexpressions
// CHECK-NOT: dim_numbers = [b, f,
// CHECK-NOT: dim_numbers = [f, b,
// INPUTS: integers
// TOLERANCE: 1e-4
// ONCE
func.func public @main(%arg0: tensor<2x4x6x6xf32>, %arg1: tensor<8x2x3x3xf32>, %arg2: tensor<2x8x6x6xf32>) -> (tensor<2x8x6x6xf32>, tensor<8x2x3x3xf32>) {
  %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [0, 0]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<2x4x6x6xf32>, tensor<8x2x3x3xf32>) -> tensor<2x8x6x6xf32>
  %1 = stablehlo.convolution(%arg0, %arg2) dim_numbers = [f, b, 0, 1]x[i, o, 0, 1]->[f, b, 0, 1], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [0, 0]} {batch_group_count = 2 : i64, feature_group_count = 1 : i64} : (tensor<2x4x6x6xf32>, tensor<2x8x6x6xf32>) -> tensor<8x2x3x3xf32>
  func.return %0, %1 : tensor<2x8x6x6xf32>, tensor<8x2x3x3xf32>
}
// -----
// CASE: few_channels_by_themselves_stay
// RUN-PASS: convolution_layout
// UNCHANGED
func.func public @main(%arg0: tensor<2x3x12x12xf32>, %arg1: tensor<3x1x5x5xf32>) -> (tensor<2x3xf32>) {
  %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [0, 0]} {batch_group_count = 1 : i64, feature_group_count = 3 : i64} : (tensor<2x3x12x12xf32>, tensor<3x1x5x5xf32>) -> tensor<2x3x8x8xf32>
  %1 = stablehlo.constant dense<0.000000000e+00> : tensor<f32>
  %2 = stablehlo.reduce(%0 init: %1) applies stablehlo.add across dimensions = [2, 3] : (tensor<2x3x8x8xf32>, tensor<f32>) -> tensor<2x3xf32>
  func.return %2 : tensor<2x3xf32>
}
// -----
// CASE: channels_last_stay
// RUN-PASS: convolution_layout
// UNCHANGED
func.func public @main(%arg0: tensor<2x6x6x3xf32>, %arg1: tensor<3x3x3x4xf32>) -> (tensor<2x6x6x4xf32>) {
  %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [0, 0]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x6x6x3xf32>, tensor<3x3x3x4xf32>) -> tensor<2x6x6x4xf32>
  func.return %0 : tensor<2x6x6x4xf32>
}
// -----
// CASE: positions_of_strided_windows
// RUN-PASS: convolution_layout,common_subexpressions
// COUNT: stablehlo.transpose 3
// CHECK: stablehlo.transpose %arg0
// CHECK: stablehlo.iota dim = 2 : tensor<2x7x9x16xi32>
// ON-ENGINE
func.func public @main(%arg0: tensor<2x16x7x9xf32>) -> (tensor<2x16x4x5xf32>, tensor<2x16x4x5xi64>) {
  %0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %1 = "stablehlo.reduce_window"(%arg0, %0) <{window_dimensions = array<i64: 1, 1, 3, 3>, window_strides = array<i64: 1, 1, 2, 2>, base_dilations = array<i64: 1, 1, 1, 1>, window_dilations = array<i64: 1, 1, 1, 1>, padding = dense<[[0, 0], [0, 0], [1, 1], [1, 1]]> : tensor<4x2xi64>}> ({
  ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
    %2 = stablehlo.maximum %arg1, %arg2 : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<2x16x7x9xf32>, tensor<f32>) -> tensor<2x16x4x5xf32>
  %3 = stablehlo.iota dim = 3 : tensor<2x16x7x9xi32>
  %4 = stablehlo.constant dense<1> : tensor<i32>
  %5 = stablehlo.broadcast_in_dim %4, dims = [] : (tensor<i32>) -> tensor<2x16x7x9xi32>
  %6 = stablehlo.multiply %3, %5 : tensor<2x16x7x9xi32>
  %7 = stablehlo.iota dim = 2 : tensor<2x16x7x9xi32>
  %8 = stablehlo.constant dense<9> : tensor<i32>
  %9 = stablehlo.broadcast_in_dim %8, dims = [] : (tensor<i32>) -> tensor<2x16x7x9xi32>
  %10 = stablehlo.multiply %7, %9 : tensor<2x16x7x9xi32>
  %11 = stablehlo.add %6, %10 : tensor<2x16x7x9xi32>
  %12 = stablehlo.constant dense<-1> : tensor<i32>
  %13 = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %14:2 = "stablehlo.reduce_window"(%arg0, %11, %13, %12) <{window_dimensions = array<i64: 1, 1, 3, 3>, window_strides = array<i64: 1, 1, 2, 2>, base_dilations = array<i64: 1, 1, 1, 1>, window_dilations = array<i64: 1, 1, 1, 1>, padding = dense<[[0, 0], [0, 0], [1, 1], [1, 1]]> : tensor<4x2xi64>}> ({
  ^bb0(%arg3: tensor<f32>, %arg4: tensor<i32>, %arg5: tensor<f32>, %arg6: tensor<i32>):
    %15 = stablehlo.compare GT, %arg5, %arg3 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %16 = stablehlo.compare EQ, %arg5, %arg3 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %17 = stablehlo.compare NE, %arg3, %arg3 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %18 = stablehlo.compare NE, %arg5, %arg5 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %19 = stablehlo.not %17 : tensor<i1>
    %20 = stablehlo.and %18, %19 : tensor<i1>
    %21 = stablehlo.or %15, %20 : tensor<i1>
    %22 = stablehlo.and %18, %17 : tensor<i1>
    %23 = stablehlo.or %16, %22 : tensor<i1>
    %24 = stablehlo.compare LT, %arg6, %arg4 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %25 = stablehlo.constant dense<0> : tensor<i32>
    %26 = stablehlo.compare LT, %arg4, %25 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %27 = stablehlo.constant dense<0> : tensor<i32>
    %28 = stablehlo.compare GE, %arg6, %27 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %29 = stablehlo.and %23, %24 : tensor<i1>
    %30 = stablehlo.or %21, %29 : tensor<i1>
    %31 = stablehlo.or %26, %30 : tensor<i1>
    %32 = stablehlo.and %28, %31 : tensor<i1>
    %33 = stablehlo.select %32, %arg5, %arg3 : tensor<i1>, tensor<f32>
    %34 = stablehlo.select %32, %arg6, %arg4 : tensor<i1>, tensor<i32>
    stablehlo.return %33, %34 : tensor<f32>, tensor<i32>
  }) : (tensor<2x16x7x9xf32>, tensor<2x16x7x9xi32>, tensor<f32>, tensor<i32>) -> (tensor<2x16x4x5xf32>, tensor<2x16x4x5xi32>)
  %35 = stablehlo.convert %14#1 : (tensor<2x16x4x5xi32>) -> tensor<2x16x4x5xi64>
  func.return %1, %35 : tensor<2x16x4x5xf32>, tensor<2x16x4x5xi64>
}
// -----
// CASE: gradient_of_a_strided_maximum
// RUN-PASS: convolution_layout
// COUNT: stablehlo.transpose 3
// ONCE
func.func public @main(%arg0: tensor<2x16x4x5xi64>, %arg1: tensor<2x16x7x9xf32>, %arg2: tensor<2x16x4x5xf32>) -> (tensor<2x16x7x9xf32>) {
  %0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %1 = "stablehlo.select_and_scatter"(%arg1, %arg2, %0) <{window_dimensions = array<i64: 1, 1, 3, 3>, window_strides = array<i64: 1, 1, 2, 2>, padding = dense<[[0, 0], [0, 0], [1, 1], [1, 1]]> : tensor<4x2xi64>}> ({
  ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
    %2 = stablehlo.compare GE, %arg3, %arg4 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %3 = stablehlo.compare NE, %arg3, %arg3 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %4 = stablehlo.or %2, %3 : tensor<i1>
    stablehlo.return %4 : tensor<i1>
  }, {
  ^bb0(%arg5: tensor<f32>, %arg6: tensor<f32>):
    %5 = stablehlo.add %arg5, %arg6 : tensor<f32>
    stablehlo.return %5 : tensor<f32>
  }) : (tensor<2x16x7x9xf32>, tensor<2x16x4x5xf32>, tensor<f32>) -> tensor<2x16x7x9xf32>
  func.return %1 : tensor<2x16x7x9xf32>
}
// -----
// CASE: gradient_of_a_strided_mean
// RUN-PASS: convolution_layout
// COUNT: stablehlo.transpose 2
// TOLERANCE: 1e-5
// ONCE
func.func public @main(%arg0: tensor<2x16x7x9xf32>, %arg1: tensor<2x16x4x5xf32>) -> (tensor<2x16x7x9xf32>) {
  %0 = stablehlo.constant dense<1.111111119e-01> : tensor<f32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2x16x4x5xf32>
  %2 = stablehlo.multiply %arg1, %1 : tensor<2x16x4x5xf32>
  %3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %4 = "stablehlo.reduce_window"(%2, %3) <{window_dimensions = array<i64: 1, 1, 3, 3>, window_strides = array<i64: 1, 1, 1, 1>, base_dilations = array<i64: 1, 1, 2, 2>, window_dilations = array<i64: 1, 1, 1, 1>, padding = dense<[[0, 0], [0, 0], [1, 1], [1, 1]]> : tensor<4x2xi64>}> ({
  ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
    %5 = stablehlo.add %arg2, %arg3 : tensor<f32>
    stablehlo.return %5 : tensor<f32>
  }) : (tensor<2x16x4x5xf32>, tensor<f32>) -> tensor<2x16x7x9xf32>
  func.return %4 : tensor<2x16x7x9xf32>
}
// -----
// CASE: a_strided_mean_stays
// RUN-PASS: convolution_layout
// UNCHANGED
func.func public @main(%arg0: tensor<2x16x7x9xf32>) -> (tensor<2x16x4x5xf32>) {
  %0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %1 = "stablehlo.reduce_window"(%arg0, %0) <{window_dimensions = array<i64: 1, 1, 3, 3>, window_strides = array<i64: 1, 1, 2, 2>, base_dilations = array<i64: 1, 1, 1, 1>, window_dilations = array<i64: 1, 1, 1, 1>, padding = dense<[[0, 0], [0, 0], [1, 1], [1, 1]]> : tensor<4x2xi64>}> ({
  ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
    %2 = stablehlo.add %arg1, %arg2 : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<2x16x7x9xf32>, tensor<f32>) -> tensor<2x16x4x5xf32>
  %3 = stablehlo.constant dense<1.111111119e-01> : tensor<f32>
  %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<2x16x4x5xf32>
  %5 = stablehlo.multiply %1, %4 : tensor<2x16x4x5xf32>
  func.return %5 : tensor<2x16x4x5xf32>
}
// -----
// CASE: alone_it_reads_and_writes_where_they_are
// RUN-PASS: convolution_layout
// COUNT: stablehlo.transpose 0
// CHECK: dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]
// INPUTS: integers
// TOLERANCE: 1e-4
func.func public @main(%arg0: tensor<2x3x6x6xf32>, %arg1: tensor<4x3x3x3xf32>, %arg2: tensor<4xf32>) -> (tensor<2x4x4x4xf32>) {
  %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [0, 0]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x3x6x6xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x4x4xf32>
  %1 = stablehlo.broadcast_in_dim %arg2, dims = [1] : (tensor<4xf32>) -> tensor<2x4x4x4xf32>
  %2 = stablehlo.add %0, %1 : tensor<2x4x4x4xf32>
  func.return %2 : tensor<2x4x4x4xf32>
}
// -----
// CASE: two_after_one_another_turn_nothing
// RUN-PASS: convolution_layout
// COUNT: stablehlo.transpose 0
// CHECK: dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, 0, 1, f]
// CHECK: dim_numbers = [b, 0, 1, f]x[o, i, 0, 1]->[b, f, 0, 1]
// INPUTS: integers
// TOLERANCE: 1e-4
func.func public @main(%arg0: tensor<2x3x9x9xf32>, %arg1: tensor<4x3x3x3xf32>, %arg2: tensor<5x4x3x3xf32>) -> (tensor<2x5x5x5xf32>) {
  %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [0, 0]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x3x9x9xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x7x7xf32>
  %1 = stablehlo.negate %0 : tensor<2x4x7x7xf32>
  %2 = stablehlo.convolution(%1, %arg2) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [0, 0]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x4x7x7xf32>, tensor<5x4x3x3xf32>) -> tensor<2x5x5x5xf32>
  func.return %2 : tensor<2x5x5x5xf32>
}
// -----
// CASE: two_that_read_the_same_share_its_transpose
// RUN-PASS: convolution_layout
// COUNT: stablehlo.transpose 1
// CHECK: stablehlo.transpose %arg0
// INPUTS: integers
// TOLERANCE: 1e-4
func.func public @main(%arg0: tensor<2x3x6x6xf32>, %arg1: tensor<4x3x3x3xf32>, %arg2: tensor<4x3x1x1xf32>) -> (tensor<2x4x4x4xf32>, tensor<2x4x6x6xf32>) {
  %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [0, 0]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x3x6x6xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x4x4xf32>
  %1 = stablehlo.convolution(%arg0, %arg2) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [0, 0]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x3x6x6xf32>, tensor<4x3x1x1xf32>) -> tensor<2x4x6x6xf32>
  func.return %0, %1 : tensor<2x4x4x4xf32>, tensor<2x4x6x6xf32>
}
// -----
// Of f64 and complex numbers it is a product of patches, which reads rows of pixels.
// CASE: doubles_stay
// UNCHANGED
// RUN-PASS: convolution_layout
// INPUTS: integers
// TOLERANCE: 1e-9
func.func public @main(%arg0: tensor<2x16x6x6xf64>, %arg1: tensor<16x16x3x3xf64>) -> (tensor<2x16x6x6xf64>) {
  %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [0, 0]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x16x6x6xf64>, tensor<16x16x3x3xf64>) -> tensor<2x16x6x6xf64>
  %1 = stablehlo.convolution(%0, %arg1) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [0, 0]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x16x6x6xf64>, tensor<16x16x3x3xf64>) -> tensor<2x16x6x6xf64>
  %2 = stablehlo.add %1, %0 : tensor<2x16x6x6xf64>
  func.return %2 : tensor<2x16x6x6xf64>
}
// -----
// CASE: gradients_of_single_pixels_to_one_channel_stay
// UNCHANGED
// RUN-PASS: convolution_layout
// INPUTS: integers
// TOLERANCE: 1e-4
func.func public @main(%arg0: tensor<2x32x6x6xf32>, %arg1: tensor<2x1x6x6xf32>) -> (tensor<32x1x1x1xf32>) {
  %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [f, b, 0, 1]x[i, o, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [0, 0]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x32x6x6xf32>, tensor<2x1x6x6xf32>) -> tensor<32x1x1x1xf32>
  func.return %0 : tensor<32x1x1x1xf32>
}
