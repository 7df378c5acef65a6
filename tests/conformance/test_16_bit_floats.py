"""f16 and bf16: sums do not stop at 2048 or 256."""

import pytest
import torch
import torch.nn.functional as F

import torch_xla  # noqa: F401 - the device

DTYPES = [torch.bfloat16, torch.float16]


def gradient(f):
    """That of a tensor, of what `f` makes of it and of indices."""

    def function(x, indices):
        x = x.detach().requires_grad_()
        y = f(x, indices)
        y.backward(torch.ones_like(y))
        return x.grad

    return function


def ones(x, indices):
    return torch.ones((indices.numel(), *x.shape[1:]), dtype=x.dtype, device=x.device)


SUMS = {
    "index_add": lambda x, i: x.index_add(0, i, ones(x, i)),
    "index_put": lambda x, i: x.index_put((i,), ones(x, i), accumulate=True),
    "index_reduce": lambda x, i: x.index_reduce(0, i, ones(x, i) * 2, "mean"),
    "put": lambda x, i: x.put(i, ones(x, i)[:, 0], accumulate=True),
    "bincount": lambda x, i: torch.bincount(i, ones(x, i)[:, 0]).to(x.dtype),
    "index_select": gradient(lambda x, i: x.index_select(0, i)),
    "x[i]": gradient(lambda x, i: x[i]),
    "take": gradient(lambda x, i: x.take(i)),
    "embedding": gradient(lambda x, i: F.embedding(i, x)),
    "frequent embedding": gradient(lambda x, i: F.embedding(i, x, scale_grad_by_freq=True)),
    "embedding_bag sum": gradient(lambda x, i: F.embedding_bag(i[:, None], x, mode="sum")),
    "embedding_bag mean": gradient(lambda x, i: F.embedding_bag(i[:, None], x, mode="mean")),
    "embedding_bag max": gradient(lambda x, i: F.embedding_bag(i[:, None], x, mode="max")),
    "unfold": gradient(lambda x, i: x.expand(2, 3).reshape(-1).repeat(99).unfold(0, 300, 1)),
    "replicate": gradient(lambda x, i: F.pad(x[None], (2000, 2000), mode="replicate")),
}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", SUMS)
def test_sums_do_not_stop(name, dtype):
    """Those of eager on the CPU do, so float64 is what is wanted."""
    x, indices = torch.ones(2, 3, dtype=dtype), torch.zeros(5000, dtype=torch.int64)
    indices[-257:] = 1
    expected = SUMS[name](x.double(), indices).to(dtype)
    actual = SUMS[name](x.to("xla"), indices.to("xla")).cpu()
    torch.testing.assert_close(actual, expected, rtol=2 * torch.finfo(dtype).eps, atol=0)
