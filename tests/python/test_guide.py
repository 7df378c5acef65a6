"""The programs of the user guide that concern one device, as the guide prints them (`guide/*.py`)."""

import pathlib
import re

import pytest
import torch

import torch_xla

GUIDE = pathlib.Path(__file__).parent / "guide"


def run(name: str, **names):
    """Runs a program after the guide's first lines; returns its variables."""
    namespace = {"torch": torch, "torch_xla": torch_xla, "__name__": "guide", **names}
    code = (GUIDE / f"{name}.py").read_text()
    exec(compile(code, f"{name}.py", "exec"), namespace)
    return namespace


NUMBER = r"\s*-?\d+\.\d+(e[+-]\d+)?"


@pytest.mark.parametrize("name", ["tensor", "tensor_index"])
def test_creates_and_prints_a_tensor(name, capsys):
    tensor = run(name)["t"]
    device, printed = capsys.readouterr().out.split("\n", 1)
    assert device == "xla:0"
    assert re.fullmatch(
        rf"tensor\(\[\[{NUMBER},{NUMBER}\],\s*\[{NUMBER},{NUMBER}\]\], device='xla:0'\)\n", printed
    )
    assert tensor.is_xla and tensor.shape == (2, 2)


def test_adds(capsys):
    names = run("add")
    assert "device='xla:0'" in capsys.readouterr().out
    torch.testing.assert_close(
        (names["t0"] + names["t1"]).cpu(), names["t0"].cpu() + names["t1"].cpu()
    )


def test_multiplies_matrices(capsys):
    names = run("mm")
    assert "device='xla:0'" in capsys.readouterr().out
    torch.testing.assert_close(
        names["t0"].mm(names["t1"]).cpu(), names["t0"].cpu().mm(names["t1"].cpu())
    )


def test_runs_a_linear_module(capsys):
    names = run("linear")
    assert "grad_fn" in capsys.readouterr().out
    expected = torch.nn.functional.linear(
        names["l_in"].cpu(), names["linear"].weight.cpu(), names["linear"].bias.cpu()
    )
    torch.testing.assert_close(names["l_out"].cpu(), expected)


def test_says_which_argument_is_on_another_device():
    with pytest.raises(RuntimeError, match="Input tensor is not an XLA tensor") as raised:
        run("wrong_device")
    message = str(raised.value)
    assert "torch.FloatTensor" in message
    assert re.search(r"argument|'\w+'|operand", message), message


@pytest.mark.slow
def test_trains_on_one_device():
    names = run("mnist_single")
    assert names["loss"].item() < 0.1
    assert names["loss"].is_xla


@pytest.mark.slow
def test_launches_the_training():
    single = run("mnist_single")
    names = run(
        "mnist_launch",
        __name__="__main__",
        MNIST=single["MNIST"],
        train_loader=torch_xla.utils.utils.SampleGenerator(
            data=(torch.zeros(8, 1, 28, 28), torch.zeros(8, dtype=torch.int64)), sample_count=3
        ),
    )
    assert "_mp_fn" in names


def test_saves_copies_on_the_cpu(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = run("save_cpu_copies")
    saved = torch.load("tensors.pt")
    assert all(tensor.device.type == "cpu" for tensor in saved)
    torch.testing.assert_close(names["t0"].cpu(), saved[0])
    assert names["t1"].is_xla


def test_saves_a_model(tmp_path):
    model = torch.nn.Linear(3, 2).to("xla")
    run("save_xm", model=model, path=str(tmp_path / "model.pt"))
    saved = torch.load(tmp_path / "model.pt", weights_only=True)
    assert saved["weight"].device.type == "cpu"
    torch.testing.assert_close(saved["weight"], model.weight.detach().cpu())


def test_saves_and_loads_one_tensor_at_a_time(tmp_path):
    path = str(tmp_path / "model")
    model = torch.nn.Linear(3, 2).to("xla")
    run("save_serialization", model=model, path=path)
    other = torch.nn.Linear(3, 2).to("xla")
    run("load_serialization", model=other, path=path)
    torch.testing.assert_close(other.weight.cpu(), model.weight.cpu())


def test_saves_tensors_of_the_device(tmp_path):
    tensor = torch.randn(3, device="xla")
    torch.save({"t": tensor}, tmp_path / "direct.pt")
    loaded = torch.load(tmp_path / "direct.pt")["t"]
    assert loaded.device == torch.device("xla", 0)
    torch.testing.assert_close(loaded.cpu(), tensor.cpu())
    on_cpu = torch.load(tmp_path / "direct.pt", map_location="cpu")["t"]
    assert on_cpu.device.type == "cpu"


def test_moves_between_devices_end_views():
    base = torch.arange(6.0, device="xla").reshape(2, 3)
    view = base[0]
    moved = view.cpu()
    moved += 1
    torch.testing.assert_close(base.cpu(), torch.arange(6.0).reshape(2, 3))
    view += 10
    torch.testing.assert_close(base[0].cpu(), torch.arange(3.0) + 10)
    returned = moved.to("xla")
    returned.zero_()
    torch.testing.assert_close(moved, torch.arange(3.0) + 1)


@pytest.mark.usefixtures("programs_only")
def test_keeps_compiled_programs(program):
    code = f"""
import torch, torch_xla
exec(open({str(GUIDE / "persistent_cache.py")!r}).read())
t = torch.arange(4., device="xla")
print((t * 3 + 1).sum().cpu())
import torch_xla.debug.metrics as met
print("hits", met.counter_value("PersistentCacheHit") or 0)
"""
    first = program.run_code(code).stdout
    second = program.run_code(code).stdout
    assert "tensor(22.)" in first and "hits 0" in first
    assert "tensor(22.)" in second and "hits 0" not in second
