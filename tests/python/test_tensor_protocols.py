"""What Python and its libraries ask of tensors: files, copies, texts, memory, layouts. As of other devices' tensors."""

import copy
import io
import itertools
import pickle
import weakref

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import torch_xla
import torch_xla.utils.dlpack as xla_dlpack


def saved(value):
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return file


@pytest.mark.parametrize("place", ["xla", "xla:0", torch.device("xla"), {"cpu": "xla:0"}])
def test_load_to_the_device(place, device):
    values = {
        "matrix": torch.arange(6.0).reshape(2, 3),
        "transposed": torch.arange(6.0).reshape(2, 3).t(),
        "half": torch.ones(3, dtype=torch.bfloat16),
        "count": torch.tensor(3),
        "empty": torch.empty(0, 2),
        "complex": torch.ones(2, dtype=torch.complex64).conj(),
        "unsigned": torch.arange(3).to(torch.uint16),
        "parameter": nn.Parameter(torch.ones(2)),
    }
    loaded = torch.load(saved(values), map_location=place)
    for name, expected in values.items():
        assert loaded[name].device == device, name
        assert loaded[name].dtype == expected.dtype
        assert torch.equal(loaded[name].cpu(), expected), name
    assert isinstance(loaded["parameter"], nn.Parameter)


def test_load_from_memory_that_is_mapped(tmp_path, device):
    torch.save({"a": torch.arange(5.0)}, tmp_path / "x.pt")
    loaded = torch.load(tmp_path / "x.pt", map_location="xla", mmap=True)
    assert loaded["a"].device == device and loaded["a"].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_load_keeps_what_shares_memory(device):
    whole = torch.arange(6.0)
    a, b, part = torch.load(saved([whole, whole, whole[2:4]]), map_location="xla")
    assert a is b
    part.add_(10)
    assert a.tolist() == [0.0, 1.0, 12.0, 13.0, 4.0, 5.0]
    part, a = torch.load(saved([whole[2:4], whole]), map_location="xla")
    part.add_(10)
    assert a.tolist() == [0.0, 1.0, 12.0, 13.0, 4.0, 5.0]


def test_load_a_module(device):
    model = torch.load(saved(nn.Linear(2, 2)), map_location="xla", weights_only=False)
    assert model.weight.device == device
    assert model(torch.ones(1, 2, device=device)).shape == (1, 2)


def test_saved_on_the_device(device):
    file = saved({"a": torch.ones(2, device=device)})
    assert torch.load(file)["a"].device == device
    file.seek(0)
    assert torch.load(file, map_location="cpu")["a"].device.type == "cpu"


def test_copies(device):
    x = torch.ones(2, device=device, requires_grad=True)
    (3 * x).sum().backward()
    for twin in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert twin.device == device and twin.requires_grad
        twin.data.add_(1)
    assert copy.deepcopy(x).grad.tolist() == [3.0, 3.0] and x.tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="graph leaves"):
        copy.deepcopy(x * 2)


def test_queues_carry_copies(device):
    """What a queue between processes pickles does not name memory that is nobody's."""
    from multiprocessing.reduction import ForkingPickler

    x = nn.Parameter(torch.arange(3.0, device=device))
    received = pickle.loads(ForkingPickler.dumps([x, x.detach()[1:]]))
    assert isinstance(received[0], nn.Parameter) and received[0].tolist() == [0.0, 1.0, 2.0]
    assert received[1].device == device and received[1].tolist() == [1.0, 2.0]


SPAWNS = """
import torch, torch_xla

def check(weights, bias, last):
    assert [x.device.type for x in (*weights, bias, last)] == ["xla"] * 5
    assert [float(x.sum()) for x in weights] == [0.0, 4.0, 8.0]
    assert bias.requires_grad and bias.tolist() == [1.0, 1.0] and last.tolist() == [2, 2]

if __name__ == "__main__":
    weights = [torch.full((4,), float(i), device="xla") for i in range(3)]
    bias = torch.nn.Parameter(torch.ones(2, device="xla"))
    torch.multiprocessing.set_start_method(METHOD)
    process = torch.multiprocessing.Process(
        target=check, args=(weights, bias, torch.full((2,), 2, device="xla"))
    )
    process.start()
    process.join()
    assert process.exitcode == 0
"""


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_arguments_of_processes(method, program):
    """Several: the file of one that is closed too early is another's, or nobody's."""
    (program.folder / "main.py").write_text(SPAWNS.replace("METHOD", repr(method)))
    program.run("main.py")


@pytest.mark.parametrize("context", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_loaders_of_rows_on_the_device(context, device):
    x, y = torch.arange(10.0, device=device).view(5, 2), torch.arange(5, device=device)
    loader = DataLoader(
        TensorDataset(x, y), batch_size=2, num_workers=1, multiprocessing_context=context
    )
    rows, labels = zip(*loader, strict=True)
    assert {batch.device for batch in (*rows, *labels)} == {device}
    assert torch.equal(torch.cat(rows), x) and torch.equal(torch.cat(labels), y)


def test_loaders_refuse_rows_that_require_a_gradient(device):
    rows = TensorDataset(nn.Parameter(torch.ones(4, 2, device=device)))
    with pytest.raises(RuntimeError, match="detach"):
        list(DataLoader(rows, batch_size=2, num_workers=1, timeout=60))


def test_texts(device):
    x = torch.arange(3.0, device=device)
    assert repr(x) == "tensor([0., 1., 2.], device='xla:0')"
    assert f"{x.sum():.1f}" == "3.0"
    assert "grad_fn=<MulBackward0>" in repr(nn.Parameter(x) * 2)
    assert "..." in repr(torch.zeros(5000, device=device))
    assert x.type() == "torch.xla.FloatTensor"


@pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy keyword")
@pytest.mark.parametrize("convert", [lambda x: x.numpy(), np.asarray, np.array])
def test_numpy_says_what_to_do(convert, device):
    with pytest.raises(TypeError, match=r"xla:0 device type tensor to numpy.*Tensor\.cpu\(\)"):
        convert(torch.ones(2, device=device))


def test_dlpack_hands_over_memory(device):
    x = torch.arange(6.0).reshape(2, 3).to(device)
    shared = torch.from_dlpack(xla_dlpack.to_dlpack(x))
    torch_xla.sync()
    assert shared.data_ptr() == torch_xla._XLAC._unsafe_buffer_pointer(x)
    x.add_(1)  # whose new value may not take the old one's memory
    torch_xla.sync()
    assert x.tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    del x
    (torch.ones(6, device=device) * 9).cpu()
    assert shared.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x,
        lambda x: x[1:],
        lambda x: x.t(),
        lambda x: x.to(torch.complex64).conj(),
        lambda x: x.to(torch.bfloat16).requires_grad_(),
        lambda x: x > 2,
        lambda x: x[0, 0],
        lambda x: x[:0],
        lambda x: x.reshape(1, 3, 2, 1).to(memory_format=torch.channels_last),
    ],
)
def test_dlpack_of_any_tensor(make, device):
    expected = make(torch.arange(6.0).reshape(3, 2))
    capsule = xla_dlpack.to_dlpack(make(torch.arange(6.0).reshape(3, 2).to(device)))
    taken = torch.from_dlpack(capsule).cpu()
    assert taken.dtype == expected.dtype and torch.equal(taken, expected.detach().resolve_conj())


@pytest.mark.parametrize("sign, bits", list(itertools.product(("", "u"), (8, 16, 32, 64))))
def test_dlpack_of_integers(sign, bits, device):
    values = torch.tensor([[0, 1, 100], [127, 7, 2]]).to(getattr(torch, f"{sign}int{bits}"))
    taken = torch.from_dlpack(xla_dlpack.to_dlpack(values.to(device))).cpu()
    assert taken.dtype == values.dtype and taken.tolist() == values.tolist()


@pytest.mark.parametrize(
    "name",
    (
        "bool bfloat16 float16 float32 float64 complex64 complex128 "
        "float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz"
    ).split(),
)
def test_dlpack_of_other_types(name, device):
    values = torch.tensor([[0.0, 1.0, -2.5], [96.0, 0.5, 3.0]]).to(getattr(torch, name))
    taken = torch.from_dlpack(xla_dlpack.to_dlpack(values.to(device))).cpu()
    assert taken.dtype == values.dtype
    assert torch.equal(taken.view(torch.uint8), values.view(torch.uint8))


def test_a_capsule_that_nobody_takes_frees_its_memory(device):
    x = torch.arange(6.0, device=device)
    capsule = xla_dlpack.to_dlpack(x)
    x.add_(1)
    torch_xla.sync()
    before = torch.xla.memory_allocated()
    del capsule
    assert torch.xla.memory_allocated() < before


def test_memory_of_another_library(device):
    """As of a tensor of CUDA on a GPU: read where it lies, never written to, and kept as long as it is needed."""
    whole = torch.zeros(32)
    offset = -whole.data_ptr() // 4 % 16  # what is aligned needs no copy
    source = whole[offset : offset + 8].copy_(torch.arange(8.0))
    x = torch_xla._XLAC._share_memory(source)
    assert torch_xla._XLAC._unsafe_buffer_pointer(x) == source.data_ptr()
    x.mul_(2)
    torch_xla.sync()
    assert x.tolist() == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0]
    assert source.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]


def test_memory_of_another_library_is_kept(device):
    array = np.arange(16.0, dtype=np.float32)
    alive = weakref.ref(array)
    x = torch_xla._XLAC._share_memory(torch.from_numpy(array))
    del array
    assert x.tolist() == list(range(16))
    del x
    torch_xla.sync()
    assert alive() is None


@pytest.mark.parametrize(
    "memory", [torch.ones(4, 4).t()[1:], torch.ones(4, device="meta")], ids=["gaps", "no memory"]
)
def test_memory_that_cannot_be_shared(memory, device):
    with pytest.raises(RuntimeError, match="has no memory that xla:0 could share"):
        torch_xla._XLAC._share_memory(memory)


@pytest.mark.parametrize(
    ("export", "error"),
    [
        (lambda x: x.__dlpack__(), RuntimeError),
        (lambda x: x.__dlpack_device__(), ValueError),
        (torch.from_dlpack, ValueError),
        (np.from_dlpack, (RuntimeError, ValueError)),
        (torch.utils.dlpack.to_dlpack, RuntimeError),
        (lambda x: x.pin_memory(), RuntimeError),
    ],
)
def test_there_is_no_memory_to_share(export, error, device):
    with pytest.raises(error):
        export(torch.ones(2, device=device))
    assert torch.ones(2, device=device).tolist() == [1.0, 1.0]


def test_dlpack_brings_copies(device):
    source = np.arange(3.0)
    copied = xla_dlpack.from_dlpack(source)
    source[0] = 7
    assert copied.device == device and copied.tolist() == [0.0, 1.0, 2.0]


def test_channels_last_is_accepted(device):
    """A tensor says the strides of the format that was asked for; the engine chooses the layout."""
    x = torch.randn(2, 3, 4, 4)
    ways = [
        x.to(device, memory_format=torch.channels_last),
        x.to(memory_format=torch.channels_last).to(device),
        x.to(device).contiguous(memory_format=torch.channels_last),
        x.to(device).clone(memory_format=torch.channels_last),
    ]
    for moved in ways:
        assert moved.is_contiguous(memory_format=torch.channels_last)
        assert not moved.is_contiguous()
        assert torch.equal(moved.cpu(), x)
    made = torch.empty(2, 3, 4, 4, device=device, memory_format=torch.channels_last)
    assert made.shape == x.shape


@pytest.mark.parametrize("foreach", [None, False, True])
def test_clipped_gradients(foreach, device):
    def clip(where):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2)).to(where)
        model(torch.ones(2, 3, device=where)).square().sum().backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5, foreach=foreach)
        nn.utils.clip_grad_value_(model.parameters(), 0.05, foreach=foreach)
        return [norm.cpu(), *[p.grad.cpu() for p in model.parameters()]]

    torch.testing.assert_close(clip(device), clip("cpu"))


def test_frequencies(device):
    for count in (7, 8):
        expected = torch.fft.fftfreq(count, 0.5)
        torch.testing.assert_close(torch.fft.fftfreq(count, 0.5, device=device).cpu(), expected)
        expected = torch.fft.rfftfreq(count, 0.5)
        torch.testing.assert_close(torch.fft.rfftfreq(count, 0.5, device=device).cpu(), expected)


def test_quantized_tensors_are_refused(device):
    x = torch.ones(2, device=device)
    with pytest.raises(NotImplementedError, match="quantized"):
        torch.quantize_per_tensor(x, 0.1, 0, torch.quint8)
    with pytest.raises(NotImplementedError, match="quantized"):
        torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8).to(device)
    # Quantization that is simulated is not.
    faked = torch.fake_quantize_per_tensor_affine(x + 0.04, 0.1, 0, 0, 255)
    torch.testing.assert_close(faked.cpu(), torch.ones(2))


def test_nested_tensors_are_of_the_jagged_layout(device):
    parts = [torch.ones(2), torch.ones(3)]
    jagged = torch.nested.nested_tensor(parts, layout=torch.jagged).to(device)
    assert jagged.device == device and (2 * jagged).sum().item() == 10
    with pytest.raises(NotImplementedError, match=r"nested.*torch\.jagged"):
        torch.nested.nested_tensor(parts).to(device)


def test_tensors_of_many_dimensions(device):
    """torch makes more than the 64 that some of its operators take."""
    x = torch.arange(4.0).reshape([1] * 66 + [4])
    doubled = x.to(device).sin() * 2
    assert doubled.shape == x.shape
    expected = torch.arange(4.0).sin() * 2
    torch.testing.assert_close(doubled.cpu().reshape(4), expected)


def test_indices_on_the_cpu():
    """An index or a mask may be on the CPU, as with other devices."""
    expected, x = torch.arange(20.0).reshape(4, 5), torch.arange(20.0).reshape(4, 5).to("xla")
    rows, mask = torch.tensor([2, 0]), torch.tensor([True, False, True, False])
    for index in (rows, mask, (rows, rows), (mask, slice(1, 3)), (slice(None), rows)):
        torch.testing.assert_close(x[index].cpu(), expected[index])
        x[index] = -1
        expected[index] = -1
        torch.testing.assert_close(x.cpu(), expected)
