"""`torch_xla.utils.serialization`: checkpoints one tensor at a time."""

import collections
import os

import pytest
import torch

import torch_xla.core.xla_model as xm
import torch_xla.utils.serialization as xser


def test_returns_the_structure(tmp_path):
    tensor = torch.randn(3, device="xla")
    data = collections.OrderedDict(a=tensor, b=[tensor + 1, (2, "text")], c={"d": torch.arange(3)})
    xser.save(data, tmp_path / "x")
    loaded = xser.load(tmp_path / "x")
    assert isinstance(loaded, collections.OrderedDict) and list(loaded) == ["a", "b", "c"]
    torch.testing.assert_close(loaded["a"], tensor.cpu())
    torch.testing.assert_close(loaded["b"][0], tensor.cpu() + 1)
    assert loaded["b"][1] == (2, "text") and loaded["c"]["d"].tolist() == [0, 1, 2]
    # What was saved is as it was.
    assert data["a"].is_xla and data["b"][0].is_xla


def test_writes_tied_parameters_once(tmp_path):
    tensor = torch.randn(3, device="xla")
    xser.save({"a": tensor, "b": tensor}, tmp_path / "x")
    loaded = xser.load(tmp_path / "x")
    assert loaded["a"] is loaded["b"]


def test_replaces_a_checkpoint_whole(tmp_path):
    path = tmp_path / "x"
    xser.save({"a": torch.zeros(2, device="xla")}, path)
    xser.save({"a": torch.ones(2, device="xla")}, path)
    assert xser.load(path)["a"].tolist() == [1.0, 1.0]
    assert sorted(os.listdir(tmp_path)) == ["x", "x.tensors"]
    assert len(os.listdir(tmp_path / "x.tensors")) == 1


def test_failed_save_leaves_the_checkpoint_before_it(tmp_path, monkeypatch):
    path = tmp_path / "x"
    xser.save({"a": torch.zeros(2, device="xla")}, path)

    class Unpicklable:
        def __reduce__(self):
            raise TypeError("cannot be saved")

    with pytest.raises(TypeError, match="cannot be saved"):
        xser.save({"a": torch.ones(2, device="xla"), "b": Unpicklable()}, path)
    assert xser.load(path)["a"].tolist() == [0.0, 0.0]
    assert sorted(os.listdir(tmp_path)) == ["x", "x.tensors"]
    assert len(os.listdir(tmp_path / "x.tensors")) == 1


def test_says_what_is_missing(tmp_path):
    path = tmp_path / "x"
    xser.save({"a": torch.zeros(2)}, path)
    (file,) = (tmp_path / "x.tensors").rglob("*.pt")
    file.write_bytes(b"not a tensor")
    with pytest.raises(RuntimeError, match="is not complete"):
        xser.load(path)
    file.unlink()
    with pytest.raises(RuntimeError, match="is not complete"):
        xser.load(path)


def test_unreadable_checkpoint_is_an_exception(tmp_path):
    (tmp_path / "x").write_bytes(b"\0" * 100)
    with pytest.raises(Exception, match=r"."):
        xser.load(tmp_path / "x")
    assert (torch.ones(1, device="xla") + 1).item() == 2


def test_host_memory_grows_by_one_tensor(program):
    """64 tensors of 8 MiB: saving them one at a time takes far less than their 512 MiB on the host."""
    output = program.run_code(
        """
import resource, torch, torch_xla
import torch_xla.utils.serialization as xser
import torch_xla.core.xla_model as xm
data = {str(i): torch.full((2 << 20,), float(i), device="xla") for i in range(64)}
torch_xla.sync()
xm.wait_device_ops()
xser.save({"0": data["0"]}, "warm")
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
before = peak()
xser.save(data, "x")
print(peak() - before)
"""
    )
    assert int(output.stdout) <= 64


def test_xm_save_writes_a_plain_file(tmp_path):
    tensor = torch.randn(3, device="xla", requires_grad=True)
    xm.save({"t": tensor, "step": 3}, tmp_path / "x.pt")
    loaded = torch.load(tmp_path / "x.pt", weights_only=True)
    assert loaded["step"] == 3 and loaded["t"].device.type == "cpu"
    torch.testing.assert_close(loaded["t"].detach(), tensor.detach().cpu())
    # Saving must not hand the tensor's memory to somebody else.
    torch.testing.assert_close((tensor * 2).cpu(), loaded["t"] * 2)


@pytest.mark.parametrize("tid", [0, "../../secret", True])
@pytest.mark.parametrize("folder", ["../..", "/tmp", "0123456789abcdef/..", 7])
def test_reads_no_file_of_another_folder(tmp_path, tid, folder):
    """Whoever wrote a checkpoint does not choose which other files are read with it."""
    torch.save({"a": xser.TensorReference(tid, torch.float32, folder)}, tmp_path / "x")
    with pytest.raises(ValueError, match="never writes"):
        xser.load(tmp_path / "x")
