"""Thresholds: the table of what each does, rules, and the point that a file stores."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from memantics.core.errors import InputError
from memantics.metrics.interval import wilson
from memantics.moderation.detect import Detector
from memantics.moderation.evaluation import evaluate
from memantics.moderation.examples import Example
from memantics.moderation.fast import Prediction
from memantics.moderation.operating_points import (
    OperatingPoint,
    measure_thresholds,
    read_point,
    tabulate_thresholds,
)
from memantics.moderation.training import set_point
from tests.moderation.commands import run
from tests.moderation.samples import make_examples

SAID = [(0.9, True), (0.7, True), (0.7, False), (0.4, True), (0.2, False), (0.1, False)]


def test_both_sides_of_a_threshold() -> None:
    rows = {row.threshold: row for row in measure_thresholds(SAID, 0.71)}
    assert len(rows) == 20
    at = rows[0.7]
    assert (at.precision.value, at.recall.value, at.flagged.value) == (2 / 3, 2 / 3, 3 / 6)
    assert (at.precision.low, at.precision.high) == wilson(2, 3)
    above = rows[0.71]
    assert (above.precision.value, above.recall.value, above.flagged.value) == (1.0, 1 / 3, 1 / 6)
    # At 0.3 both 0.2 and 0.4 are within 0.1 of it.
    assert rows[0.3].near.value == 2 / 6
    assert rows[0.95].precision.value is None


def test_the_table_shows_tenths_and_what_is_in_force() -> None:
    table = tabulate_thresholds(measure_thresholds(SAID, 0.71), 0.71)
    assert [row[0] for row in table.rows][6:8] == ["0.70", "0.71 *"]
    assert len(table.rows) == 10
    near = tabulate_thresholds(measure_thresholds(SAID, 0.704), 0.704)
    assert [row[0] for row in near.rows][6:8] == ["0.70", "0.704 *"]
    assert tabulate_thresholds(measure_thresholds([], None)).rows[0][1:] == ("–",) * 4


def test_no_harmful_meme_is_no_recall() -> None:
    row = measure_thresholds([(0.5, False)])[0]
    assert (row.recall.value, row.precision.value, row.flagged.value) == (None, 0.0, 1.0)


def test_metrics_of_harmful_memes_alone_are_named_so() -> None:
    examples = [Example(str(n), "t", label=int(truth)) for n, (_, truth) in enumerate(SAID)]
    said = [
        Prediction(str(n), int(chance >= 0.5), chance, None, {})
        for n, (chance, _) in enumerate(SAID)
    ]
    found = evaluate(examples, said, 0.5)
    assert found.find("precision/harmful") == 2 / 3
    assert found.find("recall/harmful") == 2 / 3
    # Of nine pairs of a harmful and a harmless meme one is in the wrong order, one is a tie.
    assert found.find("auroc") == pytest.approx(7.5 / 9)
    names = [row[1] for row in found.table().rows]
    assert names[:3] == ["macro-precision", "macro-recall", "macro-f1"]
    assert found.threshold_table.rows[4][0] == "0.50 *"


def test_a_point_is_stored_used_shown_and_cleared(tmp_path: Path) -> None:
    file = tmp_path / "d.zip"
    Detector.train(make_examples(80), "ridge").save(file)
    trained = Detector.load(file).point
    told = run("set", file, "--operating-point", "precision=0.9", "--review-range", "0.2..0.6")
    assert re.match(
        r"threshold 0\.\d+ \(precision=0\.9\), review band .* on 80 held-out memes precision",
        " ".join(told.split()),
    )
    stored = Detector.load(file)
    assert (stored.point.rule, stored.point.review_range) == ("precision=0.9", (0.2, 0.6))
    assert stored.point.threshold == stored.find_point("precision=0.9").threshold
    assert "Operating point, as set" in run("info", file)
    shown = run("eval", file, "--data", "sample")
    assert f"{stored.point.threshold:.3f}".removesuffix("0") + " *" in shown
    # What is given wins; another threshold has no range unless one is given, too.
    assert stored.choose_point(0.5) == OperatingPoint(0.5)
    assert stored.choose_point(review_range=(0.1, 0.2)).threshold == stored.point.threshold
    set_point(file, clear=True)
    assert Detector.load(file).point == trained
    for words in ({}, {"clear": True, "threshold": 0.5}):
        with pytest.raises(InputError, match="give either an operating point or --clear"):
            set_point(file, **words)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="cannot be combined"):
        set_point(file, threshold=0.5, operating_point="recall=0.5")


@pytest.mark.parametrize(
    "stored", [{"threshold": "x", "review_range": None}, {"review_range": None}, 7]
)
def test_a_damaged_point_is_refused(stored: object) -> None:
    with pytest.raises(InputError, match=r"operating point of d\.zip cannot be read"):
        read_point(stored, "d.zip")
    assert read_point(None, "d.zip") is None


def test_the_card_shows_the_curve(tmp_path: Path) -> None:
    Detector.train(make_examples(80), "ridge").save(tmp_path / "my d.zip")
    assert "(my%20d.card.svg)" in (tmp_path / "my d.card.md").read_text("utf-8")
    picture = (tmp_path / "my d.card.svg").read_text("utf-8")
    assert picture.count("<polyline") == 2
    assert "95 % bands" in picture
