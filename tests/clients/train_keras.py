"""Trains with Keras 3, whose backend is torch: `fit`, `evaluate`, `predict`, and a file of the model.

python train_keras.py --device xla --out DIR
"""

import argparse
import os
import pathlib
from typing import Any

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cpu")
parser.add_argument("--out", required=True)
arguments = parser.parse_args()
os.environ |= {"KERAS_BACKEND": "torch", "KERAS_TORCH_DEVICE": arguments.device}
if arguments.device == "xla":
    import torch_xla  # noqa: F401  (Keras does not import it)

import digits  # noqa: E402  (Keras reads the variables when it is imported)
import keras  # noqa: E402
import numpy as np  # noqa: E402
from keras import layers  # noqa: E402

EPOCHS = 2


class Losses(keras.callbacks.Callback):
    """The loss of each step."""

    def __init__(self) -> None:
        super().__init__()
        self.losses: list[float] = []
        self._before = 0.0

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._before = 0.0

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        # What Keras gives is the mean of the epoch's steps so far.
        total = logs["loss"] * (batch + 1)
        self.losses.append(total - self._before)
        self._before = total


pixels, target = (np.asarray(tensor) for tensor in digits.images().tensors)
model = keras.Sequential(
    [
        layers.Input((28, 28, 1)),
        layers.Conv2D(8, 5, strides=2, activation="relu"),
        layers.BatchNormalization(),
        layers.MaxPooling2D(),
        layers.Flatten(),
        layers.Dense(10),
    ]
)
# Keras draws on the device, whose numbers are not the CPU's.
draws = np.random.default_rng(0)
model.set_weights([draws.normal(0, 0.1, w.shape) if w.ndim > 1 else w for w in model.get_weights()])
model.compile(
    optimizer=keras.optimizers.Adam(1e-2),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
callback = Losses()
rows = pixels.transpose(0, 2, 3, 1)
model.fit(
    rows, target, batch_size=64, epochs=EPOCHS, shuffle=False, verbose=0, callbacks=[callback]
)
evaluated = model.evaluate(rows, target, verbose=0, return_dict=True)
file = pathlib.Path(arguments.out) / "model.keras"
model.save(file)
predicted = model.predict(rows[:64], verbose=0)
digits.write_report(
    arguments.out,
    callback.losses,
    model,
    evaluated=evaluated,
    loaded_differs=float(
        np.abs(keras.models.load_model(file).predict(rows[:64], verbose=0) - predicted).max()
    ),
)
