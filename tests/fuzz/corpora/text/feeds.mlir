
    func.func private @callee(%x: tensor<4xf32>) -> tensor<4xf32> {
      %y = stablehlo.negate %x : tensor<4xf32>
      func.return %y : tensor<4xf32>
    }
    func.func @main(%a: tensor<4xf32>, %m: tensor<4x4xf32>, %s: tensor<2xi64>, %t: !stablehlo.token, %i: tensor<i32>, %c: tensor<f32>, %d: tensor<?x?xf32>, %p: tensor<i1>) {
        %0:2 = "stablehlo.infeed"(%t) {infeed_config = "in"} : (!stablehlo.token)
            -> (tensor<4xf32>, !stablehlo.token)
        %1 = "stablehlo.outfeed"(%a, %t) {outfeed_config = "out"} : (tensor<4xf32>, !stablehlo.token)
            -> !stablehlo.token
        %2 = "stablehlo.send"(%a, %1) {channel_handle = #stablehlo.channel_handle<handle = 5, type = 2>,
            is_host_transfer = true} : (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token
        %3:2 = "stablehlo.recv"(%2) {channel_handle = #stablehlo.channel_handle<handle = 5, type = 3>,
            is_host_transfer = true} : (!stablehlo.token) -> (tensor<4xf32>, !stablehlo.token)
        %4 = stablehlo.create_token : !stablehlo.token
        %5 = stablehlo.after_all %4, %3#1 : !stablehlo.token
        func.return
    }