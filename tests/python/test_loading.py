"""Models that are loaded as transformers and accelerate load them: made without memory, then given what files hold."""

import io
import time

import pytest
import torch
from torch import nn

import torch_xla

LAYERS, WIDTH, WORDS = 24, 32, 99


class Language(nn.Module):
    """Tied weights, a buffer that is saved and one that is not, as most language models have."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        layers = (nn.TransformerEncoderLayer(WIDTH, 4, 48, dropout=0) for _ in range(LAYERS))
        self.layers = nn.ModuleList(layers)
        self.head = nn.Linear(WIDTH, WORDS, bias=False)
        self.head.weight = self.words.weight
        self.register_buffer("positions", torch.arange(64))
        self.register_buffer("scale", torch.tensor(0.5), persistent=False)

    def forward(self, words):
        x = self.words(words) * self.scale + self.positions[: words.shape[1], None] / 64
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A model on the CPU and its file."""
    torch.manual_seed(0)
    model = Language().eval()
    path = tmp_path_factory.mktemp("saved") / "model.pt"
    torch.save(model.state_dict(), path)
    return model, path


def loaded(path, device_map=None):
    """A model whose every parameter comes from the file to the device that is the default, or that the map says."""
    target = torch.device(device_map[""]) if device_map else torch.get_default_device()
    with torch.device("meta"):
        model = Language().eval()
    state = torch.load(path, map_location="cpu", mmap=True, weights_only=True)
    state = {name: tensor.to(target) for name, tensor in state.items()}
    model.load_state_dict(state, assign=True)
    model.head.weight = model.words.weight
    with torch.device(target):
        model.scale = torch.tensor(0.5)
    return model


def check(model, original):
    places = {x.device for x in (*model.parameters(), *model.buffers())}
    assert places == {torch.device("xla:0")}
    assert model.head.weight is model.words.weight
    words = torch.arange(12).reshape(2, 6)
    torch.testing.assert_close(model(words.to("xla")).cpu(), original(words), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["xla", "xla:0"])
def test_onto_the_global_device(name, saved, device):
    original, path = saved
    began = time.process_time()
    torch.set_default_device(name)
    try:
        model = loaded(path)
    finally:
        torch.set_default_device(None)
    torch_xla.sync(wait=True)
    # Of the processor: 0.1 s. A program for each parameter took over a minute.
    assert time.process_time() - began < 10
    check(model, original)


def test_within_a_device(saved, device):
    original, path = saved
    with device:
        model = loaded(path)
    check(model, original)


@pytest.mark.parametrize("place", ["xla", "xla:0", torch.device("xla")])
def test_by_a_map_that_names_the_device(place, saved, device):
    original, path = saved
    check(loaded(path, device_map={"": place}), original)


def test_a_number_is_no_device_of_ours(device):
    """What libraries mean by the first accelerator: torch takes a number for those alone that it was built with."""
    with pytest.raises(RuntimeError, match="accelerator"):
        torch.device(0)


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("place", ["xla", None])
def test_a_file_in_the_format_before_torch_1_6(place, weights_only, tmp_path, device):
    """Its numbers come behind its tensors."""
    grid = torch.arange(12.0, device=device).reshape(3, 4)
    saved = [grid, grid[1], grid.T, grid.bfloat16(), nn.Parameter(grid[0, 1].clone())]
    torch.save(saved, tmp_path / "old", _use_new_zipfile_serialization=False)
    loaded = torch.load(tmp_path / "old", map_location=place, weights_only=weights_only)
    for tensor, expected in zip(loaded, saved, strict=True):
        assert tensor.device == expected.device
        torch.testing.assert_close(tensor.cpu(), expected.cpu(), rtol=0, atol=0)
    loaded[0][1] = 7.0
    assert loaded[1].tolist() == [7.0] * 4
    assert torch.equal(loaded[2], loaded[0].T)


@pytest.mark.filterwarnings("ignore:`torch.jit")
@pytest.mark.parametrize("place", [None, "cpu", "xla", "xla:0", torch.device("xla")])
@pytest.mark.parametrize("origin", ["cpu", "xla"])
def test_a_script(origin, place, tmp_path, device):
    """torch reads scripts for the devices that it names."""
    module = torch.jit.trace(nn.Linear(3, 2).to(origin), torch.ones(1, 3, device=origin))
    module.save(tmp_path / "script.pt")
    file = io.BytesIO(b"before" + (tmp_path / "script.pt").read_bytes())
    file.seek(6)
    expected = torch.device(place or origin).type
    for source in (tmp_path / "script.pt", file):
        loaded = torch.jit.load(source, map_location=place)
        assert {p.device.type for p in loaded.parameters()} == {expected}
        given = torch.ones(4, 3)
        result, wanted = loaded(given.to(expected)).cpu(), module(given.to(origin)).cpu()
        torch.testing.assert_close(result, wanted)
