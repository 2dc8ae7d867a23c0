"""Meanings for microseconds: a table of token vectors distilled from the sentence encoder.

``static.npz`` holds 64 numbers for each Chinese piece of the encoder's vocabulary: the token's own
vector inside the encoder, mapped so that the sum over a text comes near to the encoder's vector of
that text (USE multilingual, Apache-2.0; docs/research/detector.md says how it was made). It holds
no texts. Other scripts have no vectors here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

import numpy as np

from memantics.models.embedded.encoder import Vectors, clean

if TYPE_CHECKING:
    from tokenizers import Tokenizer

WIDTH = 64
_UNKNOWN = 0
_SPACE = "\u2581"  # how the vocabulary writes a space


class StaticEncoder:
    """Sums of token vectors, each text alone: neighbours change no digit.

    >>> one, same, other = StaticEncoder().encode(["我很高兴", "我非常开心", "公司的税法"])
    >>> float(one @ same) > float(one @ other)
    True
    """

    version = "static-1"

    def encode(self, texts: Sequence[str]) -> Vectors:
        """One row of length 1 per text; zeros for a text without a known token."""
        tokenizer, table = _load()
        rows = np.zeros((len(texts), WIDTH), np.float32)
        for row, text in zip(rows, texts, strict=True):
            line = _SPACE + clean(text).replace(" ", _SPACE)
            total = table[tokenizer.encode(line).ids].sum(axis=0)
            row[:] = total / max(float(np.sqrt(total @ total)), 1e-9)
        return rows


@cache
def _load() -> tuple[Tokenizer, Vectors]:
    from tokenizers import Tokenizer, models, normalizers

    file = resources.files("memantics.models.embedded") / "static.npz"
    with file.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
        pieces = stored["pieces"].tobytes().decode("utf-8").split("\n")
        scores = stored["scores"].astype(float).tolist()
        table = stored["table"].astype(np.float32) * stored["scale"]
    table[pieces.index(_SPACE)] = 0  # a space means nothing
    least = min(scores) - 10
    known = [("<unk>", least), *zip(pieces, scores, strict=True)]
    tokenizer = Tokenizer(models.Unigram(known, _UNKNOWN))
    tokenizer.normalizer = normalizers.NFKC()
    return tokenizer, np.vstack([np.zeros((1, WIDTH), np.float32), table])
