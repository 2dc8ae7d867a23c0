"""What people said of models' replies: means by setting, tests, agreement, and how metrics follow.

The replies were rated blind; the key says which setting gave each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from itertools import combinations
from statistics import fmean

import numpy as np

from memantics.core.records import Score
from memantics.core.result import Result, Table
from memantics.metrics.agreement import krippendorff_alpha, pairwise_agreement
from memantics.metrics.comparison import PairedContrast, contrast_pairs, correct_known
from memantics.metrics.correlation import spearman, spearman_span
from memantics.metrics.interval import bootstrap
from memantics.run.differences import show_p


@dataclass(frozen=True, slots=True)
class Rated:
    """One reply: its meme, its setting, and what each person gave it on each scale.

    ``marks`` are the metrics' values of the same reply.
    """

    meme: str
    setting: str
    ratings: Mapping[str, Mapping[str, float]]
    marks: Mapping[str, float | None]

    def mean(self, scale: str) -> float | None:
        """The mean over people; None where nobody rated it."""
        given = self.ratings.get(scale, {})
        return fmean(given.values()) if given else None


@dataclass(frozen=True, slots=True)
class SettingMeans:
    """Means of one setting on each scale, with intervals over memes."""

    setting: str
    figures: tuple[Score, ...]

    def find(self, scale: str) -> Score | None:
        """The mean on a scale."""
        return next((score for score in self.figures if score.key == scale), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class RatingContrast(PairedContrast):
    """Two settings on one scale; ``corrected`` is Holm's of ``p`` over all contrasts."""

    scale: str
    first: str
    second: str
    corrected: float | None = None


@dataclass(frozen=True, slots=True)
class Followed:
    """How a metric follows people on a scale: Spearman's correlation over replies or settings."""

    metric: str
    scale: str
    over: str
    value: float | None
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True, slots=True)
class HumanScores(Result):
    """A human evaluation: settings, contrasts, agreement by scale, and metrics against people."""

    replies: int
    memes: int
    people: int
    settings: tuple[SettingMeans, ...]
    contrasts: tuple[RatingContrast, ...]
    agreement: tuple[Score, ...]
    followed: tuple[Followed, ...]

    @property
    def scales(self) -> tuple[str, ...]:
        """The scales that were rated."""
        return tuple(dict.fromkeys(score.key for one in self.settings for score in one.figures))

    def table(self) -> Table:
        """Means by setting and scale, with intervals."""
        rows = [
            (one.setting, *(_show(one.find(scale)) for scale in self.scales))
            for one in self.settings
        ]
        title = f"{self.replies:,} replies to {self.memes:,} memes, {self.people} people"
        return Table(("setting", *(f">{scale}" for scale in self.scales)), tuple(rows), title)

    def contrast_table(self) -> Table:
        """Differences between settings, and their tests."""
        rows = [
            (
                contrast.scale,
                f"{contrast.first} → {contrast.second}",
                f"{contrast.difference:+.2f}"
                + (
                    ""
                    if contrast.low is None
                    else f" ({contrast.low:+.2f} to {contrast.high:+.2f})"
                ),
                *map(
                    show_p, (contrast.p, contrast.corrected, contrast.t_paired, contrast.t_unpaired)
                ),
            )
            for contrast in self.contrasts
        ]
        columns = ("scale", "settings", "difference (95 %)", ">p", ">Holm", ">t paired", ">t")
        return Table(columns, tuple(rows))

    def agreement_table(self) -> Table:
        """How far people agree on each scale."""
        rows = [
            (
                score.key,
                score.label,
                "–" if score.value is None else f"{score.value:.2f}",
                str(score.n),
            )
            for score in self.agreement
        ]
        return Table(("scale", "agreement", ">value", ">replies"), tuple(rows))

    def metric_table(self) -> Table:
        """How far each metric orders replies and settings as people do."""
        rows = [
            (
                followed_run.metric,
                followed_run.scale,
                followed_run.over,
                "–" if followed_run.value is None else f"{followed_run.value:+.2f}",
                "–"
                if followed_run.low is None
                else f"{followed_run.low:+.2f} to {followed_run.high:+.2f}",
                str(followed_run.n),
            )
            for followed_run in self.followed
        ]
        columns = ("metric", "scale", "over", ">Spearman", ">95 %", ">n")
        return Table(columns, tuple(rows), "Metrics against people")

    def _repr_html_(self) -> str:
        tables = (self.table(), self.contrast_table(), self.agreement_table(), self.metric_table())
        return "".join(table._repr_html_() for table in tables if table.rows)


def _show(score: Score | None) -> str:
    if score is None or score.value is None:
        return "–"
    span = "" if score.low is None else f" ({score.low:.2f}–{score.high:.2f})"
    return f"{score.value:.2f}{span}"


def score_ratings(rated: Sequence[Rated]) -> HumanScores:
    """All figures of a human evaluation."""
    scales = tuple(dict.fromkeys(scale for rating in rated for scale in rating.ratings))
    settings = tuple(dict.fromkeys(rating.setting for rating in rated))
    people = {name for rating in rated for given in rating.ratings.values() for name in given}
    return HumanScores(
        replies=len(rated),
        memes=len({rating.meme for rating in rated}),
        people=len(people),
        settings=tuple(
            SettingMeans(
                name,
                tuple(_average(scale, [o for o in rated if o.setting == name]) for scale in scales),
            )
            for name in settings
        ),
        contrasts=_contrast(rated, scales, settings),
        agreement=tuple(
            score for scale in scales for score in _agree(rated, scale, sorted(people))
        ),
        followed=_follow(rated, scales, settings),
    )


def _average(scale: str, rated: Sequence[Rated]) -> Score:
    values = [value for rating in rated if (value := rating.mean(scale)) is not None]
    if not values:
        return Score(scale, None, 0)
    rows = np.column_stack([values, np.ones(len(values))])
    span = bootstrap(rows, lambda sums: np.asarray(sums[:, 0] / sums[:, 1], float))
    low, high = span or (None, None)
    return Score(scale, fmean(values), len(values), low, high)


def _contrast(
    rated: Sequence[Rated], scales: Sequence[str], settings: Sequence[str]
) -> tuple[RatingContrast, ...]:
    found: list[RatingContrast] = []
    for scale in scales:
        by_setting = {
            name: {
                rating.meme: value
                for rating in rated
                if rating.setting == name and (value := rating.mean(scale)) is not None
            }
            for name in settings
        }
        for first, second in combinations(settings, 2):
            made = contrast_pairs(by_setting[first], by_setting[second])
            if made is not None:
                found.append(
                    RatingContrast(*astuple(made), scale=scale, first=first, second=second)
                )
    corrected = correct_known([contrast.p for contrast in found])
    return tuple(
        replace(contrast, corrected=p) for contrast, p in zip(found, corrected, strict=True)
    )


def _agree(rated: Sequence[Rated], scale: str, people: Sequence[str]) -> tuple[Score, ...]:
    rows = [[rating.ratings.get(scale, {}).get(name) for name in people] for rating in rated]
    n = sum(sum(value is not None for value in row) > 1 for row in rows)
    return (
        Score(scale, krippendorff_alpha(rows, "ordinal"), n, label="Krippendorff's alpha, ordinal"),
        Score(scale, pairwise_agreement(rows), n, label="pairs that agree exactly"),
    )


def _follow(
    rated: Sequence[Rated], scales: Sequence[str], settings: Sequence[str]
) -> tuple[Followed, ...]:
    metrics = dict.fromkeys(name for rating in rated for name in rating.marks)
    found = []
    for metric in metrics:
        for scale in scales:
            kept = [
                (rating, mark, given)
                for rating in rated
                if (mark := rating.marks.get(metric)) is not None
                and (given := rating.mean(scale)) is not None
            ]
            marks, said = [mark for _, mark, _ in kept], [given for _, _, given in kept]
            span = spearman_span(marks, said, [rating.meme for rating, _, _ in kept])
            low, high = span or (None, None)
            found.append(
                Followed(metric, scale, "replies", spearman(marks, said), low, high, len(kept))
            )
            groups = [[row for row in kept if row[0].setting == name] for name in settings]
            groups = [pairs for pairs in groups if pairs]
            value = spearman(
                [fmean(mark for _, mark, _ in pairs) for pairs in groups],
                [fmean(given for _, _, given in pairs) for pairs in groups],
            )
            found.append(Followed(metric, scale, "settings", value, None, None, len(groups)))
    return tuple(found)
