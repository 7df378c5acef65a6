"""More programs of test_as_eager.py (edge_programs.py says how they are written): numbers and types that do not fit."""

PROGRAMS = {
    "numbers that 16 bits do not hold": """
        torch.scalar_tensor(1e6, dtype=torch.float16, device=D)
        torch.scalar_tensor(-1e39, dtype=torch.bfloat16, device=D)
        torch.scalar_tensor(70000, dtype=torch.float16, device=D)
        torch.scalar_tensor(65519., dtype=torch.float16, device=D)
        torch.scalar_tensor(1e39, device=D)
        torch.full((), -1e6, dtype=torch.float16, device=D)
        torch.full((1,1), 1e6, dtype=torch.float16, device=D)
        torch.full((2,), 1e6, dtype=torch.float16, device=D)
        torch.full((0,), 1e6, dtype=torch.float16, device=D)
        torch.full_like(O(1,dtype=torch.bfloat16), 1e39)
        torch.full_like(O(2,dtype=torch.bfloat16), 1e39)
        O(1,dtype=torch.float16).fill_(-1e6)
        O(2,dtype=torch.float16).fill_(-1e6)
        O(1,dtype=torch.uint8).fill_(300)
        x=A(3.).half();; x[x>0]=-1e9;; x
        x=A(3.).half();; x[1]=1e9;; x
        x=A(3.).half();; x[1:]=1e9;; x
        x=A(3.).bfloat16();; x[[0,2]]=-1e39;; x
        x=A(3.).half();; torch.where(x>1, x, -1e9)
        x=A(3.).half();; torch.where(x>1, -1e9, x)
        x=A(3.).half();; x.masked_fill(x>1, -1e9)
        O(2,2,dtype=torch.float16).fill_diagonal_(1e6)
    """,
    "numbers that an operand's type does not hold": """
        O(2,dtype=torch.uint8).clamp_min(300)
        O(2,dtype=torch.float16).clamp_max(-1e6)
        O(2,dtype=torch.float16).clamp_min_(-1e6)
        O(2,dtype=torch.int32).clamp_max(1e39)
        O(2,dtype=torch.int32).clamp_max(2.5)
        O(2,dtype=torch.int64).clamp_min_(2)
        F.hardtanh(O(2,dtype=torch.float16), 0., 1e6)
        F.hardtanh(O(2), -1e39, 1.)
        F.hardtanh(O(2), -1., float("inf"))
        F.hardtanh(O(2,dtype=torch.int16), 0, 70000)
        F.hardtanh(O(2,dtype=torch.uint8), -1, 2)
        F.hardtanh(O(2,dtype=torch.uint8), 0, 2)
        O(2,dtype=torch.float16).index_fill(0, T([0]), 1e6)
        O(2,dtype=torch.int64).index_fill(0, T([0]), NAN)
        O(2,dtype=torch.uint8).index_fill_(0, T([0]), 300)
        O(2,dtype=torch.uint8).index_fill_(0, T([0]), 1.5)
        O(2,dtype=torch.bfloat16).scatter(0, T([0]), 1e39)
        O(2,dtype=torch.int16).scatter(0, T([0]), 70000)
        O(2,dtype=torch.int16).scatter(0, T([0]), 70000, reduce="add")
        O(2).scatter(0, T([0]), NAN)
        F.pad(O(2,dtype=torch.float16), (1,1), value=-1e9)
        F.pad(O(2,dtype=torch.int64), (1,1), value=float("inf"))
        F.pad(O(2,dtype=torch.bool), (1,1), value=3)
        torch.constant_pad_nd(O(3,dtype=torch.uint8), (-1,0), 300)
        F.threshold(O(2,dtype=torch.float16), 2, -1e9)
        F.threshold(O(2,dtype=torch.float16), 1e6, 3)
        F.threshold(O(2,dtype=torch.float16), 1e39, 3)
        F.threshold(O(2,dtype=torch.uint8), 300, 3)
        F.hardshrink(O(2,dtype=torch.float16), 1e6)
        F.softshrink(O(2,dtype=torch.float16), 1e6)
        F.softshrink(O(2), -1.)
        F.leaky_relu(O(2), 1e39)
        F.elu(O(2,dtype=torch.float16), 1e39)
        F.elu(O(2,dtype=torch.float16), 1e6)
        F.softplus(O(2), 1., 1e39)
        torch.ops.aten._unsafe_masked_index(O(2,dtype=torch.float16), T([True,False]), [T([0,1])], 1e6)
        O(2,dtype=torch.float16) ** 70000
        O(2,dtype=torch.float16) ** float("inf")
        O(2,dtype=torch.uint8) ** 300
        O(2,dtype=torch.uint8) ** 300.
        O(2) ** 1e39
        torch.linspace(0, 300, 5, dtype=torch.uint8, device=D)
        torch.linspace(-1e6, 0, 5, dtype=torch.float16, device=D)
        torch.logspace(0, 1e39, 2, device=D)
    """,
    "factors that a type does not hold": """
        torch.add(O(2,dtype=torch.uint8), O(2,dtype=torch.uint8), alpha=300)
        torch.add(O(2,dtype=torch.float16), O(2,dtype=torch.float16), alpha=1e6)
        torch.sub(O(2), O(2), alpha=-1e39)
        torch.rsub(O(2), O(2), alpha=float("inf"))
        O(2,dtype=torch.int16).sub_(O(2,dtype=torch.int16), alpha=70000)
        torch.add(O(2,dtype=torch.int16), O(2,dtype=torch.int64), alpha=70000)
        torch.addcmul(O(2,dtype=torch.float16), O(2,dtype=torch.float16), O(2,dtype=torch.float16), value=1e6)
        torch.addcmul(O(2,dtype=torch.float16), O(2,dtype=torch.float16), O(2,dtype=torch.float16), value=1e39)
        torch.addcmul(O(2,dtype=torch.uint8), O(2,dtype=torch.uint8), O(2,dtype=torch.uint8), value=300)
        torch.addcmul(O(2,dtype=torch.uint8), O(2), O(2), value=300)
        O(2).addcdiv_(O(2), O(2), value=1e39)
        O(2).addcdiv_(O(2), O(2), value=NAN)
        torch.lerp(O(2), Z(2), -1e39)
        O(2,dtype=torch.float16).index_add(0, T([0]), O(1,dtype=torch.float16), alpha=1e6)
        torch.addmm(O(2,2,dtype=torch.float16), O(2,2,dtype=torch.float16), O(2,2,dtype=torch.float16), alpha=1e6)
        torch.addmm(O(2,2), O(2,2), O(2,2), beta=1e39)
        torch.addmm(O(2,2,dtype=torch.uint8), O(2,2,dtype=torch.uint8), O(2,2,dtype=torch.uint8), alpha=300)
        torch.addmv(O(2,dtype=torch.float16), O(2,2,dtype=torch.float16), O(2,dtype=torch.float16), alpha=1e6)
        torch.baddbmm(O(1,2,2), O(1,2,2), O(1,2,2), alpha=-1e39)
        torch.addbmm(O(2,2), O(1,2,2), O(1,2,2), beta=-1e39)
        torch.addr(O(2,2,dtype=torch.int16), O(2,dtype=torch.int16), O(2,dtype=torch.int16), alpha=70000)
        torch._foreach_add([O(2,dtype=torch.float16)], [O(2,dtype=torch.float16)], alpha=1e6)
        torch._foreach_clamp_min([O(2,dtype=torch.float16)], 1e6)
    """,
    "integers between two numbers of a narrow float": """
        torch.full((1,), 2**60 + 2**52 + 1, dtype=torch.bfloat16, device=D)
        O(1,dtype=torch.bfloat16).fill_(2**60 + 2**52 + 1)
        O(1,dtype=torch.float8_e5m2).fill_(2**60 + 1)
        torch.full((2,), 2**60 + 2**52 + 1, dtype=torch.bfloat16, device=D)
    """,
    "extremes of no complex numbers": """
        torch.amin(Z(0,2,dtype=torch.complex64), 1)
        torch.amax(Z(0,2,dtype=torch.complex64), 1, keepdim=True)
        torch.amax(Z(0,2,dtype=torch.complex64), 0)
        torch.amax(Z(0,dtype=torch.complex64))
    """,
    "masks of no dimension": """
        torch.ops.aten.index_put(A(2.), [T(True)], T(9.))
        torch.ops.aten.index_put(A(2.), [T(False)], T(9.))
        torch.ops.aten.index_put(A(4.).view(2,2), [T(True), T([0,1])], T(9.))
        torch.ops.aten.index_put(A(4.).view(2,2), [T(False), T([0])], T(9.))
        torch.ops.aten.index_put(O(()), [T(True)], T(9.))
        torch.ops.aten.index_put_(A(2.), [T(False)], T([9.]))
    """,
    "limits that a type does not hold": """
        O(2,dtype=torch.uint8).clamp(0, 300)
        O(2,dtype=torch.uint8).clamp(0, 255)
        O(0,dtype=torch.uint8).clamp(min=300)
        O(2,dtype=torch.int8).clamp_(max=128)
        O(2,dtype=torch.int8).clamp_(-128, 127)
        O(2,dtype=torch.int16).clamp(-2.5, 1e5)
        O(2,dtype=torch.int32).clamp(max=2**40)
        O(2,dtype=torch.int64).clamp(max=1e10)
        O(2,dtype=torch.float16).clamp(max=1e6)
        O(2,dtype=torch.float16).clamp(max=65504.)
        O(2,dtype=torch.float16).clamp(max=float("inf"))
        O(2,dtype=torch.float16).clamp(max=NAN)
        O(2,dtype=torch.bfloat16).clamp_(-1e39)
        O(2).clamp(-1e39, 1e39)
        O(2,dtype=torch.float64).clamp(-1e39, 1e39)
    """,
    "classes of other types": """
        F.multi_margin_loss(O(0,3), Z(0,dtype=torch.int32), reduction="none")
        F.multi_margin_loss(O(0,3), Z(0), reduction="none")
        F.multi_margin_loss(O(2,3), Z(2,dtype=torch.int32))
        F.multilabel_margin_loss(O(2,3), Z(2,3,dtype=torch.int32))
        F.multilabel_margin_loss(O(2,3), Z(2,3,dtype=torch.uint8))
        F.multilabel_margin_loss(O(2,3), Z(2,3))
        F.multilabel_margin_loss(O(0,3), Z(0,3,dtype=torch.int32), reduction="none")
    """,
    "fractional windows of integers": """
        F.fractional_max_pool2d(O(1,2,5,5,dtype=torch.int32), 2, 3, _random_samples=Z(1,2,2,dtype=torch.int32))
        F.fractional_max_pool3d(O(1,2,5,5,5,dtype=torch.uint8), 2, 3, _random_samples=Z(1,2,3,dtype=torch.uint8))
        F.fractional_max_pool2d(O(1,2,5,5), 2, 3, _random_samples=Z(1,2,2,dtype=torch.float64))
        F.fractional_max_pool3d(O(1,2,5,5,5,dtype=torch.int64), 2, 3, _random_samples=Z(1,2,3))
    """,
    "products of sparse matrices": """
        torch.smm(A(12.).view(3,4).to_sparse(), A(8.).view(4,2)).to_dense()
        torch.smm(Z(3,4).to_sparse(), A(8.).view(4,2)).to_dense()
        torch.smm(A(12.).view(3,4).to_sparse(), A(8.).view(4,2)).is_sparse
        torch.sspaddmm(A(6.).view(3,2).to_sparse(), A(12.).view(3,4).to_sparse(), A(8.).view(4,2), beta=2, alpha=3).to_dense()
        torch.smm(A(12.).view(3,4).to_sparse(), A(6.).view(3,2))
    """,
}
