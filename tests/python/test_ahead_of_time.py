"""The training step compiles for accelerators that are not here, by their own plugins."""

import re

import pytest
from conftest import ROOT

PLUGINS = ROOT / ".venv" / "plugins"
H100 = (ROOT / "tests" / "pjrt" / "h100.textproto").read_text()

TARGETS = {
    "tpu": (PLUGINS / "libtpu" / "libtpu.so", "v5e:2x2", {}),
    "cuda": (
        PLUGINS / "jax_plugins" / "xla_cuda13" / "xla_cuda_plugin.so",
        "",
        {"target_config": H100, "topology": "1x1x1"},
    ),
}

STEP = """
import sys, torch, torch_xla
from mnist import MNIST
from torch_xla.experimental import ahead_of_time

torch.manual_seed(0)
model = MNIST().to("xla")
optimizer = torch.optim.Adam(model.parameters())
loss = torch.nn.functional.cross_entropy(
    model(torch.randn(64, 1, 28, 28, device="xla")), torch.randint(10, (64,), device="xla")
)
loss.backward()
optimizer.step()
compiled = ahead_of_time.compile_for({library!r}, {topology!r}, {options!r})
print(compiled.platform, len(compiled.device_kinds), len(compiled.serialized) > 10_000)
print(sorted(compiled.outputs))
print(loss.item() > 0)
"""


# libtpu takes a minute for what the other plugin does in ten seconds.
@pytest.mark.parametrize("target", [pytest.param("tpu", marks=pytest.mark.exhaustive), "cuda"])
def test_training_step_compiles(program, target):
    library, topology, options = TARGETS[target]
    assert library.exists(), f"{library.name} is not installed: scripts/install --test"
    code = STEP.format(library=str(library), topology=topology, options=options)
    platform, outputs, went_on = program.run_code(code, TPU_SKIP_MDS_QUERY="1").stdout.splitlines()
    name, devices, is_code = platform.split()
    assert (name, is_code, went_on) == (target, "True", "True")
    assert int(devices) >= 1
    assert "f32[20,10,5,5]" in outputs, outputs  # a convolution's new weights


FILE = """
import torch_xla
from torch_xla.experimental import ahead_of_time

compiled = ahead_of_time.compile_for({library!r}, program={path!r})
print(compiled.outputs)
try:
    ahead_of_time.compile_for({library!r}, program={broken!r})
except RuntimeError as error:
    print("line 2, column 10: %0 is not defined" in str(error))
"""


def test_file_of_text_compiles(program, tmp_path):
    path, broken = tmp_path / "program.mlir", tmp_path / "broken.mlir"
    path.write_text(
        "func.func @main(%a: tensor<2x3xf32>) -> tensor<3x2xf32> {\n"
        "  %0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>\n"
        "  return %0 : tensor<3x2xf32>\n}\n"
    )
    broken.write_text("func.func @main() -> tensor<f32> {\n  return %0 : tensor<f32>\n}\n")
    library = str(ROOT / "torch_xla" / "lib" / "libpjrt_cpu.so")
    code = FILE.format(library=library, path=str(path), broken=str(broken))
    assert program.run_code(code).stdout.splitlines() == ["['f32[3,2]']", "True"]


OFFLOADED = """
import torch, torch_xla
from torch_xla.experimental import ahead_of_time
from torch_xla.experimental.stablehlo_custom_call import place_to_device, place_to_host

x = torch.rand(512, 512, device="xla")
same = lambda x: x
for there, back in ((place_to_host, place_to_device), (same, same)):
    kept, y = there(x.sin()), x
    for _ in range(4):
        y = (y @ x).tanh()
    result = (y * back(kept)).sum()
    compiled = ahead_of_time.compile_for({library!r}, "v5e:2x2", tensors=[result])
    print(compiled.outputs, b"copy-start" in compiled.serialized, b"copy-done" in compiled.serialized)
"""


@pytest.mark.exhaustive
def test_what_is_placed_on_the_host_is_copied_there_and_back_where_devices_have_memory(program):
    library = TARGETS["tpu"][0]
    assert library.exists(), f"{library.name} is not installed: scripts/install --test"
    done = program.run_code(OFFLOADED.format(library=str(library)), TPU_SKIP_MDS_QUERY="1")
    assert done.stdout.splitlines() == [
        "['f32[]'] True True",
        "['f32[]'] False False",
    ]


RETURNED = """
import torch, torch_xla
from torch_xla.experimental import ahead_of_time
from torch_xla.experimental.stablehlo_custom_call import place_to_host

x = torch.rand(64, 64, device="xla")
options = {options!r}
ahead_of_time.compile_for({library!r}, options=options, tensors=[place_to_host(x.sin())])
"""


def test_a_result_that_is_placed_on_the_host_lies_there(program, tmp_path):
    library, _, options = TARGETS["cuda"]
    assert library.exists(), f"{library.name} is not installed: scripts/install --test"
    code = RETURNED.format(library=str(library), options=options)
    program.run_code(code, XLA_FLAGS=f"--xla_dump_to={tmp_path} --xla_dump_hlo_as_text")
    (text,) = (path.read_text() for path in tmp_path.glob("*after_optimizations.txt"))
    # XLA's fifth memory is the host's.
    assert re.search(r"ROOT .* = f32\[64,64\]\{1,0:S\(5\)\} copy-done", text)


ATTENTION = """
import torch, torch_xla
from torch_xla.experimental import ahead_of_time

def operand():
    return torch.rand(2, 4, 65, 64, device="xla", dtype=torch.bfloat16).requires_grad_()

operands = [operand() for _ in range(3)]
mask = torch.rand(2, 1, 1, 65, device="xla") > 0.1
result = torch.nn.functional.scaled_dot_product_attention(*operands, mask, is_causal=True)
gradients = torch.autograd.grad(result.float().square().sum(), operands)
compiled = ahead_of_time.compile_for(
    {library!r}, options={options!r}, tensors=[result, *gradients]
)
print(compiled.outputs)
"""


def test_attention_is_cudnns(program, tmp_path):
    library, _, options = TARGETS["cuda"]
    assert library.exists(), f"{library.name} is not installed: scripts/install --test"
    code = ATTENTION.format(library=str(library), options=options)
    done = program.run_code(code, XLA_FLAGS=f"--xla_dump_to={tmp_path} --xla_dump_hlo_as_text")
    assert done.stdout.splitlines() == [str(["bf16[2,4,65,64]"] * 4)]
    (text,) = (path.read_text() for path in tmp_path.glob("*after_optimizations.txt"))
    calls = set(re.findall(r'"(__cudnn\$fmha\w+)"', text))
    assert calls == {"__cudnn$fmhaScaleBiasSoftmax", "__cudnn$fmhaScaleBiasSoftmaxBackward"}
