"""Makes upstream's examples small: two steps of few, small samples and a narrow model. Loaded by each of their processes."""

import importlib.abc
import importlib.util
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

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


class AfterImport(importlib.abc.MetaPathFinder):
    """Calls `action(module)` when the module of that name has been imported."""

    def __init__(self, name: str, action: Callable[[Any], None]) -> None:
        self._name, self._action, self._is_busy = name, action, False

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname != self._name or self._is_busy:
            return None
        self._is_busy = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._is_busy = False
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def execute_and_act(module: types.ModuleType) -> None:
            execute(module)
            self._action(module)

        spec.loader.exec_module = execute_and_act  # type: ignore[method-assign]
        return spec


sys.meta_path.insert(0, AfterImport("torch_xla.utils.utils", shrink_samples))
sys.meta_path.insert(0, AfterImport("decoder_only_model", shrink_decoder))
