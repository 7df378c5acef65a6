"""Random programs of torch's operators give on the device what they give in eager; see random_programs.py."""

import pytest
import random_programs

PARTS = 8


@pytest.mark.parametrize("part", range(PARTS))
def test_random_programs(part, request):
    first = request.config.getoption("--first-program")
    count = request.config.getoption("--operator-programs")
    found = []
    ran = 0
    for seed in range(first + part, first + count, PARTS):
        lines = random_programs.generate(seed).lines
        ran += len(lines)
        if random_programs.failure(lines):
            shrunk = random_programs.shrink(lines)
            reason = random_programs.failure(shrunk)
            found.append(f"program {seed}: {reason}\n{random_programs.as_python(shrunk)}")
    assert not found, f"{len(found)} programs differ\n" + "\n".join(found[:20])
    # Programs of nothing would all be the same.
    assert ran >= 3 * len(range(first + part, first + count, PARTS))


# What such programs found, shrunk.
FOUND = {
    "lgamma where it is zero": [
        "v1 = made(10, 1, 1, torch.float32, 2)",
        "v2 = made(10, 1, 1, torch.float64, 2)",
        "v3 = torch.lgamma(v1).nonzero()",
        "v4 = torch.lgamma(v2).nonzero()",
        "v5 = 1 / torch.lgamma(v1)",
        "v6 = 1 / torch.lgamma(v2)",
    ],
    "huber_loss of two types": [
        "v1 = made(5, 22, 1, torch.float16, 1, 2)",
        "v2 = made(8, 21, 1, torch.float64, 1, 2)",
        "v3 = F.huber_loss(v1, v2)",
    ],
    "negative floats as bytes": [
        "v1 = made(10, 15, 4, torch.float32, 17)",
        "v2 = made(0, 7, 1, torch.uint8, 17)",
        "v2.copy_(v1)",
        "v3 = v1.to(torch.uint8)",
    ],
    "NaN among the numbers of buckets": [
        "v1 = made(20, 7, 4, torch.float32, 5, 3)",
        "v2 = torch.remainder(v1, v1 * 0)",
        "v3 = torch.bucketize(v2, v2.flatten().sort().values)",
    ],
    "i0 of zero": ["v1 = made(16, 3, 1, torch.float64, 17)", "v2 = torch.i0(v1 * 0) == 1"],
    "nothing chosen of nothing": [
        "v1 = made(17, 6, 1, torch.int32, 0, 4, 3)",
        "v2 = v1[v1 > 0]",
        "v3 = v2[v2 > 0]",
        "v4 = v3[torch.tensor([], dtype=torch.int64, device=device)]",
        "v5 = made(1, 17, 1, torch.float32, 0, 2)[:, torch.tensor([1, 0], device=device)]",
    ],
    "nothing rolled along any dimension": [
        "v1 = made(2, 17, 2, torch.int64, 0)",
        "v2 = v1.roll((1, 1), (0, 1))",
        "v3 = v1.roll(1, 5)",
    ],
    "counts of many 16-bit floats": [
        "v1 = made(8, 11, 2, torch.float16, 64)",
        "v2 = torch.diag_embed(v1)",
        "v3 = v2.histc(5)",
        "v4 = torch.histogram(v2.float(), 5).hist",
    ],
    "quotients by infinity, rounded down": [
        "v1 = made(10, 15, 4, torch.float32, 17)",
        "v2 = v1.abs() / 0",
        "v3 = torch.floor_divide(v1, v2)",
        "v4 = torch.floor_divide(v1, -v2)",
    ],
}


@pytest.mark.parametrize("name", FOUND)
def test_found_before(name):
    assert random_programs.run_all(FOUND[name]), "eager runs it"
    assert random_programs.failure(FOUND[name]) is None


def test_a_failing_program_is_shrunk(monkeypatch):
    """To what its failure needs, and runnable."""
    lines = [f"v{i} = made({i}, 1, 1, torch.float32, 3)" for i in range(1, 12)]
    lines += ["v20 = v3 + v7", "v21 = v20 * 2", "sync()"]
    monkeypatch.setattr(
        random_programs,
        "failure",
        lambda tried: (
            "wrong" if "v20 = v3 + v7" in tried and random_programs.run_all(tried) else None
        ),
    )
    shrunk = random_programs.shrink(lines)
    assert shrunk == [lines[2], lines[6], "v20 = v3 + v7"]
    printed = random_programs.as_python(shrunk).replace('"xla", torch_xla.sync', '"cpu", None')
    exec(printed, {})
