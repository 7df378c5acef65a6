
    func.func private @callee(%x: tensor<4xf32>) -> tensor<4xf32> {
      %y = stablehlo.negate %x : tensor<4xf32>
      func.return %y : tensor<4xf32>
    }
    func.func @main(%a: tensor<4xf32>, %m: tensor<4x4xf32>, %s: tensor<2xi64>, %t: !stablehlo.token, %i: tensor<i32>, %c: tensor<f32>, %d: tensor<?x?xf32>, %p: tensor<i1>) {
        %0 = stablehlo.composite "my.composite" %a {composite_attributes = {n = 1 : i64},
        decomposition = @callee, version = 3 : i32} : (tensor<4xf32>) -> tensor<4xf32>
        func.return
    }