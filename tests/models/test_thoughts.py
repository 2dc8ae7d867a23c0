"""A ``<think>`` block counts as a thought only at the beginning of a reply."""

from __future__ import annotations

import pytest

from memantics.models.wire import split_thought


@pytest.mark.parametrize(
    ("text", "thought", "answer"),
    [
        ("<think>a</think>B", "a", "B"),
        ("  \n<think> a </think>\n B", "a", "B"),
        ("a</think>B", "a", "B"),
        ("<think>a<think>b</think>c</think>B", "a<think>b", "c</think>B"),
        # The tag in mid-text is part of the answer, not the end of a thought.
        ("Answer: B <think>or A?</think> C", "", "Answer: B <think>or A?</think> C"),
        ("B\n<think>sure</think>", "", "B\n<think>sure</think>"),
        ("The tag <think> is XML", "", "The tag <think> is XML"),
        ("<think>no end", "no end", ""),
        ("<thinking>a</thinking>B", "", "<thinking>a</thinking>B"),
        ("</think>B", "", "B"),
        ("", "", ""),
    ],
)
def test_only_a_leading_block_is_a_thought(text: str, thought: str, answer: str) -> None:
    assert split_thought(text) == (thought, answer)
