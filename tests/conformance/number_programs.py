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
