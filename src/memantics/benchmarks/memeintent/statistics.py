"""Summary of MemeIntent's data, recomputed statistics of its paper, and audit findings.

The audit findings measure the ROUGE-L of one constant text for all memes, and empty background
texts.
"""

from __future__ import annotations

import statistics as stats
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import JsonValue

from memantics.benchmarks.factories import mean_score, proportion_score
from memantics.benchmarks.memeintent.load import PREFIX, IntentRelease
from memantics.benchmarks.published import read_published
from memantics.core.data import Found, checksum, note_gaps, note_part
from memantics.core.finding import Finding, FindingWords, Maker, rank
from memantics.metrics.text import best, find_best_constant, rouge_l, strip_prefix

COMPLETE = 950
_GET_IMAGES = "Request them from SemEval-2021 Task 6 and give their folder."
SHOWN = {"intent": {"role": "text", "captions": "data"}}
PLAIN = "the meme makes fun of something"
_WORDS = FindingWords(__file__)


def survey(release: IntentRelease) -> Found:
    """Summarise a copy of the data: counts, repairs, and the effect of missing files."""
    rows = release.rows
    splits = Counter(row.split for row in rows)
    found = sum(row.image is not None for row in rows)
    return Found(
        records=len(rows),
        counts={
            "memes": len(rows),
            "intents": sum(len(row.intents) for row in rows),
            "background sentences": sum(len(row.background) for row in rows),
            **{f"memes in {split}": count for split, count in sorted(splits.items())},
        },
        files=(release.index.relative_to(release.source.root).as_posix(),),
        checksum=checksum([release.index], release.source.root),
        images_found=found,
        images_expected=len(rows),
        repairs={name: count for name, count in release.repairs.items() if count},
        notes=(
            *note_part(release.source, len(rows), COMPLETE),
            *note_gaps(found, len(rows), release.images, _GET_IMAGES),
        ),
    )


def statistics(release: IntentRelease) -> dict[str, JsonValue]:
    """Return every statistic of the paper by key; None if this copy does not contain it."""
    rows = release.rows
    intents = [intent for row in rows for intent in row.intents]
    per_meme = Counter(len(row.intents) for row in rows)
    words = [len(intent.removeprefix(PREFIX).split()) for intent in intents]
    kept = [len(intent.split()) for intent in intents]
    bullets = [len(row.background) for row in rows]
    placeholder = [max(count, 1) for count in bullets]
    splits = Counter(row.split for row in rows)
    batch = sum("_batch_2." in row.file for row in rows)
    several = sum(len(row.intents) > 1 for row in rows)
    return {
        "memes": len(rows),
        "intents.total": len(intents),
        "intents.several": several,
        "intents.several_percent": round(100 * several / len(rows), 2),
        **{f"intents.count.{count}": per_meme[count] for count in (1, 2, 3)},
        "words.mean": _mean(words),
        "words.sd": _deviation(words),
        "words.sd_sample": round(stats.stdev(words), 3) if len(words) > 1 else None,
        "words.with_prefix.mean": _mean(kept),
        "words.with_prefix.sd": _deviation(kept),
        "background.mean": _mean(bullets),
        "background.sd": _deviation(bullets),
        "background.placeholder.mean": _mean(placeholder),
        "background.placeholder.sd": _deviation(placeholder),
        "background.present.mean": _mean([count for count in bullets if count]),
        **{
            f"background.mean.{split}": _mean([len(r.background) for r in rows if r.split == split])
            for split in ("dev", "train", "test")
        },
        "background.total": sum(bullets),
        "background.lines": sum(placeholder),
        "background.none": bullets.count(0),
        "background.question_marks": sum(
            any("?" in bullet for bullet in row.background) for row in rows
        ),
        "text.repaired": release.repairs.get("texts with wrongly decoded characters", 0),
        "images.batch_2": batch,
        "images.first_batch": len(rows) - batch,
        **{f"split.{split}": splits[split] for split in ("dev", "train", "test")},
    }


def _mean(values: Sequence[int]) -> float | None:
    return round(stats.fmean(values), 3) if values else None


def _deviation(values: Sequence[int]) -> float | None:
    """Return the population standard deviation, as in the paper."""
    return round(stats.pstdev(values), 3) if values else None


def pictures(release: IntentRelease) -> Iterator[str]:
    """Return the image file names of a complete copy."""
    return (row.file for row in release.rows)


def makers(release: IntentRelease) -> tuple[Maker, ...]:
    """Return the model that wrote the image descriptions used as references for captioning."""
    maker = Maker("image descriptions", "LLaVA-1.6", ("caption",), "the paper; some are edited")
    return (maker,) if release.source.official else ()


def narrow(release: IntentRelease, split: str) -> IntentRelease:
    """Restrict the data to the memes of a split."""
    return replace(release, rows=tuple(release.memes(split)))


def findings(release: IntentRelease) -> tuple[Finding, ...]:
    """Yield audit findings: ROUGE-L of constant texts, and empty background texts."""
    return (
        _judge_constant(release, keep=True),
        _judge_constant(release, keep=False),
        _judge_background(release),
    )


def _judge_constant(release: IntentRelease, *, keep: bool) -> Finding:
    """Fit a constant text to half of the memes and score it on the others, and vice versa."""
    references = [
        [intent if keep else strip_prefix(intent, PREFIX) for intent in row.intents]
        for row in release.rows
    ]
    halves = [[i for i in range(len(references)) if i % 2 == odd] for odd in (0, 1)]
    values = [0.0] * len(references)
    texts = []
    for half, other in (halves, halves[::-1]):
        constant = find_best_constant([references[i] for i in other])
        if constant is not None:
            texts.append(constant.text)
            for i in half:
                values[i] = _rouge(constant.text, references[i])
    plain = PLAIN if keep else strip_prefix(PLAIN, PREFIX)
    plains = [_rouge(plain, intents) for intents in references]
    groups = [row.id for row in release.rows]
    score = mean_score("rouge_l", values, groups)
    published = _published() if release.source.official else []
    beaten = sum(row <= (score.value or 0) for row in published)
    top = max(published, default=None)
    beats = top is not None and (score.value or 0) > top
    compared = f"; {beaten} of {len(published)} published values are not above it"
    compared = (compared * bool(published)) + ", including the best" * beats
    found = _WORDS.find(
        # This finding replaces the general one, whose text is fitted to the memes on which it is
        # scored.
        "shortcut.majority" if keep else "shortcut.majority_stripped",
        score,
        rank(bool(beaten) or not published, broken=beats),
        {"value": score.value or 0, "compared": compared},
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
    score, values = (
        proportion_score("proportion", empty, groups),
        {"count": sum(empty), "memes": len(empty)},
    )
    return _WORDS.find("memeintent.background", score, rank(any(empty)), values)


def _rouge(text: str, references: Sequence[str]) -> float:
    return best(rouge_l(text, reference).f1 for reference in references) or 0.0


def _published() -> list[float]:
    rows = read_published(Path(__file__).parent / "expected" / "published.json")
    return [
        row.metrics["rouge_l"] for row in rows if row.task == "intent" and "rouge_l" in row.metrics
    ]
