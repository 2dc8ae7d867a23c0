"""Figures about stated probabilities: calibration, Brier score, risk at each coverage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from pydantic import JsonValue

from memantics.core.records import Form, Odds, Outcome, Score
from memantics.core.task import Task, Unparsed
from memantics.metrics import calibration

_COVERAGES = (0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
_THRESHOLDS = (0.5, 0.7, 0.9, 0.95)


def choose(masses: Mapping[str, float], form: Form) -> str:
    """The likeliest option; the earliest of those that are equally likely.

    >>> from memantics.core.records import Field, Option
    >>> form = Form("?", (Field("answer", "choice", (Option("A", ""), Option("B", ""))),))
    >>> choose({"A": 0.2, "B": 0.3}, form), choose({"A": 0.2, "B": 0.2}, form)
    ('B', 'A')
    """
    return max((option.key for option in form.fields[0].options), key=lambda k: masses.get(k, 0.0))


def state_odds(masses: Mapping[str, float], form: Form, task: Task, gold: JsonValue) -> Odds | None:
    """Probabilities over the options; None where no option reads as the gold value."""
    keys = [option.key for option in form.fields[0].options]
    for key in keys:
        # A task may call its gold otherwise than its sheet does.
        with suppress(Unparsed):
            if task.parse(key, form) == gold:
                return Odds(calibration.normalise(masses, keys), key)
    return None


def score_certainty(outcomes: Sequence[Outcome]) -> Iterator[Score]:
    """Figures over the items whose options have probabilities."""
    odds = [outcome.odds for outcome in outcomes if outcome.odds is not None]
    if not odds:
        return
    stated, golds = [chances.stated for chances in odds], [chances.gold for chances in odds]
    sure = [max(chances.stated.values()) for chances in odds]
    right = [_likeliest(chances.stated) == chances.gold for chances in odds]
    n = len(odds)
    yield Score("calibration_error", calibration.calibration_error(sure, right), n)
    yield Score("brier", calibration.brier_score(stated, golds), n)
    yield Score("area_under_risk", calibration.area_under_risk(sure, right), n)
    for fill_bin in calibration.fill_bins(sure, right):
        label = f"{fill_bin.low:.1f} to {fill_bin.high:.1f}"
        yield Score("right", fill_bin.right, fill_bin.n, by="confidence", label=label)
    points = calibration.risk_coverage(sure, right)
    for share in _COVERAGES:
        reached = next(p for p in points if p.coverage >= share - 1e-9)
        yield Score("risk", reached.risk, reached.n, by="coverage", label=f"{share:.0%}")
    for least in _THRESHOLDS:
        kept = [hit for figure, hit in zip(sure, right, strict=True) if figure >= least]
        value = sum(kept) / len(kept) if kept else None
        yield Score("right", value, len(kept), by="abstaining below", label=f"{least:g}")


def _likeliest(stated: Mapping[str, float]) -> str:
    return max(stated, key=lambda key: stated[key])
