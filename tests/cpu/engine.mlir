// CASE: rearrangements
func.func public @main(%arg0: tensor<3x5x8xf32>) -> (tensor<3x8x5xf32>, tensor<5x3x8xf32>, tensor<15x8xf32>, tensor<3x5x8xf32>, tensor<2x4x2xf32>, tensor<3x4x5x8xf32>, tensor<4x14x16xf32>, tensor<3x10x8xf32>, tensor<30x4xf32>) {
  %0 = stablehlo.add %arg0, %arg0 : tensor<3x5x8xf32>
  %1 = stablehlo.transpose %0, dims = [0, 2, 1] : (tensor<3x5x8xf32>) -> tensor<3x8x5xf32>
  %2 = stablehlo.transpose %0, dims = [1, 0, 2] : (tensor<3x5x8xf32>) -> tensor<5x3x8xf32>
  %3 = stablehlo.reshape %0 : (tensor<3x5x8xf32>) -> tensor<15x8xf32>
  %4 = stablehlo.reverse %0, dims = [0, 2] : tensor<3x5x8xf32>
  %5 = stablehlo.slice %0 [0:3:2, 1:5, 2:7:3] : (tensor<3x5x8xf32>) -> tensor<2x4x2xf32>
  %6 = stablehlo.broadcast_in_dim %0, dims = [0, 2, 3] : (tensor<3x5x8xf32>) -> tensor<3x4x5x8xf32>
  %7 = stablehlo.constant dense<7.0> : tensor<f32>
  %8 = stablehlo.pad %0, %7, low = [1, -1, 2], high = [0, 2, -1], interior = [0, 2, 1] : (tensor<3x5x8xf32>, tensor<f32>) -> tensor<4x14x16xf32>
  %9 = stablehlo.concatenate %0, %arg0, dim = 1 : (tensor<3x5x8xf32>, tensor<3x5x8xf32>) -> tensor<3x10x8xf32>
  %10 = stablehlo.reshape %0 : (tensor<3x5x8xf32>) -> tensor<15x2x4xf32>
  %11 = stablehlo.transpose %10, dims = [1, 0, 2] : (tensor<15x2x4xf32>) -> tensor<2x15x4xf32>
  %12 = stablehlo.reshape %11 : (tensor<2x15x4xf32>) -> tensor<30x4xf32>
  func.return %1, %2, %3, %4, %5, %6, %8, %9, %12 : tensor<3x8x5xf32>, tensor<5x3x8xf32>, tensor<15x8xf32>, tensor<3x5x8xf32>, tensor<2x4x2xf32>, tensor<3x4x5x8xf32>, tensor<4x14x16xf32>, tensor<3x10x8xf32>, tensor<30x4xf32>
}
// -----
// CASE: broadcasts
func.func public @main(%arg0: tensor<6x10xf32>, %arg1: tensor<10xf32>, %arg2: tensor<6xf32>, %arg3: tensor<f32>, %arg4: tensor<6x1xf32>) -> (tensor<6x10xf32>) {
  %0 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<10xf32>) -> tensor<6x10xf32>
  %1 = stablehlo.add %arg0, %0 : tensor<6x10xf32>
  %2 = stablehlo.broadcast_in_dim %arg2, dims = [0] : (tensor<6xf32>) -> tensor<6x10xf32>
  %3 = stablehlo.multiply %1, %2 : tensor<6x10xf32>
  %4 = stablehlo.broadcast_in_dim %arg3, dims = [] : (tensor<f32>) -> tensor<6x10xf32>
  %5 = stablehlo.subtract %3, %4 : tensor<6x10xf32>
  %6 = stablehlo.broadcast_in_dim %arg4, dims = [0, 1] : (tensor<6x1xf32>) -> tensor<6x10xf32>
  %7 = stablehlo.add %5, %6 : tensor<6x10xf32>
  %8 = stablehlo.iota dim = 1 : tensor<6x10xi32>
  %9 = stablehlo.convert %8 : (tensor<6x10xi32>) -> tensor<6x10xf32>
  %10 = stablehlo.add %7, %9 : tensor<6x10xf32>
  func.return %10 : tensor<6x10xf32>
}
// -----
// CASE: maximum_and_its_index_of_one_sliced_element
// A reduced dimension of size one makes no loop, but the slice in it still has a position.
func.func public @main(%arg0: tensor<2x4x5x4xf32>, %arg1: tensor<2x4x5x4xi64>) -> (tensor<2x4x4xf32>, tensor<2x4x4xi64>) {
  %0 = stablehlo.constant dense<-1.000000e+30> : tensor<f32>
  %1 = stablehlo.constant dense<-1> : tensor<i64>
  %2 = stablehlo.slice %arg0 [0:2, 0:4, 3:4, 0:4] : (tensor<2x4x5x4xf32>) -> tensor<2x4x1x4xf32>
  %3 = stablehlo.slice %arg1 [0:2, 0:4, 3:4, 0:4] : (tensor<2x4x5x4xi64>) -> tensor<2x4x1x4xi64>
  %4:2 = "stablehlo.reduce"(%2, %3, %0, %1) <{dimensions = array<i64: 2>}> ({
  ^bb0(%arg2: tensor<f32>, %arg3: tensor<i64>, %arg4: tensor<f32>, %arg5: tensor<i64>):
    %5 = stablehlo.compare GT, %arg4, %arg2 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %6 = stablehlo.select %5, %arg4, %arg2 : tensor<i1>, tensor<f32>
    %7 = stablehlo.select %5, %arg5, %arg3 : tensor<i1>, tensor<i64>
    stablehlo.return %6, %7 : tensor<f32>, tensor<i64>
  }) : (tensor<2x4x1x4xf32>, tensor<2x4x1x4xi64>, tensor<f32>, tensor<i64>) -> (tensor<2x4x4xf32>, tensor<2x4x4xi64>)
  func.return %4#0, %4#1 : tensor<2x4x4xf32>, tensor<2x4x4xi64>
}
// -----
// CASE: values_kept_between_passes_over_short_rows
// Expensive values that two passes over a row need are kept; rows end within a vector here.
func.func public @main(%arg0: tensor<5xf32>, %arg1: tensor<5x1xf32>) -> (tensor<5x5xf32>, tensor<5x5xf32>, tensor<5x5xf32>, tensor<f32>) {
  %0 = stablehlo.broadcast_in_dim %arg0, dims = [1] : (tensor<5xf32>) -> tensor<5x5xf32>
  %1 = stablehlo.sine %0 : tensor<5x5xf32>
  %2 = stablehlo.broadcast_in_dim %arg0, dims = [1] : (tensor<5xf32>) -> tensor<5x5xf32>
  %3 = stablehlo.cosine %2 : tensor<5x5xf32>
  %4 = stablehlo.broadcast_in_dim %arg1, dims = [0, 1] : (tensor<5x1xf32>) -> tensor<5x5xf32>
  %5 = stablehlo.multiply %4, %3 : tensor<5x5xf32>
  %6 = stablehlo.multiply %4, %1 : tensor<5x5xf32>
  %7 = stablehlo.multiply %6, %5 : tensor<5x5xf32>
  %8 = stablehlo.constant dense<0.0> : tensor<f32>
  %9 = stablehlo.reduce(%7 init: %8) applies stablehlo.add across dimensions = [0, 1] : (tensor<5x5xf32>, tensor<f32>) -> tensor<f32>
  func.return %7, %1, %3, %9 : tensor<5x5xf32>, tensor<5x5xf32>, tensor<5x5xf32>, tensor<f32>
}
// -----
// CASE: operations_over_nothing
func.func public @main(%arg0: tensor<5x0xf32>, %arg1: tensor<2xui64>) -> (tensor<5x3xf32>, tensor<5xf32>, tensor<2xui64>, tensor<0x3xui32>) {
  %0 = stablehlo.constant dense<1.5> : tensor<f32>
  %1:2 = stablehlo.rng_bit_generator %arg1, algorithm = PHILOX : (tensor<2xui64>) -> (tensor<2xui64>, tensor<0x3xui32>)
  %2 = stablehlo.pad %arg0, %0, low = [0, 2], high = [0, 1], interior = [0, 0] : (tensor<5x0xf32>, tensor<f32>) -> tensor<5x3xf32>
  %3 = stablehlo.constant dense<0.0> : tensor<f32>
  %4 = stablehlo.reduce(%arg0 init: %3) applies stablehlo.add across dimensions = [1] : (tensor<5x0xf32>, tensor<f32>) -> tensor<5xf32>
  func.return %2, %4, %1#0, %1#1 : tensor<5x3xf32>, tensor<5xf32>, tensor<2xui64>, tensor<0x3xui32>
}
// -----
// CASE: results_of_nothing
// Each has results, though it reads nothing.
func.func public @main(%arg0: tensor<3x0xf32>, %arg1: tensor<3x7xf32>, %arg2: tensor<4x0xi32>, %arg3: tensor<0x2xf32>) -> (tensor<4x5xf32>, tensor<3x7xf32>, tensor<2x2xf32>, tensor<3x1xcomplex<f32>>, tensor<3x2xf32>) {
  %0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %1 = "stablehlo.gather"(%arg1, %arg2) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 5>}> : (tensor<3x7xf32>, tensor<4x0xi32>) -> tensor<4x5xf32>
  %2 = stablehlo.constant dense<0.5> : tensor<f32>
  %3 = "stablehlo.select_and_scatter"(%arg1, %arg0, %2) <{window_dimensions = array<i64: 1, 8>, window_strides = array<i64: 1, 1>, padding = dense<[[0, 0], [0, 0]]> : tensor<2x2xi64>}> ({
  ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
    %4 = stablehlo.compare GE, %arg4, %arg5 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %4 : tensor<i1>
  }, {
  ^bb0(%arg6: tensor<f32>, %arg7: tensor<f32>):
    %5 = stablehlo.add %arg6, %arg7 : tensor<f32>
    stablehlo.return %5 : tensor<f32>
  }) : (tensor<3x7xf32>, tensor<3x0xf32>, tensor<f32>) -> tensor<3x7xf32>
  %6 = "stablehlo.reduce_window"(%arg3, %0) <{window_dimensions = array<i64: 3, 1>, window_strides = array<i64: 1, 1>, base_dilations = array<i64: 1, 1>, window_dilations = array<i64: 1, 1>, padding = dense<[[2, 2], [0, 0]]> : tensor<2x2xi64>}> ({
  ^bb0(%arg8: tensor<f32>, %arg9: tensor<f32>):
    %7 = stablehlo.maximum %arg8, %arg9 : tensor<f32>
    stablehlo.return %7 : tensor<f32>
  }) : (tensor<0x2xf32>, tensor<f32>) -> tensor<2x2xf32>
  %8 = "stablehlo.fft"(%arg0) <{fft_type = #stablehlo<fft_type RFFT>, fft_length = array<i64: 0>}> : (tensor<3x0xf32>) -> tensor<3x1xcomplex<f32>>
  %9 = stablehlo.dot_general %arg0, %arg3, contracting_dims = [1] x [0] : (tensor<3x0xf32>, tensor<0x2xf32>) -> tensor<3x2xf32>
  func.return %1, %3, %6, %8, %9 : tensor<4x5xf32>, tensor<3x7xf32>, tensor<2x2xf32>, tensor<3x1xcomplex<f32>>, tensor<3x2xf32>
}
// -----
// CASE: layer_norm
// SCALE: 10
func.func public @main(%arg0: tensor<9x48xf32>, %arg1: tensor<48xf32>, %arg2: tensor<48xf32>) -> (tensor<9x48xf32>, tensor<9xf32>, tensor<9xf32>) {
  %0 = stablehlo.constant dense<48.0> : tensor<f32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<9xf32>
  %2 = stablehlo.constant dense<0.0> : tensor<f32>
  %3 = stablehlo.reduce(%arg0 init: %2) applies stablehlo.add across dimensions = [1] : (tensor<9x48xf32>, tensor<f32>) -> tensor<9xf32>
  %4 = stablehlo.divide %3, %1 : tensor<9xf32>
  %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<9xf32>) -> tensor<9x48xf32>
  %6 = stablehlo.subtract %arg0, %5 : tensor<9x48xf32>
  %7 = stablehlo.multiply %6, %6 : tensor<9x48xf32>
  %8 = stablehlo.constant dense<0.0> : tensor<f32>
  %9 = stablehlo.reduce(%7 init: %8) applies stablehlo.add across dimensions = [1] : (tensor<9x48xf32>, tensor<f32>) -> tensor<9xf32>
  %10 = stablehlo.divide %9, %1 : tensor<9xf32>
  %11 = stablehlo.constant dense<1.000000e-05> : tensor<f32>
  %12 = stablehlo.broadcast_in_dim %11, dims = [] : (tensor<f32>) -> tensor<9xf32>
  %13 = stablehlo.add %10, %12 : tensor<9xf32>
  %14 = stablehlo.rsqrt %13 : tensor<9xf32>
  %15 = stablehlo.broadcast_in_dim %14, dims = [0] : (tensor<9xf32>) -> tensor<9x48xf32>
  %16 = stablehlo.multiply %6, %15 : tensor<9x48xf32>
  %17 = stablehlo.broadcast_in_dim %arg2, dims = [1] : (tensor<48xf32>) -> tensor<9x48xf32>
  %18 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<48xf32>) -> tensor<9x48xf32>
  %19 = stablehlo.multiply %16, %18 : tensor<9x48xf32>
  %20 = stablehlo.add %19, %17 : tensor<9x48xf32>
  func.return %20, %4, %14 : tensor<9x48xf32>, tensor<9xf32>, tensor<9xf32>
}
// -----
// CASE: mlp_with_library_dot
// SCALE: 20
func.func public @main(%arg0: tensor<8x20xf32>, %arg1: tensor<20x30xf32>, %arg2: tensor<30xf32>, %arg3: tensor<30x5xf32>) -> (tensor<8x5xf32>) {
  %0 = stablehlo.broadcast_in_dim %arg2, dims = [1] : (tensor<30xf32>) -> tensor<8x30xf32>
  %1 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<8x20xf32>, tensor<20x30xf32>) -> tensor<8x30xf32>
  %2 = stablehlo.add %1, %0 : tensor<8x30xf32>
  %3 = stablehlo.constant dense<0.0> : tensor<f32>
  %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<8x30xf32>
  %5 = stablehlo.maximum %2, %4 : tensor<8x30xf32>
  %6 = stablehlo.dot_general %5, %arg3, contracting_dims = [1] x [0] : (tensor<8x30xf32>, tensor<30x5xf32>) -> tensor<8x5xf32>
  %7 = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %8 = stablehlo.reduce(%6 init: %7) applies stablehlo.maximum across dimensions = [1] : (tensor<8x5xf32>, tensor<f32>) -> tensor<8xf32>
  %9 = stablehlo.broadcast_in_dim %8, dims = [0] : (tensor<8xf32>) -> tensor<8x5xf32>
  %10 = stablehlo.subtract %6, %9 : tensor<8x5xf32>
  %11 = stablehlo.exponential %10 : tensor<8x5xf32>
  %12 = stablehlo.constant dense<0.0> : tensor<f32>
  %13 = stablehlo.reduce(%11 init: %12) applies stablehlo.add across dimensions = [1] : (tensor<8x5xf32>, tensor<f32>) -> tensor<8xf32>
  %14 = stablehlo.broadcast_in_dim %13, dims = [0] : (tensor<8xf32>) -> tensor<8x5xf32>
  %15 = stablehlo.divide %11, %14 : tensor<8x5xf32>
  func.return %15 : tensor<8x5xf32>
}
// -----
// CASE: many_consumers_and_outputs
func.func public @main(%arg0: tensor<40xf32>, %arg1: tensor<40xf32>) -> (tensor<40xf32>, tensor<40xf32>, tensor<40xf32>, tensor<40xf32>, tensor<40xf32>) {
  %0 = stablehlo.add %arg0, %arg1 : tensor<40xf32>
  %1 = stablehlo.multiply %0, %0 : tensor<40xf32>
  %2 = stablehlo.constant dense<1.0> : tensor<f32>
  %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<f32>) -> tensor<40xf32>
  %4 = stablehlo.add %1, %3 : tensor<40xf32>
  %5 = stablehlo.sqrt %4 : tensor<40xf32>
  %6 = stablehlo.divide %0, %5 : tensor<40xf32>
  func.return %0, %1, %6, %arg0, %0 : tensor<40xf32>, tensor<40xf32>, tensor<40xf32>, tensor<40xf32>, tensor<40xf32>
}
// -----
// CASE: gather_and_dynamic_slice
func.func public @main(%arg0: tensor<10x20xf32>, %arg1: tensor<4x3xi32>) -> (tensor<4x3x20xf32>, tensor<3x7xf32>, tensor<10x20xf32>) {
  %0 = "stablehlo.gather"(%arg0, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 20>}> : (tensor<10x20xf32>, tensor<4x3xi32>) -> tensor<4x3x20xf32>
  %1 = stablehlo.slice %arg1 [0:1, 0:1] : (tensor<4x3xi32>) -> tensor<1x1xi32>
  %2 = stablehlo.reshape %1 : (tensor<1x1xi32>) -> tensor<i32>
  %3 = stablehlo.dynamic_slice %arg0, %2, %2, sizes = [3, 7] : (tensor<10x20xf32>, tensor<i32>, tensor<i32>) -> tensor<3x7xf32>
  %4 = stablehlo.constant dense<2> : tensor<i32>
  %5 = stablehlo.dynamic_update_slice %arg0, %3, %2, %4 : (tensor<10x20xf32>, tensor<3x7xf32>, tensor<i32>, tensor<i32>) -> tensor<10x20xf32>
  func.return %0, %3, %5 : tensor<4x3x20xf32>, tensor<3x7xf32>, tensor<10x20xf32>
}
// -----
// CASE: gather_by_pairs_of_plain_positions
func.func public @main(%arg0: tensor<9x20xf32>) -> (tensor<20x9xf32>) {
  %0 = stablehlo.iota dim = 1 : tensor<20x9x1xi32>
  %1 = stablehlo.iota dim = 0 : tensor<20x9x1xi32>
  %2 = stablehlo.concatenate %0, %1, dim = 2 : (tensor<20x9x1xi32>, tensor<20x9x1xi32>) -> tensor<20x9x2xi32>
  %3 = "stablehlo.gather"(%arg0, %2) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>}> : (tensor<9x20xf32>, tensor<20x9x2xi32>) -> tensor<20x9xf32>
  %4 = stablehlo.negate %3 : tensor<20x9xf32>
  func.return %4 : tensor<20x9xf32>
}
// -----
// CASE: while_loop
// SCALE: 100
func.func public @main(%arg0: tensor<33xf32>) -> (tensor<33xf32>, tensor<33xf32>, tensor<i32>) {
  %0 = stablehlo.constant dense<0> : tensor<i32>
  %1 = stablehlo.tanh %arg0 : tensor<33xf32>
  %2:3 = stablehlo.while(%arg1 = %0, %arg2 = %arg0, %arg3 = %1) : tensor<i32>, tensor<33xf32>, tensor<33xf32>
  cond {
    %3 = stablehlo.constant dense<5> : tensor<i32>
    %4 = stablehlo.compare LT, %arg1, %3 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %4 : tensor<i1>
  } do {
    %5 = stablehlo.constant dense<1> : tensor<i32>
    %6 = stablehlo.add %arg1, %5 : tensor<i32>
    %7 = stablehlo.multiply %arg2, %arg3 : tensor<33xf32>
    %8 = stablehlo.add %7, %arg2 : tensor<33xf32>
    stablehlo.return %6, %arg3, %8 : tensor<i32>, tensor<33xf32>, tensor<33xf32>
  }
  func.return %2#1, %2#2, %2#0 : tensor<33xf32>, tensor<33xf32>, tensor<i32>
}
// -----
// CASE: sort
func.func public @main(%arg0: tensor<4x33x3xf32>, %arg1: tensor<4x33x3xi32>) -> (tensor<4x33x3xf32>, tensor<4x33x3xi32>) {
  %0:2 = "stablehlo.sort"(%arg0, %arg1) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>, %arg4: tensor<i32>, %arg5: tensor<i32>):
    %1 = stablehlo.compare LT, %arg2, %arg3 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<4x33x3xf32>, tensor<4x33x3xi32>) -> (tensor<4x33x3xf32>, tensor<4x33x3xi32>)
  func.return %0#0, %0#1 : tensor<4x33x3xf32>, tensor<4x33x3xi32>
}
// -----
// CASE: sort_by_a_compiled_comparator
// An order that only the compiled comparator knows.
func.func public @main(%arg0: tensor<3x700xf32>, %arg1: tensor<3x700xi32>) -> (tensor<3x700xf32>, tensor<3x700xi32>) {
  %0:2 = "stablehlo.sort"(%arg0, %arg1) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>, %arg4: tensor<i32>, %arg5: tensor<i32>):
    %1 = stablehlo.multiply %arg3, %arg3 : tensor<f32>
    %2 = stablehlo.multiply %arg2, %arg2 : tensor<f32>
    %3 = stablehlo.compare LT, %2, %1 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %3 : tensor<i1>
  }) : (tensor<3x700xf32>, tensor<3x700xi32>) -> (tensor<3x700xf32>, tensor<3x700xi32>)
  func.return %0#0, %0#1 : tensor<3x700xf32>, tensor<3x700xi32>
}
// -----
// CASE: batch_norm
// SCALE: 30
func.func public @main(%arg0: tensor<4x6x5x5xf32>, %arg1: tensor<6xf32>, %arg2: tensor<6xf32>) -> (tensor<4x6x5x5xf32>, tensor<6xf32>, tensor<6xf32>) {
  %0:3 = "stablehlo.batch_norm_training"(%arg0, %arg1, %arg2) <{epsilon = 1.000000e-05 : f32, feature_index = 1 : i64}> : (tensor<4x6x5x5xf32>, tensor<6xf32>, tensor<6xf32>) -> (tensor<4x6x5x5xf32>, tensor<6xf32>, tensor<6xf32>)
  func.return %0#0, %0#1, %0#2 : tensor<4x6x5x5xf32>, tensor<6xf32>, tensor<6xf32>
}
// -----
// CASE: large_reductions_are_split
// SCALE: 300
func.func public @main(%arg0: tensor<512x520xf32>) -> (tensor<f32>, tensor<520xf32>, tensor<512xf32>) {
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%arg0 init: %0) applies stablehlo.add across dimensions = [0, 1] : (tensor<512x520xf32>, tensor<f32>) -> tensor<f32>
  %2 = stablehlo.constant dense<0.0> : tensor<f32>
  %3 = stablehlo.reduce(%arg0 init: %2) applies stablehlo.add across dimensions = [0] : (tensor<512x520xf32>, tensor<f32>) -> tensor<520xf32>
  %4 = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %5 = stablehlo.reduce(%arg0 init: %4) applies stablehlo.maximum across dimensions = [1] : (tensor<512x520xf32>, tensor<f32>) -> tensor<512xf32>
  func.return %1, %3, %5 : tensor<f32>, tensor<520xf32>, tensor<512xf32>
}
// -----
// CASE: convolution_block
// SCALE: 50
// A convolution block and its gradients, as a training step has them.
func.func public @main(%arg0: tensor<2x3x8x8xf32>, %arg1: tensor<4x3x3x3xf32>, %arg2: tensor<4xf32>) -> (tensor<2x4x4x4xf32>, tensor<2x4x8x8xf32>, tensor<4xf32>) {
  %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x8x8xf32>
  %1 = stablehlo.broadcast_in_dim %arg2, dims = [1] : (tensor<4xf32>) -> tensor<2x4x8x8xf32>
  %2 = stablehlo.add %0, %1 : tensor<2x4x8x8xf32>
  %3 = stablehlo.constant dense<0.0> : tensor<f32>
  %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<2x4x8x8xf32>
  %5 = stablehlo.maximum %2, %4 : tensor<2x4x8x8xf32>
  %6 = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %7 = "stablehlo.reduce_window"(%5, %6) <{window_dimensions = array<i64: 1, 1, 2, 2>, window_strides = array<i64: 1, 1, 2, 2>, base_dilations = array<i64: 1, 1, 1, 1>, window_dilations = array<i64: 1, 1, 1, 1>, padding = dense<[[0, 0], [0, 0], [0, 0], [0, 0]]> : tensor<4x2xi64>}> ({
  ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
    %8 = stablehlo.maximum %arg3, %arg4 : tensor<f32>
    stablehlo.return %8 : tensor<f32>
  }) : (tensor<2x4x8x8xf32>, tensor<f32>) -> tensor<2x4x4x4xf32>
  %9 = stablehlo.constant dense<0.0> : tensor<f32>
  %10 = "stablehlo.select_and_scatter"(%5, %7, %9) <{window_dimensions = array<i64: 1, 1, 2, 2>, window_strides = array<i64: 1, 1, 2, 2>, padding = dense<[[0, 0], [0, 0], [0, 0], [0, 0]]> : tensor<4x2xi64>}> ({
  ^bb0(%arg5: tensor<f32>, %arg6: tensor<f32>):
    %11 = stablehlo.compare GE, %arg5, %arg6 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %11 : tensor<i1>
  }, {
  ^bb0(%arg7: tensor<f32>, %arg8: tensor<f32>):
    %12 = stablehlo.add %arg7, %arg8 : tensor<f32>
    stablehlo.return %12 : tensor<f32>
  }) : (tensor<2x4x8x8xf32>, tensor<2x4x4x4xf32>, tensor<f32>) -> tensor<2x4x8x8xf32>
  %13 = stablehlo.constant dense<0.0> : tensor<f32>
  %14 = stablehlo.reduce(%10 init: %13) applies stablehlo.add across dimensions = [0, 2, 3] : (tensor<2x4x8x8xf32>, tensor<f32>) -> tensor<4xf32>
  func.return %7, %10, %14 : tensor<2x4x4x4xf32>, tensor<2x4x8x8xf32>, tensor<4xf32>
}
// -----
// CASE: collectives_of_one_device
func.func public @main(%arg0: tensor<6xf32>) -> (tensor<6xf32>, tensor<ui32>) {
  %0 = "stablehlo.all_reduce"(%arg0) <{replica_groups = dense<> : tensor<0x0xi64>}> ({
  ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
    %1 = stablehlo.add %arg1, %arg2 : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<6xf32>) -> tensor<6xf32>
  %2 = "stablehlo.replica_id"() : () -> tensor<ui32>
  func.return %0, %2 : tensor<6xf32>, tensor<ui32>
}
// -----
// CASE: branches_and_empty_arrays
func.func public @main(%arg0: tensor<i1>, %arg1: tensor<5xf32>, %arg2: tensor<0x4xf32>) -> (tensor<5xf32>, tensor<0x4xf32>, tensor<4xf32>) {
  %0 = "stablehlo.if"(%arg0) ({
    %1 = stablehlo.add %arg1, %arg1 : tensor<5xf32>
    stablehlo.return %1 : tensor<5xf32>
  }, {
    stablehlo.return %arg1 : tensor<5xf32>
  }) : (tensor<i1>) -> tensor<5xf32>
  %2 = stablehlo.add %arg2, %arg2 : tensor<0x4xf32>
  %3 = stablehlo.constant dense<0.0> : tensor<f32>
  %4 = stablehlo.reduce(%arg2 init: %3) applies stablehlo.add across dimensions = [0] : (tensor<0x4xf32>, tensor<f32>) -> tensor<4xf32>
  func.return %0, %2, %4 : tensor<5xf32>, tensor<0x4xf32>, tensor<4xf32>
}
// -----
// CASE: rows_of_a_transposed_softmax
// A row reduction's value is needed for other rows too: it has to be computed before the loop.
func.func public @main(%arg0: tensor<6x6xf32>) -> (tensor<6x6xf32>) {
  %0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %1 = stablehlo.reduce(%arg0 init: %0) applies stablehlo.maximum across dimensions = [1] : (tensor<6x6xf32>, tensor<f32>) -> tensor<6xf32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [0] : (tensor<6xf32>) -> tensor<6x6xf32>
  %3 = stablehlo.subtract %arg0, %2 : tensor<6x6xf32>
  %4 = stablehlo.exponential %3 : tensor<6x6xf32>
  %5 = stablehlo.constant dense<0.0> : tensor<f32>
  %6 = stablehlo.reduce(%4 init: %5) applies stablehlo.add across dimensions = [1] : (tensor<6x6xf32>, tensor<f32>) -> tensor<6xf32>
  %7 = stablehlo.broadcast_in_dim %6, dims = [0] : (tensor<6xf32>) -> tensor<6x6xf32>
  %8 = stablehlo.divide %4, %7 : tensor<6x6xf32>
  %9 = stablehlo.transpose %8, dims = [1, 0] : (tensor<6x6xf32>) -> tensor<6x6xf32>
  %10 = stablehlo.add %8, %9 : tensor<6x6xf32>
  func.return %10 : tensor<6x6xf32>
}
