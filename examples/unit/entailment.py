"""Does the sentence answer the question? Pairs in the manner of GLUE's QNLI, from Python's own manual.

The manual comes with the interpreter (`pydoc_data.topics`). A question names a topic of it; the sentence is one of
that topic (label 1) or of another one (label 0).
"""

import pydoc_data.topics
import random
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import torch

VOCABULARY = 4096
LONGEST = 64  # words of question and sentence together


@dataclass(frozen=True)
class Pair:
    """`words` are numbers below VOCABULARY, from 1 on."""

    words: list[int]
    label: int


def _numbers(text: str) -> list[int]:
    words = re.findall(r"[a-z_]+", text.lower())
    return [1 + zlib.crc32(word.encode()) % (VOCABULARY - 1) for word in words]


def _sentences(text: str) -> list[str]:
    found = (" ".join(s.split()) for s in re.split(r"(?<=[.:])\s+", text))
    return [s for s in found if 5 <= len(s.split()) <= 50]


def pairs(count: int, seed: int = 0) -> list[Pair]:
    """That many, half of them with label 1."""
    order = random.Random(seed)
    topics = {name: _sentences(text) for name, text in pydoc_data.topics.topics.items()}
    topics = {name: sentences for name, sentences in topics.items() if len(sentences) >= 8}
    names = sorted(topics)
    made = []
    for i in range(count):
        asked, other = order.sample(names, 2)
        sentence = order.choice(topics[asked if i % 2 else other])
        title = pydoc_data.topics.topics[asked].strip().partition("\n")[0]
        numbers = _numbers(f"What does the manual say of {asked}, {title}?") + _numbers(sentence)
        made.append(Pair(numbers[:LONGEST], i % 2))
    order.shuffle(made)
    return made


def batches(
    made: list[Pair], size: int, padding: str
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Words, int64 [size, length], and labels, int64 [size].

    Args:
      padding: "longest" fills up to the longest pair of the batch, so that batches differ in length; "fixed" to
        LONGEST.
    """
    for begin in range(0, len(made) - size + 1, size):
        chosen = made[begin : begin + size]
        longest = max(len(pair.words) for pair in chosen)
        length = longest if padding == "longest" else LONGEST
        words = torch.zeros(size, length, dtype=torch.int64)
        for row, pair in zip(words, chosen, strict=True):
            row[: len(pair.words)] = torch.tensor(pair.words)
        yield words, torch.tensor([pair.label for pair in chosen])
