"""Tokens as sacrebleu's 13a cuts them, also where real captions never go."""

from __future__ import annotations

import pytest

from memantics.metrics.text import tokenize


@pytest.mark.parametrize(
    "text",
    [
        "a <skipped> b",
        "end-\nless line\nbreak",
        "say &quot;hi&quot; &amp; &lt;go&gt; &QUOT;",
        "1,000.5 a.b 3. .5 x,y 7-8 a-b 9 -1",
        "(what?) [it's] {x} 50% a/b #1 @me ^ ~ `",
        "",
        "  ",
    ],
)
def test_tokens_are_those_of_sacrebleu(text: str) -> None:
    tokenizer = pytest.importorskip("sacrebleu.tokenizers.tokenizer_13a").Tokenizer13a()
    assert tokenize(text, "13a", lower=False) == tokenizer(text).split()
