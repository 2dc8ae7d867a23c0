"""Figures of people's ratings, counted by hand and with scipy."""

from __future__ import annotations

from statistics import fmean

import pytest
from scipy import stats

from memantics.core.records import Score
from memantics.evaluation.human_eval import (
    HumanScores,
    MetricCorrelation,
    Rated,
    SettingMeans,
    score_ratings,
)
from memantics.metrics.comparison import holm

# Six memes in two settings; of the last reply nothing is known but one person's relevance.
FIRST, SECOND = (1.0, 2.0, 2.0, 3.0, 1.0, 2.0), (3.0, 3.0, 5.0, 4.0, 4.0, None)
MARKS = (0.1, 0.2, 0.4, 0.3, 0.5, 0.2), (0.6, None, 0.9, 0.7, 0.8, 0.1)


def rate(meme: int, setting: str, value: float | None, mark: float | None) -> Rated:
    """Two people; the second gives one point more."""
    given = {} if value is None else {"p1": value, "p2": value + 1}
    return Rated(
        f"m{meme}", setting, {"correctness": given, "relevance": {"p3": 4.0}}, {"rouge_l": mark}
    )


RATED = [
    rate(meme, setting, value, mark)
    for setting, values, marks in (("plain", FIRST, MARKS[0]), ("told", SECOND, MARKS[1]))
    for meme, (value, mark) in enumerate(zip(values, marks, strict=True))
]


@pytest.fixture(scope="module")
def found() -> HumanScores:
    return score_ratings(RATED)


def test_who_rated_what(found: HumanScores) -> None:
    assert (found.replies, found.memes, found.people) == (12, 6, 3)
    assert found.scales == ("correctness", "relevance")
    assert RATED[0].mean("correctness") == 1.5
    assert RATED[-1].mean("correctness") is None
    assert RATED[0].mean("humour") is None


def test_means_of_a_setting_are_over_the_replies_that_were_rated(found: HumanScores) -> None:
    plain, told = (one.find("correctness") for one in found.settings)
    assert plain is not None
    assert told is not None
    assert (plain.n, told.n) == (6, 5)
    assert plain.value == pytest.approx(fmean(FIRST) + 0.5)
    assert told.value == pytest.approx(19 / 5 + 0.5)
    assert plain.low is not None
    assert plain.high is not None
    assert 1.5 <= plain.low < (plain.value or 0.0) < plain.high <= 3.5
    assert found.settings[0].find("humour") is None
    silent = score_ratings([Rated("m", "plain", {"correctness": {}}, {})])
    assert silent.settings == (SettingMeans("plain", (Score("correctness", None, 0),)),)


def test_settings_are_contrasted_on_the_memes_that_both_have(found: HumanScores) -> None:
    right, relevant = found.contrasts
    assert (right.scale, right.first, right.second) == ("correctness", "plain", "told")
    assert right.memes == 5
    shared = FIRST[:5], [value for value in SECOND if value is not None]
    assert right.difference == pytest.approx(fmean(shared[1]) - fmean(shared[0]))
    assert right.t_paired == pytest.approx(stats.ttest_rel(*shared).pvalue)
    assert (relevant.scale, relevant.memes, relevant.difference) == ("relevance", 6, 0.0)
    known = [contrast.p for contrast in found.contrasts if contrast.p is not None]
    assert [contrast.corrected for contrast in found.contrasts] == pytest.approx(holm(known))


def test_agreement_counts_replies_with_two_ratings(found: HumanScores) -> None:
    told = {(score.key, score.label): score for score in found.agreement}
    assert told["correctness", "proportion of pairs in exact agreement"].value == 0.0
    assert told["correctness", "Krippendorff's alpha, ordinal"].n == 11
    assert told["relevance", "Krippendorff's alpha, ordinal"].n == 0
    alike = [
        Rated(f"m{n}", "plain", {"correctness": {"p1": value, "p2": value}}, {})
        for n, value in enumerate((1.0, 3.0, 5.0))
    ]
    assert [score.value for score in score_ratings(alike).agreement] == [1.0, 1.0]


def test_metrics_follow_people_over_replies_and_over_settings(found: HumanScores) -> None:
    kept = [
        (mark, rating.mean("correctness"))
        for rating in RATED
        if (mark := rating.marks["rouge_l"]) is not None and rating.mean("correctness") is not None
    ]
    replies, settings, *_ = found.correlations
    assert (replies.metric, replies.scale, replies.over) == ("rouge_l", "correctness", "replies")
    assert replies.n == len(kept) == 10
    assert replies.value == pytest.approx(stats.spearmanr(kept).statistic)
    assert replies.low is not None
    assert replies.high is not None
    assert replies.low <= (replies.value or 0.0) <= replies.high
    assert settings == MetricCorrelation("rouge_l", "correctness", "settings", None, None, None, 2)
    third = [rate(meme, "human", 6.0 + meme, 0.95) for meme in range(3)]
    settings = score_ratings([*RATED, *third]).correlations[1]
    assert (settings.over, settings.n) == ("settings", 3)
    assert settings.value == pytest.approx(1.0)
    unmarked = [rate(meme, "none", 9.0, None) for meme in range(3)]
    assert score_ratings([*RATED, *unmarked]).correlations[1].n == 2


def test_tables_show_every_metric_and_a_dash_where_there_is_none(found: HumanScores) -> None:
    table = found.table()
    assert table.title == "12 replies to 6 memes, 3 people"
    assert table.sides == (("setting", "left"), ("correctness", "right"), ("relevance", "right"))
    assert [row[0] for row in table.rows] == ["plain", "told"]
    assert table.rows[0][1].startswith("2.33 (")
    assert table.rows[0][1].count("–") == 1
    assert table.rows[0][2] == "4.00"  # All ratings are equal, so no interval can be estimated.
    means = HumanScores(
        1, 1, 1, (SettingMeans("a", (Score("b", 2.0, 1), Score("c", None, 0))),), (), (), ()
    )
    assert means.table().rows == (("a", "2.00", "–"),)
    pairs = found.contrast_table()
    assert [name for name, _ in pairs.sides] == [
        *("scale", "settings", "difference (95 %)", "p", "Holm", "paired t")
    ]
    assert pairs.rows[0][:2] == ("correctness", "plain → told")
    assert pairs.rows[0][2].startswith("+2.00 (+")
    assert pairs.rows[1][2].startswith("+0.00 (-0."), "no difference in 6 memes is no certainty"
    lone = score_ratings([RATED[0], RATED[6]])
    assert lone.contrast_table().rows[0][2:] == ("+2.00", "–", "–", "–")
    assert found.agreement_table().sides == (
        *(("scale", "left"), ("agreement", "left"), ("value", "right"), ("replies", "right")),
    )
    assert found.agreement_table().rows[1] == (
        *("correctness", "proportion of pairs in exact agreement", "0.00", "11"),
    )
    assert found.agreement_table().rows[3][2:] == ("–", "0")
    metrics = found.metric_table()
    assert metrics.title == "Correlation of metrics with human ratings"
    assert [name for name, _ in metrics.sides] == [
        *("metric", "scale", "over", "Spearman", "95 %", "n")
    ]
    assert [where for _, where in metrics.sides] == ["left"] * 3 + ["right"] * 3
    assert metrics.rows[0][:3] == ("rouge_l", "correctness", "replies")
    assert metrics.rows[1] == ("rouge_l", "correctness", "settings", "–", "–", "2")
    assert " to +" in metrics.rows[0][4]


def test_a_notebook_shows_the_tables_that_hold_something(found: HumanScores) -> None:
    page = found._repr_html_()
    assert page.count("<table>") == 4
    told = [
        page.index(words) for words in ("12 replies", "Holm", "alpha", "Correlation of metrics")
    ]
    assert told == sorted(told)
    plain = score_ratings([Rated("m", "plain", {"correctness": {"p": 3.0}}, {})])
    assert plain._repr_html_().count("<table>") == 2
