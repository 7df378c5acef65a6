"""Makes upstream's examples small: two steps of few, small samples and a narrow model. Loaded by each of their processes."""

from collections.abc import Sequence
from typing import Any

from after_import import after_import

SAMPLES, PIXELS, TOKENS, STEPS = 4, 32, 16, 2
# Of the decoder: hidden size, layers, heads, heads of keys, inner size, vocabulary.
DECODER = (64, 2, 8, 4, 128, 320)


def shrink_samples(utils: Any) -> None:
    """Fewer of them, with smaller images or shorter texts."""

    class Small(utils.SampleGenerator):
        def __init__(self, data: Sequence[Any], sample_count: int) -> None:
            parts = []
            for value in data:
                value = value[:SAMPLES]
                if value.dim() == 4:
                    value = value[..., :PIXELS, :PIXELS]
                parts.append(value[:, :TOKENS] if value.dim() == 2 else value)
            super().__init__(tuple(parts), min(sample_count, STEPS))

    utils.SampleGenerator = Small


def shrink_decoder(model: Any) -> None:
    """A narrow one by default."""
    make = model.DecoderOnlyConfig.__init__
    make.__defaults__ = DECODER + make.__defaults__[len(DECODER) :]


after_import("torch_xla.utils.utils", shrink_samples)
after_import("decoder_only_model", shrink_decoder)
