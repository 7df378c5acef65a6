"""Real text for the language models: the chapters of Python's own manual that come with the interpreter."""

import pydoc_data.topics
import re
import zlib
from collections.abc import Iterator

import torch

CHAPTERS = ("specialnames", "compound", "types", "formatstrings")
WORDS = 512


def _sentences(chapter: str, length: int) -> Iterator[list[str]]:
    words = re.findall(r"[A-Za-z_]+", pydoc_data.topics.topics[chapter].lower())
    for start in range(0, len(words) - length, length):
        # Not all are of one length, as sentences are not.
        yield words[start : start + length - start // length % 7]


def passages(count: int, length: int = 16) -> list[dict[str, torch.Tensor]]:
    """Passages of words with the number of their chapter, drawn from all chapters in turn.

    Each has `input_ids` (a word's hash; 0 is padding), `attention_mask`, both int64 [length], and `labels`.
    """
    rows = []
    for sentences in zip(*(_sentences(chapter, length) for chapter in CHAPTERS), strict=False):
        for label, words in enumerate(sentences):
            ids = torch.zeros(length, dtype=torch.int64)
            ids[: len(words)] = torch.tensor(
                [1 + zlib.crc32(w.encode()) % (WORDS - 1) for w in words]
            )
            mask = (ids != 0).long()
            rows.append({"input_ids": ids, "attention_mask": mask, "labels": torch.tensor(label)})
    if len(rows) < count:
        raise ValueError(f"The chapters have {len(rows)} passages, {count} are wanted.")
    return rows[:count]


def letters(count: int, length: int = 48) -> list[dict[str, torch.Tensor]]:
    """Pieces of the manual as bytes, int64 [length]: `input_ids`, and the same as `labels`."""
    text = "".join(pydoc_data.topics.topics[chapter] for chapter in CHAPTERS).encode(
        "ascii", "replace"
    )
    pieces = torch.frombuffer(bytearray(text[: count * length]), dtype=torch.uint8).long()
    return [{"input_ids": piece, "labels": piece} for piece in pieces.reshape(count, length)]
