"""Small models of the usual kinds train as in eager PyTorch, on our engine and on XLA:CPU."""

import functools
import json
import pathlib

import model_training
import pytest
import torch
from conftest import engine_environment

MODELS = ["mlp", "cnn", "resnet18", "encoder", "lstm", "gpt", "vae"]
TRAINING = str(pathlib.Path(__file__).with_name("model_training.py"))

# The first step of a stateful optimizer makes its state, so that it is another graph than the later ones.
GRAPHS = {"mlp": 1, "lstm": 1}


def train(program, *arguments: str, **environment: str) -> dict:
    output = program.run(TRAINING, *arguments, timeout=600, **environment).stdout
    return json.loads(output.splitlines()[-1])


@functools.cache
def eager(model: str) -> list[float]:
    return model_training.train(model, "cpu", 20, 0.0, torch.float32)


def check_training(model: str, program, engine: dict[str, str]) -> None:
    result = train(program, model, **engine)
    assert result["losses"] == pytest.approx(eager(model), rel=1e-4)
    assert result["losses"][-1] < result["losses"][0]
    assert result["fallbacks"] == []
    assert result["compilations"] <= GRAPHS.get(model, 2)


# These have in them what the others have: layers, attention, random numbers.
REPEATING = ("mlp", "encoder", "vae")
ENGINE_MODELS = [
    pytest.param(m, marks=pytest.mark.exhaustive) if m in REPEATING else m for m in MODELS
]


@pytest.mark.parametrize("model", ENGINE_MODELS)
def test_agrees_with_eager(model, program, engine):
    check_training(model, program, engine)


def test_a_foreign_engine_agrees_with_eager(program):
    check_training("cnn", program, engine_environment("xla_cpu"))


DROPOUT = [m if m == "gpt" else pytest.param(m, marks=pytest.mark.exhaustive) for m in MODELS]


@pytest.mark.parametrize("model", DROPOUT)
def test_trains_with_dropout(model, program):
    result = train(program, model, "--dropout", "0.1")
    losses = result["losses"]
    assert sum(losses[-4:]) < sum(losses[:4])
    assert losses != pytest.approx(eager(model), rel=1e-6)
    assert result["fallbacks"] == []
    assert result["compilations"] <= GRAPHS.get(model, 2)
