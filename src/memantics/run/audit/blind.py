"""The blind run: the same prompts without the image. What can still be solved needs no meme."""

from __future__ import annotations

from collections.abc import Sequence

from memantics.core.finding import Finding, FindingVerdict
from memantics.core.records import Outcome, Score
from memantics.run.audit.asking import keep_both
from memantics.run.audit.rows import mean, place, share
from memantics.run.audit.shortcuts import Chance
from memantics.run.audit.subject import Exam


def judge_blind(
    exam: Exam,
    model: str,
    blind: Sequence[Outcome],
    seen: Sequence[Outcome],
    chance: Chance,
) -> Finding:
    """Hold the blind run against chance and, where there is one, against the run with images."""
    figure = exam.score(blind)
    full = exam.score(seen) if seen else None
    rows = _list_rows(exam, blind, seen, full)
    kept = _keep_share(figure, full, chance)
    verdict = _weigh(figure, chance, kept)
    return Finding(
        key="blind",
        title="Answering without the image",
        measured=f"{exam.task.main.replace('_', ' ')} with the same prompts, every image left out",
        figure=Score(exam.task.main, figure.value, figure.n, figure.low, figure.high),
        expected=chance.value,
        reference=chance.words,
        verdict=verdict,
        meaning=_meaning(verdict, kept, full),
        advice={
            "broken": "Do not call this score visual understanding; score the items that are not "
            "solved blind apart.",
            "worth knowing": "Give the blind figure beside the score.",
            "sound": "Nothing.",
        }[verdict],
        task=exam.name,
        model=model,
        rows=tuple(rows),
    )


def _list_rows(
    exam: Exam, blind: Sequence[Outcome], seen: Sequence[Outcome], full: Score | None
) -> list[Score]:
    rows = []
    texts = exam.items[0].form.reply == "text"
    if not texts:
        groups = [own.item.group for own in blind]
        rows.append(share([solved(own) for own in blind], groups, "items", "solved blind"))
    if full is not None:
        rows.append(place(full, "run", "with images"))
    first, second = keep_both(blind, seen)
    before, after = _mark(exam, first), _mark(exam, second)
    gains = [b - a for a, b in zip(before, after, strict=True)]
    if gains:
        groups = [own.item.group for own in first]
        label = "gained with images" if texts else "solved more with images"
        rows.append(mean(gains, groups, "items", label, "difference"))
    return rows


def _mark(exam: Exam, outcomes: Sequence[Outcome]) -> list[float]:
    """Each outcome's own worth: right or wrong, or the task's mark for a text."""
    if exam.items[0].form.reply != "text":
        return [float(solved(own)) for own in outcomes]
    marks = exam.task.marks(outcomes) if exam.task.marks and outcomes else {}
    return [own or 0.0 for own in marks.get(exam.task.main, ())]


def solved(outcome: Outcome) -> bool:
    """Whether an outcome is the gold answer."""
    return outcome.status == "answered" and outcome.value == outcome.item.gold


def _keep_share(figure: Score, full: Score | None, chance: Chance) -> float | None:
    """Which share of what a model has over chance it has without images."""
    base = chance.value or 0.0
    if figure.value is None:
        return None
    top = full.value if full is not None and full.value is not None else 1.0
    return (figure.value - base) / (top - base) if top - base > 0.02 else None


def _weigh(figure: Score, chance: Chance, kept: float | None) -> FindingVerdict:
    low = figure.low if figure.low is not None else figure.value
    if low is None or low <= (chance.value or 0.0):
        return "sound"
    return "broken" if kept is not None and kept >= 0.5 else "worth knowing"


def _meaning(verdict: FindingVerdict, kept: float | None, full: Score | None) -> str:
    if verdict == "sound":
        return "Without the image the model is no better than guessing."
    of = "what it has over guessing with images" if full else "the way from guessing to perfect"
    share = f" It keeps {kept:.0%} of {of}." if kept is not None else ""
    return f"The model answers better than guessing without seeing any meme.{share}"
