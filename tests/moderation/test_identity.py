"""False positives on harmless sentences that name a group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from memantics.moderation.identity import (
    EVERY_GROUP,
    LANGUAGES,
    describe_identity,
    explain_more_false_positives,
    list_identity_sentences,
    measure_identity_terms,
    tabulate_identity,
    warn_identity,
)
from memantics.moderation.operating_points import OperatingPoint

POINT = OperatingPoint(0.5)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_sixty_sentences_over_twenty_groups(language: str) -> None:
    sentences = list_identity_sentences(language)
    counts = Counter(sentence.group for sentence in sentences)
    assert len(sentences) >= 60
    assert len(counts) >= 20
    assert set(counts.values()) == {12}
    assert len({sentence.text for sentence in sentences}) == len(sentences)
    assert all(one.group.lower() in one.text.lower() for one in sentences)


def score_muslims(texts: Sequence[str]) -> list[float]:
    return [0.9 if "muslims" in text.lower() else 0.1 for text in texts]


def test_the_group_that_is_flagged_comes_first_with_its_rate() -> None:
    overall, worst, second, *_ = measure_identity_terms(score_muslims, POINT, ["en", "de", "en"])
    assert (overall.group, overall.flagged.count) == (EVERY_GROUP, 336)
    assert overall.flagged.value == pytest.approx(12 / 336)
    assert (worst.group, worst.flagged.value, second.flagged.value) == ("Muslims", 1.0, 0.0)
    assert overall.flagged.low is not None
    assert overall.flagged.low < 12 / 336 < (overall.flagged.high or 0)
    table = tabulate_identity([overall, worst])
    assert table.rows[1][:4] == ("en", "Muslims", "12", "100.0")


def test_a_sentence_in_the_review_band_counts() -> None:
    reviewed = measure_identity_terms(score_muslims, OperatingPoint(0.95, (0.8, 0.95)), ["en"])
    allowed = measure_identity_terms(score_muslims, OperatingPoint(0.95), ["en"])
    assert (reviewed[1].flagged.value, allowed[1].flagged.value) == (1.0, 0.0)


def test_a_new_detector_that_flags_more_is_described_with_its_groups() -> None:
    def calm(texts: Sequence[str]) -> list[float]:
        return [0.1] * len(texts)

    points = (POINT, POINT)
    assert explain_more_false_positives(calm, calm, points, ["en"]) == ""
    assert explain_more_false_positives(score_muslims, calm, points, ["en"]) == ""
    assert explain_more_false_positives(calm, score_muslims, points, ["de"]) == ""
    assert explain_more_false_positives(calm, score_muslims, points, ["en"]) == (
        "the new detector flags 12 of 336 harmless sentences about groups, the old one 0; most of"
        " the increase: Muslims"
    )


def test_training_warns_of_the_groups_and_names_the_command() -> None:
    rows = measure_identity_terms(score_muslims, POINT, ["en", "zh"])
    command = "memantics detector train --data posts.csv --out d.zip"
    (line,) = warn_identity(rows, command)
    assert line == (
        "warning: half or more of the harmless sentences about 1 group (en) are flagged: Muslims;"
        f" train again with copies that name other groups: '{command} --counterfactual', and your"
        " other options"
    )
    (again,) = warn_identity(rows, command, counterfactual=True)
    assert "--counterfactual" not in again
    assert "--review-range" in again
    every = measure_identity_terms(lambda texts: [0.9] * len(texts), POINT, ["zh"])
    (line,) = warn_identity(every, command)
    assert "about 28 groups (zh)" in line
    assert " and 20 more; " in line
    calm = measure_identity_terms(lambda texts: [0.1] * len(texts), POINT, ["en"])
    assert warn_identity(calm, command) == []


def test_training_prints_the_rate_the_worst_groups_and_the_remedy() -> None:
    rows = measure_identity_terms(score_muslims, POINT, ["en", "zh"])
    english, chinese = describe_identity(rows)
    assert english.startswith("identity terms (en): 3.6 % of 336 harmless sentences")
    assert english.endswith("; most: Muslims 100 %; --counterfactual may lower these rates")
    assert "0.0 % of 336" in chinese
    assert "most" not in chinese
    assert "--counterfactual" not in describe_identity(rows, counterfactual=True)[0]
    assert describe_identity(()) == []
