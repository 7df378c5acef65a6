"""How transformers puts a saved model onto the device: by the default device, within one, and by maps of devices."""

import pytest
import torch
import transformers

import torch_xla  # noqa: F401  registers the device

SIZES = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 99,
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    torch.manual_seed(0)
    config = transformers.LlamaConfig(**SIZES, tie_word_embeddings=True)
    model = transformers.LlamaForCausalLM(config).eval()
    folder = tmp_path_factory.mktemp("saved")
    model.save_pretrained(folder)
    return model, folder


def loaded(folder, **options):
    return transformers.LlamaForCausalLM.from_pretrained(folder, **options).eval()


def check(model, original, place="xla:0"):
    assert {x.device for x in (*model.parameters(), *model.buffers())} == {torch.device(place)}
    words = torch.arange(12).reshape(2, 6)
    logits = model(words.to(place)).logits
    torch.testing.assert_close(logits.cpu(), original(words).logits, rtol=1e-4, atol=1e-5)


def test_onto_the_global_device(saved):
    original, folder = saved
    torch.set_default_device("xla:0")
    try:
        model = loaded(folder)
    finally:
        torch.set_default_device(None)
    check(model, original)


def test_within_a_device(saved):
    original, folder = saved
    with torch.device("xla"):
        model = loaded(folder)
    check(model, original)


@pytest.mark.parametrize("places", ["xla", {"": "xla:0"}], ids=str)
def test_by_a_map_that_names_the_device(places, saved):
    original, folder = saved
    check(loaded(folder, device_map=places), original)


def test_an_automatic_map_is_accelerates(saved):
    """It counts the devices of the kinds that it knows by name; docs/compatibility.md says so."""
    original, folder = saved
    check(loaded(folder, device_map="auto"), original, place="cpu")
