"""Trains a small BERT, GPT-2 or ViT with the Trainer of transformers.

python train_transformers.py --model bert --out DIR
torchrun --nproc_per_node=2 train_transformers.py --model bert --out DIR
"""

import argparse
import json
import pathlib
from typing import Any

import digits
import text
import torch
import transformers

parser = argparse.ArgumentParser()
parser.add_argument("--model", choices=["bert", "gpt2", "vit"], required=True)
parser.add_argument("--training", default="{}", help="TrainingArguments, as JSON")
parser.add_argument("--batch-size", type=int, default=32, help="of each process")
parser.add_argument("--resume", help="a checkpoint to go on from")
parser.add_argument("--out", required=True)

SIZES: dict[str, Any] = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4)
# Random numbers are drawn where a model computes, so these would not be those of another device.
NO_DROPOUT: dict[str, Any] = dict(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


def bert() -> tuple[Any, list[Any], list[Any]]:
    """Which chapter of the manual is a passage from?"""
    config = transformers.BertConfig(
        vocab_size=text.WORDS,
        intermediate_size=64,
        max_position_embeddings=32,
        num_labels=len(text.CHAPTERS),
        **SIZES,
        **NO_DROPOUT,
    )
    rows = text.passages(640)
    return transformers.BertForSequenceClassification(config), rows[:512], rows[512:]


def gpt2() -> tuple[Any, list[Any], list[Any]]:
    """Which letter comes next? The embedding and the last layer have one weight."""
    config = transformers.GPT2Config(
        vocab_size=128,
        n_positions=48,
        n_embd=32,
        n_layer=2,
        n_head=4,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=0,
        eos_token_id=0,
    )
    rows = text.letters(640)
    return transformers.GPT2LMHeadModel(config), rows[:512], rows[512:]


def vit() -> tuple[Any, list[Any], list[Any]]:
    """Which digit is it?"""
    config = transformers.ViTConfig(
        image_size=28,
        patch_size=7,
        num_channels=1,
        intermediate_size=64,
        num_labels=10,
        initializer_range=0.1,
        **SIZES,
        **NO_DROPOUT,
    )
    rows = [{"pixel_values": pixels, "labels": digit} for pixels, digit in digits.images(640)]
    return transformers.ViTForImageClassification(config), rows[:512], rows[512:]


class Losses(transformers.TrainerCallback):
    """Keeps what the Trainer logs: after each step the mean loss over all processes."""

    def __init__(self) -> None:
        self.losses: list[float] = []

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **more: Any) -> None:
        if logs and "loss" in logs:
            self.losses.append(logs["loss"])


def accuracy(prediction: Any) -> dict[str, float]:
    guesses = torch.as_tensor(prediction.predictions).argmax(-1)
    right = guesses == torch.as_tensor(prediction.label_ids)
    return {"accuracy": float(right.float().mean()), "count": float(right.numel())}


def main() -> None:
    arguments = parser.parse_args()
    transformers.set_seed(0)
    model, train, held_out = {"bert": bert, "gpt2": gpt2, "vit": vit}[arguments.model]()
    options: dict[str, Any] = {
        "output_dir": arguments.out,
        "per_device_train_batch_size": arguments.batch_size,
        "per_device_eval_batch_size": 64,
        "num_train_epochs": 3,
        "learning_rate": 5e-3,
        # BERT divides its loss by the number of samples itself; only GPT-2 leaves it to the Trainer.
        "average_tokens_across_devices": arguments.model == "gpt2",
        "logging_steps": 1,
        "save_strategy": "no",
        "report_to": [],
        "disable_tqdm": True,
        **json.loads(arguments.training),
    }
    losses = Losses()
    trainer = transformers.Trainer(
        model=model,
        args=transformers.TrainingArguments(**options),
        train_dataset=train,
        eval_dataset=held_out,
        compute_metrics=accuracy,
        callbacks=[losses],
    )
    trainer.train(resume_from_checkpoint=arguments.resume)
    metrics = trainer.evaluate()
    trainer.save_model(str(pathlib.Path(arguments.out) / "model"))
    if trainer.is_world_process_zero():
        digits.write_report(
            arguments.out,
            losses.losses,
            trainer.model,
            trainer.args.world_size,
            metrics=metrics,
            optimizer=type(trainer.optimizer.optimizer).__name__,
            fused=bool(trainer.optimizer.param_groups[0].get("fused")),
        )


def _mp_fn(index: int) -> None:
    """What launchers call in each process."""
    main()


if __name__ == "__main__":
    main()
