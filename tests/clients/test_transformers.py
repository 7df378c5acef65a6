"""transformers, unmodified: its Trainer with BERT, GPT-2 and ViT."""

import json

import pytest
from conftest import check_weight, device_environment

SCRIPT = "train_transformers.py"
MODELS = ["bert", "gpt2", "vit"]
# Softmax does not see what is added to all scores of a query.
KEY_BIASES = ("key.bias", "k_proj.bias")
LAUNCHERS = {
    "accelerate": (
        "-m",
        "accelerate.commands.launch",
        "--tpu",
        "--main_training_function",
        "_mp_fn",
    ),
    "torchrun": ("-m", "torch.distributed.run", "--nproc_per_node", "2"),
}


def training(**options) -> tuple[str, str]:
    return "--training", json.dumps(options)


def reference(on_cpu, model: str, *arguments: str):
    return on_cpu(SCRIPT, "--model", model, *arguments)


def check(run, expected, processes: int = 1) -> None:
    run.check_equal(expected, without_effect=KEY_BIASES)
    run.check_on_device(processes)
    for name in ("eval_loss", "eval_accuracy", "eval_count"):
        assert run.report["metrics"][name] == pytest.approx(
            expected.report["metrics"][name], rel=1e-3, abs=0.01
        )


@pytest.mark.parametrize("model", MODELS)
def test_one_device(program, on_cpu, model):
    """With the default optimizer, which is torch's fused AdamW."""
    run = program.run(SCRIPT, "--model", model, variables=device_environment(1))
    check(run, reference(on_cpu, model))
    assert run.report["optimizer"] == "AdamW"
    assert run.report["fused"]
    assert run.report["compilations"] <= 16


@pytest.mark.parametrize("model", MODELS)
def test_two_processes(program, on_cpu, model):
    run = program.run(
        SCRIPT,
        *("--model", model, "--batch-size", "16"),
        variables=device_environment(2),
        launcher=LAUNCHERS["torchrun"],
    )
    check(run, reference(on_cpu, model), processes=2)


def test_sync_free_optimizer(program, on_cpu):
    run = program.run(
        SCRIPT,
        *("--model", "bert", *training(optim="adamw_torch_xla")),
        variables=device_environment(1),
    )
    check(run, reference(on_cpu, "bert", *training(optim="adamw_torch")))


def test_gradient_accumulation(program, on_cpu):
    options = ("--model", "vit", *training(gradient_accumulation_steps=2))
    run = program.run(SCRIPT, *options, variables=device_environment(1))
    check(run, on_cpu(SCRIPT, *options))


def test_bfloat16(program, on_cpu):
    run = program.run(
        SCRIPT, *("--model", "gpt2", *training(bf16=True)), variables=device_environment(1)
    )
    run.check_learned()
    run.check_on_device()
    full = reference(on_cpu, "gpt2")
    assert run.losses == pytest.approx(full.losses, rel=0.1, abs=0.1)
    assert run.losses != pytest.approx(full.losses, rel=1e-4)


@pytest.mark.parametrize("processes", [1, 2])
def test_checkpoint_and_resume(program, on_cpu, processes):
    variables = device_environment(processes)
    launcher = LAUNCHERS["torchrun"] if processes == 2 else ()
    options = ("--model", "bert", "--batch-size", str(32 // processes))
    start = program.run(
        SCRIPT,
        *options,
        *training(save_strategy="steps", save_steps=20),
        variables=variables,
        launcher=launcher,
    )
    checkpoint = program.folder / "run1" / "checkpoint-20"
    resumed = program.run(
        SCRIPT, *options, "--resume", str(checkpoint), variables=variables, launcher=launcher
    )
    whole = reference(on_cpu, "bert")
    check(start, whole, processes)
    assert resumed.losses == pytest.approx(whole.losses[20:], rel=1e-3, abs=1e-4)
    for name, weight in whole.weights.items():
        if not name.endswith(KEY_BIASES):
            check_weight(name, resumed.weights[name], weight)
