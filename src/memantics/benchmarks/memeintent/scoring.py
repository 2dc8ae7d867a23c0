"""Scores of replies against reference texts: metrics of a run and of each reply."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from statistics import fmean

from memantics.benchmarks.factories import mean_score
from memantics.benchmarks.memeintent.asking import Scoring, split_facts
from memantics.benchmarks.memeintent.load import PREFIX
from memantics.core.errors import MissingExtra
from memantics.core.records import CALIBRATED, Outcome, Score
from memantics.core.task import TextScorer
from memantics.metrics.text import (
    Constant,
    RougeL,
    Stem,
    TextPair,
    bleu_4,
    correct_for_constant,
    find_best_constant,
    load_porter,
    rouge_l,
    strip_prefix,
    tokenize,
)

# Calibrated semantic similarity, on which a constant text scores 0. ROUGE-L rewards a sentence that
# fits every meme a little. Here an entailment model or an encoder compares replies and references,
# and the mean similarity of a reply to the references of other memes is subtracted.

ItemScores = list[float | None]
_OTHERS = 16  # number of other memes with which each reply is compared


class MarksWithMeaning(Mapping[str, ItemScores]):
    """Metrics by name; the calibrated one needs an encoder and is computed on access."""

    def __init__(self, ready: Mapping[str, ItemScores], meaning: Callable[[], ItemScores]) -> None:
        self._ready, self._meaning = ready, meaning

    def __getitem__(self, key: str) -> ItemScores:
        return self._meaning() if key == CALIBRATED else self._ready[key]

    def __iter__(self) -> Iterator[str]:
        return iter((*self._ready, CALIBRATED))

    def __len__(self) -> int:
        return len(self._ready) + 1


def choose_scorer(scoring: Scoring) -> tuple[TextScorer | None, bool]:
    """Return the model that compares texts, and whether it is the encoder of the package."""
    if scoring.nli is not None:
        return scoring.services.nli(scoring.nli), False
    if scoring.bert is not None:
        return scoring.services.bert(scoring.bert), False
    return scoring.services.similarity(), True


def calibrate(
    replies: Sequence[str], references: Sequence[Sequence[str]], scorer: TextScorer
) -> ItemScores:
    """Return each reply's best similarity to its references, minus that to other memes.

    The other memes are at fixed distances in a circular order, so that each meme is used equally
    often. The result is empty for fewer than two memes with references.
    """
    asked = [place for place, texts in enumerate(references) if texts]
    size = len(asked)
    count = min(_OTHERS, size - 1)
    values: ItemScores = [None for _ in replies]
    if count < 1:
        return values
    steps = [0, *(1 + number * (size - 1) // count for number in range(count))]
    sheets = [
        (replies[place], references[asked[(number + step) % size]])
        for number, place in enumerate(asked)
        for step in steps
    ]
    found = iter(scorer.score_pairs([(text, one) for text, texts in sheets for one in texts]))
    best = [max(next(found) for _ in texts) for _, texts in sheets]
    rows = [best[start : start + len(steps)] for start in range(0, len(best), len(steps))]
    right = correct_for_constant([row[0] for row in rows], [fmean(row[1:]) for row in rows])
    for place, value in zip(asked, right, strict=True):
        values[place] = value
    return values


MarksByMetric = dict[str, list[float | None]]
_OPENING_ZH = re.compile(r"^\s*(?:这张|这个|该)(?:表情包|梗图|图片?)\s*")
_PARTS = ("rouge_l_precision", "rouge_l_recall")
_DESCRIPTIVE = "descriptive only: the description in the data is one of many correct ones"


@dataclass(frozen=True, slots=True)
class _ScoredReply:
    """One outcome: the reply ("" if missing) and its reference texts."""

    reply: str
    references: tuple[str, ...]
    meme: str


def mark(task: str, outcomes: Sequence[Outcome], scoring: Scoring) -> Mapping[str, ItemScores]:
    """Return the metric values of each outcome, by which two runs are compared."""
    sheets = _lay_out(outcomes)
    marks = _mark_all(task, sheets, scoring)
    ready = {key: values for key, values in marks.items() if key not in _PARTS}
    if task != "intent" or choose_scorer(scoring)[0] is None:
        return ready
    return MarksWithMeaning(ready, lambda: _mark_calibrated(sheets, scoring)[0])


def score(task: str, outcomes: Sequence[Outcome], scoring: Scoring) -> tuple[Score, ...]:
    """Return means with confidence intervals; for intents with and without the shared opening."""
    sheets = _lay_out(outcomes)
    memes = [sheet.meme for sheet in sheets]
    notes = _write_notes(task, sheets, scoring)
    if task != "intent":
        marks = _mark_all(task, sheets, scoring)
        return tuple(
            mean_score(key, values, memes, note=notes.get(key, "")) for key, values in marks.items()
        )
    ways = {strip: _mark_words(task, sheets, scoring, strip) for strip in (False, True)}
    marks = ways[scoring.strip_prefix] | _mark_meaning(task, sheets, scoring, scoring.strip_prefix)
    rows = [
        mean_score(key, values, memes, note=notes.get(key, "")) for key, values in marks.items()
    ]
    calibrated, note = _mark_calibrated(sheets, scoring)
    if note:
        rows.insert(1, mean_score(CALIBRATED, calibrated, memes, note=note))
    for strip, label in ((False, "kept"), (True, "stripped")):
        rows += [
            mean_score(key, ways[strip][key], memes, by="prefix", label=label)
            for key in ("rouge_l", "bleu_4")
        ]
        rows.append(_score_constant(sheets, scoring, strip, label))
    return (*rows, *_score_given(outcomes, marks["rouge_l"]))


def _lay_out(outcomes: Sequence[Outcome]) -> list[_ScoredReply]:
    return [
        _ScoredReply(
            o.value if o.status == "answered" and isinstance(o.value, str) else "",
            tuple(str(text) for text in o.item.gold) if isinstance(o.item.gold, list) else (),
            o.item.group,
        )
        for o in outcomes
    ]


def _pair_up(task: str, sheet: _ScoredReply, scoring: Scoring, strip: bool) -> list[list[TextPair]]:
    """Return groups of pairs, each of a reply and a reference text.

    The value of a reply is the mean over groups of the best pair in each group. There is one group
    with a pair per reference, or one group per fact with a pair per line of the reply.
    """
    if not sheet.references:
        return []
    if task != "background":
        pairs = [(sheet.reply, reference) for reference in sheet.references]
        if strip:
            pairs = [(strip_opening(a), strip_opening(b)) for a, b in pairs]
        return [pairs]
    lines, facts = split_facts(sheet.reply), split_facts(sheet.references[0])
    if scoring.by_fact:
        return [[(line, fact) for line in lines or ("",)] for fact in facts]
    return [[(" ".join(lines), " ".join(facts))]]


def strip_opening(text: str) -> str:
    """Remove the opening words that all intents share, in the language of the data.

    >>> strip_opening("The meme mocks updates"), strip_opening("这张表情包吐槽加班")
    ('mocks updates', '吐槽加班')
    """
    return _OPENING_ZH.sub("", strip_prefix(text, PREFIX), count=1)


def _mark_all(task: str, sheets: Sequence[_ScoredReply], scoring: Scoring) -> MarksByMetric:
    strip = scoring.strip_prefix and task == "intent"
    return _mark_words(task, sheets, scoring, strip) | _mark_meaning(task, sheets, scoring, strip)


def _mark_words(
    task: str, sheets: Sequence[_ScoredReply], scoring: Scoring, strip: bool
) -> MarksByMetric:
    stem = _find_stem() if scoring.stem else None

    def count(pair: TextPair) -> float:
        hypothesis, other = (
            tokenize(text, scoring.tokenizer, lower=scoring.lower) for text in pair
        )
        return bleu_4(hypothesis, other, scoring.smoothing)

    marks: MarksByMetric = {"rouge_l": [], "rouge_l_precision": [], "rouge_l_recall": []}
    if scoring.with_bleu:
        marks["bleu_4"] = []
    for sheet in sheets:
        groups = _pair_up(task, sheet, scoring, strip)
        similarity = [max((rouge_l(*pair, stem) for pair in group), key=_by_f1) for group in groups]
        marks["rouge_l"].append(_average([rouge.f1 for rouge in similarity]))
        marks["rouge_l_precision"].append(_average([rouge.precision for rouge in similarity]))
        marks["rouge_l_recall"].append(_average([rouge.recall for rouge in similarity]))
        if scoring.with_bleu:
            marks["bleu_4"].append(_average([max(map(count, group)) for group in groups]))
    return marks


def _by_f1(similarity: RougeL) -> float:
    return similarity.f1


def _mark_meaning(
    task: str, sheets: Sequence[_ScoredReply], scoring: Scoring, strip: bool
) -> MarksByMetric:
    """Return neural metrics; each is computed in one pass over all pairs of texts."""
    groups = [_pair_up(task, sheet, scoring, strip) for sheet in sheets]
    pairs = [pair for members in groups for group in members for pair in group]
    marks: MarksByMetric = {}
    if scoring.bert is not None:
        found = scoring.services.bert(scoring.bert).score_pairs(pairs)
        marks["bertscore_f1"] = _gather(groups, found)
    if scoring.nli is not None:
        found = scoring.services.nli(scoring.nli).score_pairs(pairs)
        marks["nli_consistency"] = _gather(groups, found)
    return marks


def _gather(
    groups: Sequence[Sequence[Sequence[TextPair]]], values: Sequence[float]
) -> list[float | None]:
    """Return one value per reply: the best pair of each group, averaged over groups."""
    rest = iter(values)
    return [_average([max([next(rest) for _ in group]) for group in members]) for members in groups]


def _average(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _mark_calibrated(sheets: Sequence[_ScoredReply], scoring: Scoring) -> tuple[ItemScores, str]:
    """Return the calibrated similarity of each reply and a note (empty: not computed)."""
    scorer, embedded = choose_scorer(scoring)
    if scorer is None:
        return [], ""
    clean = strip_opening if scoring.strip_prefix or embedded else str
    values = calibrate(
        [clean(sheet.reply) for sheet in sheets],
        [[clean(text) for text in sheet.references] for sheet in sheets],
        scorer,
    )
    known = any(value is not None for value in values)
    note = f"0 is the value of every constant text, 1 that of a reference; {scorer.note}"
    return values, note if known else ""


def _score_constant(
    sheets: Sequence[_ScoredReply], scoring: Scoring, strip: bool, label: str
) -> Score:
    """Return the score of the best constant text on the same memes, as a trivial baseline."""
    references = [
        [strip_opening(text) if strip else text for text in sheet.references] for sheet in sheets
    ]
    found = _find_constant(tuple(map(tuple, references)), scoring.stem)
    note = f"“{found.text}” for every meme, fitted to these references" if found else ""
    value = found.value if found else None
    return Score("best_constant_rouge_l", value, len(sheets), by="prefix", label=label, note=note)


@lru_cache(maxsize=4)
def _find_constant(references: tuple[tuple[str, ...], ...], stem: bool) -> Constant | None:
    """Return the best constant text; cached, since a run and its baselines share references."""
    return find_best_constant(references, _find_stem() if stem else None)


def _score_given(outcomes: Sequence[Outcome], marks: Sequence[float | None]) -> list[Score]:
    """Return how often requested background knowledge or descriptions were missing."""
    rows = []
    for name in ("background", "image_caption"):
        states = [o.item.tags.get(name, "") for o in outcomes]
        if not any(states):
            continue
        empty, missing = states.count("empty"), states.count("missing")
        if name == "image_caption" and not empty + missing:
            continue
        rows.append(
            Score(
                f"without_{name}",
                (empty + missing) / len(states),
                len(states),
                note=f"missing in the prompt: {empty} memes have none, {missing} answers are "
                "missing",
            )
        )
        if name == "background" and len(set(states)) > 1:
            for state in sorted(set(states)):
                kept = [place for place, given_state in enumerate(states) if given_state == state]
                rows.append(
                    mean_score(
                        "rouge_l",
                        [marks[place] for place in kept],
                        [outcomes[place].item.group for place in kept],
                        by="background",
                        label=state,
                    )
                )
    return rows


def _write_notes(task: str, sheets: Sequence[_ScoredReply], scoring: Scoring) -> Mapping[str, str]:
    """Return notes on how each metric was computed."""
    parts = ["best F1 over references", "Porter stems" if scoring.stem else "no stemmer"]
    if task == "intent":
        parts.append(f"prefix {'stripped' if scoring.strip_prefix else 'kept'}")
        parts.insert(0, "the paper's metric")
    if task == "background":
        without = sum(not sheet.references for sheet in sheets)
        parts[0] = "best line for each fact" if scoring.by_fact else "all facts as one text"
        parts.append(f"{without} memes without facts are not scored")
    if task == "caption":
        parts.append(_DESCRIPTIVE)
    absent = [
        f"{name} (--set {option}=FOLDER)"
        for name, option, given in (
            ("BERTScore", "bertscore", scoring.bert),
            ("NLI consistency", "nli", scoring.nli),
        )
        if scoring.neural_known and given is None
    ]
    if absent:
        parts.append(f"not computed, because no model was given: {', '.join(absent)}")
    case = "lower case" if scoring.lower else "case kept"
    notes = {
        "rouge_l": "; ".join(parts),
        "bleu_4": f"sentence level, smoothing {scoring.smoothing}, tokens {scoring.tokenizer},"
        f" {case}",
    }
    if scoring.bert is not None:
        notes["bertscore_f1"] = scoring.services.bert(scoring.bert).note
    if scoring.nli is not None:
        notes["nli_consistency"] = scoring.services.nli(scoring.nli).note
    return notes


@cache
def _find_stem() -> Stem:
    try:
        return load_porter()
    except ModuleNotFoundError as error:
        raise MissingExtra("stems", "text") from error
