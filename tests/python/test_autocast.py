"""`torch.autocast("xla")` casts as torch's own lists say, and mixed precision trains."""

import functools

import pytest
import torch
from torch import nn
from torch.testing._internal import autocast_test_lists

import torch_xla
import torch_xla.amp
import torch_xla.core.xla_model as xm
import torch_xla.debug.metrics as metrics
from torch_xla.amp import syncfree

LOWER = ["torch_fp16", "nn_fp16", "linalg_fp16", "methods_fp16"]
SINGLE = ["torch_fp32", "nn_fp32", "methods_fp32"]
# Of other devices; without operands in torch's list; refused as by torch on the CPU.
LEFT_OUT = {"cudnn_convolution", "cudnn_convolution_transpose", "einsum", "equal"}
MODULES = {"nn": torch._C._nn, "linalg": torch._C._linalg, "methods": None, "torch": torch}


@functools.cache
def lists():
    torch.manual_seed(0)
    return autocast_test_lists.AutocastTestLists("xla")


def cases(names):
    # The operators' names and places only: the arguments are tensors on the device, made when a test wants them.
    on_cpu = autocast_test_lists.AutocastTestLists("cpu")
    for name in names:
        for i, row in enumerate(getattr(on_cpu, name)):
            if row[0] not in LEFT_OUT:
                yield pytest.param(name, i, id=f"{name}-{row[0]}-{i}")


def check(name, i, run_as, out_type=None, dtype=torch.bfloat16):
    row = getattr(lists(), name)[i]
    keywords = row[2] if len(row) > 2 and isinstance(row[2], dict) else {}
    autocast_test_lists.TestAutocast()._run_autocast_outofplace(
        row[0],
        row[1],
        run_as,
        device="xla",
        out_type=out_type,
        module=MODULES[name.split("_")[0]],
        add_kwargs=keywords,
        amp_dtype=dtype,
    )


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bfloat16", "float16"])
@pytest.mark.parametrize("name, i", list(cases(LOWER)))
def test_lower_precision(name, i, dtype, device):
    check(name, i, dtype, dtype=dtype)


@pytest.mark.parametrize("name, i", list(cases(SINGLE)))
def test_single_precision(name, i, device):
    check(name, i, torch.float32)


@pytest.mark.parametrize("name, i", list(cases(["torch_need_autocast_promote"])))
def test_widest_type(name, i, device):
    # The rows mix float16 with float32, and autocast to bfloat16 takes no float16.
    check(name, i, torch.float32, dtype=torch.float16)


@pytest.mark.parametrize("name, i", list(cases(["torch_expect_builtin_promote"])))
def test_types_that_promote_by_themselves(name, i, device):
    out_type = lists().torch_expect_builtin_promote[i][2]
    row = lists().torch_expect_builtin_promote[i]
    with torch.autocast("xla"):
        result = getattr(torch, row[0])(*row[1])
    if isinstance(result, torch.Tensor):
        assert result.dtype == out_type


def test_binary_cross_entropy_is_refused(device):
    x = torch.rand(4, device=device)
    with torch.autocast("xla"), pytest.raises(RuntimeError, match="unsafe to autocast"):
        nn.functional.binary_cross_entropy(x, x)


def test_disabled_inside(device):
    x = torch.rand(4, 4, device=device)
    with torch.autocast("xla", dtype=torch.bfloat16):
        with torch.autocast("xla", enabled=False):
            assert (x @ x).dtype == torch.float32
        assert (x @ x).dtype == torch.bfloat16
    assert (x @ x).dtype == torch.float32


class Block(nn.Module):
    """Convolution, normalization, attention and a loss: what mixed precision meets."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.attention = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.output = nn.Linear(8, 5)

    def forward(self, x):
        x = torch.relu(self.norm(self.convolution(x)))
        x = self.attention(x.flatten(2).transpose(1, 2))
        return self.output(x.mean(1))


def train(device, dtype, scaler=None, steps=8, optimizer_class=torch.optim.SGD):
    torch.manual_seed(0)
    model = Block().to(device)
    x, y = torch.randn(16, 3, 6, 6).to(device), (torch.arange(16) % 5).to(device)
    optimizer = optimizer_class(model.parameters(), lr=0.3)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        with torch.autocast(torch.device(device).type, dtype=dtype):
            loss = nn.functional.cross_entropy(model(x), y)
        if scaler is None:
            loss.backward()
            optimizer.step()
        else:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        torch_xla.sync()
        losses.append(loss.item())
    assert all(p.dtype == torch.float32 for p in model.parameters())
    return losses


def test_training_agrees_with_cpu(device):
    expected = train("cpu", torch.bfloat16)
    metrics.clear_all()
    losses = train(device, torch.bfloat16)
    assert losses == pytest.approx(expected, rel=0.03)
    assert losses[-1] < 0.9 * losses[0]
    assert [
        name
        for name in metrics.counter_names()
        if name.startswith("aten::") and name != "aten::_local_scalar_dense"
    ] == []


@pytest.mark.parametrize("optimizer_class", [torch.optim.SGD, syncfree.SGD])
def test_training_in_float16_with_a_scaler(optimizer_class, device):
    scaler = torch_xla.amp.GradScaler(init_scale=2.0**8)
    losses = train(device, torch.float16, scaler, optimizer_class=optimizer_class)
    assert losses == pytest.approx(train(device, torch.bfloat16), rel=0.05)
    assert scaler.get_scale() == 2.0**8


@pytest.mark.parametrize("optimizer_class", [torch.optim.SGD, syncfree.SGD])
def test_scaler_skips_steps_that_overflow(optimizer_class, device):
    scaler = torch_xla.amp.GradScaler(init_scale=2.0**40)
    losses = train(device, torch.float16, scaler, steps=1, optimizer_class=optimizer_class)
    assert scaler.get_scale() == 2.0**39
    scaler = torch_xla.amp.GradScaler(init_scale=2.0**40)
    both = train(device, torch.float16, scaler, steps=2, optimizer_class=optimizer_class)
    assert both[1] == losses[0]


OPTIONS = [
    (syncfree.SGD, torch.optim.SGD, {"momentum": 0.9, "dampening": 0.5}),
    (syncfree.SGD, torch.optim.SGD, {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    (syncfree.Adam, torch.optim.Adam, {"amsgrad": True, "weight_decay": 0.1}),
    (syncfree.AdamW, torch.optim.AdamW, {"betas": (0.5, 0.6)}),
]


@pytest.mark.parametrize(("own", "of_torch", "options"), OPTIONS)
@pytest.mark.parametrize("skipped", [{0, 1}, {2}])
def test_steps_chosen_on_the_device_are_those_that_torch_makes(
    own, of_torch, options, skipped, device
):
    def weights(optimizer_class, device, step):
        weight = torch.nn.Parameter(torch.ones(3, device=device))
        optimizer = optimizer_class([weight], lr=0.1, **options)
        for i in range(4):
            weight.grad = torch.arange(3.0, device=device) + i
            step(optimizer, i in skipped)
        return weight.tolist()

    def asked(optimizer, is_skipped):
        if not is_skipped:
            optimizer.step()

    def told(optimizer, is_skipped):
        losses = optimizer.step(lambda: 2.0, found_inf=torch.tensor(float(is_skipped)).to(device))
        assert losses == 2.0

    expected = weights(of_torch, "cpu", asked)
    assert weights(own, device, told) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(("own", "of_torch", "options"), OPTIONS)
def test_a_skipped_step_keeps_what_its_closure_gives_a_first_gradient(
    own, of_torch, options, device
):
    weight = torch.nn.Parameter(torch.ones(3, device=device))
    optimizer = own([weight], lr=0.1, **options)

    def closure():
        weight.square().sum().backward()
        return 3.0

    assert optimizer.step(closure, found_inf=torch.ones((), device=device)) == 3.0
    assert weight.tolist() == [1, 1, 1]


def test_scaler_that_takes_a_step_of_zeros_reads_nothing(device):
    weight = torch.nn.Parameter(torch.ones(2, device=device))
    optimizer = torch.optim.SGD([weight], lr=1.0, momentum=0.5)
    scaler = torch_xla.amp.GradScaler(init_scale=4.0, use_zero_grad=True)

    def step(factor):
        optimizer.zero_grad()
        scaler.scale((weight * factor).sum()).backward()
        metrics.clear_all()
        scaler.step(optimizer)
        assert metrics.counter_value("aten::_local_scalar_dense") is None
        scaler.update()

    step(1.0)
    assert weight.tolist() == [0.0] * 2
    step(torch.inf)  # momentum goes on: -1 * 0.5
    assert weight.tolist() == [-0.5] * 2 and scaler.get_scale() == 2.0
    step(1.0)
    assert weight.tolist() == [-1.75] * 2


@pytest.mark.slow
def test_transformer_converges_in_bfloat16_as_in_float32(device):
    """Tokens repeat those of four places before, which attention has to find out."""

    def converge(autocast):
        torch.manual_seed(0)
        layer = nn.TransformerEncoderLayer(32, 2, 64, dropout=0.0, batch_first=True)
        model = nn.ModuleDict(
            {
                "tokens": nn.Embedding(11, 32),
                "places": nn.Embedding(12, 32),
                "layers": nn.TransformerEncoder(layer, 2),
                "output": nn.Linear(32, 11),
            }
        ).to(device)
        mask = nn.Transformer.generate_square_subsequent_mask(11).to(device)
        optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
        generator = torch.Generator().manual_seed(1)
        losses = []
        for _ in range(60):
            tokens = torch.randint(11, (32, 4), generator=generator).repeat(1, 3).to(device)
            optimizer.zero_grad()
            with torch.autocast("xla", dtype=torch.bfloat16, enabled=autocast):
                x = model["tokens"](tokens[:, :-1]) + model["places"].weight[:-1]
                y = model["output"](model["layers"](x, mask=mask))
                loss = nn.functional.cross_entropy(y[:, 4:].flatten(0, 1), tokens[:, 5:].flatten())
            loss.backward()
            optimizer.step()
            torch_xla.sync()
            losses.append(loss.detach())
        return torch.stack(losses).cpu()

    single, lower = converge(autocast=False), converge(autocast=True)
    assert single[-10:].mean() < 0.2 * single[0]
    assert not torch.equal(single, lower)
    difference = lower[-10:].mean() - single[-10:].mean()
    assert difference.abs() < 0.02 * single[0]


@pytest.mark.parametrize("name", ["XLA_USE_BF16", "XLA_DOWNCAST_BF16"])
def test_variables_are_read_when_programs_are_made(name, device, monkeypatch):
    """Clients set them after the import, and after the first tensors."""
    x = torch.ones(2).to(device)
    assert (x + 0.001).tolist() == pytest.approx([1.001] * 2)
    monkeypatch.setenv(name, "1")
    rounded = x + 0.001
    assert rounded.dtype == torch.float32 and rounded.tolist() == [1.0, 1.0]
    monkeypatch.delenv(name)
    assert (x + 0.001).tolist() == pytest.approx([1.001] * 2)


@pytest.mark.parametrize(
    ("name", "held"),
    [
        ("XLA_USE_BF16", {"float": "bf16", "double": "bf16", "int64": "s64"}),
        ("XLA_DOWNCAST_BF16", {"float": "bf16", "double": "f32", "int64": "s64"}),
        ("XLA_USE_32BIT_LONG", {"float": "f32", "int64": "s32", "uint64": "u32"}),
    ],
)
def test_texts_show_the_types_of_the_numbers(name, held, device, monkeypatch):
    monkeypatch.setenv(name, "1")
    for dtype, expected in held.items():
        x = torch.tensor([2, 3], dtype=getattr(torch, dtype), device=device)
        y = x + x
        assert y.dtype == x.dtype
        text = torch_xla._XLAC._get_xla_tensors_text([y])
        assert (
            f"{expected}[2]{{0}} xla::device_data()" in text
            and f"{expected}[2]{{0}} aten::add" in text
        )


def test_long_integers_of_32_bits(device, monkeypatch):
    """Neuron's devices have no others."""
    x = torch.tensor([2**31 - 1, 5, -(2**31), 2**40 + 7]).to(device)
    y = x + 1
    torch.testing.assert_close(y.cpu(), x.cpu() + 1)
    monkeypatch.setenv("XLA_USE_32BIT_LONG", "1")
    short = x + 1
    assert short.dtype == torch.int64
    assert short.tolist() == [-(2**31), 6, 1 - 2**31, 8]


def test_precision_of_matrix_products(device):
    x = torch.ones(2, 2).to(device)
    texts = {}
    try:
        for precision in ("default", "high", "highest"):
            torch_xla.backends.set_mat_mul_precision(precision)
            assert torch_xla.backends.get_mat_mul_precision() == precision
            texts[precision] = xm.get_stablehlo([x @ x]).lower()
    finally:
        torch_xla.backends.set_mat_mul_precision("default")
    assert "highest" in texts["highest"] and "highest" not in texts["high"]
    assert len(set(texts.values())) == 3
    with pytest.raises(ValueError, match="lowest"):
        torch_xla.backends.set_mat_mul_precision("lowest")
