"""What only MemeIntent's own data can show: how far one sentence for all memes goes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from memantics.benchmarks.memeintent.load import PREFIX, IntentRelease
from memantics.core.finding import Finding, FindingWords, Maker, rank
from memantics.core.published import read_published
from memantics.metrics.constant import find_best_constant
from memantics.metrics.text import best, rouge_l, strip_prefix
from memantics.tasks.factories import mean_score, share

SHOWN = {"intent": {"role": "text", "captions": "data"}}
PLAIN = "the meme makes fun of something"
_WORDS = FindingWords(__file__)


def pictures(release: IntentRelease) -> Iterator[str]:
    """The images of a complete copy."""
    return (row.file for row in release.rows)


def makers(release: IntentRelease) -> tuple[Maker, ...]:  # noqa: ARG001 - the same for every copy
    """The image descriptions, by which the captioning task is scored, are a model's."""
    return (Maker("image descriptions", "LLaVA-1.6", ("caption",), "the paper; some are edited"),)


def narrow(release: IntentRelease, split: str) -> IntentRelease:
    """The memes of a split."""
    return replace(release, rows=tuple(release.memes(split)))


def findings(release: IntentRelease) -> tuple[Finding, ...]:
    """ROUGE-L of constant texts with the shared opening and without, and empty background."""
    return (
        _judge_constant(release, keep=True),
        _judge_constant(release, keep=False),
        _judge_background(release),
    )


def _judge_constant(release: IntentRelease, *, keep: bool) -> Finding:
    """Fit a text to one half of the memes, score it on the other, both ways round."""
    references = [
        [intent if keep else strip_prefix(intent, PREFIX) for intent in row.intents]
        for row in release.rows
    ]
    halves = [[i for i in range(len(references)) if i % 2 == odd] for odd in (0, 1)]
    values = [0.0] * len(references)
    texts = []
    for numbers, other in (halves, halves[::-1]):
        constant = find_best_constant([references[i] for i in other])
        if constant is not None:
            texts.append(constant.text)
            for i in numbers:
                values[i] = _rouge(constant.text, references[i])
    plain = PLAIN if keep else strip_prefix(PLAIN, PREFIX)
    plains = [_rouge(plain, names) for names in references]
    groups = [row.id for row in release.rows]
    figure = mean_score("rouge_l", values, groups)
    published = _published() if release.source.kind == "release" else []
    beaten = sum(value <= (figure.value or 0) for value in published)
    top = max(published, default=None)
    beats = top is not None and (figure.value or 0) > top
    compared = f"; {beaten} of {len(published)} published figures are not above it"
    compared = (compared * bool(published)) + ", the best included" * beats
    found = _WORDS.find(
        # In place of the general finding, whose text is fitted to the memes it is scored on.
        "shortcut.majority" if keep else "shortcut.majority_stripped",
        figure,
        rank(bool(beaten) or not published, broken=beats),
        {"value": figure.value or 0, "compared": compared},
        expected=top,
        rows=(
            mean_score("rouge_l", values, groups, "text", "fitted on other memes"),
            mean_score("rouge_l", plains, groups, "text", f"“{plain}”"),
        ),
        details=tuple(f"the text: {text}" for text in dict.fromkeys(texts)),
    )
    return found if published else replace(found, reference="")


def _judge_background(release: IntentRelease) -> Finding:
    empty = [not row.background for row in release.rows]
    groups = [row.id for row in release.rows]
    figure, values = share("share", empty, groups), {"count": sum(empty), "memes": len(empty)}
    return _WORDS.find("memeintent.background", figure, rank(any(empty)), values)


def _rouge(text: str, references: Sequence[str]) -> float:
    return best(rouge_l(text, reference).f1 for reference in references) or 0.0


def _published() -> list[float]:
    rows = read_published(Path(__file__).parent / "expected" / "published.json")
    return [
        row.figures["rouge_l"] for row in rows if row.task == "intent" and "rouge_l" in row.figures
    ]
