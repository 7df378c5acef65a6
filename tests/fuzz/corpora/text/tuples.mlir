
    func.func private @callee(%x: tensor<4xf32>) -> tensor<4xf32> {
      %y = stablehlo.negate %x : tensor<4xf32>
      func.return %y : tensor<4xf32>
    }
    func.func @main(%a: tensor<4xf32>, %m: tensor<4x4xf32>, %s: tensor<2xi64>, %t: !stablehlo.token, %i: tensor<i32>, %c: tensor<f32>, %d: tensor<?x?xf32>, %p: tensor<i1>) {
        %0 = stablehlo.tuple %a, %m : tuple<tensor<4xf32>, tensor<4x4xf32>>
        %1 = stablehlo.tuple %0, %i : tuple<tuple<tensor<4xf32>, tensor<4x4xf32>>, tensor<i32>>
        %2 = stablehlo.get_tuple_element %1[0] : (tuple<tuple<tensor<4xf32>, tensor<4x4xf32>>, tensor<i32>>)
            -> tuple<tensor<4xf32>, tensor<4x4xf32>>
        %3 = stablehlo.get_tuple_element %2[1] : (tuple<tensor<4xf32>, tensor<4x4xf32>>) -> tensor<4x4xf32>
        func.return
    }