
    func.func private @callee(%x: tensor<4xf32>) -> tensor<4xf32> {
      %y = stablehlo.negate %x : tensor<4xf32>
      func.return %y : tensor<4xf32>
    }
    func.func @main(%a: tensor<4xf32>, %m: tensor<4x4xf32>, %s: tensor<2xi64>, %t: !stablehlo.token, %i: tensor<i32>, %c: tensor<f32>, %d: tensor<?x?xf32>, %p: tensor<i1>) {
        %k = stablehlo.constant dense<2.0> : tensor<4xf32>
        %0:2 = "stablehlo.if"(%p) ({
            %x = stablehlo.add %a, %k : tensor<4xf32>
            stablehlo.return %x, %m : tensor<4xf32>, tensor<4x4xf32>
          }, {
            stablehlo.return %k, %m : tensor<4xf32>, tensor<4x4xf32>
          }) : (tensor<i1>) -> (tensor<4xf32>, tensor<4x4xf32>)
        %1 = "stablehlo.case"(%i) ({ stablehlo.return %a : tensor<4xf32> }, {
            %y = "stablehlo.if"(%p) ({ stablehlo.return %0#0 : tensor<4xf32> },
              { stablehlo.return %a : tensor<4xf32> }) : (tensor<i1>) -> tensor<4xf32>
            stablehlo.return %y : tensor<4xf32>
          }) : (tensor<i32>) -> tensor<4xf32>
        %2 = stablehlo.while(%v = %1) : tensor<4xf32> cond {
            stablehlo.return %p : tensor<i1>
          } do {
            %w = stablehlo.add %v, %a : tensor<4xf32>
            %u = stablehlo.multiply %w, %k : tensor<4xf32>
            stablehlo.return %u : tensor<4xf32>
          }
        func.return
    }