"""Figures of a study: means over seeds, intervals over memes, and two kinds of tests."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from memantics.core.records import Score
from memantics.detector.examples import MODALITIES, Example
from memantics.metrics.comparison import correct_known, resampled_p, welch_t_test
from memantics.metrics.interval import Floats, bootstrap, draw_sums, percentile_span

Places = NDArray[np.int64]
_DRAWS = 2000


@dataclass(frozen=True, slots=True)
class VariantVerdicts:
    """What a variant said about the test memes: a row of class places for each seed."""

    memes: tuple[str, ...]
    gold: Places
    said: Places
    classes: tuple[str, ...]

    def keep(self, memes: Sequence[str]) -> VariantVerdicts:
        """The same for some of the memes, in their order."""
        rows = {meme: row for row, meme in enumerate(self.memes)}
        places = [rows[meme] for meme in memes]
        return VariantVerdicts(tuple(memes), self.gold[places], self.said[:, places], self.classes)

    @property
    def cells(self) -> Floats:
        """One row a meme: for each seed, the place of its cell in the table of confusions."""
        size = len(self.classes)
        marks = np.eye(size * size)[self.gold * size + self.said]
        return np.asarray(marks.transpose(1, 0, 2).reshape(len(self.memes), -1), float)

    def count(self, sums: Floats) -> Floats:
        """Confusions: draws × seeds × gold × said."""
        size = len(self.classes)
        return sums.reshape(len(sums), -1, size, size)


def precisions(tables: Floats) -> Floats:
    """By class: the share of claims that are right; 0 where nothing is claimed."""
    return _divide(_diagonal(tables), tables.sum(-2))


def recalls(tables: Floats) -> Floats:
    """By class: the share of memes that are found."""
    return _divide(_diagonal(tables), tables.sum(-1))


def f1s(tables: Floats) -> Floats:
    """By class: 2TP / (2TP + FP + FN)."""
    return _divide(2 * _diagonal(tables), tables.sum(-1) + tables.sum(-2))


def _diagonal(tables: Floats) -> Floats:
    return np.asarray(np.diagonal(tables, axis1=-2, axis2=-1), float)


def _divide(above: Floats, below: Floats) -> Floats:
    found: Floats = np.divide(above, below, out=np.zeros_like(above, float), where=below > 0)
    return found


Figure = Callable[[Floats], Floats]


def list_figures(classes: Sequence[str]) -> Mapping[tuple[str, str, str], Figure]:
    """The figures of the paper's table, by key, breakdown and part; one value for each seed."""
    figures: dict[tuple[str, str, str], Figure] = {
        ("macro_precision", "", ""): lambda tables: precisions(tables).mean(-1),
        ("macro_recall", "", ""): lambda tables: recalls(tables).mean(-1),
        ("macro_f1", "", ""): lambda tables: f1s(tables).mean(-1),
    }
    if len(classes) == 2:
        figures["f1_harmful", "", ""] = lambda tables: f1s(tables)[..., 1]
        return figures
    for place, name in enumerate(classes):
        figures["f1", "type", name] = partial(_f1_of, place)
    return figures


def _f1_of(place: int, tables: Floats) -> Floats:
    return f1s(tables)[..., place]


def score_sheet(sheet: VariantVerdicts, examples: Mapping[str, Example]) -> tuple[Score, ...]:
    """Means over seeds with intervals over memes; the note says the spread over seeds."""
    cells = sheet.cells
    whole = sheet.count(cells.sum(0)[None])
    scores = []
    for (key, by, label), figure in list_figures(sheet.classes).items():
        span = bootstrap(cells, _average(sheet, figure), draws=_DRAWS)
        by_seed = figure(whole)[0].tolist()
        scores.append(_score((key, by, label), by_seed, len(sheet.memes), span))
    if len(sheet.classes) == 2:
        scores += _score_modalities(sheet, examples)
    return tuple(scores)


def _average(sheet: VariantVerdicts, figure: Figure) -> Callable[[Floats], Floats]:
    return lambda sums: np.asarray(figure(sheet.count(sums)).mean(-1), float)


def _score(
    name: tuple[str, str, str],
    by_seed: Sequence[float],
    n: int,
    span: tuple[float, float] | None,
) -> Score:
    low, high = span or (None, None)
    key, by, label = name
    mean = statistics.fmean(by_seed)
    return Score(key, mean, n, low, high, by=by, label=label, note=say_spread(by_seed))


def say_spread(by_seed: Sequence[float]) -> str:
    """The standard deviation over seeds in words, in points.

    >>> say_spread([0.70, 0.72]), say_spread([0.7])
    ('± 1.41 over 2 seeds', 'one seed')
    """
    if len(by_seed) < 2:
        return "one seed"
    return f"± {100 * statistics.stdev(by_seed):.2f} over {len(by_seed)} seeds"


def _score_modalities(sheet: VariantVerdicts, examples: Mapping[str, Example]) -> list[Score]:
    """The share of harmful memes that is found, by where the harm lies (the paper's Figure C1)."""
    found = []
    for modality in MODALITIES:
        rows = [
            row
            for row, meme in enumerate(sheet.memes)
            if sheet.gold[row] == 1 and examples[meme].modality == modality
        ]
        if rows:
            hits = (sheet.said[:, rows] == 1).astype(float)
            span = bootstrap(
                np.column_stack([hits.mean(0), np.ones(len(rows))]),
                lambda sums: np.asarray(sums[:, 0] / sums[:, 1], float),
                draws=_DRAWS,
            )
            name = ("accuracy", "modality", modality)
            found.append(_score(name, hits.mean(1).tolist(), len(rows), span))
    return found


@dataclass(frozen=True, slots=True)
class Contrast:
    """Macro-F1 of two variants, second minus first.

    ``low``, ``high`` and ``p`` come from resampling memes with the answers of all seeds of both;
    ``p_seeds`` is Welch's t-test between the seeds' figures. ``corrected`` and ``seeds_corrected``
    are Holm's, over all contrasts of the task.
    """

    task: str
    first: str
    second: str
    memes: int
    difference: float
    low: float | None
    high: float | None
    p: float | None
    p_seeds: float | None
    corrected: float | None = None
    seeds_corrected: float | None = None


def contrast(
    task: str, names: tuple[str, str], one: VariantVerdicts, other: VariantVerdicts
) -> Contrast | None:
    """Compare two variants on the memes that both judged; None where there are none."""
    shared = [meme for meme in one.memes if meme in set(other.memes)]
    if not shared:
        return None
    one, other = one.keep(shared), other.keep(shared)
    width = one.cells.shape[1]

    def macro(sheet: VariantVerdicts, sums: Floats) -> Floats:
        return np.asarray(f1s(sheet.count(sums)).mean(-1), float)

    def difference(sums: Floats) -> Floats:
        second, first = macro(other, sums[:, width:]), macro(one, sums[:, :width])
        return np.asarray(second.mean(-1) - first.mean(-1), float)

    cells = np.hstack([one.cells, other.cells])
    seen = float(difference(cells.sum(0)[None])[0])
    low = high = p = None
    if len(shared) > 1:
        drawn = np.concatenate([difference(part) for part in draw_sums(cells, _DRAWS)])
        (low, high), p = percentile_span(drawn), resampled_p(drawn, seen)
    by_seed = [macro(value, value.cells.sum(0)[None])[0].tolist() for value in (one, other)]
    seeds = welch_t_test(*by_seed)
    return Contrast(
        task, *names, len(shared), seen, low, high, p, seeds.p if seeds is not None else None
    )


def correct(found: Sequence[Contrast]) -> tuple[Contrast, ...]:
    """Holm's correction over all contrasts of a task, each kind of test by itself."""
    mended = list(found)
    for task in dict.fromkeys(contrast.task for contrast in found):
        rows = [row for row, contrast in enumerate(found) if contrast.task == task]
        memes = correct_known([found[row].p for row in rows])
        seeds = correct_known([found[row].p_seeds for row in rows])
        for row, by_meme, by_seed in zip(rows, memes, seeds, strict=True):
            mended[row] = replace(found[row], corrected=by_meme, seeds_corrected=by_seed)
    return tuple(mended)
