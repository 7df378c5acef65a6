
    func.func private @callee(%x: tensor<4xf32>) -> tensor<4xf32> {
      %y = stablehlo.negate %x : tensor<4xf32>
      func.return %y : tensor<4xf32>
    }
    func.func @main(%a: tensor<4xf32>, %m: tensor<4x4xf32>, %s: tensor<2xi64>, %t: !stablehlo.token, %i: tensor<i32>, %c: tensor<f32>, %d: tensor<?x?xf32>, %p: tensor<i1>) {
        %0 = "stablehlo.all_reduce"(%a) ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %z = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %z : tensor<f32>
  }) {replica_groups = dense<[[0, 1], [2, -1]]>
        : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>,
        use_global_device_ids} : (tensor<4xf32>) -> tensor<4xf32>
        func.return
    }